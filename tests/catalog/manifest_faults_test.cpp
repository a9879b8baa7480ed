// SPDX-License-Identifier: Apache-2.0
// What is wrong with a manifest is refused by name, or listed by row and column; nothing is dropped in silence.
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "catalog/refusal.h"
#include "catalog/scratch.h"
#include "zellige/manifest.h"

namespace zellige {
namespace {

using ::testing::HasSubstr;
using zellige::testing::refusal;
using zellige::testing::Scratch;

TEST(ManifestFaults, WholeFilesAreRefusedByName) {
  const Scratch scratch;
  std::filesystem::create_directory(scratch.path("folder.csv"));
  const auto said = [&](std::string_view name, std::string_view text) {
    const std::string path = scratch.file(name, text);
    const std::string message = refusal([&] { read_manifest(path); });
    EXPECT_THAT(message, HasSubstr(std::string(name)));
    return message;
  };
  EXPECT_EQ(refusal([&] { read_manifest(scratch.file("ok.csv", "path,num_frames,height,width\na.mp4,5,16,16\n")); }),
            "nothing was refused");  // positive control
  EXPECT_THAT(refusal([&] { read_manifest(scratch.path("none.csv")); }),
              HasSubstr("none.csv' can't be opened: No such file"));
  EXPECT_THAT(refusal([&] { read_manifest(scratch.path("folder.csv")); }), HasSubstr("is a directory"));
  EXPECT_THAT(said("empty.csv", ""), HasSubstr("is empty"));
  EXPECT_THAT(said("blank.csv", "\n \r\n"), HasSubstr("holds nothing but blanks"));
  EXPECT_THAT(said("bom.csv", "\xEF\xBB\xBF"), HasSubstr("holds nothing but blanks"));
  EXPECT_THAT(said("header.csv", "path,num_frames,height,width\n"), HasSubstr("holds no records"));
  EXPECT_THAT(said("utf16.csv", std::string_view("\xFF\xFEp\0a\0", 6)), HasSubstr("is UTF-16; save it as UTF-8"));
  EXPECT_THAT(said("binary.csv", std::string_view("abc\0\1\2", 6)), HasSubstr("is binary"));
  EXPECT_THAT(said("twice.csv", "path,num_frames,height,width,height\na.mp4,1,2,3,4\n"),
              HasSubstr("has column 'height' twice"));
  EXPECT_THAT(said("other.csv", "name,colour\nx,red\n"), HasSubstr("follows no convention that is known"));
  EXPECT_THAT(said("other.csv", "name,colour\nx,red\n"), HasSubstr("it has fields 'name', 'colour'"));
  EXPECT_THAT(said("semicolon.csv", "path;num_frames\nx;1\n"), HasSubstr("columns must be separated by commas"));
  EXPECT_THAT(
      said("quote.csv", "path,num_frames,height,width,text\na.mp4,5,16,16,x\nb.mp4,5,16,16,\"open\nc.mp4,5,16,16,x\n"),
      HasSubstr("has a quote that opens on line 3 and is never closed"));
  EXPECT_THAT(said("cells.csv", "path,num_frames,height,width\na.mp4,5,16\nb.mp4,\"5\n6\",16\n"),
              HasSubstr("row 2: the row has 3 cells, the header 4, and spans several lines"));
  EXPECT_THAT(said("bad.parquet", "PAR1xxxxPAR1"), HasSubstr("can't be read as Parquet"));
  EXPECT_THAT(said("text.parquet", "path,num_frames\n"), HasSubstr("is named Parquet but does not begin"));
  EXPECT_THAT(said("text.json", "path,num_frames\n"), HasSubstr("is named JSON but begins with neither"));
  EXPECT_THAT(said("cut.json", "[{\"path\": \"a.jpg\"}, {\"pa"),
              HasSubstr("is not JSON: parse error at line 1, column 25"));
  EXPECT_THAT(said("nan.json", "[\n{\"path\": NaN}]"), HasSubstr("is not JSON: parse error at line 2"));
  EXPECT_THAT(said("bytes.json", "[{\"path\": \"a\xFF.jpg\"}]"), HasSubstr("ill-formed UTF-8"));
  EXPECT_THAT(said("list.json", "[]"), HasSubstr("holds no records"));
  EXPECT_THAT(said("object.json", "{\"entries\": [{\"path\": \"a.jpg\"}]}"), HasSubstr("holds no list of entries"));
  EXPECT_THAT(said("data.json", "{\"data\": {\"path\": \"a.jpg\"}}"), HasSubstr("holds no list of entries"));
}

TEST(ManifestFaults, AssumptionsMustBePositiveAndWhole) {
  const Scratch scratch;
  const std::string path = scratch.file("ok.csv", "path,num_frames,height,width\na.mp4,5,16,16\n");
  ManifestOptions half;
  half.assumed_height = 16;
  EXPECT_THAT(refusal([&] { read_manifest(path, half); }), HasSubstr("assumed together, or neither"));
  ManifestOptions negative;
  negative.assumed_height = -16;
  negative.assumed_width = 16;
  EXPECT_THAT(refusal([&] { read_manifest(path, negative); }), HasSubstr("assumed height -16"));
}

struct RowCase {
  std::string cells;     // num_frames,height,width,fps
  std::string expected;  // part of the reason, or "" for a usable row
};

TEST(ManifestFaults, RowsAreListedByRowColumnAndValue) {
  const std::vector<RowCase> cases = {
      {"81,480,832,16", ""},
      {"81.0,480.0,832.0,16.0", ""},
      {"\"81\",\" 480 \",832,30000/1001", ""},
      {"8.1e1,480,832,NaN", ""},
      {"81,480,832,", ""},
      {"81.5,480,832,16", "column num_frames is '81.5'; it must be a whole number"},
      {"81,480.25,832,16", "column height is '480.25'; it must be a whole number"},
      {"81,-480,832,16", "column height is '-480'; it must not be negative"},
      {"81,480,832,-16", "column fps is '-16'; it must not be negative"},
      {"many,480,832,16", "column num_frames is 'many'; it must be a number"},
      {"81,480,832,30/0", "column fps is '30/0'; it must be a number"},
      {"81,480,832,inf", "column fps is 'inf'; it must be a number"},
      {"99999999999,480,832,16", "column num_frames is '99999999999'; it is too large"},
      {"81,480,1e300,16", "column width is '1e300'; it is too large"},
      {"81,480,832,1e9", "column fps is '1e9'; it is too large"},
      {"0x51,480,832,16", "column num_frames is '0x51'; it must be a number"},
      {"81,480,832", "the row has 4 cells, the header 5"},
      {"81,480,832,16,x", "the row has 6 cells, the header 5"},
  };
  const Scratch scratch;
  for (const char* line_end : {"\n", "\r\n"}) {
    std::string text = "\xEF\xBB\xBFpath,num_frames,height,width,fps";
    text += line_end;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      text += "clip";
      text += std::to_string(i) + ".mp4," + cases[i].cells + line_end;
      if (i % 3 == 0) text += line_end;  // blank lines count for nothing
    }
    const Manifest manifest = read_manifest(scratch.file("rows.csv", text));
    EXPECT_EQ(manifest.samples.size() + manifest.skipped.size(), cases.size());
    std::map<std::int64_t, std::string> reasons;
    for (const SkippedSample& skipped : manifest.skipped) reasons[skipped.row] = skipped.reason;
    for (const Sample& sample : manifest.samples) {
      EXPECT_TRUE(sample.usable());
      EXPECT_EQ(sample.frames, 81);
      EXPECT_EQ(sample.height, 480);
      EXPECT_EQ(sample.width, 832);
      EXPECT_EQ(sample.path, "clip" + std::to_string(sample.row - 1) + std::string(".mp4"));
      reasons[sample.row] = "";
    }
    for (std::size_t i = 0; i < cases.size(); ++i) {
      EXPECT_EQ(reasons.at(static_cast<std::int64_t>(i) + 1), cases[i].expected) << cases[i].cells;
    }
  }
}

TEST(ManifestFaults, UnknownIsNotZeroAndNotBroken) {
  const Scratch scratch;
  const Manifest manifest = read_manifest(scratch.file("m.csv",
                                                       "path,num_frames,height,width,fps\n"
                                                       "a.mp4,0,480,832,16\n"
                                                       "b.mp4,nan,480,832,0\n"
                                                       "c.mp4,81,,0,16\n"));
  ASSERT_EQ(manifest.samples.size(), 3u);
  EXPECT_EQ(manifest.samples[0].frames, std::nullopt);
  EXPECT_EQ(manifest.samples[0].why_unusable, "frames unknown: num_frames is 0, no column for seconds");
  EXPECT_EQ(manifest.samples[1].fps, std::nullopt);
  EXPECT_EQ(manifest.samples[1].why_unusable, "frames unknown: num_frames is 'nan', fps is 0, no column for seconds");
  EXPECT_EQ(manifest.samples[2].why_unusable, "height unknown: height is empty; width unknown: width is 0");
}

TEST(ManifestFaults, PathsMustBeThereAndUtf8) {
  const Scratch scratch;
  const Manifest manifest =
      read_manifest(scratch.file("m.csv",
                                 "path,num_frames,height,width,text\n"
                                 "b\xFF.mp4,81,480,832,x\n"
                                 ",81,480,832,x\n"
                                 "  ,,,,\n"
                                 "\"\xE6\x96\x87\xE6\x9C\xAC, \"\"\xC3\xBC\"\"x.jpg\",1,480,832,\xFF\n"
                                 "e.jpg,5,480,832,\n"
                                 "\"f\ng.jpg\",1,480,832,\n"
                                 "h\x1b[2J.jpg,1,480,832,\n"));
  ASSERT_EQ(manifest.samples.size(), 1u);
  EXPECT_EQ(manifest.samples[0].path, "\xE6\x96\x87\xE6\x9C\xAC, \"\xC3\xBC\"x.jpg");  // the caption is not read
  ASSERT_EQ(manifest.skipped.size(), 6u);
  EXPECT_EQ(manifest.skipped[0].reason, "column path is not UTF-8 at byte 2");
  EXPECT_EQ(manifest.skipped[1].reason, "no path: column path is empty");
  EXPECT_EQ(manifest.skipped[2].reason, "the row is empty");
  EXPECT_EQ(manifest.skipped[3].reason, "column num_frames is '5'; an image has 1 frame");
  EXPECT_EQ(manifest.skipped[3].row, 5);
  EXPECT_EQ(manifest.skipped[4].reason,
            "column path is 'f\\u000ag.jpg'; it must be printable text, without U+000A at byte 2");
  EXPECT_THAT(manifest.skipped[5].reason, HasSubstr("without U+001B at byte 2"));
  EXPECT_EQ(manifest.skipped[3].path, "e.jpg");
}

TEST(ManifestFaults, ClipsMustEndAfterTheyBegin) {
  const Scratch scratch;
  const Manifest manifest = read_manifest(scratch.file("m.csv",
                                                       "index,video_id,start_frame,end_frame,fps\n"
                                                       "a,v,0,50,25\nb,v,50,50,25\nc,v,60,50,25\nd,v,,50,25\n"));
  ASSERT_EQ(manifest.samples.size(), 2u);
  EXPECT_EQ(manifest.samples[0].frames, 50);
  EXPECT_FALSE(manifest.samples[1].frames.has_value());
  ASSERT_EQ(manifest.skipped.size(), 2u);
  EXPECT_EQ(manifest.skipped[0].reason, "column end_frame is '50'; it must be above start_frame, which is '50'");
}

TEST(ManifestFaults, JsonEntriesAreListedByRow) {
  const Scratch scratch;
  const Manifest list = read_manifest(scratch.file(
      "m.json", R"([{"path":"a.mp4","num_frames":81,"height":480,"width":832,"tags":[{"path":"x"}],"more":{"height":7}},
                    5, [{"path":"b.mp4"}], {"path":"b.mp4","path":"c.mp4"}, null, {"path":{"x":1}},
                    {"path":"d.mp4","num_frames":true,"height":480,"width":832},
                    {"path":"e.mp4","num_frames":[81],"height":480,"width":832},
                    {"path":"f.mp4","num_frames":81.5,"height":480,"width":832},
                    {"path":"g.mp4","num_frames":1e30,"height":480,"width":832}, {}])"));
  ASSERT_EQ(list.samples.size(), 1u);
  EXPECT_EQ(list.samples[0].height, 480);
  std::vector<std::string> reasons;
  for (const SkippedSample& skipped : list.skipped)
    reasons.push_back(std::to_string(skipped.row) + ": " + skipped.reason);
  EXPECT_THAT(reasons,
              ::testing::ElementsAre("2: the entry is a number, not an object", "3: the entry is a list, not an object",
                                     "4: the entry has field 'path' twice", "5: the entry is null, not an object",
                                     "6: column path is an object; it must be text",
                                     "7: column num_frames is true; it must be a number",
                                     "8: column num_frames is a list; it must be a number",
                                     "9: column num_frames is 81.5; it must be a whole number",
                                     "10: column num_frames is 1e+30; it is too large",
                                     "11: none of path, num_frames, height, width is there"));

  const Manifest lines = read_manifest(
      scratch.file("m.jsonl",
                   "\xEF\xBB\xBF{\"path\":\"a.jpg\",\"height\":16,\"width\":16}\r\n\r\n"
                   "{\"path\":\"b.jpg\"} x\n{\"path\":\n[1]\n\"text\"\n"
                   "{\"path\":\"c.jpg\",\"height\":NaN}\n{\"path\":\"d.jpg\",\"height\":null,\"width\":16}"));
  ASSERT_EQ(lines.samples.size(), 2u);
  EXPECT_TRUE(lines.samples[0].usable());
  EXPECT_EQ(lines.samples[1].row, 7);
  EXPECT_EQ(lines.samples[1].why_unusable, "height unknown: height is missing");
  ASSERT_EQ(lines.skipped.size(), 5u);
  EXPECT_THAT(lines.skipped[0].reason, HasSubstr("the line is not JSON: parse error at line 1, column 18"));
  EXPECT_THAT(lines.skipped[1].reason, HasSubstr("the line is not JSON"));
  EXPECT_EQ(lines.skipped[2].reason, "the entry is a list, not an object");
  EXPECT_EQ(lines.skipped[3].reason, "the entry is a string, not an object");
  EXPECT_EQ(lines.skipped[4].row, 6);
}

// Writes random records as CSV with every oddity that the format allows, and expects them back; rows whose path is no
// printable text are skipped, the ones behind them are not.
TEST(ManifestFaults, RandomCsvComesBack) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto below = [&](std::uint64_t bound) { return static_cast<int>(random() % bound); };
    const std::vector<std::string> pieces = {
        "a", "B7", " ", ",", "\"", "\n", "\r\n", "'", "\xC3\xBC", "\xE6\x96\x87", "/", ";", "\t", "\xF0\x9F\x98\x80"};
    const auto quoted = [](const std::string& text) {
      std::string out = "\"";
      for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
      return out + "\"";
    };
    const std::string line_end = below(2) == 0 ? "\n" : "\r\n";
    std::string text = below(2) == 0 ? "\xEF\xBB\xBF" : "";
    text += "text,path,fps,width,num_frames,height" + line_end;
    struct Row {
      std::string path;
      std::array<int, 3> size;
      std::int64_t row;
    };
    std::vector<Row> expected;
    std::vector<std::int64_t> unprintable;
    const int rows = 1 + below(200);
    for (int row = 0; row < rows; ++row) {
      std::string caption, path = "x";
      for (int i = below(12); i > 0; --i) caption += pieces[below(pieces.size())];
      for (int i = below(8); i > 0; --i) path += pieces[below(pieces.size())];
      path += ".mp4";
      const std::array<int, 3> size = {1 + below(500), 1 + below(4000), 1 + below(4000)};
      const auto number = [&](int value) {
        std::string shown = std::to_string(value);
        if (below(3) == 0) shown += ".0";
        return below(4) == 0 ? quoted(shown) : shown;
      };
      text += quoted(caption) + "," + quoted(path) + "," + (below(2) == 0 ? "" : "25") + "," + number(size[2]) + "," +
              number(size[0]) + "," + number(size[1]) + line_end;
      if (path.find_first_of("\n\r\t") == std::string::npos) {
        expected.push_back({path, size, row + 1});
      } else {
        unprintable.push_back(row + 1);
      }
      if (below(20) == 0) text += line_end;
    }
    const Scratch scratch;
    const Manifest manifest = read_manifest(scratch.file("random.csv", text));
    ASSERT_EQ(manifest.skipped.size(), unprintable.size());
    for (std::size_t i = 0; i < unprintable.size(); ++i) {
      EXPECT_EQ(manifest.skipped[i].row, unprintable[i]);
      EXPECT_THAT(manifest.skipped[i].reason, HasSubstr("printable"));
    }
    ASSERT_EQ(manifest.samples.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(manifest.samples[i].path, expected[i].path);
      EXPECT_EQ(manifest.samples[i].frames, expected[i].size[0]);
      EXPECT_EQ(manifest.samples[i].height, expected[i].size[1]);
      EXPECT_EQ(manifest.samples[i].width, expected[i].size[2]);
      EXPECT_EQ(manifest.samples[i].row, expected[i].row);
    }
  }
}

}  // namespace
}  // namespace zellige
