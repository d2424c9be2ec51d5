#include "runtime/dump.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "jit/base/file.h"
#include "runtime/graph/json.h"
#include "runtime/report/diff.h"

namespace kiln {
namespace {

Status failed(std::string_view what, const std::string &path) {
  return error(Code::io, "option 'dump': cannot ", what, " '", path, "': ", errno_text(errno));
}

// A name of a pass or a region within a file's name.
std::string for_file(std::string_view text) {
  constexpr size_t most = 60;
  std::string name(text.substr(0, most));
  for (char &c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '.') c = '_';
  return name;
}

// One cell of the list: tabs and line ends part cells and rows.
std::string cell(std::string_view text) {
  std::string plain(text);
  for (char &c : plain)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return plain;
}

std::string padded(size_t number) {
  std::string text = str_cat(number);
  return std::string(3 - std::min<size_t>(text.size(), 3), '0') + text;
}

Status write(const std::string &path, std::string_view text) {
  return write_file(path, ByteSpan(reinterpret_cast<const uint8_t *>(text.data()), text.size()));
}

}  // namespace

Result<std::shared_ptr<Dump>> Dump::open(const std::string &folder) {
  if (folder.empty()) return std::shared_ptr<Dump>(new Dump(""));
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  for (size_t number = 0;; ++number) {
    std::string own = str_cat(folder, "/compile_", padded(number));
    if (::mkdir(own.c_str(), 0777) != 0) {
      if (errno == EEXIST) continue;
      return failed("make folder", own);
    }
    const std::string list = own + "/passes.tsv";
    FileDescriptor index(::open(list.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
    if (index.get() < 0) return failed("make", list);
    const std::shared_ptr<Dump> dump(new Dump(std::move(own)));
    dump->index_ = std::move(index);
    KILN_TRY(dump->list("stage\tpass\tpart\tbefore\tafter\tnodes before\tnodes after\n"));
    return dump;
  }
}

Status Dump::list(std::string_view row) {
  while (index_ && !row.empty()) {
    const ssize_t written = ::write(index_->get(), row.data(), row.size());
    if (written < 0 && errno != EINTR) return failed("write", folder_ + "/passes.tsv");
    if (written > 0) row.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Result<const Dump::File *> Dump::file_of(const GraphPtr &graph, std::string_view stage, std::string_view pass,
                                         const File *before) {
  std::shared_ptr<const File> &known = files_[graph.get()];
  if (known) return known.get();
  File file{.stem = {}, .text = print(*graph), .diff = {}, .graph = graph};
  const auto same = by_text_.find(file.text);
  if (before ? before->text == file.text : same != by_text_.end()) {
    file.stem = before ? before->stem : same->second->stem;
  } else {
    file.stem = str_cat(padded(count_++), "_", for_file(stage), pass.empty() ? "" : "_", for_file(pass));
    if (before) file.diff = unified_diff(before->text, file.text, before->stem + ".txt", file.stem + ".txt");
    if (index_) KILN_TRY(write_files(file));
  }
  known = std::make_shared<const File>(std::move(file));
  by_text_.emplace(known->text, known);
  return known.get();
}

Status Dump::write_files(const File &file) const {
  const std::string path = str_cat(folder_, "/", file.stem);
  KILN_TRY(write(path + ".txt", file.text));
  KILN_TRY(write(path + ".json", write_json(*file.graph)));
  KILN_TRY(write(path + ".dot", print_dot(*file.graph)));
  return file.diff.empty() ? Status() : write(path + ".diff", file.diff);
}

Status Dump::add_given(const GraphPtr &graph) {
  KILN_ASSIGN(given_, file_of(graph, "given", "", nullptr));
  return {};
}

Status Dump::add(const Run &run) {
  const std::string_view part = run.part.empty() ? "graph" : run.part;  // of one that no pass was told of
  KILN_ASSIGN(const File *before, file_of(run.before, run.stage, part, nullptr));
  KILN_ASSIGN(const File *after, file_of(run.after, run.stage, run.pass, before));
  const Row &row = rows_.emplace_back(Row{std::string(run.stage), std::string(run.pass), std::string(run.part), before,
                                          after, run.before->nodes().size(), run.after->nodes().size()});
  return list(str_cat(cell(row.stage), "\t", cell(row.pass), "\t", cell(row.part), "\t", before->stem, "\t",
                      after->stem, "\t", row.nodes_before, "\t", row.nodes_after, "\n"));
}

}  // namespace kiln
