// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace zellige {

/// 128 bits, for products and sums of integers that must not be rounded.
__extension__ using Wide = __int128;

}  // namespace zellige
