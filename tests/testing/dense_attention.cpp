// SPDX-License-Identifier: Apache-2.0
#include "testing/dense_attention.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace zellige::oracle {
namespace {

using Matrix = std::vector<std::vector<double>>;

double dot(const double* a, const double* b, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// Probabilities [queries][keys] of one query head.
Matrix probabilities(const AttentionInputs& in, int head, int kv_head, double scale) {
  const std::int64_t length = in.q.tokens;
  Matrix p(length, std::vector<double>(length));
  for (std::int64_t i = 0; i < length; ++i) {
    double highest = -std::numeric_limits<double>::infinity();
    for (std::int64_t j = 0; j < length; ++j) {
      p[i][j] = scale * dot(in.q.row(i, head), in.k.row(j, kv_head), in.q.head_dim);
      highest = std::max(highest, p[i][j]);
    }
    double sum = 0;
    for (double& x : p[i]) sum += x = std::exp(x - highest);
    for (double& x : p[i]) x /= sum;
  }
  return p;
}

double largest_difference(const HeadTensor& a, const HeadTensor& b) {
  if (a.values.size() != b.values.size()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const double difference = std::abs(a.values[i] - b.values[i]);
    if (std::isnan(difference)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, difference);
  }
  return largest;
}

}  // namespace

AttentionInputs random_inputs(std::int64_t tokens, int heads, int kv_heads, int head_dim, std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  const auto draw = [&](int num_heads) {
    HeadTensor tensor(tokens, num_heads, head_dim);
    // Uniform in [-sqrt(3), sqrt(3)): variance 1.
    for (double& x : tensor.values) x = (static_cast<double>(engine() >> 11) * 0x1.0p-52 - 1) * std::sqrt(3.0);
    return tensor;
  };
  AttentionInputs inputs;
  inputs.q = draw(heads);
  inputs.k = draw(kv_heads);
  inputs.v = draw(kv_heads);
  inputs.grad_output = draw(heads);
  return inputs;
}

AttentionResult dense_attention(const AttentionInputs& in) {
  const std::int64_t length = in.q.tokens;
  const int dim = in.q.head_dim;
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  AttentionResult out;
  out.output = out.grad_q = HeadTensor(length, in.q.heads, dim, 0);
  out.grad_k = out.grad_v = HeadTensor(length, in.k.heads, dim, 0);
  for (int head = 0; head < in.q.heads; ++head) {
    const int kv_head = head / (in.q.heads / in.k.heads);
    const Matrix p = probabilities(in, head, kv_head, scale);
    for (std::int64_t i = 0; i < length; ++i) {
      std::vector<double> grad_p(length);
      double mean = 0;  // of grad_p under p: what the softmax's Jacobian takes away
      for (std::int64_t j = 0; j < length; ++j) {
        grad_p[j] = dot(in.grad_output.row(i, head), in.v.row(j, kv_head), dim);
        mean += p[i][j] * grad_p[j];
      }
      for (std::int64_t j = 0; j < length; ++j) {
        const double grad_score = p[i][j] * (grad_p[j] - mean) * scale;
        for (int d = 0; d < dim; ++d) {
          out.output.row(i, head)[d] += p[i][j] * in.v.row(j, kv_head)[d];
          out.grad_v.row(j, kv_head)[d] += p[i][j] * in.grad_output.row(i, head)[d];
          out.grad_q.row(i, head)[d] += grad_score * in.k.row(j, kv_head)[d];
          out.grad_k.row(j, kv_head)[d] += grad_score * in.q.row(i, head)[d];
        }
      }
    }
  }
  return out;
}

double largest_error(const AttentionResult& a, const AttentionResult& b) {
  return std::max({largest_difference(a.output, b.output), largest_difference(a.grad_q, b.grad_q),
                   largest_difference(a.grad_k, b.grad_k), largest_difference(a.grad_v, b.grad_v)});
}

}  // namespace zellige::oracle
