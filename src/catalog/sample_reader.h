// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "catalog/convention.h"
#include "catalog/record.h"
#include "zellige/manifest.h"

namespace zellige {

/// Turns the records of one file into samples, by its convention. Nothing is dropped: each record becomes a sample,
/// usable or with the reason why not, or a skipped row with the column and its value.
class SampleReader final : public RecordSink {
 public:
  /// Takes those fields of the convention that the file has.
  SampleReader(const Convention& convention, const std::vector<std::string>& field_names,
               const ManifestOptions& options, Manifest& manifest);

  const std::vector<std::string>& wanted() const { return wanted_; }

  void record(std::int64_t row, std::span<const Cell> cells) override;
  void broken(std::int64_t row, std::string reason) override;

 private:
  const Convention& convention_;
  const ManifestOptions& options_;
  Manifest& manifest_;
  std::vector<std::string> wanted_;  // names of the fields, [fields]
  std::vector<Meaning> meanings_;    // [fields]
};

}  // namespace zellige
