// SPDX-License-Identifier: Apache-2.0
#include "zellige/planner.h"

#include <array>

#include "base/json.h"
#include "plan/baselines.h"
#include "plan/two_stage.h"
#include "zellige/error.h"

namespace zellige {
namespace {

struct Method {
  std::string_view name;
  std::unique_ptr<Planner> (*make)();
};

constexpr std::array kMethods = {
    Method{"zellige", [] { return make_two_stage("zellige", Form::rank_counts, true); }},
    Method{"joint", [] { return make_joint("joint", Form::rank_counts); }},
    Method{"joint-no-ecf", [] { return make_joint("joint-no-ecf", Form::sequences); }},
    Method{"zellige-no-ecf", [] { return make_two_stage("zellige-no-ecf", Form::sequences, false); }},
    Method{"naive", make_naive},
    Method{"adaptiveload", make_adaptiveload},
    Method{"usp", make_usp},
    Method{"knapformer", make_knapformer},
    Method{"flexsp", make_flexsp},
    Method{"megatron", make_megatron},
    Method{"disjoint", make_disjoint},
};

}  // namespace

std::unique_ptr<Planner> make_planner(std::string_view method) {
  for (const Method& known : kMethods) {
    if (known.name == method) return known.make();
  }
  throw Error(Code::input, "plan.make_planner",
              "method " + in_quotes(method) + " is not known; the methods are " + joined(planner_names()));
}

std::vector<std::string> planner_names() {
  std::vector<std::string> names;
  for (const Method& known : kMethods) names.emplace_back(known.name);
  return names;
}

}  // namespace zellige
