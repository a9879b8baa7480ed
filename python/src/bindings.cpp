// SPDX-License-Identifier: Apache-2.0
// The engine for Python: any torch.distributed process group, tensors in and out, gradients by autograd.
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/utils/pybind.h>

#include <tuple>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "zellige/engine.h"
#include "zellige/error.h"
#include "zellige/placement.h"
#include "zellige/schedule.h"
#include "zellige/version.h"

namespace py = pybind11;

namespace {

using namespace zellige;

/// (tokens, (q, h, k), ranks)
using SequenceTuple = std::tuple<std::int64_t, std::tuple<int, int, int>, std::vector<Rank>>;

Placement make_placement(int ranks, int heads, int kv_heads, int head_dim, const std::vector<SequenceTuple>& sequences,
                         int waves, bool overlap, bool keep_kv, const std::string& engine) {
  Placement placement;
  placement.ranks = ranks;
  placement.model = model_preset("tiny");
  placement.model.heads = heads;
  placement.model.kv_heads = kv_heads;
  placement.model.head_dim = head_dim;
  placement.exec.waves = waves;
  placement.exec.overlap = overlap;
  placement.exec.keep_kv = keep_kv;
  placement.exec.engine = engine;
  for (const auto& [tokens, config, set] : sequences) {
    PlacedSequence placed;
    placed.id = std::string("s").append(std::to_string(placement.sequences.size()));
    placed.bucket = std::to_string(tokens);
    placed.tokens = {tokens};
    std::tie(placed.config.q, placed.config.h, placed.config.k) = config;
    placed.ranks = set;
    placement.sequences.push_back(std::move(placed));
  }
  return placement;
}

/// Where each sequence's rows lie in a rank's packed tensors: (sequence, first token, tokens, first row).
std::vector<std::tuple<int, std::int64_t, std::int64_t, std::int64_t>> rows_of(const Schedule& schedule) {
  std::vector<std::tuple<int, std::int64_t, std::int64_t, std::int64_t>> rows;
  for (const Segment& segment : schedule.segments) {
    rows.emplace_back(segment.sequence, segment.token_begin, segment.num_tokens, segment.local_begin);
  }
  return rows;
}

}  // namespace

PYBIND11_MODULE(_zellige, module) {
  module.doc() = "Zellige's attention engine over a torch.distributed process group";
  module.attr("__version__") = std::string(version());

  // zellige.Error with the code that the command would exit with.
  static py::handle error_type = py::exception<Error>(module, "Error", PyExc_RuntimeError).release();
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const Error& error) {
      py::object value = error_type(error.what());
      value.attr("code") = static_cast<int>(error.code());
      PyErr_SetObject(error_type.ptr(), value.ptr());
    }
  });

  py::class_<Placement>(module, "Placement", "What runs where in a step: sequences of (tokens, (q, h, k), ranks).")
      .def(py::init(&make_placement), py::kw_only(), py::arg("ranks"), py::arg("heads"), py::arg("kv_heads"),
           py::arg("head_dim"), py::arg("sequences"), py::arg("waves") = 1, py::arg("overlap") = false,
           py::arg("keep_kv") = true, py::arg("engine") = "coalesced")
      .def_property_readonly("digest", [](const Placement& placement) { return digest(placement); })
      .def(
          "rows", [](const Placement& placement, Rank rank) { return rows_of(lower(placement, rank)); },
          py::arg("rank"), "(sequence, first token, tokens, first row) of each run of rows of a rank's packed tensors");

  py::class_<Engine>(module, "Engine", "The Coalesced Attention Engine on one rank of a process group.")
      .def(py::init([](const c10::intrusive_ptr<c10d::ProcessGroup>& group, const std::string& kernel,
                       const std::string& flash_attention_3, bool deterministic) {
             return std::make_unique<Engine>(group, EngineOptions{.kernel = kernel,
                                                                  .rates = {},
                                                                  .flash_attention_3 = flash_attention_3,
                                                                  .deterministic = deterministic});
           }),
           py::arg("group"), py::arg("kernel") = "", py::arg("flash_attention_3") = "",
           py::arg("deterministic") = false)
      .def(
          "begin_step",
          [](Engine& engine, const Placement& placement, Rank rank) { engine.begin_step(lower(placement, rank)); },
          py::arg("placement"), py::arg("rank"), py::call_guard<py::gil_scoped_release>(),
          "Takes the step's placement. Collective; raises Error with code 7 on all ranks when placements differ.")
      .def(
          "warm_up",
          [](Engine& engine, const Placement& placement, Rank rank, const at::Tensor& like) {
            return engine.warm_up(lower(placement, rank), like.scalar_type(), like.device());
          },
          py::arg("placement"), py::arg("rank"), py::arg("like"), py::call_guard<py::gil_scoped_release>(),
          "Runs each kernel call of a layer once, for shapes not warmed up yet, in the dtype and on the device of "
          "`like`; returns how many. Not collective.")
      .def(
          "report",
          [](Engine& engine) {
            const StepReport report = engine.report();
            py::dict result;
            result["forward_layers"] = report.forward_layers;
            result["backward_layers"] = report.backward_layers;
            result["collectives"] = report.counters.collectives;
            result["all_gather_bytes"] = report.counters.all_gather_bytes;
            result["ulysses_bytes"] = report.counters.ulysses_bytes;
            result["ring_bytes"] = report.counters.ring_bytes;
            result["exposed_a_s"] = report.exposed.a_s;
            result["exposed_ring_s"] = report.exposed.ring_s;
            result["exposed_b_s"] = report.exposed.b_s;
            result["exposed_s"] = report.exposed.total_s();
            return result;
          },
          "What the step's attention did so far on this rank: layers, collectives, bytes sent, and the seconds in "
          "which computing stood still for exchanges.")
      .def("attention", &Engine::attention, py::arg("q"), py::arg("k"), py::arg("v"),
           py::call_guard<py::gil_scoped_release>(),
           "Attention within each sequence of packed q, k, v [tokens_local, heads, head_dim]. Collective, backward "
           "too.");
}
