// SPDX-License-Identifier: Apache-2.0
#include "engine/slice_tasks.h"

#include <algorithm>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace zellige {
namespace {

constexpr int kThreads = 256;
constexpr int kTasksPerLaunch = 64;  // kernel arguments hold 4 KiB

struct TaskList {
  SliceTask tasks[kTasksPerLaunch];
};

__device__ float widen(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ float widen(__half value) { return __half2float(value); }
__device__ void narrow(float value, __nv_bfloat16& to) { to = __float2bfloat16_rn(value); }
__device__ void narrow(float value, __half& to) { to = __float2half_rn(value); }

template <class Half>
__device__ void add_eight(char* to, const char* from) {
  const uint4 packed = *reinterpret_cast<const uint4*>(from);
  const Half* values = reinterpret_cast<const Half*>(&packed);
  float4* sums = reinterpret_cast<float4*>(to);
  float4 low = sums[0], high = sums[1];
  low.x += widen(values[0]);
  low.y += widen(values[1]);
  low.z += widen(values[2]);
  low.w += widen(values[3]);
  high.x += widen(values[4]);
  high.y += widen(values[5]);
  high.z += widen(values[6]);
  high.w += widen(values[7]);
  sums[0] = low;
  sums[1] = high;
}

__device__ void add_four(char* to, const char* from) {
  const float4 more = *reinterpret_cast<const float4*>(from);
  float4 sum = *reinterpret_cast<float4*>(to);
  sum.x += more.x;
  sum.y += more.y;
  sum.z += more.z;
  sum.w += more.w;
  *reinterpret_cast<float4*>(to) = sum;
}

template <class Half>
__device__ void add_eight_alike(char* to, const char* from) {
  const uint4 packed = *reinterpret_cast<const uint4*>(from);
  const Half* more = reinterpret_cast<const Half*>(&packed);
  uint4 place = *reinterpret_cast<const uint4*>(to);
  Half* values = reinterpret_cast<Half*>(&place);
  for (int i = 0; i < 8; ++i) narrow(widen(values[i]) + widen(more[i]), values[i]);
  *reinterpret_cast<uint4*>(to) = place;
}

// One task a row of blocks; a thread takes every (threads of the task)-th chunk, so that neighbours load neighbours.
__global__ void __launch_bounds__(kThreads) run_tasks(const __grid_constant__ TaskList list) {
  const SliceTask& task = list.tasks[blockIdx.y];
  const std::int64_t chunks = task.rows * task.chunks;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < chunks; i += step) {
    const std::int64_t row = i / task.chunks;
    const std::int64_t column = i - row * task.chunks;
    const char* from = task.from + row * task.from_stride + column * 16;
    char* to = task.to + row * task.to_stride;
    switch (task.kind) {
      case SliceTask::Kind::copy:
        *reinterpret_cast<uint4*>(to + column * 16) = *reinterpret_cast<const uint4*>(from);
        break;
      case SliceTask::Kind::add_bfloat16: add_eight<__nv_bfloat16>(to + column * 32, from); break;
      case SliceTask::Kind::add_half: add_eight<__half>(to + column * 32, from); break;
      case SliceTask::Kind::add_to_bfloat16: add_eight_alike<__nv_bfloat16>(to + column * 16, from); break;
      case SliceTask::Kind::add_to_half: add_eight_alike<__half>(to + column * 16, from); break;
      case SliceTask::Kind::add_float: add_four(to + column * 16, from); break;
    }
  }
}

// exp and log of differences only, so that nothing overflows; two empty key sets have no share to give.
__device__ float share_of(float lse, float more) {
  if (more == -INFINITY) return 0;
  return 1.0f / (1.0f + __expf(lse - more));
}

__device__ float log_of_sum(float a, float b) {
  const float most = fmaxf(a, b);
  if (most == -INFINITY) return -INFINITY;
  return most + log1pf(__expf(fminf(a, b) - most));
}

// A group of head_dim / 8 threads a row and head, eight elements a thread.
template <class Half, class Out>
__global__ void merge(Out* out, float* lse, const Half* more, const float* more_lse, std::int64_t rows, int heads,
                      int head_dim) {
  const int lanes = head_dim / 8;
  const std::int64_t i = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / lanes;
  if (i >= rows * heads) return;
  const int lane = static_cast<int>((std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) % lanes);
  const std::int64_t row = i / heads;
  const std::int64_t at = (i % heads) * rows + row;
  const float share = share_of(lse[at], more_lse[at]);
  const std::int64_t begin = i * head_dim + lane * 8;
  const uint4 packed = *reinterpret_cast<const uint4*>(more + begin);
  const Half* added = reinterpret_cast<const Half*>(&packed);
  if constexpr (sizeof(Out) == 4) {
    float4* place = reinterpret_cast<float4*>(out + begin);
    float4 parts[2] = {place[0], place[1]};
    float* values = reinterpret_cast<float*>(parts);
    for (int j = 0; j < 8; ++j) values[j] += share * (widen(added[j]) - values[j]);
    place[0] = parts[0];
    place[1] = parts[1];
  } else {
    uint4* place = reinterpret_cast<uint4*>(out + begin);
    uint4 part = *place;
    Out* values = reinterpret_cast<Out*>(&part);
    for (int j = 0; j < 8; ++j) {
      const float value = widen(values[j]);
      narrow(value + share * (widen(added[j]) - value), values[j]);
    }
    *place = part;
  }
}

// After all rows are merged: the shares above need the sums as they were.
__global__ void merge_sums(float* lse, const float* more_lse, std::int64_t count) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) lse[i] = log_of_sum(lse[i], more_lse[i]);
}

template <class Half>
void launch_merge_of(const MergeTask& task, cudaStream_t stream) {
  const std::int64_t threads = task.rows * task.heads * (task.head_dim / 8);
  const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  const auto* more = static_cast<const Half*>(task.more);
  if (task.out_is_float) {
    merge<Half, float><<<blocks, kThreads, 0, stream>>>(static_cast<float*>(task.out), task.lse, more, task.more_lse,
                                                        task.rows, task.heads, task.head_dim);
  } else {
    merge<Half, Half><<<blocks, kThreads, 0, stream>>>(static_cast<Half*>(task.out), task.lse, more, task.more_lse,
                                                       task.rows, task.heads, task.head_dim);
  }
}

const char* last_error() {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? "" : cudaGetErrorString(error);
}

}  // namespace

bool has_slice_kernels() { return true; }

const char* launch_slice_tasks(std::span<const SliceTask> tasks, void* stream) {
  for (std::size_t begin = 0; begin < tasks.size(); begin += kTasksPerLaunch) {
    const auto some = tasks.subspan(begin, std::min<std::size_t>(kTasksPerLaunch, tasks.size() - begin));
    TaskList list;
    std::copy(some.begin(), some.end(), list.tasks);
    std::int64_t most = 1;
    for (const SliceTask& task : some) most = std::max(most, task.rows * task.chunks);
    // Four chunks a thread; no more blocks than keep the memory busy, shared among the tasks.
    const std::int64_t wanted = (most + 4 * kThreads - 1) / (4 * kThreads);
    const std::int64_t room = std::max<std::int64_t>(8, 4096 / static_cast<std::int64_t>(some.size()));
    const dim3 grid(static_cast<unsigned>(std::min(wanted, room)), static_cast<unsigned>(some.size()));
    run_tasks<<<grid, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(list);
  }
  return last_error();
}

const char* launch_merge(const MergeTask& task, void* stream) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
  if (task.more_is_bfloat16) {
    launch_merge_of<__nv_bfloat16>(task, cuda_stream);
  } else {
    launch_merge_of<__half>(task, cuda_stream);
  }
  const std::int64_t count = task.rows * task.heads;
  merge_sums<<<static_cast<unsigned>((count + kThreads - 1) / kThreads), kThreads, 0, cuda_stream>>>(
      task.lse, task.more_lse, count);
  return last_error();
}

}  // namespace zellige
