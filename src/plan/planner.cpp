// SPDX-License-Identifier: Apache-2.0
#include "zellige/planner.h"

#include <algorithm>
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
  bool takes_layout = false;
};

constexpr std::array kMethods = {
    Method{"zellige",
           [] {
             return make_two_stage({"zellige", Form::rank_counts, true, true});
           }},
    Method{"two-stage",
           [] {
             return make_two_stage({"two-stage", Form::rank_counts, true, false});
           }},
    Method{"joint", [] { return make_joint("joint", Form::rank_counts); }},
    Method{"joint-no-ecf", [] { return make_joint("joint-no-ecf", Form::sequences); }},
    Method{"zellige-no-ecf",
           [] {
             return make_two_stage({"zellige-no-ecf", Form::sequences, false, false});
           }},
    Method{"naive", make_naive, true},
    Method{"adaptiveload", make_adaptiveload},
    Method{"usp", make_usp, true},
    Method{"knapformer", make_knapformer, true},
    Method{"flexsp", make_flexsp},
    Method{"megatron", make_megatron, true},
    Method{"disjoint", make_disjoint, true},
};

}  // namespace

std::unique_ptr<Planner> make_planner(std::string_view method) {
  for (const Method& known : kMethods) {
    if (known.name == method) return known.make();
  }
  const std::vector<std::string> names = planner_names();
  const std::string near = nearest(method, names);
  throw Error(Code::input, "plan.make_planner",
              "method " + in_quotes(method) + " is not known; " +
                  (near.empty() ? "" : "did you mean " + in_quotes(near) + "? ") + "the methods are " + joined(names));
}

bool takes_layout(std::string_view method) {
  return std::any_of(kMethods.begin(), kMethods.end(),
                     [&](const Method& known) { return known.name == method && known.takes_layout; });
}

std::vector<std::string> planner_names() {
  std::vector<std::string> names;
  for (const Method& known : kMethods) names.emplace_back(known.name);
  return names;
}

}  // namespace zellige
