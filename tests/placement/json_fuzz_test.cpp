// SPDX-License-Identifier: Apache-2.0
// Readers of all four formats on broken and random text: they succeed or throw Error, and what they accept can be
// judged, scored and lowered.
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/random.h"
#include "placement/worked_case.h"
#include "zellige/check.h"
#include "zellige/error.h"
#include "zellige/schedule.h"
#include "zellige/score.h"

namespace zellige {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string> kFormats = {"catalog", "profile", "batch", "plan"};
constexpr int kMostRanksToLower = 64;  // the tables of a wide world are large, and no business of a reader

class JsonFuzz : public ::testing::Test {
 protected:
  JsonFuzz() : memory_(memfd_create("zellige_fuzz", 0)), path_("/proc/self/fd/" + std::to_string(memory_)) {}
  ~JsonFuzz() override { close(memory_); }

  /// Puts text where `path_` is read from: thousands of files on a disk would take minutes.
  void put(const std::string& text) const {
    ASSERT_EQ(ftruncate(memory_, 0), 0);
    ASSERT_EQ(pwrite(memory_, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  }

  /// Reads `text` as `format` and uses what comes of it. Whether it was read. Anything but Error escapes.
  bool read(const std::string& format, const std::string& text) const {
    put(text);
    try {
      if (format == "catalog") use(read_catalog(path_));
      if (format == "profile") use(read_profile(path_));
      if (format == "batch") use(read_batch(path_));
      if (format == "plan") use(read_plan_for_display(path_));
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::input) << error.what();
      return false;
    }
  }

  void use(const Catalog& catalog) const {
    Batch batch = batch_;
    batch.catalog = catalog;
    std::erase_if(batch.sequences, [&](const BatchSequence& sequence) {
      return static_cast<std::size_t>(sequence.bucket) >= catalog.buckets.size();
    });
    only_errors([&] { check(plan_, batch, profile_); });
  }
  void use(const Batch& batch) const {
    only_errors([&] { check(plan_, batch, profile_); });
    Plan plan = plan_;
    only_errors([&] { complete(plan, batch, profile_); });
  }
  void use(const Profile& profile) const {
    only_errors([&] { check(plan_, batch_, profile); });
    only_errors([&] { score(plan_.placement, profile); });
    EXPECT_EQ(digest(profile).size(), 71u);
  }
  void use(Plan plan) const {
    plan.placement.model = batch_.catalog.model;  // as read_plan does when the digest is right
    EXPECT_NO_THROW(check(plan, batch_, profile_));
    only_errors([&] { score(plan.placement, profile_); });
    if (plan.placement.ranks <= kMostRanksToLower) only_errors([&] { lower(plan.placement, 0); });
    EXPECT_FALSE(plan_json(plan).empty());
  }

  static void only_errors(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error&) {
    }
  }

  const Batch batch_ = worked_case::batch();
  const Profile profile_ = worked_case::profile();
  const Plan plan_ = worked_case::plan();
  const int memory_;
  const std::string path_;
};

TEST_F(JsonFuzz, TruncatedFilesAreRefused) {
  for (const std::string& format : kFormats) {
    const std::string text = Json::parse(read_text_file(worked_case::file(format))).dump();
    ASSERT_TRUE(read(format, text)) << format;
    for (std::size_t size = 0; size < text.size(); ++size) {
      EXPECT_FALSE(read(format, text.substr(0, size))) << format << " cut to " << size << " bytes";
    }
  }
}

TEST_F(JsonFuzz, ChangedBytesNeverCrash) {
  static constexpr char kBytes[] = "{}[]\",:-+.eE0123456789 \n\\u\xC3\xFF\x7Ftfn";
  for (const std::string& format : kFormats) {
    const std::string good = Json::parse(read_text_file(worked_case::file(format))).dump();
    int accepted = 0;
    for (std::uint64_t seed = 0; seed < 1500; ++seed) {
      SCOPED_TRACE(format + ", seed " + std::to_string(seed));
      RandomEngine engine(seed);
      std::string text = good;
      for (std::uint64_t i = 0, changes = 1 + draw_below(engine, 3); i < changes; ++i) {
        const auto at = static_cast<std::size_t>(draw_below(engine, text.size()));
        const char byte = kBytes[draw_below(engine, sizeof kBytes)];
        switch (draw_below(engine, 4)) {
          case 0: text[at] = byte; break;
          case 1: text.insert(text.begin() + static_cast<std::ptrdiff_t>(at), byte); break;
          case 2: text.erase(at, 1 + static_cast<std::size_t>(draw_below(engine, 8))); break;
          default: text.insert(at, text.substr(static_cast<std::size_t>(draw_below(engine, text.size())), 20));
        }
      }
      accepted += read(format, text) ? 1 : 0;
    }
    EXPECT_GT(accepted, 0) << format << ": nothing gets past the reader, so nothing is tested behind it";
  }
}

/// Every value of a document, by pointer.
void collect(const Json& json, const Json::json_pointer& at, std::vector<Json::json_pointer>& all) {
  all.push_back(at);
  if (json.is_object()) {
    for (const auto& item : json.items()) collect(item.value(), at / item.key(), all);
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i) collect(json[i], at / i, all);
  }
}

Json strange_value(const Json& old, RandomEngine& engine) {
  switch (draw_below(engine, 14)) {
    case 0: return nullptr;
    case 1: return -1;
    case 2: return 0;
    case 3: return 1;
    case 4: return std::int64_t{1} << 53;
    case 5: return (std::int64_t{1} << 53) + 1;
    case 6: return UINT64_MAX;
    case 7: return 1e300;
    case 8: return "";
    case 9: return std::string(100'000, 'x');
    case 10: return Json::array();
    case 11: return Json::object();
    case 12: return old.is_number_integer() ? Json(old.get<std::int64_t>() + 1) : Json(true);
    default:
      return old.is_number_integer() ? Json(static_cast<std::int64_t>(draw_below(engine, 100))) : Json::array({old});
  }
}

TEST_F(JsonFuzz, ChangedValuesNeverCrash) {
  for (const std::string& format : kFormats) {
    const Json good = Json::parse(read_text_file(worked_case::file(format)));
    std::vector<Json::json_pointer> places;
    collect(good, Json::json_pointer(), places);
    int accepted = 0;
    for (std::uint64_t seed = 0; seed < 2500; ++seed) {
      SCOPED_TRACE(format + ", seed " + std::to_string(seed));
      RandomEngine engine(seed);
      Json json = good;
      for (std::uint64_t i = 0, changes = 1 + draw_below(engine, 2); i < changes; ++i) {
        const auto& place = places[static_cast<std::size_t>(draw_below(engine, places.size()))];
        if (json.contains(place)) json[place] = strange_value(json[place], engine);
      }
      accepted += read(format, json.dump()) ? 1 : 0;
    }
    EXPECT_GT(accepted, 0) << format;
  }
}

TEST_F(JsonFuzz, DeepNestingIsRefused) {
  for (const std::string& format : kFormats) {
    EXPECT_FALSE(read(format, std::string(200'000, '[')));
    EXPECT_FALSE(read(format, std::string(200'000, '[') + std::string(200'000, ']')));
  }
}

}  // namespace
}  // namespace zellige
