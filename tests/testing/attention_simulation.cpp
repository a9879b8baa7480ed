// SPDX-License-Identifier: Apache-2.0
#include "testing/attention_simulation.h"

#include <stdexcept>
#include <string>

#include "testing/simulated_rank.h"

namespace zellige::oracle {
namespace {

/// All ranks in lockstep through one pass of a layer.
class Layer {
 public:
  Layer(std::vector<SimulatedRank>& ranks, bool backward, const std::optional<Loss>& loss)
      : ranks_(ranks), backward_(backward), loss_(loss) {}

  void run() {
    const std::vector<Exchange>& all = exchanges(0);
    if (all.empty()) return;
    std::vector<Posted> returning;  // every B, waited for at the very end
    Posted a = post(Phase::a, 0, 0);
    for (int wave = 0; next_ < all.size(); ++wave) {
      deliver(a);
      if (next_ < all.size() && all[next_].phase == Phase::a) a = post(Phase::a, wave + 1, 0);
      int stage = 0;
      for (; all.at(next_).phase == Phase::ring; ++stage) {
        const Posted ring = post(Phase::ring, wave, stage + 1);
        for (SimulatedRank& rank : ranks_) {
          if (backward_) rank.drop_gradients_sent_by(stage + 1);
          compute(rank, wave, stage);
          rank.drop_block(stage);
        }
        deliver(ring);
      }
      for (SimulatedRank& rank : ranks_) {
        compute(rank, wave, stage);
        rank.drop_block(stage);
        backward_ ? rank.settle_grad_query(wave) : rank.settle_output(wave);
      }
      returning.push_back(post(Phase::b, wave, 0));
    }
    for (const Posted& b : returning) deliver(b);
  }

 private:
  struct Posted {
    std::size_t exchange = 0;
    std::vector<std::vector<std::vector<double>>> messages;  ///< [from][to]
  };

  const std::vector<Exchange>& exchanges(std::size_t rank) const {
    const Schedule& schedule = ranks_[rank].schedule();
    return backward_ ? schedule.backward : schedule.forward;
  }

  std::string where(std::size_t exchange) const {
    return std::string(backward_ ? "backward" : "forward") + " exchange " + std::to_string(exchange);
  }

  void compute(SimulatedRank& rank, int wave, int stage) {
    backward_ ? rank.compute_backward(wave, stage) : rank.compute_forward(wave, stage);
  }

  Posted post(Phase phase, int wave, int step) {
    Posted posted;
    posted.exchange = next_++;
    posted.messages.assign(ranks_.size(), std::vector<std::vector<double>>(ranks_.size()));
    for (std::size_t from = 0; from < ranks_.size(); ++from) {
      const Exchange& exchange = exchanges(from).at(posted.exchange);
      if (exchange.phase != phase || exchange.wave != wave || exchange.step != step) {
        throw std::logic_error(where(posted.exchange) + ": rank " + std::to_string(from) + " makes another call");
      }
      // One flat buffer, cut by the counts alone, as an all-to-all does.
      std::vector<double> buffer;
      for (const Piece& piece : exchange.sends) ranks_[from].pack(piece, buffer);
      auto begin = buffer.begin();
      for (std::size_t to = 0; to < ranks_.size(); ++to) {
        if (exchange.send_counts.at(to) > buffer.end() - begin) {
          throw std::logic_error(where(posted.exchange) + ": rank " + std::to_string(from) +
                                 " counts more than it sends");
        }
        posted.messages[from][to].assign(begin, begin + exchange.send_counts[to]);
        begin += exchange.send_counts[to];
      }
      if (begin != buffer.end()) {
        throw std::logic_error(where(posted.exchange) + ": rank " + std::to_string(from) +
                               " counts less than it sends");
      }
    }
    return posted;
  }

  void deliver(const Posted& posted) {
    for (std::size_t to = 0; to < ranks_.size(); ++to) {
      const Exchange& exchange = exchanges(to).at(posted.exchange);
      auto piece = exchange.receives.begin();
      for (std::size_t from = 0; from < ranks_.size(); ++from) {
        const std::vector<double>& message = posted.messages[from][to];
        if (exchange.receive_counts.at(from) != static_cast<std::int64_t>(message.size())) {
          throw std::logic_error(where(posted.exchange) + ": rank " + std::to_string(to) + " expects " +
                                 std::to_string(exchange.receive_counts[from]) + " elements from rank " +
                                 std::to_string(from) + ", which sends " + std::to_string(message.size()));
        }
        std::int64_t taken = 0;
        for (std::size_t index = 0; taken < exchange.receive_counts[from]; ++index, ++piece) {
          if (piece == exchange.receives.end()) throw std::logic_error(where(posted.exchange) + ": too few pieces");
          if (!lost(posted.exchange, from, to, index)) ranks_[to].unpack(*piece, message.data() + taken);
          taken += piece->num_tokens * piece->num_heads * ranks_[to].schedule().head_dim;
        }
        if (taken != exchange.receive_counts[from]) {
          throw std::logic_error(where(posted.exchange) + ": a piece crosses the end of a message");
        }
      }
      if (piece != exchange.receives.end()) throw std::logic_error(where(posted.exchange) + ": too many pieces");
    }
  }

  bool lost(std::size_t exchange, std::size_t from, std::size_t to, std::size_t index) const {
    return loss_ && loss_->backward == backward_ && loss_->exchange == exchange &&
           loss_->from == static_cast<Rank>(from) && loss_->to == static_cast<Rank>(to) &&
           (!loss_->piece || *loss_->piece == index);
  }

  std::vector<SimulatedRank>& ranks_;
  bool backward_;
  const std::optional<Loss>& loss_;
  std::size_t next_ = 0;
};

}  // namespace

std::vector<AttentionResult> simulate_attention(const std::vector<Schedule>& schedules,
                                                const std::vector<AttentionInputs>& inputs,
                                                const std::optional<Loss>& loss) {
  std::vector<SimulatedRank> ranks;
  ranks.reserve(schedules.size());
  for (const Schedule& schedule : schedules) ranks.emplace_back(schedule, inputs);
  for (SimulatedRank& rank : ranks) rank.run_whole_sequences();
  Layer(ranks, false, loss).run();
  for (SimulatedRank& rank : ranks) rank.begin_backward();
  Layer(ranks, true, loss).run();

  std::vector<AttentionResult> results;
  for (const AttentionInputs& in : inputs) {
    AttentionResult result;
    result.output = result.grad_q = HeadTensor(in.q.tokens, in.q.heads, in.q.head_dim);
    result.grad_k = result.grad_v = HeadTensor(in.k.tokens, in.k.heads, in.k.head_dim);
    results.push_back(result);
  }
  for (const SimulatedRank& rank : ranks) rank.collect(results);
  return results;
}

std::vector<Loss> all_losses(const std::vector<Schedule>& schedules, bool pieces) {
  std::vector<Loss> losses;
  for (const Schedule& schedule : schedules) {
    for (const bool backward : {false, true}) {
      const auto& exchanges = backward ? schedule.backward : schedule.forward;
      for (std::size_t e = 0; e < exchanges.size(); ++e) {
        std::size_t index = 0;  // in the message
        const auto& receives = exchanges[e].receives;
        for (std::size_t i = 0; i < receives.size(); ++i) {
          index = i > 0 && receives[i].peer == receives[i - 1].peer ? index + 1 : 0;
          if (!pieces && index > 0) continue;
          Loss loss{backward, e, receives[i].peer, schedule.rank, std::nullopt};
          if (pieces) loss.piece = index;
          losses.push_back(loss);
        }
      }
    }
  }
  return losses;
}

}  // namespace zellige::oracle
