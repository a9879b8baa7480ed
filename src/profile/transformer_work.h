// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "zellige/catalog.h"

namespace zellige {

/// Parameters of a Wan-shaped transformer of this geometry: blocks, patch, text and time embeddings, head. Exact for
/// Wan2.1-T2V-1.3B (1,418,996,800); for other families an estimate from their width and depth.
std::int64_t parameter_count(const ModelGeometry& model);

/// Floating-point operations of one layer's forward pass over `tokens` of a sequence (a multiply-add counts two).
struct LayerWork {
  double projections = 0;      ///< q, k, v, o of both attentions; K/V of the text are made on every rank with a chunk
  double feed_forward = 0;     ///< both layers
  double cross_attention = 0;  ///< tokens against the text
};
LayerWork layer_work(const ModelGeometry& model, double tokens);

/// Self-attention of a whole sequence, one layer, forward: 4 L^2 d.
double attention_work(const ModelGeometry& model, Tokens length);

/// Refuses (Code::input) sequences so long that a byte count of theirs would not fit 64 bits.
void check_size(const ModelGeometry& model, Tokens length);

}  // namespace zellige
