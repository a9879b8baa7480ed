// SPDX-License-Identifier: Apache-2.0
#include "plan/group_layout.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>

#include "zellige/error.h"

namespace zellige {
namespace {

/// Reads one layout's text from the left.
class NotationReader {
 public:
  NotationReader(std::string_view notation, int most_ranks, std::string_view where)
      : notation_(notation), most_ranks_(most_ranks), where_(where) {}

  bool at_end() const { return at_ == notation_.size(); }

  void expect(char letter) {
    if (at_end() || notation_[at_] != letter) {
      refuse("'" + std::string(1, letter) + "' is expected at character " + std::to_string(at_ + 1));
    }
    ++at_;
  }

  int number(std::string_view meaning) {
    std::int64_t value = 0;
    const char* begin = notation_.data() + at_;
    const auto [end, error] = std::from_chars(begin, notation_.data() + notation_.size(), value);
    if (end == begin) {
      refuse("a number (" + std::string(meaning) + ") is expected at character " + std::to_string(at_ + 1));
    }
    if (error != std::errc() || value < 1 || value > most_ranks_) {
      refuse(std::string(meaning) + " " + std::string(begin, end) + " is not in 1.." + std::to_string(most_ranks_));
    }
    at_ += static_cast<std::size_t>(end - begin);
    return static_cast<int>(value);
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(Code::input, where_,
                "layout '" + std::string(notation_) + "': " + why +
                    "; write gGnN (N groups of G ranks) joined by '+', such as g3n1+g1n1");
  }

 private:
  std::string_view notation_;
  int most_ranks_;
  std::string_view where_;
  std::size_t at_ = 0;
};

/// Appends the layouts that cover `ranks_left` with sizes[0..num_sizes) to `found`, until there are more than `limit`.
void extend(std::span<const int> sizes, int ranks_left, int kinds_left, std::size_t limit,
            std::vector<GroupCount>& larger, std::vector<GroupLayout>& found) {
  if (found.size() > limit) return;
  if (ranks_left == 0) {
    found.push_back({{larger.rbegin(), larger.rend()}});
    return;
  }
  if (sizes.empty() || kinds_left == 0) return;
  const int size = sizes.back();
  const std::span<const int> smaller = sizes.first(sizes.size() - 1);
  if (size == 1) {  // the last size: all that is left, nothing to choose
    larger.push_back({1, ranks_left});
    extend(smaller, 0, kinds_left - 1, limit, larger, found);
    larger.pop_back();
    return;
  }
  extend(smaller, ranks_left, kinds_left, limit, larger, found);
  for (int count = 1; count * size <= ranks_left; ++count) {
    larger.push_back({size, count});
    extend(smaller, ranks_left - count * size, kinds_left - 1, limit, larger, found);
    larger.pop_back();
  }
}

}  // namespace

int GroupLayout::num_ranks() const {
  int ranks = 0;
  for (const GroupCount& group : groups) ranks += group.size * group.count;
  return ranks;
}

int GroupLayout::num_groups() const {
  int count = 0;
  for (const GroupCount& group : groups) count += group.count;
  return count;
}

GroupLayout parse_group_layout(std::string_view notation, int most_ranks, std::string_view where) {
  NotationReader reader(notation, most_ranks, where);
  GroupLayout layout;
  std::int64_t ranks = 0;
  while (true) {
    reader.expect('g');
    const int size = reader.number("group size");
    reader.expect('n');
    const int count = reader.number("number of groups");
    for (const GroupCount& other : layout.groups) {
      if (other.size == size) reader.refuse("group size " + std::to_string(size) + " comes twice");
    }
    layout.groups.push_back({size, count});
    ranks += std::int64_t{size} * count;
    if (ranks > most_ranks) {
      reader.refuse("it takes " + std::to_string(ranks) + " ranks or more, and there are " +
                    std::to_string(most_ranks));
    }
    if (reader.at_end()) break;
    reader.expect('+');
  }
  std::sort(layout.groups.begin(), layout.groups.end(),
            [](const GroupCount& a, const GroupCount& b) { return a.size < b.size; });
  return layout;
}

std::string text(const GroupLayout& layout) {
  std::string out;
  for (auto group = layout.groups.rbegin(); group != layout.groups.rend(); ++group) {
    if (!out.empty()) out += '+';
    out += "g" + std::to_string(group->size) + "n" + std::to_string(group->count);
  }
  return out;
}

std::vector<RankGroup> rank_groups(const GroupLayout& layout, Rank first_rank) {
  std::vector<RankGroup> groups;
  for (const GroupCount& kind : layout.groups) {
    for (int i = 0; i < kind.count; ++i) {
      groups.push_back({kind.size, first_rank});
      first_rank += kind.size;
    }
  }
  return groups;
}

LayoutList group_layouts(int num_ranks, std::span<const int> sizes, std::size_t limit) {
  LayoutList list;
  const auto all_kinds = static_cast<int>(sizes.size());
  for (int kinds = all_kinds; kinds >= 1; --kinds) {
    list.layouts.clear();
    std::vector<GroupCount> larger;
    extend(sizes, num_ranks, kinds, limit, larger, list.layouts);
    list.complete = kinds == all_kinds;
    if (list.layouts.size() <= limit) break;
  }
  return list;
}

}  // namespace zellige
