// SPDX-License-Identifier: Apache-2.0
// FlashAttention-3 through torch's dispatcher: a source build and prebuilt libraries register the same two operators.
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>

#include "engine/attention_kernel.h"
#include "zellige/error.h"

namespace zellige {
namespace {

std::optional<c10::OperatorHandle> find_operator(const char* name) {
  return c10::Dispatcher::singleton().findSchema({name, ""});
}

/// An operator whose arguments are given by name: the two have dozens, and releases have added more.
class NamedOperator {
 public:
  explicit NamedOperator(c10::OperatorHandle handle) : handle_(std::move(handle)) {
    for (const c10::Argument& argument : handle_.schema().arguments()) {
      places_.emplace(argument.name(), defaults_.size());
      defaults_.push_back(argument.default_value().value_or(c10::IValue()));
    }
  }
  const c10::OperatorHandle& handle() const { return handle_; }
  const std::vector<c10::IValue>& defaults() const { return defaults_; }
  std::size_t place_of(std::string_view argument) const {
    const auto found = places_.find(argument);
    if (found != places_.end()) return found->second;
    throw Error(Code::device, "engine.kernels",
                "operator " + handle_.schema().name() + " has no argument '" + std::string(argument) +
                    "'; use another release");
  }

 private:
  const c10::OperatorHandle handle_;
  std::vector<c10::IValue> defaults_;
  std::map<std::string, std::size_t, std::less<>> places_;
};

/// Calls an operator with some of its arguments by name, the others at their defaults.
class NamedCall {
 public:
  explicit NamedCall(const NamedOperator& of) : operator_(of), stack_(of.defaults()) {}
  NamedCall& set(std::string_view argument, c10::IValue value) {
    stack_[operator_.place_of(argument)] = std::move(value);
    return *this;
  }
  NamedCall& set_if_defined(std::string_view argument, const at::Tensor& tensor) {
    return tensor.defined() ? set(argument, tensor) : *this;
  }
  std::vector<c10::IValue> run() {
    operator_.handle().callBoxed(stack_);
    return std::move(stack_);
  }

 private:
  const NamedOperator& operator_;
  std::vector<c10::IValue> stack_;
};

class FlashAttention3 final : public AttentionKernel {
 public:
  FlashAttention3(c10::OperatorHandle forward, c10::OperatorHandle backward, const KernelSettings& settings)
      : forward_(std::move(forward)), backward_(std::move(backward)), settings_(settings) {}

  std::string_view name() const override { return "flash-attention-3"; }

  bool supports(const AttentionShape& shape) const override {
    return shape.device == c10::DeviceType::CUDA && (shape.dtype == at::kBFloat16 || shape.dtype == at::kHalf) &&
           shape.head_dim % 8 == 0 && shape.head_dim <= 256;
  }

  AttentionOutput forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
                          const at::Tensor& into) const override {
    return run_forward(q, k, v, nullptr, scale, into);
  }
  AttentionGradients backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const at::Tensor& out, const at::Tensor& lse, double scale,
                              const AttentionGradients& into) const override {
    return run_backward(grad_out, q, k, v, out, lse, nullptr, scale, into);
  }

  bool takes_packed() const override { return true; }
  AttentionOutput forward_packed(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                 const PackedLengths& lengths, double scale, const at::Tensor& into) const override {
    return run_forward(q, k, v, &lengths, scale, into);
  }
  AttentionGradients backward_packed(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                                     const at::Tensor& v, const at::Tensor& out, const at::Tensor& lse,
                                     const PackedLengths& lengths, double scale,
                                     const AttentionGradients& into) const override {
    return run_backward(grad_out, q, k, v, out, lse, &lengths, scale, into);
  }

 private:
  static void set_lengths(NamedCall& call, const PackedLengths* lengths) {
    if (lengths == nullptr) return;
    call.set("cu_seqlens_q", lengths->begins).set("cu_seqlens_k", lengths->begins);
    call.set("max_seqlen_q", lengths->longest).set("max_seqlen_k", lengths->longest);
  }

  AttentionOutput run_forward(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const PackedLengths* lengths, double scale, const at::Tensor& into) const {
    NamedCall call(forward_);
    call.set("q", q)
        .set("k", k)
        .set("v", v)
        .set("softmax_scale", scale)
        .set("sm_margin", std::int64_t{settings_.spare_sms});
    call.set("num_splits", std::int64_t{1});  // splitting keys would round partial results once more
    call.set_if_defined("out", into);
    set_lengths(call, lengths);
    const std::vector<c10::IValue> results = call.run();
    return {results[0].toTensor(), results[1].toTensor()};
  }

  AttentionGradients run_backward(const at::Tensor& grad_out, const at::Tensor& q, const at::Tensor& k,
                                  const at::Tensor& v, const at::Tensor& out, const at::Tensor& lse,
                                  const PackedLengths* lengths, double scale, const AttentionGradients& into) const {
    NamedCall call(backward_);
    call.set("dout", grad_out).set("q", q).set("k", k).set("v", v).set("out", out).set("softmax_lse", lse);
    call.set_if_defined("dq", into.q).set_if_defined("dk", into.k).set_if_defined("dv", into.v);
    call.set("softmax_scale", scale).set("sm_margin", std::int64_t{settings_.spare_sms});
    call.set("deterministic", settings_.deterministic);
    set_lengths(call, lengths);
    const std::vector<c10::IValue> results = call.run();
    return {results[0].toTensor(), results[1].toTensor(), results[2].toTensor()};
  }

  const NamedOperator forward_, backward_;
  const KernelSettings& settings_;
};

/// Null and a reason, or the handle; a library that is loaded stays. Symbols are looked up when they are called: those
/// of Python, which prebuilt libraries mention for their module, never are.
void* open_library(const std::string& path, std::string& why) {
  void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_GLOBAL);
  if (handle == nullptr) why = dlerror();
  return handle;
}

}  // namespace

std::unique_ptr<const AttentionKernel> make_flash_attention_3(const KernelSettings& settings) {
  const auto forward = find_operator("flash_attn_3::fwd");
  const auto backward = find_operator("flash_attn_3::bwd");
  if (!forward || !backward) return nullptr;
  return std::make_unique<FlashAttention3>(*forward, *backward, settings);
}

void load_flash_attention_3(const std::string& path) {
  if (find_operator("flash_attn_3::bwd")) return;
  std::string why;
  if (open_library(path, why) == nullptr) {
    // Prebuilt ones may need another CUDA runtime than torch's, which its wheel puts beside them.
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::string ignored;
    for (const char* place : {"libcudart.so.12", "../../nvidia/cuda_runtime/lib/libcudart.so.12"}) {
      if (open_library((folder / place).string(), ignored) != nullptr) break;
    }
    if (open_library(path, why) == nullptr) {
      throw Error(Code::device, "engine.kernels", "FlashAttention-3 at '" + path + "' can't be loaded: " + why);
    }
  }
  if (!find_operator("flash_attn_3::fwd") || !find_operator("flash_attn_3::bwd")) {
    throw Error(Code::device, "engine.kernels", "'" + path + "' registers no flash_attn_3::fwd and flash_attn_3::bwd");
  }
}

}  // namespace zellige
