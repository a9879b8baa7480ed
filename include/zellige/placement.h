// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "zellige/anchor_proof.h"
#include "zellige/batch.h"
#include "zellige/catalog.h"
#include "zellige/load_model.h"
#include "zellige/profile.h"
#include "zellige/units.h"

namespace zellige {

/// Where one sequence runs, and what the profile says that costs each of its ranks.
struct PlacedSequence {
  std::string id;
  std::string bucket;  ///< by name
  MediaKind kind = MediaKind::image;
  Tokens tokens;
  Configuration config;
  std::vector<Rank> ranks;  ///< in coordinate order: head fastest, then query, then key/value (engine.md)
  Microseconds time;        ///< claim, a participating rank: the price, whatever the load model makes of it
  Bytes memory;             ///< claim, a participating rank
  Microseconds exchange;    ///< claim, the part of time spent in exchanges; 0 in a plan of additive loads

  bool operator==(const PlacedSequence&) const = default;
};

/// What else decides the collectives of a step. Part of the digest.
struct ExecOptions {
  std::string engine = "coalesced";  ///< or "paper": exchanges of their own for each configuration and rank set
  int waves = 1;                     ///< exchanges are cut in so many parts along the heads; >= 1
  bool overlap = false;              ///< exchanges run beside other work
  bool keep_kv = true;               ///< keep fetched K/V for the backward pass instead of fetching them again

  bool operator==(const ExecOptions&) const = default;
};

/// All that runs in a step: the interface between planner and engine. Plain host data.
struct Placement {
  int ranks = 1;  ///< N
  ModelGeometry model;
  std::vector<PlacedSequence> sequences;  ///< in batch order, the global placement order
  ExecOptions exec;

  bool operator==(const Placement&) const = default;
};

/// "sha256:..." of the canonical JSON of sequences (id, tokens, config, ranks), model and exec: all that decides what
/// runs. Ranks compare it before the first collective.
std::string digest(const Placement& placement);

/// How a plan ended.
enum class PlanStatus {
  optimal,     ///< makespan equals a proved lower bound over all placements of the batch
  feasible,    ///< a plan, maybe not the best
  infeasible,  ///< proved: no placement fits
  timeout,     ///< out of time or cancelled, no plan
  unknown,     ///< no plan found, nothing proved
};
/// How one solve of Anchor Placement ended (sigma_1, sigma_2 of Alg. 1).
enum class SolveStatus { optimal, feasible, infeasible, timeout };

/// What `ranks` ranks hold alike, of the anchors' pieces.
struct RankContent {
  struct Pieces {
    std::string bucket;
    Configuration config;
    int pieces = 0;
    bool operator==(const Pieces&) const = default;
  };
  int ranks = 0;
  std::vector<Pieces> holds;

  bool operator==(const RankContent&) const = default;
};

/// What is proved about a plan. Fields that a method does not prove are none (null in JSON).
struct Certificate {
  std::optional<Microseconds> anchor_load;     ///< largest anchor load of round 1's incumbent
  std::optional<Microseconds> anchor_bound;    ///< proved lower bound of it  // T*_anc when equal
  std::optional<SolveStatus> anchor_status;    ///< sigma_1
  std::optional<int> split_count;              ///< split anchors of the plan
  std::optional<int> split_bound;              ///< proved lower bound  // K*_anc when equal
  std::optional<SolveStatus> split_status;     ///< sigma_2
  std::optional<Microseconds> makespan_bound;  ///< proved lower bound of the makespan over all placements of the batch
  std::optional<AnchorProof> duals;            ///< proves anchor_bound and split_bound; the own solver's only
  std::optional<AnchorProof> makespan_duals;   ///< proves makespan_bound, where a proof is needed; `load` alone counts
  /// Round 1's incumbent, where the plan's own anchors do not reach anchor_load; else empty. Rank sets follow from it
  /// (docs/concepts/own_solver.md, Patterns).
  std::vector<RankContent> anchor_placement;
  /// Buckets whose sequences the rounds were about, by name; none: those of the method (Eq. 4's cut, or all).
  std::optional<std::vector<std::string>> anchor_buckets;

  bool operator==(const Certificate&) const = default;
};

/// A placement and what is claimed about it. File format "zellige.plan" version 1.
struct Plan {
  std::string method;  ///< e.g. "zellige"
  std::string solver;  ///< "own", "cp-sat", "greedy", or the baseline's name
  PlanStatus status = PlanStatus::unknown;
  bool certified = false;          ///< both anchor rounds proved
  std::string reason;              ///< why there is no plan: what is over, and by how much; empty with a plan
  Placement placement;             ///< no sequences when there is no plan
  LoadModel load_model;            ///< what all loads and bounds below are about
  std::vector<Microseconds> load;  ///< [ranks], without step_base; empty when there is no plan
  std::vector<Bytes> memory;       ///< [ranks], without memory_base
  Microseconds makespan;           ///< largest load
  Microseconds floor;              ///< floor(F), F = sum of whole prices / N  // profiled load floor
  int split_count = 0;             ///< sequences of degree > 1  // K
  Certificate certificate;
  Microseconds solve_time;
  std::string profile_digest;
  std::string stated_digest;  ///< what the file says that digest(placement) is; empty for a plan that is not from one

  bool has_placement() const { return status == PlanStatus::optimal || status == PlanStatus::feasible; }
};

/// Fills in what follows from placement, profile and load model: each sequence's time and memory claims, load, memory,
/// makespan, floor, split_count, profile_digest. Planners call it last, so that all methods report by one rule. Without
/// a placement (by `status`) the sequences are dropped and load and memory are empty.
/// @param batch  the whole batch: the floor counts every sequence even when there is no placement.
/// Errors: Code::input when the profile lacks a bucket of the batch or the price of a placed sequence, or a rank set
/// is not degree-many of 0 .. ranks - 1.
void complete(Plan& plan, const Batch& batch, const Profile& profile);

/// Reads a plan. The model is not in the file: `placement.model` is the batch's, which must be the plan's batch.
/// Errors: Code::input naming file, field and value; also when the digest in the file is not the placement's.
Plan read_plan(const std::string& path, const Batch& batch);
/// The same, but a digest that is not the placement's is left for the checker to find, with what else is wrong.
Plan read_plan_to_check(const std::string& path, const Batch& batch);
/// Reads a plan for looking at only: without the model the digest can't be verified and nothing can be lowered.
Plan read_plan_for_display(const std::string& path);
void write_plan(const Plan& plan, const std::string& path);
std::string plan_json(const Plan& plan);

std::string_view name(PlanStatus status);
std::string_view name(SolveStatus status);

}  // namespace zellige
