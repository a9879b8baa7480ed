// SPDX-License-Identifier: Apache-2.0
#include "engine/rendezvous.h"

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "zellige/error.h"

namespace zellige {
namespace {

const char* const kWhere = "engine.join_world";

template <class Value>
const Value& required(const std::optional<Value>& value, const char* variable) {
  if (value) return *value;
  throw Error(Code::input, kWhere,
              std::string("environment variable ") + variable +
                  " is not set; start with 'torchrun --no-python --nproc-per-node GPUS zellige ...', or set RANK, "
                  "WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT for each process");
}

void require_range(const char* variable, int value, int least, int most) {
  if (value >= least && value <= most) return;
  throw Error(Code::input, kWhere,
              std::string("environment variable ") + variable + " is " + std::to_string(value) + "; use " +
                  std::to_string(least) + " .. " + std::to_string(most));
}

/// c10d's messages go on with a stack of calls.
std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

}  // namespace

Rendezvous rendezvous_of(const Env& env) {
  Rendezvous result;
  result.ranks = required(env.world_size, "WORLD_SIZE");
  require_range("WORLD_SIZE", result.ranks, 1, 1 << 20);
  result.rank = required(env.rank, "RANK");
  require_range("RANK", result.rank, 0, result.ranks - 1);
  // Without it, as with one process a host.
  result.local_rank = env.local_rank.value_or(0);
  require_range("LOCAL_RANK", result.local_rank, 0, result.rank);
  result.address = required(env.master_address, "MASTER_ADDR");
  result.port = required(env.master_port, "MASTER_PORT");
  require_range("MASTER_PORT", result.port, 1, 65535);
  result.serve = !env.agent_store && result.rank == 0;
  result.attempt = env.restart_count;
  return result;
}

c10::intrusive_ptr<c10d::Store> open_store(const Rendezvous& rendezvous, std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(rendezvous.port);
  options.isServer = rendezvous.serve;
  options.numWorkers = static_cast<std::size_t>(rendezvous.ranks);
  options.timeout = timeout;
  try {
    const auto store = c10::make_intrusive<c10d::TCPStore>(rendezvous.address, options);
    return c10::make_intrusive<c10d::PrefixStore>("zellige/" + std::to_string(rendezvous.attempt), store);
  } catch (const std::exception& error) {
    const std::string at = rendezvous.address + ":" + std::to_string(rendezvous.port);
    throw Error(Code::communication, kWhere,
                "rank " + std::to_string(rendezvous.rank) + " of " + std::to_string(rendezvous.ranks) + " can't " +
                    (rendezvous.serve ? "gather the others at " : "reach the rendezvous at ") + at + " within " +
                    std::to_string(timeout.count()) + " ms: " + first_line(error) +
                    "; is MASTER_ADDR right, MASTER_PORT free on its host, and is every process started?");
  }
}

}  // namespace zellige
