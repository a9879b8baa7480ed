// SPDX-License-Identifier: Apache-2.0
#include "plan/cp_sat.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/json.h"
#include "zellige/error.h"
#include "zellige/planner.h"

namespace zellige::cp {

// OR-Tools' C interface (ortools/sat/c_api/cp_solver_c.h): lengths are int, the answer is freed with free().
struct Solver::Functions {
  void* (*new_environment)() = nullptr;
  void (*destroy_environment)(void*) = nullptr;
  void (*stop_search)(void*) = nullptr;
  void (*solve)(void*, const void*, int, const void*, int, void**, int*) = nullptr;
};

namespace {

constexpr const char* kLibraryName = "libortools.so.9";

// Deep binding keeps OR-Tools' protobuf apart from torch's. The sanitizers' runtimes refuse it; builds with them have
// no torch.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kOpenFlags = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kOpenFlags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

/// The first site-packages folder under ./.venv that holds the library, or empty.
std::string library_beside_us() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::vector<std::string> found;
  for (const auto& folder : fs::directory_iterator(".venv/lib", ignored)) {
    const fs::path candidate = folder.path() / "site-packages/ortools/.libs" / kLibraryName;
    if (folder.path().filename().string().starts_with("python3") && fs::exists(candidate, ignored)) {
      found.push_back(fs::absolute(candidate).string());
    }
  }
  return found.empty() ? std::string() : *std::min_element(found.begin(), found.end());
}

template <class Function>
bool take(void* library, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, symbol));
  return function != nullptr;
}

std::unique_ptr<const Solver::Functions> open_library(const std::string& path, std::string& why_not) {
  void* library = dlopen(path.c_str(), kOpenFlags);
  if (library == nullptr) {
    why_not = dlerror();
    return nullptr;
  }
  auto functions = std::make_unique<Solver::Functions>();
  if (!take(library, "SolveCpNewEnv", functions->new_environment) ||
      !take(library, "SolveCpDestroyEnv", functions->destroy_environment) ||
      !take(library, "SolveCpStopSearch", functions->stop_search) ||
      !take(library, "SolveCpInterruptible", functions->solve)) {
    why_not = path + " lacks CP-SAT's C interface (SolveCpInterruptible and others); OR-Tools 9.15 has it";
    dlclose(library);
    return nullptr;
  }
  return functions;
}

}  // namespace

Solver::Solver(std::string path, std::unique_ptr<const Functions> functions)
    : path_(std::move(path)), functions_(std::move(functions)) {}
Solver::~Solver() = default;

std::shared_ptr<const Solver> Solver::find(const std::string& path, std::string& why_not) {
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const Solver>> loaded;
  if (path == "none") {
    why_not = "OR-Tools was switched off (ortools = none)";
    return nullptr;
  }
  const std::lock_guard lock(mutex);
  if (const auto known = loaded.find(path); known != loaded.end()) return known->second;

  std::vector<std::string> candidates;
  if (path.empty()) {
    if (std::string beside = library_beside_us(); !beside.empty()) candidates.push_back(std::move(beside));
    if (*ZELLIGE_ORTOOLS_LIBRARY != '\0') candidates.emplace_back(ZELLIGE_ORTOOLS_LIBRARY);
    candidates.emplace_back(kLibraryName);
  } else {
    candidates.push_back(path);
  }
  std::vector<std::string> reasons;
  for (const std::string& candidate : candidates) {
    std::string reason;
    if (auto functions = open_library(candidate, reason)) {
      auto solver = std::make_shared<const Solver>(candidate, std::move(functions));
      loaded.emplace(path, solver);
      return solver;
    }
    reasons.push_back(std::move(reason));
  }
  why_not = "OR-Tools could not be loaded: " + joined(reasons);
  return nullptr;
}

Response Solver::solve(const Model& model, const Parameters& parameters, std::stop_token stop) const {
  const std::string request = model.encode();
  const std::string settings = parameters.encode();
  if (request.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw Error(Code::solver, "plan.cp_sat",
                "the model has " + std::to_string(request.size()) + " bytes; CP-SAT takes at most 2147483647");
  }

  const auto destroy = functions_->destroy_environment;
  const std::unique_ptr<void, void (*)(void*)> environment(functions_->new_environment(), destroy);
  void* answer = nullptr;
  int answer_length = 0;
  {
    const std::stop_callback on_stop(stop, [this, &environment] { functions_->stop_search(environment.get()); });
    functions_->solve(environment.get(), request.data(), static_cast<int>(request.size()), settings.data(),
                      static_cast<int>(settings.size()), &answer, &answer_length);
  }
  const std::unique_ptr<void, void (*)(void*)> owner(answer, std::free);
  if (answer == nullptr || answer_length <= 0) {
    throw Error(Code::solver, "plan.cp_sat", "CP-SAT gave no answer");
  }
  Response response =
      decode_response(std::string_view(static_cast<const char*>(answer), static_cast<std::size_t>(answer_length)));
  if (response.outcome == Outcome::invalid) {
    throw Error(Code::solver, "plan.cp_sat",
                "CP-SAT calls the model invalid (" + std::to_string(model.num_variables()) + " variables, " +
                    std::to_string(model.num_constraints()) + " constraints)");
  }
  if (response.has_solution() && response.solution.size() != model.num_variables()) {
    throw Error(Code::solver, "plan.cp_sat",
                "CP-SAT's solution has " + std::to_string(response.solution.size()) + " values for " +
                    std::to_string(model.num_variables()) + " variables");
  }
  return response;
}

}  // namespace zellige::cp

namespace zellige {

std::string why_no_cp_sat(const std::string& ortools_path) {
  std::string why_not;
  return cp::Solver::find(ortools_path, why_not) ? std::string() : why_not;
}

}  // namespace zellige
