// SPDX-License-Identifier: Apache-2.0
#include "engine/layer.h"
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
    const PassPlan& pass = plan_.forward;
    const std::size_t first = calls_first(plan_, pass, whole_);
    const std::size_t waves = pass.a.size();
    if (pass.has_exchanges()) post(pass.a[0]);
    run_whole(0, first);
    for (std::size_t wave = 0; wave < waves; ++wave) {
      open_boxes(wave);
      finish(pass.a[wave]);
      if (wave + 1 < waves) post(pass.a[wave + 1]);
      run_wave(wave);
      if (wave > 0) finish(pass.b[wave - 1]);
      post(pass.b[wave]);
      remember(wave);
    }
    run_whole(first, whole_.size());
    if (waves > 0) finish(pass.b[waves - 1]);
    return out_;
  }

 private:
  /// One shard in the wave that is under way.
  struct Box {
    at::Tensor q;                  ///< [queries, wave's heads, head_dim]
    std::vector<at::Tensor> k, v;  ///< [stages] blocks of keys; only those that are needed are there
    at::Tensor out, lse;
  };

  void run_whole(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const at::Tensor lse = kernels_.forward(whole_[i], q_, k_, v_, out_);
      if (memory_ != nullptr) memory_->whole_lse.push_back(lse);
    }
  }

  void open_boxes(std::size_t wave) {
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      const ShardPlan& shard = plan_.shards[i];
      const WaveHeads heads = shard.waves[wave];
      Box& box = shards_[i] = Box();
      if (!shard.is_active(wave)) continue;
      box.k.resize(shard.stages());
      box.v.resize(shard.stages());
      const TokenRange own = shard.local_rows();
      box.q = box_of(q_, own, heads.query);
      box.k[0] = box_of(k_, own, heads.key);
      box.v[0] = box_of(v_, own, heads.key);
      // A box that is no larger than the own chunk is a view of it; in a larger one the own chunk is copied to its
      // place, and exchange A brings the rest.
      const auto enlarge = [&](at::Tensor& part, TokenRange rows, TokenRange own_rows, HeadRange of_heads) {
        if (rows.count == own_rows.count) return;
        at::Tensor larger = new_box(part, rows, of_heads);
        exchanger_.copies().copy(rows_of(larger, own_rows), part);
        part = larger;
      };
      enlarge(box.q, shard.queries, shard.own_in_queries(), heads.query);
      enlarge(box.k[0], shard.blocks[0], shard.own_in_resident(), heads.key);
      enlarge(box.v[0], shard.blocks[0], shard.own_in_resident(), heads.key);
    }
  }

  void run_wave(std::size_t wave) {
    const std::vector<ExchangePlan>& ring = plan_.forward.ring[wave];
    for (std::size_t stage = 0; stage <= ring.size(); ++stage) {
      const bool streams = stage < ring.size();
      if (streams) post(ring[stage]);
      for (std::size_t i = 0; i < shards_.size(); ++i) {
        if (plan_.shards[i].is_active(wave) && stage < plan_.shards[i].stages()) run_stage(i, wave, stage);
      }
      if (!streams) continue;
      for (std::size_t i = 0; i < shards_.size(); ++i) {
        const ShardPlan& shard = plan_.shards[i];
        if (!shard.is_active(wave) || stage + 1 >= shard.stages()) continue;
        shards_[i].k[stage + 1] = new_box(k_, shard.blocks[stage + 1], shard.waves[wave].key);
        shards_[i].v[stage + 1] = new_box(v_, shard.blocks[stage + 1], shard.waves[wave].key);
      }
      finish(ring[stage]);
    }
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      const ShardPlan& shard = plan_.shards[i];
      if (!shard.is_active(wave)) continue;
      Box& box = shards_[i];
      box.out = box.out.squeeze(0).to(q_.scalar_type());
      if (is_in_place(shard)) continue;
      exchanger_.copies().copy(own_out(shard, wave), rows_of(box.out, shard.own_in_queries()));
    }
  }

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

  void remember(std::size_t wave) {
    if (memory_ == nullptr) return;
    auto& kept = memory_->shards.emplace_back(shards_.size());
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      const ShardPlan& shard = plan_.shards[i];
      if (!shard.is_active(wave)) continue;
      kept[i].lse = shards_[i].lse;
      if (shard.queries.count > shard.segment.num_tokens) {
        kept[i].q = shards_[i].q;
        kept[i].out = shards_[i].out;
      }
      if (plan_.schedule.exec.keep_kv && shard.blocks[0].count > shard.segment.num_tokens) {
        kept[i].k = shards_[i].k[0];
        kept[i].v = shards_[i].v[0];
      }
    }
  }

  void post(const ExchangePlan& exchange) {
    exchanger_.post(exchange, plan_, [&](const SliceCopy& copy) {
      switch (copy.payload) {
        case Payload::query: return slice_in(q_, copy);
        case Payload::key: return slice_in(copy.place == Place::packed ? k_ : shards_[copy.shard].k[copy.stage], copy);
        case Payload::value:
          return slice_in(copy.place == Place::packed ? v_ : shards_[copy.shard].v[copy.stage], copy);
        case Payload::output: return slice_in(shards_[copy.shard].out, copy);
        default: throw Error(Code::internal, "engine", "a forward exchange sends " + std::string(name(copy.payload)));
      }
    });
  }

  void finish(const ExchangePlan& exchange) {
    exchanger_.finish(exchange, plan_, [&](const SliceCopy& copy) -> Exchanger::Target {
      switch (copy.payload) {
        case Payload::query: return {slice_in(shards_[copy.shard].q, copy)};
        case Payload::key: return {slice_in(shards_[copy.shard].k[copy.stage], copy)};
        case Payload::value: return {slice_in(shards_[copy.shard].v[copy.stage], copy)};
        case Payload::output: return {slice_in(out_, copy)};
        default: throw Error(Code::internal, "engine", "a forward exchange brings " + std::string(name(copy.payload)));
      }
    });
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
  memory.shards.resize(plan.forward.a.size());
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
