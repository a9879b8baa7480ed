// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "zellige/placement.h"
#include "zellige/profile.h"

namespace zellige {

/// A series of plain numbers to draw, such as a loss curve.
struct Series {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<double> x;
  std::vector<double> y;
};

/// What a page shows: one plan, or several of one batch side by side.
struct Page {
  std::string title;
  std::vector<Plan> plans;  ///< those without a placement appear with their reason
  std::vector<Series> series;
  std::string note;  ///< shown under the title, e.g. where the profile comes from
};

/// Makes one self-contained HTML page (no script or style from elsewhere): per-rank bars of tokens, compute and memory
/// with whole and hatched shards, images and videos in cool and warm colours (the paper's Fig. 2), a table of all
/// methods, the series.
std::string html_page(const Page& page, const Profile& profile);

/// The plan as a Chrome/Perfetto trace (JSON text): one row a rank, each sequence's price laid end to end, in schedule
/// order.
std::string chrome_trace(const Plan& plan);

/// Of more ranks than this, texts show the first ones and sum up the others.
inline constexpr int kRanksShown = 32;

/// The plan's ranks as bars of text, `width` columns wide; of more than `most_ranks` the first ones.
std::string text_picture(const Plan& plan, int width, int most_ranks = kRanksShown);

}  // namespace zellige
