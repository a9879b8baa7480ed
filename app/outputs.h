// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace zellige::app {

/// A file that the command line or a configuration names.
struct NamedFile {
  std::string option;  ///< who names it, for messages: "--report", "BATCH"
  std::string path;    ///< empty: not given. "-" as an output is stdout
};

/// Refuses, before anything is computed, outputs that could not be written in the end or would destroy something: a
/// folder that is missing or may not be written, a directory, two outputs in one file, one that is also read, more than
/// one stdout (that of --json counts).
/// @param where  the subcommand
/// @param json   whether --json is given
/// Errors: Code::input, naming option and file.
void check_outputs(std::string_view where, const std::vector<NamedFile>& inputs, const std::vector<NamedFile>& outputs,
                   bool json);

/// Whether one of them is stdout, which then holds nothing else: no table, no words.
bool takes_stdout(const std::vector<NamedFile>& outputs);

/// Writes the text; "-" is stdout; no path writes nothing. A file is replaced as a whole: nobody sees half of it.
/// Errors: Code::input naming the path.
void write_output(const std::string& path, const std::string& text);

}  // namespace zellige::app
