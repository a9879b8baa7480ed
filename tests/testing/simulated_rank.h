// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>
#include <vector>

#include "testing/dense_attention.h"
#include "zellige/schedule.h"

namespace zellige::oracle {

/// One rank of the simulation: its memory, and the arithmetic that it may do on it.
class SimulatedRank {
 public:
  /// Copies the owned rows of `inputs` [sequences] in; nothing else of them is seen again.
  SimulatedRank(const Schedule& schedule, const std::vector<AttentionInputs>& inputs);

  const Schedule& schedule() const { return *schedule_; }

  void run_whole_sequences();
  /// Poisons all that engine.md does not let a rank keep.
  void begin_backward();

  /// Appends the piece's elements to a message.
  void pack(const Piece& piece, std::vector<double>& message) const;
  /// Takes the piece's elements, from `elements` on.
  void unpack(const Piece& piece, const double* elements);

  /// Runs a ring stage of every shard whose ring has it, on the heads of a wave.
  void compute_forward(int wave, int stage);
  void compute_backward(int wave, int stage);
  /// Forgets the streamed block of a stage. Called once the block was passed on and used.
  void drop_block(int stage);
  /// Forgets the key and value gradients that a ring step took. Called once it is posted.
  void drop_gradients_sent_by(int ring_step);
  /// Copies outputs (or query gradients) computed for the own chunk, which stay, to the rank's own rows.
  void settle_output(int wave);
  void settle_grad_query(int wave);

  /// Writes the own rows to the results [sequences]. Throws std::logic_error when a row is there already.
  void collect(std::vector<AttentionResult>& results) const;

 private:
  /// What a rank holds of one split sequence besides its own rows, each [L, heads] of it and mostly NaN.
  struct Held {
    HeadTensor query, key, value, output, grad_output, grad_query, grad_key, grad_value;
    HeadTensor highest, sum;  ///< running softmax: [L, heads, 1]
  };
  /// Token and head ranges that a shard works on.
  struct Work {
    std::int64_t query_begin = 0, query_end = 0, key_begin = 0, key_end = 0;
    int kv_head_begin = 0, kv_head_end = 0, shared_by = 1;
  };

  std::size_t held_index(SequenceIndex sequence) const;
  static std::pair<int, int> query_heads_of(const Work& work);
  Work work_of(const Segment& segment, int wave, int stage) const;
  /// Where an element lies that is sent, or read by a kernel: the own rows if owned, else what is held.
  const double* source(std::size_t segment, Payload payload, std::int64_t token, int head) const;
  void forward_row(std::size_t segment, const Work& work, bool first, std::int64_t token, int head);
  void settle_block_gradients(std::size_t segment, const Work& work);
  void backward_row(std::size_t segment, const Work& work, bool first, std::int64_t token, int head);

  const Schedule* schedule_;
  AttentionInputs own_;      ///< [tokens_local, ...]
  AttentionResult results_;  ///< [tokens_local, ...]
  std::vector<Held> held_;   ///< [segments]; empty tensors for whole ones
};

}  // namespace zellige::oracle
