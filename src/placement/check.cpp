// SPDX-License-Identifier: Apache-2.0
#include "zellige/check.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/json.h"
#include "placement/check_claims.h"
#include "placement/check_parts.h"
#include "zellige/schedule.h"

namespace zellige {
namespace {

constexpr BucketIndex kUnknownBucket = -1;

std::string shown(MediaKind kind) {
  return kind == MediaKind::image || kind == MediaKind::video ? std::string(name(kind))
                                                              : "kind number " + std::to_string(static_cast<int>(kind));
}

/// One run over one plan. What it recomputes comes from batch and profile alone.
class Checker {
 public:
  Checker(const Plan& plan, const Batch& batch, const Profile& profile)
      : plan_(plan),
        batch_(batch),
        profile_(profile),
        profile_bucket_(match_buckets(batch, profile)),
        is_anchor_(anchors_of(plan, profile)) {}

  Verdict run() {
    if (const std::string why = why_no_load_model(plan_.load_model); !why.empty()) {
      findings_.add(Violation::wrong_load_model, why);  // nobody can say what loads and bounds should be
      check_digests(plan_, batch_, profile_, findings_);
      return findings_.take();
    }
    check_frame();
    if (plan_.has_placement()) {
      in_batch_ = match_sequences(plan_, batch_, findings_);
      recomputed_.load_us.resize(num_ranks());
      recomputed_.memory_bytes.resize(num_ranks());
      recomputed_.anchor_load_us.resize(num_ranks());
      exchange_us_.resize(num_ranks());
      anchor_exchange_us_.resize(num_ranks());
      last_on_rank_.assign(num_ranks(), -1);
      for (std::size_t i = 0; i < placed().size(); ++i) check_sequence(i);
      if (recomputed_.sums_known) check_sums();
    } else {
      check_nothing_is_claimed();
    }
    check_split_count();
    check_floor();
    if (check_certificate(plan_, recomputed_, findings_)) {
      zellige::check_claims(plan_, batch_, profile_, profile_bucket_, is_anchor_, recomputed_, findings_);
    }
    check_digests(plan_, batch_, profile_, findings_);
    return findings_.take();
  }

 private:
  const std::vector<PlacedSequence>& placed() const { return plan_.placement.sequences; }
  std::size_t num_ranks() const { return static_cast<std::size_t>(batch_.ranks); }

  void check_frame() {
    if (plan_.placement.ranks != batch_.ranks) {
      findings_.add(Violation::wrong_batch, "ranks is " + std::to_string(plan_.placement.ranks) +
                                                "; the batch is for " + std::to_string(batch_.ranks));
    }
    if (plan_.placement.model != batch_.catalog.model) {
      findings_.add(Violation::wrong_batch, "the placement's model " + in_quotes(plan_.placement.model.name) +
                                                " differs from the batch's " + in_quotes(batch_.catalog.model.name));
    }
    const ExecOptions& exec = plan_.placement.exec;
    if (exec.engine != "coalesced" && exec.engine != "paper") {
      findings_.add(Violation::wrong_exec,
                    "exec.engine is " + in_quotes(exec.engine) + "; it must be coalesced or paper");
    }
    if (exec.waves < 1 || exec.waves > kMaxWaves) {
      findings_.add(Violation::wrong_exec,
                    "exec.waves is " + std::to_string(exec.waves) + "; it must be 1 to " + std::to_string(kMaxWaves));
    }
  }

  /// The bucket of the batch's catalog in which a placed sequence really is; null when nobody can say.
  const Bucket* bucket_of(std::size_t i) const {
    if (in_batch_[i]) return &batch_.bucket_of(static_cast<SequenceIndex>(*in_batch_[i]));
    const auto found = profile_.catalog.find(placed()[i].bucket);
    return found ? &profile_.catalog.buckets[*found] : nullptr;
  }
  BucketIndex profile_bucket_of(std::size_t i) const {
    if (in_batch_[i]) return profile_bucket_[*in_batch_[i]];
    return profile_.catalog.find(placed()[i].bucket).value_or(kUnknownBucket);
  }

  // ---- one sequence

  void check_sequence(std::size_t i) {
    const PlacedSequence& sequence = placed()[i];
    if (sequence.config != Configuration{}) ++recomputed_.split_count;
    const Bucket* bucket = bucket_of(i);
    const bool good_ranks = check_ranks(i);
    if (bucket == nullptr) {  // not the batch's, which has been said
      recomputed_.sums_known = false;
      return;
    }
    if (in_batch_[i]) check_bucket(sequence, *bucket);
    const std::string illegal = why_illegal(batch_.catalog.model, bucket->tokens, sequence.config, batch_.ranks);
    if (!illegal.empty()) {
      findings_.add(Violation::illegal_config, "sequence " + in_quotes(sequence.id) + ": " + illegal);
      recomputed_.sums_known = false;
      return;
    }
    const int degree = sequence.config.degree();
    const bool right_size = sequence.ranks.size() == static_cast<std::size_t>(degree);
    if (!right_size) {
      wrong_ranks(sequence, "has " + std::to_string(sequence.ranks.size()) + " ranks; " + text(sequence.config) +
                                " needs " + std::to_string(degree));
    }
    const Price* price = profile_.find(profile_bucket_of(i), sequence.config);
    if (price == nullptr) {
      findings_.add(Violation::unpriced_config, "sequence " + in_quotes(sequence.id) +
                                                    ": the profile has no price for " + text(sequence.config) +
                                                    " in bucket " + in_quotes(bucket->name));
    } else {
      check_claims(sequence, *price);
    }
    if (price == nullptr || !good_ranks || !right_size) {
      recomputed_.sums_known = false;
      return;
    }
    const bool is_anchor = is_anchor_[static_cast<std::size_t>(profile_bucket_of(i))];
    const PieceLoads piece = piece_loads(*price, plan_.load_model);
    for (const Rank rank : sequence.ranks) {
      const auto at = static_cast<std::size_t>(rank);
      if (is_anchor) {
        recomputed_.anchor_load_us[at] += piece.time_us;
        anchor_exchange_us_[at] += piece.exchange_us;
      }
      recomputed_.load_us[at] += piece.time_us;
      exchange_us_[at] += piece.exchange_us;
      recomputed_.memory_bytes[at] += price->memory.value;
    }
  }

  void check_bucket(const PlacedSequence& sequence, const Bucket& bucket) {
    if (sequence.bucket != bucket.name) {
      wrong_batch(sequence,
                  "is in bucket " + in_quotes(sequence.bucket) + "; in the batch, in " + in_quotes(bucket.name));
    }
    if (sequence.kind != bucket.kind) {
      wrong_batch(sequence, "is of kind " + shown(sequence.kind) + "; in the batch, " + shown(bucket.kind));
    }
    if (sequence.tokens != bucket.tokens) {
      wrong_batch(sequence, "has " + std::to_string(sequence.tokens.value) + " tokens; in the batch, " +
                                std::to_string(bucket.tokens.value));
    }
  }

  void wrong_batch(const PlacedSequence& sequence, const std::string& what) {
    findings_.add(Violation::wrong_batch, "sequence " + in_quotes(sequence.id) + " " + what);
  }
  void wrong_ranks(const PlacedSequence& sequence, const std::string& what) {
    findings_.add(Violation::wrong_rank_set, "sequence " + in_quotes(sequence.id) + " " + what);
  }

  /// Each within range and once. Any order is a coordinate order.
  bool check_ranks(std::size_t i) {
    bool good = true;
    for (const Rank rank : placed()[i].ranks) {
      if (rank < 0 || rank >= batch_.ranks) {
        wrong_ranks(placed()[i],
                    "is on rank " + std::to_string(rank) + "; ranks go from 0 to " + std::to_string(batch_.ranks - 1));
        good = false;
        continue;
      }
      std::int64_t& last = last_on_rank_[static_cast<std::size_t>(rank)];
      if (last == static_cast<std::int64_t>(i)) {
        wrong_ranks(placed()[i], "is on rank " + std::to_string(rank) + " twice");
        good = false;
      }
      last = static_cast<std::int64_t>(i);
    }
    return good;
  }

  void check_claims(const PlacedSequence& sequence, const Price& price) {
    const auto claim = [&](const char* field, std::int64_t claimed, std::int64_t right) {
      if (claimed == right) return;
      findings_.add(Violation::wrong_claim, "sequence " + in_quotes(sequence.id) + ": " + field + " is " +
                                                std::to_string(claimed) + "; the profile says " +
                                                std::to_string(right) + " for " + text(sequence.config));
    };
    claim("time_us", sequence.time.value, price.time.value);
    claim("memory_bytes", sequence.memory.value, price.memory.value);
    const bool has_exchange = plan_.load_model.kind == LoadModel::Kind::overlapped;
    if (has_exchange) claim("exchange_us", sequence.exchange.value, price.exchange.value);
  }

  // ---- sums

  void check_sums() {
    for (std::size_t rank = 0; rank < num_ranks(); ++rank) {
      Wide& load = recomputed_.load_us[rank];
      load = std::max(load, exchange_us_[rank]);
      recomputed_.makespan_us = std::max(recomputed_.makespan_us, load);
      Wide& anchor_load = recomputed_.anchor_load_us[rank];
      anchor_load = std::max(anchor_load, anchor_exchange_us_[rank]);
    }
    check_per_rank(Violation::wrong_load, "load_us", plan_.load, recomputed_.load_us);
    check_per_rank(Violation::wrong_memory, "memory_bytes", plan_.memory, recomputed_.memory_bytes);
    const Wide cap = Wide{profile_.memory_usable.value} - profile_.memory_base.value;
    for (std::size_t rank = 0; rank < num_ranks(); ++rank) {
      const Wide need = recomputed_.memory_bytes[rank];
      if (need <= cap) continue;
      findings_.add(Violation::over_memory_cap, "rank " + std::to_string(rank) + " needs " + text(need) +
                                                    " bytes besides the base; the cap is " + text(cap) + ", " +
                                                    text(need - cap) + " less");
    }
    if (plan_.makespan.value != recomputed_.makespan_us) {
      findings_.add(Violation::wrong_makespan, "makespan_us is " + std::to_string(plan_.makespan.value) +
                                                   "; the largest load is " + text(recomputed_.makespan_us));
    }
  }

  template <class Quantity>
  void check_per_rank(Violation what, const char* field, const std::vector<Quantity>& claimed,
                      const std::vector<Wide>& right) {
    if (claimed.size() != right.size()) {
      findings_.add(what, std::string(field) + " has " + std::to_string(claimed.size()) + " entries; there are " +
                              std::to_string(right.size()) + " ranks");
      return;
    }
    for (std::size_t rank = 0; rank < right.size(); ++rank) {
      if (claimed[rank].value == right[rank]) continue;
      findings_.add(what, std::string(field) + "[" + std::to_string(rank) + "] is " +
                              std::to_string(claimed[rank].value) + "; the sequences there add up to " +
                              text(right[rank]));
    }
  }

  void check_nothing_is_claimed() {
    const auto empty = [&](Violation what, const char* field, std::size_t size) {
      if (size == 0) return;
      findings_.add(what, std::string(field) + " has " + std::to_string(size) + " entries; without a plan it is empty");
    };
    empty(Violation::wrong_load, "load_us", plan_.load.size());
    empty(Violation::wrong_memory, "memory_bytes", plan_.memory.size());
    if (plan_.makespan.value != 0) {
      findings_.add(Violation::wrong_makespan,
                    "makespan_us is " + std::to_string(plan_.makespan.value) + "; without a plan it is 0");
    }
  }

  void check_split_count() {
    if (plan_.split_count == recomputed_.split_count) return;
    findings_.add(Violation::wrong_split_count, "split_count is " + std::to_string(plan_.split_count) +
                                                    "; the plan splits " + std::to_string(recomputed_.split_count) +
                                                    " sequences");
  }

  /// Of the whole batch, whatever the plan places.
  void check_floor() {
    Wide whole_us = 0;
    for (const BucketIndex bucket : profile_bucket_) whole_us += profile_.whole(bucket).time.value;
    const Wide right = whole_us / batch_.ranks;
    if (plan_.floor.value == right) return;
    findings_.add(Violation::wrong_floor, "floor_us is " + std::to_string(plan_.floor.value) +
                                              "; the whole prices of the batch over " + std::to_string(batch_.ranks) +
                                              " ranks give " + text(right));
  }

  const Plan& plan_;
  const Batch& batch_;
  const Profile& profile_;
  const std::vector<BucketIndex> profile_bucket_;       // of the batch's sequences
  const std::vector<bool> is_anchor_;                   // [buckets of the profile]
  std::vector<std::optional<std::size_t>> in_batch_;    // of the placed sequences: which of the batch's they are
  std::vector<std::int64_t> last_on_rank_;              // [ranks]: the last sequence seen there
  std::vector<Wide> exchange_us_, anchor_exchange_us_;  // [ranks]
  Recomputed recomputed_;
  Findings findings_;
};

}  // namespace

std::string text(Wide value) {
  const bool negative = value < 0;
  std::string digits;
  do {
    const int digit = static_cast<int>(value % 10);
    digits += static_cast<char>('0' + (negative ? -digit : digit));
    value /= 10;
  } while (value != 0);
  if (negative) digits += '-';
  std::reverse(digits.begin(), digits.end());
  return digits;
}

Verdict judge(const Plan& plan, const Batch& batch, const Profile& profile) {
  if (batch.ranks < 1) {
    throw Error(Code::input, "placement.check",
                "the batch is for " + std::to_string(batch.ranks) + " ranks; it takes 1");
  }
  return Checker(plan, batch, profile).run();
}

std::vector<Finding> check(const Plan& plan, const Batch& batch, const Profile& profile) {
  return judge(plan, batch, profile).findings;
}

bool is_only_over_memory_cap(const std::vector<Finding>& findings) {
  return !findings.empty() && std::all_of(findings.begin(), findings.end(), [](const Finding& finding) {
    return finding.what == Violation::over_memory_cap;
  });
}

std::string_view name(Violation violation) {
  switch (violation) {
    case Violation::wrong_batch: return "wrong-batch";
    case Violation::illegal_config: return "illegal-config";
    case Violation::unpriced_config: return "unpriced-config";
    case Violation::wrong_rank_set: return "wrong-rank-set";
    case Violation::wrong_claim: return "wrong-claim";
    case Violation::wrong_load: return "wrong-load";
    case Violation::wrong_memory: return "wrong-memory";
    case Violation::over_memory_cap: return "over-memory-cap";
    case Violation::wrong_makespan: return "wrong-makespan";
    case Violation::wrong_floor: return "wrong-floor";
    case Violation::wrong_split_count: return "wrong-split-count";
    case Violation::false_bound: return "false-bound";
    case Violation::unproved_claim: return "unproved-claim";
    case Violation::wrong_anchors: return "wrong-anchors";
    case Violation::wrong_status: return "wrong-status";
    case Violation::wrong_method: return "wrong-method";
    case Violation::wrong_exec: return "wrong-exec";
    case Violation::wrong_load_model: return "wrong-load-model";
    case Violation::wrong_profile: return "wrong-profile";
    case Violation::wrong_digest: return "wrong-digest";
  }
  throw Error(Code::internal, "placement.name", "a violation that is none");
}

}  // namespace zellige
