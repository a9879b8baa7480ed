// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>

namespace zellige {
namespace {

using ::testing::HasSubstr;

// What reading `text` with `read` is refused with; empty when it is taken.
template <class Read>
std::string refusal(const std::string& text, Read read) {
  try {
    const auto document = JsonDocument::from_text(text, "file.json");
    read(document.root());
    return "";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::input);
    return error.what();
  }
}
const auto nothing = [](const JsonValue&) {};
const auto as_integer = [](const JsonValue& value) { value.integer(); };

TEST(Json, TakesWhatIsRight) {
  const auto document =
      JsonDocument::from_text(R"({"a": [1, -2], "b": {"c": true, "d": null}, "e": "x", "f": 0.5})", "t");
  JsonObject object(document.root());
  EXPECT_EQ(object.at("a").array()[1].integer(), -2);
  JsonObject inner(object.at("b"));
  EXPECT_TRUE(inner.at("c").boolean());
  EXPECT_TRUE(inner.at("d").is_null());
  inner.finish();
  EXPECT_EQ(object.at("e").string(), "x");
  EXPECT_EQ(object.at("f").number(), 0.5);
  object.finish();
}

TEST(Json, MalformedTextIsPlaced) {
  EXPECT_THAT(refusal("{\n  \"a\": 1,\n  \"b\" 2\n}", nothing), HasSubstr("file.json: not JSON at line 3"));
  for (const char* text : {"", "{", "[1,]", "{} {}", "{'a': 1}", "nul", "{\"a\": 01}", "\"\xff\"", "[1e999]"}) {
    EXPECT_NE(refusal(text, nothing), "") << text;
  }
}

TEST(Json, AKeyThatComesTwiceIsRefused) {
  EXPECT_THAT(refusal(R"({"a": {"x": 1, "x": 2}})", nothing), HasSubstr("'x' comes twice"));
  EXPECT_EQ(refusal(R"({"a": {"x": 1}, "b": {"x": 2}, "x": 3})", nothing), "")
      << "the same key in other objects is fine";
}

TEST(Json, DeepNestingIsRefusedNotCrashedOn) {
  EXPECT_THAT(refusal(std::string(100'000, '[') + std::string(100'000, ']'), nothing), HasSubstr("nested deeper"));
}

TEST(Json, IntegersAreExact) {
  EXPECT_EQ(refusal("9007199254740992", as_integer), "");
  for (const char* text : {"1.0", "1e3", "\"1\"", "true", "null", "9007199254740993", "-9007199254740993",
                           "18446744073709551615", "99999999999999999999999"}) {
    EXPECT_NE(refusal(text, as_integer), "") << text;
  }
  EXPECT_THAT(refusal("7", [](const JsonValue& value) { value.integer(1, 6); }), HasSubstr("between 1 and 6"));
}

TEST(Json, RefusalsNameTheField) {
  const auto read = [](const JsonValue& root) {
    JsonObject object(root);
    JsonObject(object.at("outer").array()[1]).at("inner").string();
  };
  EXPECT_THAT(refusal(R"({"outer": [{}, {"inner": 5}]})", read),
              HasSubstr("file.json: outer[1].inner is 5; it must be a string"));
}

TEST(Json, MissingAndUnknownFieldsSuggestTheNearest) {
  const auto read = [](const JsonValue& root) {
    JsonObject object(root);
    object.at("ranks");
    if (object.has("seed")) object.at("seed");
    object.finish();
  };
  EXPECT_EQ(refusal(R"({"ranks": 1, "seed": 2})", read), "");
  EXPECT_THAT(refusal(R"({"rank": 1})", read), HasSubstr("ranks is missing; is 'rank' misspelt?"));
  EXPECT_THAT(refusal(R"({"ranks": 1, "sed": 2})", read), HasSubstr("sed = 2 is not a field here"));
  EXPECT_THAT(refusal(R"({"ranks": 1, "rankz": 2})", read), HasSubstr("did you mean 'ranks'?"));
}

TEST(Json, OptionalFieldsAreSuggestedToo) {
  const auto read = [](const JsonValue& root) {
    JsonObject object(root);
    if (object.has("seed")) object.at("seed");
    object.finish();
  };
  EXPECT_THAT(refusal(R"({"sed": 2})", read), HasSubstr("did you mean 'seed'?"));
}

TEST(Json, StringsAreOneLineOfPrintableText) {
  const auto as_string = [](const JsonValue& value) { value.string(); };
  EXPECT_EQ(refusal("\"caf\u00e9\"", as_string), "");
  for (const char* text : {R"("a\nb")", R"("\u001b[31m")", R"("\u009b")", R"("\u202e")", "\"\u2028\""}) {
    EXPECT_THAT(refusal(text, as_string), HasSubstr("printable text, without U+")) << text;
  }
}

TEST(Json, WhatTheParserSaysIsSaidOnce) {
  const std::string said = refusal("{\n  x}", nothing);
  EXPECT_THAT(said, HasSubstr("file.json: not JSON at line 2, column 3: syntax error"));
  EXPECT_THAT(said, ::testing::Not(HasSubstr("json.exception")));
}

TEST(Json, OtherFormatsAreCalledByTheirName) {
  const JsonDocument document =
      JsonDocument::from_value({{"lr", std::numeric_limits<double>::infinity()}}, {"x.toml", "toml"});
  try {
    JsonObject(document.root()).at("lr").number();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[toml] x.toml: lr is inf; it must be a finite number");
  }
}

TEST(Json, FormatAndVersionAreExpected) {
  const auto read = [](const JsonValue& root) { JsonObject(root).expect_format("zellige.plan", 1); };
  EXPECT_EQ(refusal(R"({"format": "zellige.plan", "version": 1})", read), "");
  EXPECT_THAT(refusal(R"({"format": "zellige.batch", "version": 1})", read), HasSubstr("zellige.plan"));
  EXPECT_THAT(refusal(R"({"format": "zellige.plan", "version": 2})", read), HasSubstr("version is 2"));
}

TEST(Json, CanonicalIsSortedCompactAscii) {
  OrderedJson json;
  json["b"] = "\u00e9\U0001F600\n";
  json["a"] = {1, 2};
  EXPECT_EQ(canonical(nlohmann::json(json)), R"({"a":[1,2],"b":"\u00e9\ud83d\ude00\n"})");
  EXPECT_EQ(pretty(OrderedJson{{"z", 1}, {"a", OrderedJson::array()}}), "{\n  \"z\": 1,\n  \"a\": []\n}\n");
  EXPECT_THROW(canonical(nlohmann::json("\xff")), Error);
}

TEST(Files, AreWrittenWholeOrNotAtAll) {
  const auto folder = std::filesystem::temp_directory_path() / ("zellige_json_test_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string path = folder / "a.json";
  write_text_file(path, "one");
  write_text_file(path, "two");
  EXPECT_EQ(read_text_file(path), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1) << "nothing is left beside it";
  EXPECT_THROW(write_text_file((folder / "none" / "a.json").string(), "x"), Error);
  EXPECT_THROW(read_text_file(folder.string()), Error);
  EXPECT_THROW(read_text_file((folder / "missing").string()), Error);
  std::filesystem::remove_all(folder);
}

TEST(Nearest, FindsTheMisspeltOneOnly) {
  const std::vector<std::string> words = {"knapformer", "zellige", "usp"};
  EXPECT_EQ(nearest("knapfromer", words), "knapformer");
  EXPECT_EQ(nearest("zelige", words), "zellige");
  EXPECT_EQ(nearest("completely-different", words), "");
}

}  // namespace
}  // namespace zellige
