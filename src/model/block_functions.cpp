// SPDX-License-Identifier: Apache-2.0
#include "model/block_functions.h"

#include <algorithm>
#include <utility>

namespace zellige {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Layout = std::shared_ptr<const PackedLayout>;

// Carries the layout from forward to backward: a context keeps tensors and reference-counted values only.
struct KeptLayout : torch::CustomClassHolder {
  explicit KeptLayout(Layout kept) : layout(std::move(kept)) {}
  Layout layout;
};

void keep(AutogradContext* context, const Layout& layout) {
  context->saved_data["layout"] = c10::IValue::make_capsule(c10::make_intrusive<KeptLayout>(layout));
}

Layout kept_layout(const AutogradContext* context) {
  const auto holder = context->saved_data.at("layout").toCapsule();
  return static_cast<const KeptLayout*>(holder.get())->layout;
}

at::Tensor piece_of(const at::Tensor& rows, const TokenPiece& piece) { return rows.narrow(0, piece.begin, piece.rows); }

// [segments of the piece, tokens of each in it, channels]
at::Tensor by_segment(const at::Tensor& part, const TokenPiece& piece) {
  return part.view({piece.segments, piece.rows / piece.segments, part.size(1)});
}

// [segments of the piece, 1, channels]
at::Tensor rows_of(const at::Tensor& rows, const TokenPiece& piece) {
  return rows.narrow(0, piece.segment, piece.segments).unsqueeze(1);
}

void add_sums(const at::Tensor& sums, const at::Tensor& part, const TokenPiece& piece) {
  sums.narrow(0, piece.segment, piece.segments).add_(by_segment(part, piece).sum(1));
}

struct ModulatedNorm : torch::autograd::Function<ModulatedNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& shift,
                            const at::Tensor& scale, const Layout& layout, double eps) {
    const at::TensorOptions wide = shift.options();
    at::Tensor out = at::empty(x.sizes(), x.options());
    at::Tensor mean = at::empty({x.size(0), 1}, wide), scatter = at::empty({x.size(0), 1}, wide);
    const at::Tensor factor = scale + 1;
    for (const TokenPiece& piece : layout->pieces(x.size(1))) {
      auto [normed, piece_mean, piece_scatter] =
          at::native_layer_norm(piece_of(x, piece).to(wide.dtype()), {x.size(1)}, {}, {}, eps);
      by_segment(normed, piece).mul_(rows_of(factor, piece)).add_(rows_of(shift, piece));
      piece_of(out, piece).copy_(normed);
      piece_of(mean, piece).copy_(piece_mean);
      piece_of(scatter, piece).copy_(piece_scatter);
    }
    context->save_for_backward({x, factor, mean, scatter});
    keep(context, layout);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &factor = saved[1], &mean = saved[2], &scatter = saved[3];
    const at::Tensor gradient = gradients[0].contiguous();
    const auto wide = factor.scalar_type();
    at::Tensor of_x = at::empty(x.sizes(), x.options());
    at::Tensor of_shift = at::zeros_like(factor), of_scale = at::zeros_like(factor);
    const Layout layout = kept_layout(context);
    for (const TokenPiece& piece : layout->pieces(x.size(1))) {
      const at::Tensor wide_x = piece_of(x, piece).to(wide), wide_gradient = piece_of(gradient, piece).to(wide);
      at::Tensor product = (wide_x - piece_of(mean, piece)).mul_(piece_of(scatter, piece)).mul_(wide_gradient);
      add_sums(of_scale, product, piece);
      add_sums(of_shift, wide_gradient, piece);
      at::Tensor segments = by_segment(product, piece);
      at::mul_out(segments, by_segment(wide_gradient, piece), rows_of(factor, piece));
      piece_of(of_x, piece)
          .copy_(std::get<0>(at::native_layer_norm_backward(product, wide_x, {x.size(1)}, piece_of(mean, piece),
                                                            piece_of(scatter, piece), {}, {}, {true, false, false})));
    }
    return {of_x, of_shift, of_scale, {}, {}};
  }
};

struct Gated : torch::autograd::Function<Gated> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& update,
                            const at::Tensor& gate, const Layout& layout) {
    at::Tensor out = at::empty(x.sizes(), x.options());
    for (const TokenPiece& piece : layout->pieces(x.size(1))) {
      const at::Tensor product = at::mul(by_segment(piece_of(update, piece), piece), rows_of(gate, piece));
      piece_of(out, piece).copy_(product.view({piece.rows, x.size(1)}).add_(piece_of(x, piece)));
    }
    context->save_for_backward({update, gate});
    keep(context, layout);
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &update = saved[0], &gate = saved[1];
    const at::Tensor gradient = gradients[0].contiguous();
    at::Tensor of_update = at::empty(update.sizes(), update.options()), of_gate = at::zeros_like(gate);
    const Layout layout = kept_layout(context);
    for (const TokenPiece& piece : layout->pieces(update.size(1))) {
      const at::Tensor part = piece_of(gradient, piece);
      at::Tensor product = at::mul(by_segment(part, piece), rows_of(gate, piece)).view(part.sizes());
      piece_of(of_update, piece).copy_(product);
      product.copy_(piece_of(update, piece)).mul_(part);
      add_sums(of_gate, product, piece);
    }
    return {gradient, of_update, of_gate, {}};
  }
};

struct AffineNorm : torch::autograd::Function<AffineNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& gain,
                            const at::Tensor& bias, double eps) {
    const at::TensorOptions wide = gain.options();
    at::Tensor out = at::empty(x.sizes(), x.options());
    at::Tensor mean = at::empty({x.size(0), 1}, wide), scatter = at::empty({x.size(0), 1}, wide);
    for (const TokenPiece& piece : equal_pieces(x.size(0), x.size(1))) {
      const auto [normed, piece_mean, piece_scatter] =
          at::native_layer_norm(piece_of(x, piece).to(wide.dtype()), {x.size(1)}, gain, bias, eps);
      piece_of(out, piece).copy_(normed);
      piece_of(mean, piece).copy_(piece_mean);
      piece_of(scatter, piece).copy_(piece_scatter);
    }
    context->save_for_backward({x, gain, bias, mean, scatter});
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &gain = saved[1], &bias = saved[2], &mean = saved[3], &scatter = saved[4];
    const at::Tensor gradient = gradients[0].contiguous();
    at::Tensor of_x = at::empty(x.sizes(), x.options());
    at::Tensor of_gain = at::zeros_like(gain), of_bias = at::zeros_like(bias);
    for (const TokenPiece& piece : equal_pieces(x.size(0), x.size(1))) {
      const auto [part, part_gain, part_bias] = at::native_layer_norm_backward(
          piece_of(gradient, piece).to(gain.scalar_type()), piece_of(x, piece).to(gain.scalar_type()), {x.size(1)},
          piece_of(mean, piece), piece_of(scatter, piece), gain, bias, {true, true, true});
      piece_of(of_x, piece).copy_(part);
      of_gain.add_(part_gain);
      of_bias.add_(part_bias);
    }
    return {of_x, of_gain, of_bias, {}};
  }
};

struct RootMeanSquareNorm : torch::autograd::Function<RootMeanSquareNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& gain, double eps) {
    at::Tensor out = at::empty(x.sizes(), x.options());
    at::Tensor scatter = at::empty({x.size(0), 1}, gain.options());
    for (const TokenPiece& piece : equal_pieces(x.size(0), x.size(1))) {
      const at::Tensor wide_x = piece_of(x, piece).to(gain.scalar_type());
      const at::Tensor inverse = wide_x.square().mean(1, true).add_(eps).rsqrt_();
      piece_of(out, piece).copy_((wide_x * inverse).mul_(gain));
      piece_of(scatter, piece).copy_(inverse);
    }
    context->save_for_backward({x, gain, scatter});
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &gain = saved[1], &scatter = saved[2];
    const at::Tensor gradient = gradients[0].contiguous();
    at::Tensor of_x = at::empty(x.sizes(), x.options()), of_gain = at::zeros_like(gain);
    for (const TokenPiece& piece : equal_pieces(x.size(0), x.size(1))) {
      // n = x / rms:  dx = (g gain - n mean(g gain n)) / rms,  d gain = sum over tokens of g n
      const at::Tensor inverse = piece_of(scatter, piece);
      const at::Tensor normed = at::mul(piece_of(x, piece), inverse);
      at::Tensor product = at::mul(piece_of(gradient, piece), normed);
      of_gain.add_(product.sum(0));
      const at::Tensor mean = product.mul_(gain).mean(1, true);
      at::mul_out(product, piece_of(gradient, piece), gain);
      piece_of(of_x, piece).copy_(product.sub_(normed * mean).mul_(inverse));
    }
    return {of_x, of_gain, {}};
  }
};

struct FeedForward : torch::autograd::Function<FeedForward> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& w1, const at::Tensor& b1,
                            const at::Tensor& w2, const at::Tensor& b2) {
    const at::Tensor inner = at::linear(x, w1, b1);
    context->save_for_backward({x, w1, w2, inner});
    return at::linear(at::gelu(inner, "tanh"), w2, b2);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &w1 = saved[1], &w2 = saved[2], &inner = saved[3];
    const at::Tensor& gradient = gradients[0];
    const at::Tensor of_w2 = gradient.t().mm(at::gelu(inner, "tanh")), of_b2 = gradient.sum(0);
    at::Tensor of_inner = gradient.mm(w2);
    at::gelu_backward_out(of_inner, of_inner, inner, "tanh");
    return {of_inner.mm(w1), of_inner.t().mm(x), of_inner.sum(0), of_w2, of_b2};
  }
};

}  // namespace

at::Tensor modulated_norm(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale, const Layout& layout,
                          double eps) {
  return ModulatedNorm::apply(x, shift, scale, layout, eps);
}

at::Tensor gated(const at::Tensor& x, const at::Tensor& update, const at::Tensor& gate, const Layout& layout) {
  return Gated::apply(x, update, gate, layout);
}

at::Tensor affine_norm(const at::Tensor& x, const at::Tensor& gain, const at::Tensor& bias, double eps) {
  return AffineNorm::apply(x, gain, bias, eps);
}

at::Tensor root_mean_square_norm(const at::Tensor& x, const at::Tensor& gain, double eps) {
  return RootMeanSquareNorm::apply(x.flatten(0, -2), gain, eps).view(x.sizes());
}

at::Tensor feed_forward(const at::Tensor& x, const at::Tensor& w1, const at::Tensor& b1, const at::Tensor& w2,
                        const at::Tensor& b2) {
  return FeedForward::apply(x, w1, b1, w2, b2);
}

}  // namespace zellige
