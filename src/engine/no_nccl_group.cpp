// SPDX-License-Identifier: Apache-2.0
#include "engine/rendezvous.h"
#include "zellige/error.h"
#include "zellige/process_group.h"

namespace zellige {

std::string why_no_nccl() { return "this build's torch has no CUDA"; }

WorldGroup join_world(const Env& env, const WorldGroupOptions&) {
  rendezvous_of(env);
  throw Error(Code::device, "engine.join_world", why_no_nccl() + "; build with a torch that has CUDA");
}

}  // namespace zellige
