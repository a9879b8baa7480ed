// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "engine/torch.h"
#include "zellige/env.h"

namespace zellige {

/// Where processes meet, and which of them this one is.
struct Rendezvous {
  int rank = 0, ranks = 1;
  int local_rank = 0;
  std::string address;
  int port = 0;
  bool serve = false;  ///< this process holds the store
  int attempt = 0;     ///< restarts of the group keep apart
};

/// Errors: Code::input, naming the variable, its value, and what would be right.
Rendezvous rendezvous_of(const Env& env);

/// A store that all processes of a rendezvous share, its keys kept apart from others'.
/// Collective: returns when this process is connected, on the serving one when all are.
/// Errors: Code::communication after `timeout`, or when the port to serve at is taken.
c10::intrusive_ptr<c10d::Store> open_store(const Rendezvous& rendezvous, std::chrono::milliseconds timeout);

}  // namespace zellige
