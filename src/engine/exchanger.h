// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <unordered_map>

#include "engine/exposed_time.h"
#include "engine/slice_copies.h"
#include "engine/step_plan.h"
#include "engine/torch.h"
#include "zellige/engine.h"

namespace zellige {

/// One exchange's part of the buffers, as the group and the copies take it: views made once a step, used by all layers.
struct Message {
  at::Tensor send, receive;
  std::vector<at::Tensor> send_slices, receive_slices;  ///< [rows, heads, head_dim] of each SliceCopy
};
using Messages = std::unordered_map<const ExchangePlan*, Message>;

/// Runs the all-to-alls of a step on the world group: packs slices into a send buffer, exchanges, hands out what came.
/// Each phase has one pair of buffers, allocated once a step at the largest size and used by all layers, so at most one
/// exchange a phase is under way.
/// Threads: one caller at a time.
class Exchanger {
 public:
  explicit Exchanger(c10::intrusive_ptr<c10d::ProcessGroup> group);

  /// Where a slice lies, in the dtype of the step.
  using Find = std::function<SliceBox(const SliceCopy&)>;
  /// Where a received slice goes: written there, or added to what is there.
  struct Target {
    SliceBox place;
    bool add = false;
  };
  using Put = std::function<Target(const SliceCopy&)>;

  void reset_counters() {
    counters_ = {};
    exposed_.reset();
  }
  /// Makes the buffers fit; allocates only when they don't yet. @param messages  the step's, empty at first; outlives
  /// the exchanges until the next `prepare`
  void prepare(const StepPlan& plan, const at::TensorOptions& options, Messages& messages);

  /// Packs and starts one exchange; with overlap it runs beside what the caller does until `finish`.
  /// Collective: all ranks, in the same order. Errors: Code::communication; the exchanger is unusable afterwards.
  void post(const ExchangePlan& exchange, const StepPlan& plan, const Find& find);
  /// Waits for that exchange and puts its slices where they go; sums add up by rising peer.
  void finish(const ExchangePlan& exchange, const StepPlan& plan, const Put& put);

  /// Other copies to run together with those of the next `post` or `finish`.
  SliceCopies& copies() { return copies_; }

  /// One number of bytes from every rank to every rank. @return [ranks] what each of them sent
  std::vector<std::string> gather(const std::string& mine, std::size_t bytes);

  /// Errors: Code::communication when an earlier exchange failed, or a layer was given up half-way.
  void require_usable() const;
  void give_up() { broken_ = true; }

  c10d::ProcessGroup& group() const { return *group_; }
  const EngineCounters& counters() const { return counters_; }
  /// Since reset_counters. Waits for the device.
  ExposedExchange exposed() { return exposed_.seconds(); }

 private:
  struct Channel {
    at::Tensor send, receive;
    c10::intrusive_ptr<c10d::Work> work;  ///< null when nothing is under way
  };

  template <class Body>
  void communicate(const char* what, const Body& body);
  Message& message_of(const ExchangePlan& exchange, const StepPlan& plan);
  Channel& channel(Phase phase) { return channels_[static_cast<std::size_t>(phase)]; }

  const c10::intrusive_ptr<c10d::ProcessGroup> group_;
  std::array<Channel, 3> channels_;
  SliceCopies copies_;
  Messages* messages_ = nullptr;
  EngineCounters counters_;
  ExposedTime exposed_;
  bool broken_ = false;
};

}  // namespace zellige
