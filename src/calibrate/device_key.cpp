// SPDX-License-Identifier: Apache-2.0
// What a measurement was made on, in the words of the device's own driver. The driver's libraries are loaded where they
// are found: no part of this program is built against them.
#include <array>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include <dlfcn.h>
#include <sys/utsname.h>
#include <torch/version.h>

#include "engine/torch.h"
#include "zellige/error.h"
#include "zellige/step_timer.h"
#include "zellige/version.h"

namespace zellige {
namespace {

/// A library of the driver, open as long as this lives.
class DriverLibrary {
 public:
  explicit DriverLibrary(const char* file) : handle_(dlopen(file, RTLD_NOW | RTLD_LOCAL)) {}
  ~DriverLibrary() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  DriverLibrary(const DriverLibrary&) = delete;
  DriverLibrary& operator=(const DriverLibrary&) = delete;

  /// Calls a function of the library; false when it is not there or says anything but success (0).
  template <class... Arguments>
  bool call(const char* function, Arguments... arguments) const {
    if (handle_ == nullptr) return false;
    const auto entry = reinterpret_cast<int (*)(Arguments...)>(dlsym(handle_, function));
    return entry != nullptr && entry(arguments...) == 0;
  }

 private:
  void* handle_;
};

std::string gpu_name(int index) {
  const DriverLibrary cuda("libcuda.so.1");
  std::array<char, 256> name{};
  int device = 0;
  const bool known = cuda.call("cuInit", 0u) && cuda.call("cuDeviceGet", &device, index) &&
                     cuda.call("cuDeviceGetName", name.data(), static_cast<int>(name.size()), device);
  return known ? name.data() : "unknown GPU";
}

std::string gpu_driver() {
  const DriverLibrary nvml("libnvidia-ml.so.1");
  std::array<char, 96> version{};
  const bool known = nvml.call("nvmlInit_v2") &&
                     nvml.call("nvmlSystemGetDriverVersion", version.data(), static_cast<unsigned>(version.size()));
  return known ? version.data() : "unknown";
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string line, name = "unknown processor";
  while (std::getline(info, line)) {
    if (!line.starts_with("model name")) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) name = line.substr(colon + 2);
    break;
  }
  std::string text = "CPU ";
  return text.append(name).append(", ").append(std::to_string(std::thread::hardware_concurrency())).append(" threads");
}

std::string kernel_version() {
  utsname system{};
  return uname(&system) == 0 ? std::string(system.sysname) + " " + system.release : "unknown";
}

std::string precision_name(at::ScalarType type) {
  if (type == at::kDouble) return "fp64";
  return type == at::kBFloat16 ? "bf16" : "fp32";
}

}  // namespace

ProfileKey key_of_this_device(at::Device device, bool checkpointing, at::ScalarType compute, int group_ranks) {
  ProfileKey key;
  key.device = device.is_cpu() ? cpu_name() : gpu_name(device.index());
  key.driver = device.is_cpu() ? kernel_version() : gpu_driver();
  key.executor = kExecutorVersion;
  key.checkpointing = checkpointing;
  key.torch = TORCH_VERSION;
  key.precision = precision_name(compute);
  key.ranks = group_ranks;
  return key;
}

}  // namespace zellige
