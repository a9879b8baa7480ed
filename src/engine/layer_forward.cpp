// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/layer.h"
#include "engine/layer_rounds.h"
#include "engine/layer_slices.h"
#include "zellige/error.h"

namespace zellige {
namespace {

class Forward {
 public:
  Forward(const LayerWork& work, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, LayerMemory* memory)
      : plan_(work.plan),
        whole_(work.whole),
        kernels_(work.kernels),
        exchanger_(work.exchanger),
        q_(q),
        k_(k),
        v_(v),
        out_(at::empty(q.sizes(), q.options())),
        memory_(memory),
        shards_(plan_.shards.size()) {}

  at::Tensor run() {
    if (memory_ != nullptr && plan_.forward.has_exchanges()) {
      memory_->shards.assign(plan_.waves(), std::vector<LayerMemory::Shard>(shards_.size()));
    }
    run_rounds(*this, plan_.forward, calls_first(plan_, plan_.forward, whole_), whole_.size());
    return out_;
  }

  void run_whole(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const at::Tensor lse = kernels_.forward(whole_[i], q_, k_, v_, out_);
      if (memory_ != nullptr) memory_->whole_lse.push_back(lse);
    }
  }

  void open(const Round& round) {
    for (const std::size_t i : round.shards) {
      const ShardPlan& shard = plan_.shards[i];
      const WaveHeads heads = shard.waves[round.wave];
      Box& box = shards_[i] = Box();
      box.k.resize(shard.stages());
      box.v.resize(shard.stages());
      // A box that is no larger than the own chunk is a view of it; in a larger one the own chunk is copied to its
      // place, and exchange A brings the rest.
      const TokenRange own = shard.local_rows();
      const auto open_box = [&](const at::Tensor& packed, TokenRange rows, TokenRange own_rows, HeadRange of_heads) {
        if (rows.count == own_rows.count) return box_of(packed, own, of_heads);
        at::Tensor larger = new_box(packed, rows, of_heads);
        exchanger_.copies().copy({larger, own_rows, {0, of_heads.count}}, {packed, own, of_heads});
        return larger;
      };
      box.q = open_box(q_, shard.queries, shard.own_in_queries(), heads.query);
      box.k[0] = open_box(k_, shard.blocks[0], shard.own_in_resident(), heads.key);
      box.v[0] = open_box(v_, shard.blocks[0], shard.own_in_resident(), heads.key);
    }
  }

  void compute(const Round& round) {
    for (std::size_t stage = 0; stage <= round.ring.size(); ++stage) {
      const bool streams = stage < round.ring.size();
      if (streams) post(round.ring[stage]);
      for (const std::size_t i : round.shards) {
        if (stage < plan_.shards[i].stages()) run_stage(i, round.wave, stage);
      }
      if (!streams) continue;
      for (const std::size_t i : round.shards) {
        const ShardPlan& shard = plan_.shards[i];
        if (stage + 1 >= shard.stages()) continue;
        shards_[i].k[stage + 1] = new_box(k_, shard.blocks[stage + 1], shard.waves[round.wave].key);
        shards_[i].v[stage + 1] = new_box(v_, shard.blocks[stage + 1], shard.waves[round.wave].key);
      }
      finish(round.ring[stage]);
    }
    for (const std::size_t i : round.shards) {
      const ShardPlan& shard = plan_.shards[i];
      Box& box = shards_[i];
      box.out = box.out.squeeze(0).to(q_.scalar_type());
      if (is_in_place(shard)) continue;
      const HeadRange heads = shard.waves[round.wave].query;
      exchanger_.copies().copy({out_, shard.local_rows(), heads}, {box.out, shard.own_in_queries(), {0, heads.count}});
    }
  }

  /// Keeps what backward needs, and lets go of the rest.
  void close(const Round& round) {
    for (const std::size_t i : round.shards) {
      const ShardPlan& shard = plan_.shards[i];
      Box box = std::exchange(shards_[i], Box());
      if (memory_ == nullptr) continue;
      LayerMemory::Shard& kept = memory_->shards[round.wave][i];
      kept.lse = box.lse;
      if (shard.queries.count > shard.segment.num_tokens) {
        kept.q = box.q;
        kept.out = box.out;
      }
      if (plan_.schedule.exec.keep_kv && shard.blocks[0].count > shard.segment.num_tokens) {
        kept.k = box.k[0];
        kept.v = box.v[0];
      }
    }
  }

  void post(const ExchangePlan& exchange) {
    exchanger_.post(exchange, plan_, [&](const SliceCopy& copy) -> SliceBox {
      const bool packed = copy.place == Place::packed;
      const Box& box = shards_[copy.shard];
      switch (copy.payload) {
        case Payload::query: return box_in(q_, copy);
        case Payload::key: return box_in(packed ? k_ : box.k[copy.stage], copy);
        case Payload::value: return box_in(packed ? v_ : box.v[copy.stage], copy);
        case Payload::output: return box_in(box.out, copy);
        default: throw Error(Code::internal, "engine", "a forward exchange sends " + std::string(name(copy.payload)));
      }
    });
  }

  void finish(const ExchangePlan& exchange) {
    exchanger_.finish(exchange, plan_, [&](const SliceCopy& copy) -> Exchanger::Target {
      const Box& box = shards_[copy.shard];
      switch (copy.payload) {
        case Payload::query: return {box_in(box.q, copy)};
        case Payload::key: return {box_in(box.k[copy.stage], copy)};
        case Payload::value: return {box_in(box.v[copy.stage], copy)};
        case Payload::output: return {box_in(out_, copy)};
        default: throw Error(Code::internal, "engine", "a forward exchange brings " + std::string(name(copy.payload)));
      }
    });
  }

 private:
  /// One shard in the round that is under way.
  struct Box {
    at::Tensor q;                  ///< [queries, wave's heads, head_dim]
    std::vector<at::Tensor> k, v;  ///< [stages] blocks of keys; only those that are needed are there
    at::Tensor out, lse;
  };

  at::Tensor own_out(const ShardPlan& shard, std::size_t wave) const {
    return box_of(out_, shard.local_rows(), shard.waves[wave].query);
  }

  /// Whether the one kernel call of a shard computes what the rank owns, and nothing else.
  static bool is_in_place(const ShardPlan& shard) {
    return shard.stages() == 1 && shard.queries.count == shard.segment.num_tokens;
  }

  void run_stage(std::size_t index, std::size_t wave, std::size_t stage) {
    const ShardPlan& shard = plan_.shards[index];
    Box& box = shards_[index];
    const at::Tensor into = is_in_place(shard) ? alone(own_out(shard, wave)) : at::Tensor();
    AttentionOutput part = kernels_.forward(alone(box.q), alone(box.k[stage]), alone(box.v[stage]), into);
    if (stage == 0) {
      box.lse = part.lse;
      // A single merge is rounded once, as it is done: its terms stay as they are.
      box.out = shard.stages() > 2 ? part.out.to(accumulation_type(q_.scalar_type())) : part.out;
      return;
    }
    if (!merge_on_gpu(box.out, box.lse, part.out, part.lse)) {
      box.out = box.out.to(accumulation_type(q_.scalar_type()));
      merge_partial(box.out, box.lse, part);
    }
    box.k[stage].reset();
    box.v[stage].reset();
  }

  const StepPlan& plan_;
  const std::vector<WholeCall>& whole_;
  const KernelTable& kernels_;
  Exchanger& exchanger_;
  const at::Tensor &q_, &k_, &v_;
  at::Tensor out_;
  LayerMemory* memory_;
  std::vector<Box> shards_;
};

}  // namespace

std::vector<at::Tensor> LayerMemory::flatten() const {
  std::vector<at::Tensor> list = whole_lse;
  for (const auto& wave : shards) {
    for (const Shard& shard : wave) list.insert(list.end(), {shard.q, shard.out, shard.k, shard.v, shard.lse});
  }
  return list;
}

LayerMemory LayerMemory::unflatten(const std::vector<at::Tensor>& tensors, std::size_t from, const StepPlan& plan,
                                   std::size_t whole_calls) {
  LayerMemory memory;
  auto next = tensors.begin() + static_cast<std::ptrdiff_t>(from);
  for (std::size_t i = 0; i < whole_calls; ++i) memory.whole_lse.push_back(*next++);
  memory.shards.resize(plan.forward.has_exchanges() ? plan.waves() : 0);
  for (auto& wave : memory.shards) {
    wave.resize(plan.shards.size());
    for (Shard& shard : wave) {
      for (at::Tensor* part : {&shard.q, &shard.out, &shard.k, &shard.v, &shard.lse}) *part = *next++;
    }
  }
  return memory;
}

at::Tensor layer_forward(const LayerWork& work, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                         LayerMemory* memory) {
  return Forward(work, q, k, v, memory).run();
}

}  // namespace zellige
