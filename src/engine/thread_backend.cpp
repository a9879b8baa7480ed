// SPDX-License-Identifier: Apache-2.0
#include "engine/thread_backend.h"

#include <algorithm>
#include <string>
#include <utility>

#include "zellige/error.h"

namespace zellige {
namespace {

using Tensors = ThreadBackend::Tensors;

[[noreturn]] void refuse(const std::string& operation, const std::string& message) {
  throw Error(Code::input, "thread_ranks." + operation, message);
}

/// What the caller waits for. Completed by whichever thread does the collective's work.
class ThreadWork final : public c10d::Work {
 public:
  ThreadWork(int rank, c10d::OpType type, Tensors outputs)
      : Work(rank, type),
        outputs_(std::move(outputs)),
        future_(c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()))) {}

  Tensors result() override { return outputs_; }
  c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

  void complete(const std::exception_ptr& failure) {
    finish(failure);
    if (failure) {
      future_->setError(failure);
    } else {
      future_->markCompleted(c10::IValue(outputs_));
    }
  }

 private:
  Tensors outputs_;
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

/// The tensors that one rank brings.
class Buffers final : public Participant {
 public:
  Buffers(Tensors inputs_in, Tensors outputs_in, c10::intrusive_ptr<ThreadWork> work)
      : inputs(std::move(inputs_in)), outputs(std::move(outputs_in)), work_(std::move(work)) {}
  void finish(std::exception_ptr failure) noexcept override {
    // The tensors are the callers' own again before they hear of it.
    inputs.clear();
    outputs.clear();
    work_->complete(failure);
  }

  Tensors inputs;
  Tensors outputs;

 private:
  c10::intrusive_ptr<ThreadWork> work_;
};

using Everyone = std::span<const std::shared_ptr<Participant>>;

Buffers& buffers_of(Everyone everyone, std::size_t rank) { return static_cast<Buffers&>(*everyone[rank]); }

/// Collectives write tensors that may belong to a graph, and leave no trace in it.
struct OutsideAutograd {
  at::NoGradGuard no_grad;
  at::AutoDispatchBelowADInplaceOrView below;
};

void copy(at::Tensor& to, const at::Tensor& from) { to.copy_(from.reshape(to.sizes())); }

std::string describe(const at::Tensor& tensor) {
  return std::string(c10::toString(tensor.scalar_type())) + "[" + std::to_string(tensor.numel()) + "]";
}

std::string describe(const Tensors& tensors) {
  std::string text;
  for (const at::Tensor& tensor : tensors) text += (text.empty() ? "" : ", ") + describe(tensor);
  return text;
}

void require_cpu(const std::string& operation, const Tensors& tensors) {
  for (const at::Tensor& tensor : tensors) {
    if (tensor.device().is_cpu() && tensor.layout() == at::kStrided) continue;
    refuse(operation, "a " + tensor.toString() + " on " + tensor.device().str() +
                          "; ranks that are threads of one process take dense CPU tensors only: on a GPU they would "
                          "share one backward thread and deadlock");
  }
}

using Reduction = c10d::ReduceOp::RedOpType;

std::string name(const std::string& operation, Reduction reduction) {
  switch (reduction) {
    case Reduction::SUM: return "sum";
    case Reduction::AVG: return "average";
    case Reduction::PRODUCT: return "product";
    case Reduction::MIN: return "minimum";
    case Reduction::MAX: return "maximum";
    default: refuse(operation, "reduction " + std::to_string(reduction) + "; use sum, average, product, min or max");
  }
}

/// Reduces `item(0), item(1), ...` in rank order, in at least 32 bits for floating point.
template <class Item>
at::Tensor reduce_in_order(std::size_t ranks, Reduction reduction, const Item& item) {
  const at::ScalarType type = item(0).scalar_type();
  const bool narrow = type == at::kBFloat16 || type == at::kHalf;
  at::Tensor total = item(0).to(narrow ? at::kFloat : type, /*non_blocking=*/false, /*copy=*/true);
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    const at::Tensor next = item(rank).to(total.scalar_type());
    switch (reduction) {
      case Reduction::MIN: total = at::minimum(total, next); break;
      case Reduction::MAX: total = at::maximum(total, next); break;
      case Reduction::PRODUCT: total.mul_(next); break;
      default: total.add_(next); break;
    }
  }
  if (reduction == Reduction::AVG) {
    total = at::isIntegralType(type, true) ? total.div(static_cast<std::int64_t>(ranks), "trunc")
                                           : total.div(static_cast<double>(ranks));
  }
  return total;
}

void exchange_all(Everyone everyone) {
  const OutsideAutograd guard;
  for (std::size_t to = 0; to < everyone.size(); ++to) {
    for (std::size_t from = 0; from < everyone.size(); ++from) {
      const at::Tensor& source = buffers_of(everyone, from).inputs[to];
      if (source.numel() > 0) copy(buffers_of(everyone, to).outputs[from], source);
    }
  }
}

}  // namespace

ThreadBackend::ThreadBackend(std::shared_ptr<MeetingPoint> point, int rank)
    : Backend(rank, point->ranks()), point_(std::move(point)) {}

const std::string ThreadBackend::getBackendName() const { return "threads"; }

ThreadBackend::Work ThreadBackend::join(Call call, Tensors inputs, Tensors outputs, c10d::OpType type,
                                        const MeetingPoint::Work& work) {
  require_cpu(call.operation, inputs);
  require_cpu(call.operation, outputs);
  auto result = c10::make_intrusive<ThreadWork>(rank_, type, outputs);
  point_->join(rank_, std::move(call), std::make_shared<Buffers>(std::move(inputs), std::move(outputs), result), work);
  return result;
}

ThreadBackend::Work ThreadBackend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const auto root = static_cast<std::size_t>(options.rootRank);
  if (options.rootRank < 0 || options.rootRank >= size_) {
    refuse("broadcast", "root is " + std::to_string(options.rootRank) + "; use 0 .. " + std::to_string(size_ - 1));
  }
  Call call{.operation = "broadcast", .agreed = "from rank " + std::to_string(root) + ", " + describe(tensors)};
  return join(std::move(call), tensors, tensors, c10d::OpType::BROADCAST, [root](Everyone everyone) {
    const OutsideAutograd guard;
    const Tensors& source = buffers_of(everyone, root).inputs;
    for (std::size_t rank = 0; rank < everyone.size(); ++rank) {
      for (std::size_t i = 0; rank != root && i < source.size(); ++i)
        copy(buffers_of(everyone, rank).outputs[i], source[i]);
    }
  });
}

ThreadBackend::Work ThreadBackend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const Reduction reduction = options.reduceOp;
  Call call{.operation = "allreduce", .agreed = name("allreduce", reduction) + " of " + describe(tensors)};
  return join(std::move(call), tensors, tensors, c10d::OpType::ALLREDUCE, [reduction](Everyone everyone) {
    const OutsideAutograd guard;
    for (std::size_t i = 0; i < buffers_of(everyone, 0).inputs.size(); ++i) {
      const at::Tensor total = reduce_in_order(everyone.size(), reduction, [&](std::size_t rank) -> const at::Tensor& {
        return buffers_of(everyone, rank).inputs[i];
      });
      for (std::size_t rank = 0; rank < everyone.size(); ++rank) copy(buffers_of(everyone, rank).outputs[i], total);
    }
  });
}

ThreadBackend::Work ThreadBackend::allreduce_coalesced(Tensors& tensors,
                                                       const c10d::AllreduceCoalescedOptions& options) {
  return allreduce(tensors, options);
}

ThreadBackend::Work ThreadBackend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const Reduction reduction = options.reduceOp;
  const auto root = static_cast<std::size_t>(options.rootRank);
  if (options.rootRank < 0 || options.rootRank >= size_) {
    refuse("reduce", "root is " + std::to_string(options.rootRank) + "; use 0 .. " + std::to_string(size_ - 1));
  }
  Call call{.operation = "reduce",
            .agreed = name("reduce", reduction) + " to rank " + std::to_string(root) + " of " + describe(tensors)};
  return join(std::move(call), tensors, tensors, c10d::OpType::REDUCE, [reduction, root](Everyone everyone) {
    const OutsideAutograd guard;
    for (std::size_t i = 0; i < buffers_of(everyone, root).outputs.size(); ++i) {
      copy(buffers_of(everyone, root).outputs[i],
           reduce_in_order(everyone.size(), reduction, [&](std::size_t rank) -> const at::Tensor& {
             return buffers_of(everyone, rank).inputs[i];
           }));
    }
  });
}

ThreadBackend::Work ThreadBackend::exchange(const char* operation, c10d::OpType type, Tensors outputs, Tensors inputs) {
  const auto ranks = static_cast<std::size_t>(size_);
  if (inputs.size() != ranks || outputs.size() != ranks) {
    refuse(operation, std::to_string(inputs.size()) + " inputs and " + std::to_string(outputs.size()) +
                          " outputs; use one of each a rank, " + std::to_string(ranks));
  }
  const at::ScalarType element = inputs[0].scalar_type();
  Call call{.operation = operation, .agreed = c10::toString(element)};
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    if (inputs[rank].scalar_type() != element || outputs[rank].scalar_type() != element) {
      refuse(operation, "tensors of " + std::string(c10::toString(inputs[rank].scalar_type())) + " and " +
                            c10::toString(outputs[rank].scalar_type()) + " beside " + c10::toString(element) +
                            "; use one type");
    }
    call.send_counts.push_back(inputs[rank].numel());
    call.receive_counts.push_back(outputs[rank].numel());
  }
  return join(std::move(call), std::move(inputs), std::move(outputs), type, exchange_all);
}

ThreadBackend::Work ThreadBackend::allgather(std::vector<Tensors>& outputs, Tensors& inputs,
                                             const c10d::AllgatherOptions&) {
  if (outputs.size() != 1 || inputs.size() != 1) refuse("allgather", "more than one tensor a rank; use one");
  return exchange("allgather", c10d::OpType::ALLGATHER, outputs[0],
                  Tensors(static_cast<std::size_t>(size_), inputs[0]));
}

ThreadBackend::Work ThreadBackend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                   const c10d::AllgatherOptions&) {
  if (output.numel() != input.numel() * size_) {
    refuse("_allgather_base", "output " + describe(output) + " for input " + describe(input) + " of " +
                                  std::to_string(size_) + " ranks; use as many elements as all inputs");
  }
  return exchange("_allgather_base", c10d::OpType::_ALLGATHER_BASE, output.view(-1).chunk(size_),
                  Tensors(static_cast<std::size_t>(size_), input));
}

ThreadBackend::Work ThreadBackend::reduce_scatter(Tensors& outputs, std::vector<Tensors>& inputs,
                                                  const c10d::ReduceScatterOptions& options) {
  const Reduction reduction = options.reduceOp;
  if (outputs.size() != 1 || inputs.size() != 1 || inputs[0].size() != static_cast<std::size_t>(size_)) {
    refuse("reduce_scatter", "use one output, and one input for each of the " + std::to_string(size_) + " ranks");
  }
  Call call{.operation = "reduce_scatter", .agreed = name("reduce_scatter", reduction) + " of " + describe(inputs[0])};
  return join(std::move(call), inputs[0], outputs, c10d::OpType::REDUCE_SCATTER, [reduction](Everyone everyone) {
    const OutsideAutograd guard;
    for (std::size_t to = 0; to < everyone.size(); ++to) {
      copy(buffers_of(everyone, to).outputs[0],
           reduce_in_order(everyone.size(), reduction, [&](std::size_t rank) -> const at::Tensor& {
             return buffers_of(everyone, rank).inputs[to];
           }));
    }
  });
}

ThreadBackend::Work ThreadBackend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                        const c10d::ReduceScatterOptions& options) {
  if (input.numel() != output.numel() * size_) {
    refuse("_reduce_scatter_base", "input " + describe(input) + " for output " + describe(output) + " of " +
                                       std::to_string(size_) + " ranks; use as many elements as all outputs");
  }
  Tensors outputs{output};
  std::vector<Tensors> inputs{input.reshape(-1).chunk(size_)};
  return reduce_scatter(outputs, inputs, options);
}

std::vector<std::int64_t> ThreadBackend::split_elements(const char* operation, const at::Tensor& tensor,
                                                        const std::vector<std::int64_t>& splits) const {
  const std::int64_t rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  std::vector<std::int64_t> result = splits;
  if (splits.empty()) {
    if (rows % size_ != 0) {
      refuse(operation, std::to_string(rows) + " rows do not split evenly over " + std::to_string(size_) + " ranks");
    }
    result.assign(static_cast<std::size_t>(size_), rows / size_);
  }
  std::int64_t sum = 0;
  for (const std::int64_t count : result) sum += count;
  const bool negative = std::any_of(result.begin(), result.end(), [](std::int64_t count) { return count < 0; });
  if (result.size() != static_cast<std::size_t>(size_) || sum != rows || negative || !tensor.is_contiguous()) {
    refuse(operation, std::to_string(result.size()) + " splits with a sum of " + std::to_string(sum) + " for a " +
                          (tensor.is_contiguous() ? "contiguous" : "strided") + " tensor of " + std::to_string(rows) +
                          " rows; use " + std::to_string(size_) + " splits >= 0 of all rows, contiguous");
  }
  return result;
}

ThreadBackend::Work ThreadBackend::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                 std::vector<std::int64_t>& output_splits,
                                                 std::vector<std::int64_t>& input_splits,
                                                 const c10d::AllToAllOptions&) {
  const auto parts = [&](const at::Tensor& tensor, const std::vector<std::int64_t>& splits) {
    require_cpu("alltoall_base", {tensor});
    const OutsideAutograd guard;
    return tensor.split_with_sizes(split_elements("alltoall_base", tensor, splits));
  };
  return exchange("alltoall_base", c10d::OpType::ALLTOALL_BASE, parts(output, output_splits),
                  parts(input, input_splits));
}

ThreadBackend::Work ThreadBackend::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions&) {
  return exchange("alltoall", c10d::OpType::ALLTOALL, outputs, inputs);
}

ThreadBackend::Work ThreadBackend::barrier(const c10d::BarrierOptions&) {
  return join({.operation = "barrier"}, {}, {}, c10d::OpType::BARRIER, [](Everyone) {});
}

}  // namespace zellige
