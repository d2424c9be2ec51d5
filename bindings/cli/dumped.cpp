#include "dumped.h"

#include <algorithm>
#include <array>

#include "json.h"

namespace kiln::cli {
namespace {

constexpr std::array<std::string_view, 5> stages = {"given", "early", "pre_grad", "post_grad", "lower"};

size_t number_of_stage(std::string_view name) {
  return static_cast<size_t>(std::ranges::find(stages, name) - stages.begin());
}

using Runs = std::vector<const Dumped::Run *>;

// Of a stage the last run on each part; where it had none, the last before it. Nothing: the graph is as it was given.
Runs ends_of_stage(const Dumped &dumped, size_t stage) {
  Runs found;
  const Dumped::Run *last = nullptr;
  for (const Dumped::Run &run : dumped.runs) {
    const size_t its = number_of_stage(run.stage);
    if (its > stage) break;
    last = &run;
    if (its < stage) continue;
    std::erase_if(found,
                  [&](const Dumped::Run *other) { return other->part == run.part && other->after == run.before; });
    found.push_back(&run);
  }
  if (found.empty() && last) found.push_back(last);
  return found;
}

std::string heading(const Dumped::Run &run) {
  std::string text = "; ---- after pass '" + run.pass + "' of stage " + run.stage;
  if (!run.part.empty()) text += ", of " + run.part;
  text += ": ";
  if (!run.changed()) return text + "nothing changed\n";
  return text + std::to_string(run.nodes_before) + " nodes before, " + std::to_string(run.nodes_after) + " then\n";
}

// Those that `after` speaks of. A stage's diffs are those of all its passes.
Runs chosen(const Dumped &dumped, const std::string &after, bool as_diff) {
  Runs runs;
  std::vector<std::string_view> known(stages.begin(), stages.end());
  known.emplace_back("all");
  for (const Dumped::Run &run : dumped.runs) {
    if (after == "all" || run.pass == after || (as_diff && run.stage == after)) runs.push_back(&run);
    if (std::ranges::find(known, run.pass) == known.end()) known.push_back(run.pass);
  }
  const size_t stage = number_of_stage(after);
  if (!as_diff && stage < stages.size()) return ends_of_stage(dumped, stage);
  if (!runs.empty() || stage < stages.size() || after == "all") return runs;
  std::string all;
  for (const std::string_view name : known) all.append(all.empty() ? "" : ", ").append(name);
  throw Usage("--after: no pass of this compile and no stage is named '" + after + "'" + suggestion(after, known) +
              "; there are: " + all);
}

// A list of objects, the graph as it was given first.
std::string json_of_all(const Dumped &dumped, const Runs &runs) {
  std::string text;
  const auto add = [&](const Dumped::Run &run) {
    text += (text.empty() ? "[\n" : ",\n") + JsonObject()
                                                 .add("stage", run.stage)
                                                 .add("pass", run.pass)
                                                 .add("part", run.part)
                                                 .raw("graph", dumped.read(run.after, ".json"))
                                                 .text();
  };
  add({"given", "", "", "", given_file});
  for (const Dumped::Run *run : runs) add(*run);
  return text + "\n]\n";
}

}  // namespace

std::string Dumped::read(const std::string &file, std::string_view ending) const {
  return read_file(folder + "/" + file + std::string(ending));
}

Dumped read_dumped(const std::string &folder) {
  Dumped dumped;
  dumped.folder = folder;
  const std::vector<std::string> rows = split(read_file(folder + "/passes.tsv"), '\n');
  for (size_t i = 1; i < rows.size(); ++i) {  // behind the heads of columns
    const std::vector<std::string> cells = split(rows[i], '\t');
    if (cells.size() != 7) continue;  // the end
    dumped.runs.push_back({cells[0], cells[1], cells[2], cells[3], cells[4], to_integer(cells[5], 0, INT64_MAX, folder),
                           to_integer(cells[6], 0, INT64_MAX, folder)});
  }
  return dumped;
}

std::string text_after(const Dumped &dumped, const std::string &after, std::string_view form) {
  const bool as_diff = form == "diff";
  const std::string ending = form == "text" ? ".txt" : "." + std::string(form);
  const Runs runs = chosen(dumped, after, as_diff);
  if (form == "json" && (after == "all" || runs.size() > 1)) return json_of_all(dumped, runs);
  if (runs.empty() && !as_diff) return dumped.read(given_file, ending);
  if (runs.size() == 1 && after != "all" && !as_diff) return dumped.read(runs[0]->after, ending);
  std::string text;
  if (after == "all" && !as_diff) text = "; ---- as it was given\n" + dumped.read(given_file, ending);
  for (const Dumped::Run *run : runs) {
    // Of many passes those that changed nothing are left out.
    if (!run->changed() && run->pass != after && (as_diff || after == "all")) continue;
    text += heading(*run);
    if (run->changed() || !as_diff) text += dumped.read(run->after, ending);
  }
  if (text.empty()) text = "; ---- nothing changed\n";
  return text;
}

}  // namespace kiln::cli
