// SPDX-License-Identifier: Apache-2.0
// The engine's benchmarks on GPUs: alone for kernels and what one rank does, under torchrun with two processes for the
// rest.
//   gpu_engine NAME RESULT.json [--link nvlink|host|sockets] [--commit HASH] [--quick]
//   torchrun --no-python --nproc-per-node 2 build/bench/gpu_engine split_sequence bench/results/split_sequence.json
// Links other than NVLink come of NCCL's variables: host memory NCCL_P2P_DISABLE=1, sockets NCCL_SHM_DISABLE=1 too.
// FlashAttention-3 is used where ZELLIGE_FLASH_ATTENTION_3 names its library. Several names, with commas, and "@" in
// the result's path for the name, run in one process.
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <sstream>

#include "bench/gpu/measure.h"
#include "bench/result_file.h"
#include "zellige/env.h"

int main(int argc, char** argv) try {
  using namespace zellige;
  using namespace zellige::bench;
  if (argc < 3) throw std::invalid_argument("use gpu_engine NAME RESULT.json [--link LINK] [--commit HASH] [--quick]");
  const std::map<std::string, nlohmann::ordered_json (*)(const Site&)> all = {
      {"kernel_table", kernel_table},   {"kernel_rates", kernel_rates},     {"split_sequence", split_sequence},
      {"layer_suites", layer_suites},   {"exchange_share", exchange_share}, {"launch_overhead", launch_overhead},
      {"packing_share", packing_share}, {"deterministic", deterministic},   {"warm_up", warm_up}};
  Site site;
  for (int i = 3; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "--quick") site.quick = true;
    if (option == "--link" && i + 1 < argc) site.link = argv[++i];
    if (option == "--commit" && i + 1 < argc) site.commit = argv[++i];
  }
  const Env env = Env::from_process();
  if (env.flash_attention_3) load_flash_attention_3(*env.flash_attention_3);
  if (env.world_size.value_or(1) > 1) {
    site.world = join_world(env);
  } else {
    site.world.device = at::Device(at::kCUDA, 0);
  }
  std::stringstream names(argv[1]);
  for (std::string name; std::getline(names, name, ',');) {
    const auto found = all.find(name);
    if (found == all.end()) throw std::invalid_argument("no benchmark '" + name + "'");
    const nlohmann::ordered_json rows = found->second(site);
    if (!site.speaks()) continue;
    std::string path = argv[2];
    if (const auto at = path.find('@'); at != std::string::npos) path.replace(at, 1, name);
    std::string command = site.world.ranks > 1 ? "torchrun --no-python --nproc-per-node 2 " : "";
    command += "build/bench/gpu_engine " + name + " bench/results/" + name + ".json";
    if (site.link != "nvlink") command += " --link " + site.link;
    write_results(path, name, device_name(site), command, rows, site.commit);
    std::fflush(stdout);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "gpu_engine: %s\n", error.what());
  return 1;
}
