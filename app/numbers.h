// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "zellige/units.h"

namespace zellige::app {

std::string seconds(Microseconds time);                           ///< "3.564 s", "0.90 ms", "12 us"
std::string gibibytes(Bytes size);                                ///< "4.45 GiB"
std::string percent(double ratio);                                ///< 0.0153 -> "+1.53%"
std::string grouped(std::int64_t number);                         ///< 1234567 -> "1,234,567"
std::string plural(std::int64_t count, const std::string& noun);  ///< "1 split", "3 splits"

}  // namespace zellige::app
