// SPDX-License-Identifier: Apache-2.0
#include "testing/simulated_rank.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

namespace zellige::oracle {
namespace {

const double kPoison = std::numeric_limits<double>::quiet_NaN();

void poison(HeadTensor& tensor) { std::fill(tensor.values.begin(), tensor.values.end(), kPoison); }

void poison_tokens(HeadTensor& tensor, std::int64_t begin, std::int64_t end) {
  std::fill(tensor.row(begin, 0), tensor.row(begin, 0) + (end - begin) * tensor.heads * tensor.head_dim, kPoison);
}

double dot(const double* a, const double* b, int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

/// Where chunk `index` of `degree` begins: the first length mod degree chunks are one longer.
std::int64_t chunk_begin(std::int64_t length, int degree, int index) {
  std::int64_t begin = 0;
  for (int i = 0; i < index; ++i) begin += length / degree + (i < length % degree);
  return begin;
}

void copy_rows(const HeadTensor& from, std::int64_t from_token, HeadTensor& to, std::int64_t to_token,
               std::int64_t count) {
  std::copy_n(from.row(from_token, 0), count * from.heads * from.head_dim, to.row(to_token, 0));
}

/// Copies tokens x heads [heads.first, heads.second).
void copy_box(const HeadTensor& from, std::int64_t from_token, HeadTensor& to, std::int64_t to_token,
              std::int64_t count, std::pair<int, int> heads) {
  for (std::int64_t t = 0; t < count; ++t) {
    for (int head = heads.first; head < heads.second; ++head) {
      std::copy_n(from.row(from_token + t, head), from.head_dim, to.row(to_token + t, head));
    }
  }
}

void write_once(double* to, const double* from, int n, const Piece& piece) {
  for (int i = 0; i < n; ++i) {
    if (!std::isnan(to[i])) {
      throw std::logic_error("sequence " + std::to_string(piece.sequence) + ": " + std::string(name(piece.payload)) +
                             " received twice, from rank " + std::to_string(piece.peer));
    }
    to[i] = from[i];
  }
}

}  // namespace

SimulatedRank::SimulatedRank(const Schedule& schedule, const std::vector<AttentionInputs>& inputs)
    : schedule_(&schedule), held_(schedule.segments.size()) {
  const int dim = schedule.head_dim;
  own_.q = own_.grad_output = results_.output = results_.grad_q = HeadTensor(schedule.num_tokens, schedule.heads, dim);
  own_.k = own_.v = HeadTensor(schedule.num_tokens, schedule.kv_heads, dim);
  results_.grad_k = results_.grad_v = HeadTensor(schedule.num_tokens, schedule.kv_heads, dim, 0);
  for (std::size_t i = 0; i < schedule.segments.size(); ++i) {
    const Segment& segment = schedule.segments[i];
    const AttentionInputs& whole = inputs[segment.sequence];
    copy_rows(whole.q, segment.token_begin, own_.q, segment.local_begin, segment.num_tokens);
    copy_rows(whole.k, segment.token_begin, own_.k, segment.local_begin, segment.num_tokens);
    copy_rows(whole.v, segment.token_begin, own_.v, segment.local_begin, segment.num_tokens);
    copy_rows(whole.grad_output, segment.token_begin, own_.grad_output, segment.local_begin, segment.num_tokens);
    if (i < schedule.num_whole) continue;
    const std::int64_t length = segment.sequence_tokens;
    Held& held = held_[i];
    held.query = held.output = held.grad_output = held.grad_query = HeadTensor(length, schedule.heads, dim);
    held.key = held.value = held.grad_key = held.grad_value = HeadTensor(length, schedule.kv_heads, dim);
    held.highest = held.sum = HeadTensor(length, schedule.heads, 1);
  }
}

void SimulatedRank::run_whole_sequences() {
  for (const WholeGroup& group : schedule_->whole_groups) {
    for (std::int64_t i = 0; i < group.count; ++i) {
      const std::int64_t begin = group.local_begin + i * group.length;
      AttentionInputs in;
      in.q = in.grad_output = HeadTensor(group.length, schedule_->heads, schedule_->head_dim);
      in.k = in.v = HeadTensor(group.length, schedule_->kv_heads, schedule_->head_dim);
      copy_rows(own_.q, begin, in.q, 0, group.length);
      copy_rows(own_.k, begin, in.k, 0, group.length);
      copy_rows(own_.v, begin, in.v, 0, group.length);
      copy_rows(own_.grad_output, begin, in.grad_output, 0, group.length);
      const AttentionResult out = dense_attention(in);
      copy_rows(out.output, 0, results_.output, begin, group.length);
      copy_rows(out.grad_q, 0, results_.grad_q, begin, group.length);
      copy_rows(out.grad_k, 0, results_.grad_k, begin, group.length);
      copy_rows(out.grad_v, 0, results_.grad_v, begin, group.length);
    }
  }
}

void SimulatedRank::begin_backward() {
  // Kept: own rows, queries received, outputs computed with their softmax sums, the resident block if asked for.
  for (std::size_t i = schedule_->num_whole; i < held_.size(); ++i) {
    Held& held = held_[i];
    for (HeadTensor* tensor : {&held.grad_output, &held.grad_query, &held.grad_key, &held.grad_value}) poison(*tensor);
    const Work resident = work_of(schedule_->segments[i], 0, 0);
    const std::int64_t length = schedule_->segments[i].sequence_tokens;
    for (HeadTensor* tensor : {&held.key, &held.value}) {
      if (schedule_->exec.keep_kv) {
        poison_tokens(*tensor, 0, resident.key_begin);
        poison_tokens(*tensor, resident.key_end, length);
      } else {
        poison(*tensor);
      }
    }
  }
}

std::size_t SimulatedRank::held_index(SequenceIndex sequence) const {
  for (std::size_t i = schedule_->num_whole; i < held_.size(); ++i) {
    if (schedule_->segments[i].sequence == sequence) return i;
  }
  throw std::logic_error("rank " + std::to_string(schedule_->rank) + " exchanges sequence " + std::to_string(sequence) +
                         ", of which it has no shard");
}

const double* SimulatedRank::source(std::size_t i, Payload payload, std::int64_t token, int head) const {
  const Segment& segment = schedule_->segments[i];
  const Held& held = held_[i];
  const std::int64_t local = token - segment.token_begin;
  const bool owned = local >= 0 && local < segment.num_tokens;
  const std::int64_t row = segment.local_begin + local;
  switch (payload) {
    case Payload::query: return owned ? own_.q.row(row, head) : held.query.row(token, head);
    case Payload::key: return owned ? own_.k.row(row, head) : held.key.row(token, head);
    case Payload::value: return owned ? own_.v.row(row, head) : held.value.row(token, head);
    case Payload::grad_output: return owned ? own_.grad_output.row(row, head) : held.grad_output.row(token, head);
    case Payload::output: return held.output.row(token, head);
    case Payload::grad_query: return held.grad_query.row(token, head);
    case Payload::grad_key: return held.grad_key.row(token, head);
    case Payload::grad_value: return held.grad_value.row(token, head);
  }
  throw std::logic_error("a payload that is none");
}

void SimulatedRank::pack(const Piece& piece, std::vector<double>& message) const {
  const std::size_t i = held_index(piece.sequence);
  for (std::int64_t token = piece.token_begin; token < piece.token_begin + piece.num_tokens; ++token) {
    for (int head = piece.head_begin; head < piece.head_begin + piece.num_heads; ++head) {
      const double* from = source(i, piece.payload, token, head);
      message.insert(message.end(), from, from + schedule_->head_dim);
    }
  }
}

void SimulatedRank::unpack(const Piece& piece, const double* elements) {
  const std::size_t i = held_index(piece.sequence);
  const Segment& segment = schedule_->segments[i];
  Held& held = held_[i];
  const int dim = schedule_->head_dim;
  for (std::int64_t token = piece.token_begin; token < piece.token_begin + piece.num_tokens; ++token) {
    const std::int64_t row = segment.local_begin + token - segment.token_begin;
    for (int head = piece.head_begin; head < piece.head_begin + piece.num_heads; ++head, elements += dim) {
      switch (piece.payload) {
        case Payload::query: write_once(held.query.row(token, head), elements, dim, piece); break;
        case Payload::key: write_once(held.key.row(token, head), elements, dim, piece); break;
        case Payload::value: write_once(held.value.row(token, head), elements, dim, piece); break;
        case Payload::grad_output: write_once(held.grad_output.row(token, head), elements, dim, piece); break;
        case Payload::output: write_once(results_.output.row(row, head), elements, dim, piece); break;
        case Payload::grad_query: write_once(results_.grad_q.row(row, head), elements, dim, piece); break;
        case Payload::grad_key:
          for (int d = 0; d < dim; ++d) results_.grad_k.row(row, head)[d] += elements[d];
          break;
        case Payload::grad_value:
          for (int d = 0; d < dim; ++d) results_.grad_v.row(row, head)[d] += elements[d];
          break;
      }
    }
  }
}

SimulatedRank::Work SimulatedRank::work_of(const Segment& segment, int wave, int stage) const {
  const auto [q, h, k] = segment.config;
  const int degree = q * h * k;
  const std::int64_t length = segment.sequence_tokens;
  const int first_query = h * (segment.iq + q * segment.ik);
  const int block = ((segment.ik - stage) % k + k) % k;
  const int group_heads = schedule_->kv_heads / h;
  const int waves = schedule_->exec.waves;
  Work work;
  work.query_begin = chunk_begin(length, degree, first_query);
  work.query_end = chunk_begin(length, degree, first_query + h);
  work.key_begin = chunk_begin(length, degree, q * h * block);
  work.key_end = chunk_begin(length, degree, q * h * (block + 1));
  work.kv_head_begin = segment.ih * group_heads + wave * group_heads / waves;
  work.kv_head_end = segment.ih * group_heads + (wave + 1) * group_heads / waves;
  work.shared_by = schedule_->heads / schedule_->kv_heads;
  return work;
}

std::pair<int, int> SimulatedRank::query_heads_of(const Work& work) {
  return {work.kv_head_begin * work.shared_by, work.kv_head_end * work.shared_by};
}

void SimulatedRank::compute_forward(int wave, int stage) {
  for (std::size_t i = schedule_->num_whole; i < held_.size(); ++i) {
    if (stage >= schedule_->segments[i].config.k) continue;
    const Work work = work_of(schedule_->segments[i], wave, stage);
    const auto [head_begin, head_end] = query_heads_of(work);
    for (int head = head_begin; head < head_end; ++head) {
      for (std::int64_t token = work.query_begin; token < work.query_end; ++token) {
        forward_row(i, work, stage == 0, token, head);
      }
    }
  }
}

void SimulatedRank::forward_row(std::size_t i, const Work& work, bool first, std::int64_t token, int head) {
  Held& held = held_[i];
  const int dim = schedule_->head_dim;
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  const double* query = source(i, Payload::query, token, head);
  double* output = held.output.row(token, head);
  double& highest = *held.highest.row(token, head);
  double& sum = *held.sum.row(token, head);
  if (first) {
    std::fill_n(output, dim, 0);
    highest = -std::numeric_limits<double>::infinity();
    sum = 0;
  }
  for (std::int64_t key = work.key_begin; key < work.key_end; ++key) {
    const double score = scale * dot(query, source(i, Payload::key, key, head / work.shared_by), dim);
    const double* value = source(i, Payload::value, key, head / work.shared_by);
    // Not std::max, which would drop a NaN.
    const double now = score <= highest ? highest : score;
    const double shrink = std::exp(highest - now);
    const double weight = std::exp(score - now);
    const double grown = sum * shrink + weight;
    for (int d = 0; d < dim; ++d) output[d] = (output[d] * sum * shrink + weight * value[d]) / grown;
    highest = now;
    sum = grown;
  }
}

void SimulatedRank::compute_backward(int wave, int stage) {
  for (std::size_t i = schedule_->num_whole; i < held_.size(); ++i) {
    if (stage >= schedule_->segments[i].config.k) continue;
    const Work work = work_of(schedule_->segments[i], wave, stage);
    Held& held = held_[i];
    for (std::int64_t key = work.key_begin; key < work.key_end; ++key) {
      for (int head = work.kv_head_begin; head < work.kv_head_end; ++head) {
        std::fill_n(held.grad_key.row(key, head), schedule_->head_dim, 0);
        std::fill_n(held.grad_value.row(key, head), schedule_->head_dim, 0);
      }
    }
    const auto [head_begin, head_end] = query_heads_of(work);
    for (int head = head_begin; head < head_end; ++head) {
      for (std::int64_t token = work.query_begin; token < work.query_end; ++token) {
        backward_row(i, work, stage == 0, token, head);
      }
    }
    if (stage == 0) settle_block_gradients(i, work);  // the own chunk lies in the resident block
  }
}

void SimulatedRank::backward_row(std::size_t i, const Work& work, bool first, std::int64_t token, int head) {
  Held& held = held_[i];
  const int dim = schedule_->head_dim;
  const double scale = 1 / std::sqrt(static_cast<double>(dim));
  const double* query = source(i, Payload::query, token, head);
  const double* grad_output = source(i, Payload::grad_output, token, head);
  const double delta = dot(grad_output, held.output.row(token, head), dim);
  const double lse = *held.highest.row(token, head) + std::log(*held.sum.row(token, head));
  double* grad_query = held.grad_query.row(token, head);
  if (first) std::fill_n(grad_query, dim, 0);
  for (std::int64_t key = work.key_begin; key < work.key_end; ++key) {
    const int kv_head = head / work.shared_by;
    const double* key_row = source(i, Payload::key, key, kv_head);
    const double p = std::exp(scale * dot(query, key_row, dim) - lse);
    const double grad_score = scale * p * (dot(grad_output, source(i, Payload::value, key, kv_head), dim) - delta);
    double* grad_key = held.grad_key.row(key, kv_head);
    double* grad_value = held.grad_value.row(key, kv_head);
    for (int d = 0; d < dim; ++d) {
      grad_query[d] += grad_score * key_row[d];
      grad_key[d] += grad_score * query[d];
      grad_value[d] += p * grad_output[d];
    }
  }
}

void SimulatedRank::drop_block(int stage) {
  for (std::size_t i = schedule_->num_whole; i < held_.size(); ++i) {
    if (stage == 0 || stage >= schedule_->segments[i].config.k) continue;  // stage 0 is the resident block
    const Work work = work_of(schedule_->segments[i], 0, stage);
    poison_tokens(held_[i].key, work.key_begin, work.key_end);
    poison_tokens(held_[i].value, work.key_begin, work.key_end);
  }
}

void SimulatedRank::drop_gradients_sent_by(int ring_step) {
  for (std::size_t i = schedule_->num_whole; i < held_.size(); ++i) {
    const Segment& segment = schedule_->segments[i];
    if (ring_step < 2 || ring_step >= segment.config.k) continue;
    const Work work = work_of(segment, 0, ring_step - 2);
    poison_tokens(held_[i].grad_key, work.key_begin, work.key_end);
    poison_tokens(held_[i].grad_value, work.key_begin, work.key_end);
  }
}

void SimulatedRank::settle_output(int wave) {
  for (std::size_t i = schedule_->num_whole; i < held_.size(); ++i) {
    const Segment& segment = schedule_->segments[i];
    copy_box(held_[i].output, segment.token_begin, results_.output, segment.local_begin, segment.num_tokens,
             query_heads_of(work_of(segment, wave, 0)));
  }
}

void SimulatedRank::settle_grad_query(int wave) {
  for (std::size_t i = schedule_->num_whole; i < held_.size(); ++i) {
    const Segment& segment = schedule_->segments[i];
    copy_box(held_[i].grad_query, segment.token_begin, results_.grad_q, segment.local_begin, segment.num_tokens,
             query_heads_of(work_of(segment, wave, 0)));
  }
}

void SimulatedRank::settle_block_gradients(std::size_t i, const Work& work) {
  const Segment& segment = schedule_->segments[i];
  for (std::int64_t t = 0; t < segment.num_tokens; ++t) {
    for (int head = work.kv_head_begin; head < work.kv_head_end; ++head) {
      for (int d = 0; d < schedule_->head_dim; ++d) {
        results_.grad_k.row(segment.local_begin + t, head)[d] +=
            held_[i].grad_key.row(segment.token_begin + t, head)[d];
        results_.grad_v.row(segment.local_begin + t, head)[d] +=
            held_[i].grad_value.row(segment.token_begin + t, head)[d];
      }
    }
  }
}

void SimulatedRank::collect(std::vector<AttentionResult>& results) const {
  for (const Segment& segment : schedule_->segments) {
    AttentionResult& whole = results[segment.sequence];
    if (!std::isnan(*whole.grad_k.row(segment.token_begin, 0))) {
      throw std::logic_error("rank " + std::to_string(schedule_->rank) + " owns tokens of sequence " +
                             std::to_string(segment.sequence) + " that another rank owns");
    }
    copy_rows(results_.output, segment.local_begin, whole.output, segment.token_begin, segment.num_tokens);
    copy_rows(results_.grad_q, segment.local_begin, whole.grad_q, segment.token_begin, segment.num_tokens);
    copy_rows(results_.grad_k, segment.local_begin, whole.grad_k, segment.token_begin, segment.num_tokens);
    copy_rows(results_.grad_v, segment.local_begin, whole.grad_v, segment.token_begin, segment.num_tokens);
  }
}

}  // namespace zellige::oracle
