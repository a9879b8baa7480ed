// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace zellige::app {

/// A subcommand that needs libtorch. `zellige` hands it over to the program `zellige-torch` beside it, since loading
/// libtorch takes longer than most plans do.
struct TorchSubcommand {
  std::string_view name;
  std::string_view description;
};

inline constexpr TorchSubcommand kTrain = {"train", "Train: draw, plan, check and run step after step"};

inline constexpr TorchSubcommand kProfile = {
    "profile", "Measure what every bucket costs under every configuration on this machine"};

/// All of them: each is listed by `zellige --help` and has its add_... in torch_main.cpp.
inline constexpr std::array kTorchSubcommands = {kTrain, kProfile};

}  // namespace zellige::app
