// What becomes of a compile's graph, pass by pass: as files for people (option `dump`), and for the page of option
// `report_html`.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "jit/base/file_descriptor.h"
#include "jit/base/status.h"
#include "runtime/graph/graph.h"

namespace kiln {

// One folder a compile. Each graph that a pass has changed is there as NUMBER_STAGE_PASS with .txt (as `kiln inspect`
// prints it), .json, .dot and .diff (to the graph before); passes.tsv lists all runs in order. One thread at a time.
class Dump {
 public:
  // Makes "compile_000", or the first such name that is free, in `folder`, which is made where it is missing; "": no
  // files are written. code io.
  static Result<std::shared_ptr<Dump>> open(const std::string &folder);

  // What one pass made of a graph. `part`: of a region, a piece or a nested graph its name; "": the whole.
  struct Run {
    std::string_view stage, pass, part;
    const GraphPtr &before, &after;
  };
  Status add(const Run &run);
  // The graph that the host gave.
  Status add_given(const GraphPtr &graph);
  const std::string &folder() const { return folder_; }  // "": there is none

  struct File {
    std::string stem, text;
    std::string diff;  // to the graph before; of one that a pass made
    GraphPtr graph;    // kept, so that no other gets its place
  };
  // A run, as it was told.
  struct Row {
    std::string stage, pass, part;
    const File *before, *after;
    size_t nodes_before, nodes_after;
    bool changed() const { return before->stem != after->stem; }
  };
  std::span<const Row> rows() const { return rows_; }
  const File &given() const { return *given_; }  // once it was added

 private:
  explicit Dump(std::string folder) : folder_(std::move(folder)) {}
  // Writes the graph, unless it is there already, or reads as `before` does.
  Result<const File *> file_of(const GraphPtr &graph, std::string_view stage, std::string_view pass,
                               const File *before);
  Status write_files(const File &file) const;
  Status list(std::string_view row);

  std::string folder_;
  std::optional<FileDescriptor> index_;  // of files; none are written without
  const File *given_ = nullptr;
  std::vector<Row> rows_;
  size_t count_ = 0;
  std::map<const Graph *, std::shared_ptr<const File>> files_;
  std::map<std::string_view, std::shared_ptr<const File>> by_text_;  // texts of files_
};

}  // namespace kiln
