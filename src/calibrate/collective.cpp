// SPDX-License-Identifier: Apache-2.0
#include "calibrate/collective.h"

#include <algorithm>
#include <cstring>

namespace zellige {

void Together::barrier() const {
  if (const auto work = group_->barrier()) work->wait();
}

std::vector<double> Together::all(double own) const {
  // Each rank fills in its cell; the sum over ranks is the whole table.
  at::Tensor table = at::zeros({ranks()}, at::kDouble);
  table.data_ptr<double>()[rank()] = own;
  std::vector<at::Tensor> list = {table.to(device_)};
  if (const auto work = group_->allreduce(list)) work->wait();
  table = list[0].to(at::kCPU);
  return {table.data_ptr<double>(), table.data_ptr<double>() + ranks()};
}

double Together::most(double own) const { return std::ranges::max(all(own)); }

std::string Together::from_first(const std::string& text) const {
  const auto size = static_cast<std::int64_t>(all(rank() == 0 ? static_cast<double>(text.size()) : 0)[0]);
  if (size == 0) return "";
  at::Tensor bytes = at::zeros({size}, at::kByte);
  if (rank() == 0) std::memcpy(bytes.data_ptr<std::uint8_t>(), text.data(), text.size());
  std::vector<at::Tensor> list = {bytes.to(device_)};
  if (const auto work = group_->broadcast(list)) work->wait();
  bytes = list[0].to(at::kCPU);
  return {reinterpret_cast<const char*>(bytes.data_ptr<std::uint8_t>()), static_cast<std::size_t>(size)};
}

}  // namespace zellige
