// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "zellige/batch.h"
#include "zellige/catalog.h"
#include "zellige/units.h"

namespace zellige {

/// Where a price comes from.
enum class PriceSource { measured, interpolated, extrapolated, estimated };

/// What one sequence of a bucket costs each rank that takes part, under one configuration (paper: P_{b,theta}, and
/// M_{s,c,r} of section IV-B).
struct Price {
  Configuration config;
  Microseconds time;      ///< A_{s,c,r}; a rank's load is the sum of these (Eq. 1); >= 1
  Microseconds exchange;  ///< the part of `time` spent in exchanges when nothing hides them
  Bytes memory;           ///< M_{s,c,r}
  PriceSource source = PriceSource::estimated;
  std::optional<double> spread;  ///< relative standard deviation of the measurement; with `measured` only
  std::optional<double> error;   ///< expected relative error; with `interpolated` and `extrapolated` only

  bool operator==(const Price&) const = default;
};

/// A measured link: a message of n bytes takes latency + n / bytes_per_us.
struct Link {
  std::string scope;  ///< "node" or "cluster"
  std::int64_t latency_us = 0;
  std::int64_t bytes_per_us = 0;
  bool operator==(const Link&) const = default;
};

/// A row of the kernel table: the rate of one attention kernel on one shape.
struct KernelRate {
  std::string kernel;  ///< e.g. "flash-attention-3"
  std::string device;
  std::string direction;  ///< "forward" or "backward"
  Tokens length;
  int count = 1;
  int heads = 0;
  std::int64_t flops_per_us = 0;
  bool operator==(const KernelRate&) const = default;
};

/// What a profile was measured on; used elsewhere it is stale (why_stale). The model is the catalog's.
struct ProfileKey {
  std::string device;
  std::string driver;  ///< empty: nobody measured it
  int executor = 0;    ///< kExecutorVersion
  bool checkpointing = true;
  std::string torch;      ///< version of libtorch; empty: not known
  std::string precision;  ///< of the layers, "fp32", "fp64" or "bf16"; empty: not known
  int ranks = 0;          ///< that ran at once; 0: not known
  bool operator==(const ProfileKey&) const = default;
};

/// Why prices measured on `measured` do not hold on `here`, each difference named with both values; empty when they do.
/// What one side does not know is no difference, nor is the number of ranks but on a CPU, whose ranks share it. An
/// estimate (no driver) is never stale: it was not measured anywhere.
std::string why_stale(const ProfileKey& measured, const ProfileKey& here);

/// Prices, memory limits, links and kernels: data only. File format "zellige.profile" version 1.
/// Threads: const after construction, so any number of readers.
class Profile {
 public:
  Catalog catalog;
  ProfileKey key;
  Microseconds step_base;  ///< placement-independent cost of a step, left out of prices and loads
  Bytes memory_base;       ///< M_base: weights, gradients, optimizer, context
  Bytes memory_usable;     ///< M_usable
  std::vector<Link> links;
  std::vector<KernelRate> kernels;

  /// M_cap = M_usable - M_base; positive.
  Bytes memory_cap() const { return memory_usable - memory_base; }

  /// Sets the prices of a bucket, replacing what was there; sorted by degree, q, h. Call it after `catalog` is set.
  /// Errors: Code::input when [1,1,1] is missing, a configuration comes twice or is illegal, a time is below 1, an
  /// exchange exceeds its time, a memory need is negative, or a spread stands with anything but `measured`.
  void set_prices(BucketIndex bucket, std::vector<Price> prices);

  /// The price of a configuration, or null when the profile has none.
  const Price* find(BucketIndex bucket, Configuration configuration) const;
  /// All prices of a bucket, by degree, then q, then h; the first is the whole sequence's.
  /// Errors: Code::input for a bucket that is not in the catalog or has no prices yet.
  std::span<const Price> menu(BucketIndex bucket) const;
  /// Price of the whole sequence, always there  // w_b = P_{b,whole}
  const Price& whole(BucketIndex bucket) const { return menu(bucket).front(); }

  bool operator==(const Profile&) const = default;

 private:
  std::vector<std::vector<Price>> prices_;
};

/// Reads / writes a profile. Every bucket must have the price of [1,1,1], and the memory cap must be positive.
/// Errors: Code::input, naming file, field and value.
Profile read_profile(const std::string& path);
void write_profile(const Profile& profile, const std::string& path);
std::string profile_json(const Profile& profile);
/// "sha256:..." of the whole profile as canonical JSON.
std::string digest(const Profile& profile);

/// A profile estimated from public figures for `device`: "h200", "a800", "a6000", "cpu". Prices every legal
/// configuration up to degree 16 of the catalog's buckets, labelled estimated, and those over exactly `ranks` ranks
/// (what splits every sequence over all ranks needs them where there are more than 16).
/// Errors: Code::input for an unknown device, listing the known ones; for a model whose weights and optimizer states
/// leave no room on the device.
Profile built_in_profile(std::string_view device, const Catalog& catalog, bool checkpointing = true, int ranks = 1);
std::vector<std::string> built_in_profile_names();

/// Profile bucket of every sequence of a batch: `result[i]` belongs to batch.sequences[i]. Buckets that no sequence
/// uses may be missing in the profile, but none may carry other numbers under the same name.
/// Errors: Code::input when a bucket is not in the profile's catalog with the same numbers, or the models differ;
/// names both.
std::vector<BucketIndex> match_buckets(const Batch& batch, const Profile& profile);

/// Elements that cross from one rank to another, summed over a sequence's rank set, of one layer, by primitive
/// (docs/concepts/price.md; exact for any length and for grouped K/V heads). Unit: elements, i.e. the
/// factors times L x heads x head_dim; multiply by the bytes of an element.
struct ExchangeVolume {
  double all_gather = 0;  ///< K/V from another iq, and their gradients
  double ulysses = 0;     ///< the rest of exchange A and exchange B
  double ring = 0;        ///< streamed K/V blocks and their gradients
  double total() const { return all_gather + ulysses + ring; }
};
/// @param configuration  legal for model and length; the counts mean nothing otherwise
ExchangeVolume forward_volume(const ModelGeometry& model, Tokens length, Configuration configuration);
ExchangeVolume backward_volume(const ModelGeometry& model, Tokens length, Configuration configuration, bool keep_kv);

/// Terms of the analytical memory model for one rank (section IV-B, Table II; docs/concepts/memory_cap.md), in bytes.
struct MemoryTerms {
  Bytes activations;  ///< M^act, inputs and the feed-forward's backward pass with it
  Bytes key_value;    ///< M^KV
  Bytes buffers;      ///< M^buf, and what self-attention's backward pass needs over the feed-forward's
  Bytes total() const { return activations + key_value + buffers; }
};
struct MemoryOptions {
  bool checkpointing = true;
  bool keep_kv = true;
  int element_bytes = 2;  ///< bf16
  int text_dim = 4096;    ///< channels of the text encoder
};
MemoryTerms memory_terms(const ModelGeometry& model, Tokens length, Configuration configuration,
                         const MemoryOptions& options = {});
/// What a step takes on a rank whatever it holds, beside parameters, gradients and optimizer states: copies of a
/// block's weights in the activations' precision, and the gradients of its feed-forward weights before they are added
/// up. Part of M_base.
Bytes step_workspace(const ModelGeometry& model, const MemoryOptions& options = {});

std::string_view name(PriceSource source);

}  // namespace zellige
