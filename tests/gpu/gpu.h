// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "engine/attention_kernel.h"
#include "zellige/env.h"
#include "zellige/process_group.h"

namespace zellige::gpu {

/// Whether a kernel can be tried here; else why not. Loads FlashAttention-3 where the environment names it.
inline std::string why_skip(const std::string& kernel) {
  if (const std::string why = why_no_nccl(); !why.empty()) return why;
  if (kernel != "flash-attention-3") return "";
  const Env env = Env::from_process();
  if (!env.flash_attention_3) return "ZELLIGE_FLASH_ATTENTION_3 names no library";
  load_flash_attention_3(*env.flash_attention_3);
  return "";
}

}  // namespace zellige::gpu
