// SPDX-License-Identifier: Apache-2.0
#include "engine/layer.h"
#include "engine/layer_rounds.h"
#include "engine/layer_slices.h"
#include "zellige/error.h"

namespace zellige {
namespace {

class Backward {
 public:
  Backward(const LayerWork& work, const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
           const at::Tensor& v, const at::Tensor& out, const LayerMemory& memory)
      : plan_(work.plan),
        whole_(work.whole),
        kernels_(work.kernels),
        exchanger_(work.exchanger),
        grad_out_(grad_out),
        q_(q),
        k_(k),
        v_(v),
        out_(out),
        memory_(memory),
        grad_q_(at::empty(q.sizes(), q.options())),
        grad_k_(at::empty(k.sizes(), k.options())),
        grad_v_(at::empty(v.sizes(), v.options())),
        shards_(plan_.shards.size()) {
    // Of one dtype with the result, the sums are the result's own rows; two terms are rounded once, as they are added.
    const at::ScalarType type = accumulation_type(k.scalar_type());
    for (const ShardPlan& shard : plan_.shards) {
      const auto sum_of = [&](const at::Tensor& grad) {
        at::Tensor rows = rows_of(grad, shard.local_rows());
        if (type != k.scalar_type() && shard.key_terms() > 2) {
          rows = at::empty(rows.sizes(), rows.options().dtype(type));
        }
        // Heads that this rank computes begin with its own term, others with whichever comes first.
        if (shard.key_terms() > 1 && shard.segment.config.h > 1) rows.zero_();
        return rows;
      };
      sums_k_.push_back(sum_of(grad_k_));
      sums_v_.push_back(sum_of(grad_v_));
    }
  }

  AttentionGradients run() {
    run_rounds(*this, plan_.backward, calls_first(plan_, plan_.backward, whole_), whole_.size());
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      if (sums_k_[i].scalar_type() == grad_k_.scalar_type()) continue;
      rows_of(grad_k_, plan_.shards[i].local_rows()).copy_(sums_k_[i]);
      rows_of(grad_v_, plan_.shards[i].local_rows()).copy_(sums_v_[i]);
    }
    return {grad_q_, grad_k_, grad_v_};
  }

  void run_whole(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      kernels_.backward(whole_[i], grad_out_, q_, k_, v_, out_, memory_.whole_lse[i], {grad_q_, grad_k_, grad_v_});
    }
  }

  void open(const Round& round) {
    for (const std::size_t i : round.shards) {
      const ShardPlan& shard = plan_.shards[i];
      const LayerMemory::Shard& kept = memory_.shards[round.wave][i];
      const WaveHeads heads = shard.waves[round.wave];
      Box& box = shards_[i] = Box();
      for (auto* blocks : {&box.k, &box.v, &box.grad_k, &box.grad_v}) blocks->resize(shard.stages());
      // What was kept; else a view where the box is the own chunk; else a new box that exchange A fills.
      const auto open = [&](const at::Tensor& kept_box, const at::Tensor& packed, TokenRange rows, TokenRange own_rows,
                            HeadRange of_heads) {
        if (kept_box.defined()) return kept_box;
        if (rows.count == own_rows.count) return box_of(packed, shard.local_rows(), of_heads);
        at::Tensor larger = new_box(packed, rows, of_heads);
        exchanger_.copies().copy({larger, own_rows, {0, of_heads.count}}, {packed, shard.local_rows(), of_heads});
        return larger;
      };
      const TokenRange in_queries = shard.own_in_queries();
      const TokenRange in_resident = shard.own_in_resident();
      box.q = open(kept.q, q_, shard.queries, in_queries, heads.query);
      box.out = open(kept.out, out_, shard.queries, in_queries, heads.query);
      box.grad_out = open(at::Tensor(), grad_out_, shard.queries, in_queries, heads.query);
      box.lse = kept.lse;
      box.k[0] = open(kept.k, k_, shard.blocks[0], in_resident, heads.key);
      box.v[0] = open(kept.v, v_, shard.blocks[0], in_resident, heads.key);
    }
  }

  void compute(const Round& round) {
    const std::vector<ExchangePlan>& ring = round.ring;
    const std::size_t wave = round.wave;
    for (std::size_t stage = 0; stage <= ring.size(); ++stage) {
      const bool streams = stage < ring.size();
      // Carries the next block of keys, and the gradients of the block before this one.
      if (streams) post(ring[stage]);
      for (const std::size_t i : round.shards) {
        if (stage < plan_.shards[i].stages()) run_stage(i, wave, stage);
      }
      if (!streams) continue;
      for (const std::size_t i : round.shards) {
        const ShardPlan& shard = plan_.shards[i];
        if (stage + 1 >= shard.stages()) continue;
        if (stage > 0) {
          shards_[i].grad_k[stage - 1].reset();
          shards_[i].grad_v[stage - 1].reset();
        }
        shards_[i].k[stage + 1] = new_box(k_, shard.blocks[stage + 1], shard.waves[wave].key);
        shards_[i].v[stage + 1] = new_box(v_, shard.blocks[stage + 1], shard.waves[wave].key);
      }
      finish(ring[stage]);
    }
    for (const std::size_t i : round.shards) {
      const ShardPlan& shard = plan_.shards[i];
      Box& box = shards_[i];
      box.grad_q = box.grad_q.to(q_.scalar_type());
      if (is_in_place(shard)) continue;
      const HeadRange heads = shard.waves[wave].query;
      exchanger_.copies().copy({grad_q_, shard.local_rows(), heads},
                               {box.grad_q, shard.own_in_queries(), {0, heads.count}});
    }
  }

  void close(const Round& round) {
    for (const std::size_t i : round.shards) shards_[i] = Box();
  }

  void post(const ExchangePlan& exchange) {
    exchanger_.post(exchange, plan_, [&](const SliceCopy& copy) -> SliceBox {
      const bool packed = copy.place == Place::packed;
      const Box& box = shards_[copy.shard];
      switch (copy.payload) {
        case Payload::grad_output: return box_in(grad_out_, copy);
        case Payload::key: return box_in(packed ? k_ : box.k[copy.stage], copy);
        case Payload::value: return box_in(packed ? v_ : box.v[copy.stage], copy);
        case Payload::grad_query: return box_in(box.grad_q, copy);
        case Payload::grad_key: return box_in(box.grad_k[copy.stage], copy);
        case Payload::grad_value: return box_in(box.grad_v[copy.stage], copy);
        default: throw Error(Code::internal, "engine", "a backward exchange sends " + std::string(name(copy.payload)));
      }
    });
  }

  void finish(const ExchangePlan& exchange) {
    exchanger_.finish(exchange, plan_, [&](const SliceCopy& copy) -> Exchanger::Target {
      Box& box = shards_[copy.shard];
      const auto own = [&](const at::Tensor& sum) -> Exchanger::Target {
        const ShardPlan& shard = plan_.shards[copy.shard];
        return {{sum, {copy.rows.begin - shard.segment.local_begin, copy.rows.count}, copy.heads},
                shard.key_terms() > 1};
      };
      switch (copy.payload) {
        case Payload::grad_output: return {box_in(box.grad_out, copy)};
        case Payload::key: return {box_in(box.k[copy.stage], copy)};
        case Payload::value: return {box_in(box.v[copy.stage], copy)};
        case Payload::grad_query: return {box_in(grad_q_, copy)};
        case Payload::grad_key: return own(sums_k_[copy.shard]);
        case Payload::grad_value: return own(sums_v_[copy.shard]);
        default: throw Error(Code::internal, "engine", "a backward exchange brings " + std::string(name(copy.payload)));
      }
    });
  }

 private:
  /// One shard in the round that is under way.
  struct Box {
    at::Tensor q, out, grad_out, lse;        ///< of the queries
    at::Tensor grad_q;                       ///< sum over the stages so far
    std::vector<at::Tensor> k, v;            ///< [stages] only those that are needed are there
    std::vector<at::Tensor> grad_k, grad_v;  ///< [stages] from when they are computed to when they are sent
  };

  at::Tensor own_grad_q(const ShardPlan& shard, std::size_t wave) const {
    return box_of(grad_q_, shard.local_rows(), shard.waves[wave].query);
  }

  /// Whether the one kernel call of a shard gives the gradient of the rank's own queries, and no others.
  static bool is_in_place(const ShardPlan& shard) {
    return shard.stages() == 1 && shard.queries.count == shard.segment.num_tokens;
  }

  void run_stage(std::size_t index, std::size_t wave, std::size_t stage) {
    const ShardPlan& shard = plan_.shards[index];
    Box& box = shards_[index];
    AttentionGradients into;
    if (is_in_place(shard)) into.q = alone(own_grad_q(shard, wave));
    const AttentionGradients grads = kernels_.backward(alone(box.grad_out), alone(box.q), alone(box.k[stage]),
                                                       alone(box.v[stage]), alone(box.out), box.lse, into);
    const at::Tensor grad_q = grads.q.squeeze(0);
    box.grad_k[stage] = grads.k.squeeze(0);
    box.grad_v[stage] = grads.v.squeeze(0);
    if (stage == 0) {
      box.grad_q = shard.stages() > 2 ? grad_q.to(accumulation_type(q_.scalar_type())) : grad_q;
      // The first term of the sums; those of other ranks are added as they come.
      const TokenRange all{0, shard.segment.num_tokens};
      const HeadRange heads = shard.waves[wave].key;
      const HeadRange of_box{0, heads.count};
      exchanger_.copies().copy({sums_k_[index], all, heads}, {box.grad_k[0], shard.own_in_resident(), of_box});
      exchanger_.copies().copy({sums_v_[index], all, heads}, {box.grad_v[0], shard.own_in_resident(), of_box});
      exchanger_.copies().run();
    } else {
      box.grad_q.add_(grad_q);  // two terms are rounded once, more are summed in fp32
      box.k[stage].reset();
      box.v[stage].reset();
    }
  }

  const StepPlan& plan_;
  const std::vector<WholeCall>& whole_;
  const KernelTable& kernels_;
  Exchanger& exchanger_;
  const at::Tensor &grad_out_, &q_, &k_, &v_, &out_;
  const LayerMemory& memory_;
  at::Tensor grad_q_, grad_k_, grad_v_;
  std::vector<at::Tensor> sums_k_, sums_v_;  ///< [shards] own rows; more than two terms add up in accumulation_type
  std::vector<Box> shards_;
};

}  // namespace

AttentionGradients layer_backward(const LayerWork& work, const at::Tensor& grad_out, const at::Tensor& q,
                                  const at::Tensor& k, const at::Tensor& v, const at::Tensor& out,
                                  const LayerMemory& memory) {
  return Backward(work, grad_out, q, k, v, out, memory).run();
}

}  // namespace zellige
