// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "zellige/schedule.h"

namespace zellige {
namespace {

/// Chunks [first, first + count) of a sequence; neighbours in index are neighbours in tokens.
TokenRange chunks(const Segment& segment, int first, int count) {
  const int degree = segment.config.degree();
  const TokenRange front = chunk(segment.sequence_tokens, degree, first);
  const TokenRange back = chunk(segment.sequence_tokens, degree, first + count - 1);
  return {front.begin, back.end() - front.begin};
}

}  // namespace

TokenRange chunk(std::int64_t length, int degree, int index) {
  const std::int64_t least = length / degree;
  const std::int64_t longer = length % degree;  // so many chunks, the first ones, are one token longer
  return {index * least + std::min<std::int64_t>(index, longer), least + (index < longer ? 1 : 0)};
}

TokenRange query_range(const Segment& segment) {
  const auto [q, h, k] = segment.config;
  return chunks(segment, h * (segment.iq + q * segment.ik), h);
}

TokenRange key_block(const Segment& segment, int stage) {
  const auto [q, h, k] = segment.config;
  const int block = (segment.ik - stage + k) % k;
  return chunks(segment, q * h * block, q * h);
}

HeadRange wave_heads(int local_heads, int waves, int wave) {
  const auto cut = [&](int part) { return static_cast<int>(static_cast<std::int64_t>(part) * local_heads / waves); };
  return {cut(wave), cut(wave + 1) - cut(wave)};
}

HeadRange wave_kv_heads(const Schedule& schedule, const Segment& segment, int wave) {
  const int local_heads = schedule.kv_heads / segment.config.h;
  const HeadRange local = wave_heads(local_heads, schedule.exec.waves, wave);
  return {segment.ih * local_heads + local.begin, local.count};
}

HeadRange wave_query_heads(const Schedule& schedule, const Segment& segment, int wave) {
  const HeadRange kv = wave_kv_heads(schedule, segment, wave);
  const int shared_by = schedule.heads / schedule.kv_heads;  // query heads that share one key/value head
  return {kv.begin * shared_by, kv.count * shared_by};
}

}  // namespace zellige
