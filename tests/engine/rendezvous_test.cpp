// SPDX-License-Identifier: Apache-2.0
#include "engine/rendezvous.h"

#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "zellige/error.h"
#include "zellige/process_group.h"

namespace zellige {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Env complete_env() {
  Env env;
  env.rank = 1;
  env.world_size = 4;
  env.local_rank = 1;
  env.master_address = "127.0.0.1";
  env.master_port = 29500;
  return env;
}

std::string refusal(const Env& env, Code code = Code::input) {
  try {
    rendezvous_of(env);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

/// A listening socket on a port that the system picked.
class TakenPort {
 public:
  TakenPort() : socket_(::socket(AF_INET6, SOCK_STREAM, 0)) {
    sockaddr_in6 address{};
    address.sin6_family = AF_INET6;
    address.sin6_addr = in6addr_any;
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin6_port);
  }
  ~TakenPort() { close(); }
  TakenPort(const TakenPort&) = delete;
  TakenPort& operator=(const TakenPort&) = delete;

  void listen() { EXPECT_EQ(::listen(socket_, 1), 0); }
  /// Gives the port back, for someone else to take.
  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  int port() const { return port_; }

 private:
  int socket_;
  int port_ = 0;
};

TEST(Rendezvous, TakesWhatTorchrunSets) {
  Env env = complete_env();
  env.agent_store = true;
  env.restart_count = 2;
  const Rendezvous at = rendezvous_of(env);
  EXPECT_EQ(at.rank, 1);
  EXPECT_EQ(at.ranks, 4);
  EXPECT_EQ(at.local_rank, 1);
  EXPECT_EQ(at.address, "127.0.0.1");
  EXPECT_EQ(at.port, 29500);
  EXPECT_EQ(at.attempt, 2);
  EXPECT_FALSE(at.serve);
  env.rank = 0;
  env.local_rank = std::nullopt;
  EXPECT_FALSE(rendezvous_of(env).serve) << "torchrun serves";
  env.agent_store = false;
  EXPECT_TRUE(rendezvous_of(env).serve) << "someone has to";
}

TEST(Rendezvous, NamesWhatIsMissingOrOutOfRange) {
  Env env = complete_env();
  env.rank.reset();
  EXPECT_THAT(refusal(env), AllOf(HasSubstr("RANK is not set"), HasSubstr("torchrun --no-python")));
  env = complete_env();
  env.world_size.reset();
  EXPECT_THAT(refusal(env), HasSubstr("WORLD_SIZE is not set"));
  env = complete_env();
  env.master_address.reset();
  EXPECT_THAT(refusal(env), HasSubstr("MASTER_ADDR is not set"));
  env = complete_env();
  env.master_port.reset();
  EXPECT_THAT(refusal(env), HasSubstr("MASTER_PORT is not set"));
  env = complete_env();
  env.rank = 4;
  EXPECT_THAT(refusal(env), HasSubstr("RANK is 4; use 0 .. 3"));
  env = complete_env();
  env.world_size = 0;
  EXPECT_THAT(refusal(env), HasSubstr("WORLD_SIZE is 0"));
  env = complete_env();
  env.master_port = 70000;
  EXPECT_THAT(refusal(env), HasSubstr("MASTER_PORT is 70000; use 1 .. 65535"));
  env = complete_env();
  env.local_rank = 3;
  EXPECT_THAT(refusal(env), HasSubstr("LOCAL_RANK is 3; use 0 .. 1"));
}

TEST(Rendezvous, AllProcessesShareTheStoreOfTheirAttempt) {
  TakenPort port;
  port.close();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([rank, &port] {
      Rendezvous at{.rank = rank, .ranks = 3, .address = "127.0.0.1", .port = port.port(), .serve = rank == 0};
      const auto store = open_store(at, std::chrono::seconds(30));
      EXPECT_EQ(store->add("count", 1) > 0, true);
      store->set("rank" + std::to_string(rank), std::to_string(rank));
      for (int other = 0; other < 3; ++other) {
        const auto value = store->get("rank" + std::to_string(other));
        EXPECT_EQ(std::string(value.begin(), value.end()), std::to_string(other));
      }
      if (rank != 0) {
        at.attempt = 1;
        const auto later = open_store(at, std::chrono::seconds(30));
        EXPECT_FALSE(later->check({"rank0"})) << "an earlier attempt's key";
      }
      store->add("done", 1);
      while (rank == 0 && store->add("done", 0) < 3) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Rendezvous, APortThatIsTakenAndAnAbsentHostAreNamed) {
  TakenPort taken;
  taken.listen();
  Rendezvous at{.rank = 0, .ranks = 2, .address = "127.0.0.1", .port = taken.port(), .serve = true};
  const auto fails = [&at] {
    try {
      open_store(at, std::chrono::milliseconds(1500));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::communication);
      return std::string(error.what());
    }
    ADD_FAILURE() << "nothing failed";
    return std::string();
  };
  EXPECT_THAT(fails(), AllOf(HasSubstr("127.0.0.1:" + std::to_string(taken.port())), HasSubstr("MASTER_PORT free")));
  taken.close();
  at.serve = false;
  at.rank = 1;
  EXPECT_THAT(fails(), AllOf(HasSubstr("rank 1 of 2"), HasSubstr("within 1500 ms")));
}

TEST(JoinWorld, RefusesBeforeItWaitsForAnyone) {
  Env env = complete_env();
  env.master_address.reset();
  EXPECT_THROW(join_world(env), Error);
  if (!why_no_nccl().empty()) {
    try {
      join_world(complete_env());
      ADD_FAILURE() << "joined without a GPU";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::device);
      EXPECT_THAT(error.what(), HasSubstr(why_no_nccl()));
    }
  }
}

}  // namespace
}  // namespace zellige
