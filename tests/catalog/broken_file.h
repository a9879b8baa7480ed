// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "base/json.h"
#include "catalog/scratch.h"

namespace zellige::testing {

/// The text with some bytes changed, cut out, or doubled.
inline std::string broken(std::string text, std::mt19937_64& random) {
  for (auto changes = 1 + random() % 4; changes > 0 && !text.empty(); --changes) {
    const std::size_t at = random() % text.size();
    const std::size_t length = 1 + random() % 30;
    switch (random() % 5) {
      case 0: text[at] = static_cast<char>(random() % 256); break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, text.substr(random() % text.size(), length)); break;
      case 3: text.resize(at); break;
      default: text.insert(at, 1, "\",[]{}:\n0-9e.#="[random() % 15]); break;
    }
  }
  return text;
}

struct Outcome {
  int taken = 0;
  int refused = 0;
};

/// Reads `rounds` broken copies of a file. Anything but an input error fails the test.
inline Outcome read_broken(const std::string& file, int rounds, const std::function<void(const std::string&)>& read) {
  const Scratch scratch;
  const std::string name = std::filesystem::path(file).filename();
  const std::string text = read_text_file(file);
  read(scratch.file(name, text));  // positive control: whole, it is read
  Outcome outcome;
  for (int seed = 1; seed <= rounds; ++seed) {
    std::mt19937_64 random(static_cast<std::uint64_t>(seed));
    const std::string path = scratch.file(name, broken(text, random));
    try {
      read(path);
      ++outcome.taken;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::input) << name << ", seed " << seed << ": " << error.what();
      ++outcome.refused;
    } catch (const std::exception& error) {
      ADD_FAILURE() << name << ", seed " << seed << ": " << error.what();
    }
  }
  return outcome;
}

}  // namespace zellige::testing
