// Graphs in which the patterns are found that a plugin's passes declare. What fits is found by trying: an op's
// inference says whether operands do, and kiln_pass_explain whether the pattern is there.
#include <algorithm>
#include <functional>
#include <set>

#include "declared.h"
#include "tests.h"

namespace kiln::cli::plugin_check {
namespace {

// Of all patterns, of one; and how often a graph is tried before a pattern is given up.
constexpr size_t most_graphs = 240, most_of_a_pattern = 24, most_tries = 30000, most_of_one = 6000, least_of_one = 100;

class Search {
 public:
  Search(const Context &context, const Registered &registered, const Declared &pattern, size_t tries)
      : context_(context), registered_(registered), pattern_(pattern), tries_(tries) {}

  std::vector<Item> graphs(size_t most) {
    Drawn base(pattern_);
    if (!fit(base, tries_)) return {};
    separate(base);
    add(base);
    for (const Change &change : changes(base)) {
      if (items_.size() >= most) break;
      Drawn changed = base;
      change.make(changed);
      if (finds(changed) || (change.needs_others && fit(changed, tries_ / 6))) add(changed);
    }
    return std::move(items_);
  }

 private:
  struct Change {
    std::function<void(Drawn &)> make;
    bool needs_others;  // it may need other types and shapes
  };

  bool parses(const std::string &json) const {
    try {
      parse(context_, json);
    } catch (const Failure &) {
      return false;
    }
    return true;
  }

  // Whether it is a graph and the pattern is found in it, or the pass fails there.
  bool finds(const Drawn &drawn) {
    const std::string json = json_of(pattern_, drawn);
    try {
      const Graph graph = parse(context_, json);
      const Options none;
      try {
        const Report report = report_of(kiln_pass_explain, context_.get(), graph.get(), none.get(),
                                        pattern_.pass.data(), uint64_t{pattern_.pass.size()});
        return report.i64(path_of("patterns", pattern_.number, "found")) > 0;
      } catch (const Failure &) {
        compile(context_, graph, without_passes(registered_));
        return true;
      }
    } catch (const Failure &) {
      return false;
    }
  }

  // Ranks, types and attributes with which it is one, by trying node after node what its operands may be.
  bool fit(Drawn &drawn, size_t tries) {
    drawn.sizes.clear();
    tries_left_ = tries;
    return fit_from(drawn, 0);
  }
  bool fit_from(Drawn &drawn, size_t node) {
    if (node == pattern_.nodes.size()) return finds(drawn);
    const std::vector<Choice> choices = choices_of(drawn, node);
    std::vector<size_t> turn(choices.size());
    do {
      for (size_t i = 0; i < choices.size(); ++i) choices[i].make(drawn, turn[i]);
      Drawn begun = drawn;
      begun.nodes = node + 1;
      if (tries_left_ == 0) return false;
      --tries_left_;
      if (parses(json_of(pattern_, begun)) && fit_from(drawn, node + 1)) return true;
    } while (tries_left_ > 0 && next(turn, choices));
    return false;
  }

  // What may be one or the other; the first is most likely.
  struct Choice {
    size_t count;
    std::function<void(Drawn &, size_t number)> make;
  };
  // Of a node: ranks of captures that it is the first to use, then their types, then its attributes.
  std::vector<Choice> choices_of(const Drawn &drawn, size_t node) const {
    static constexpr size_t ranks[] = {2, 1, 3, 4, 0}, leading[] = {1, 2, 0};
    static constexpr const char *types[] = {"f32", "i64", "bool"};
    std::vector<Choice> choices;
    const auto each_new_capture = [&](const auto &add) {
      for (size_t i = 0; i < pattern_.captures.size(); ++i)
        if (!drawn.lacks_capture[i] && first_user(pattern_.captures[i].name) == node) add(i, pattern_.captures[i]);
    };
    each_new_capture([&](size_t i, const Declared::Capture &capture) {
      if (!capture.number.empty()) return;
      if (!capture.sizes) choices.push_back({5, [i](Drawn &made, size_t at) { made.ranks[i] = ranks[at]; }});
      if (capture.leading) choices.push_back({3, [i](Drawn &made, size_t at) { made.ranks[i] = leading[at]; }});
    });
    each_new_capture([&](size_t i, const Declared::Capture &capture) {
      if (capture.dtypes.empty()) choices.push_back({3, [i](Drawn &made, size_t at) { made.dtypes[i] = types[at]; }});
    });
    for (size_t k = 0; k < pattern_.nodes[node].attrs.size(); ++k)
      choices.push_back({pattern_.nodes[node].attrs[k].values.size(),
                         [node, k](Drawn &made, size_t at) { made.attrs[node][k] = at; }});
    return choices;
  }
  size_t first_user(const std::string &value) const {
    const auto uses = [&value](const std::string &operand) { return operand.substr(0, operand.find(':')) == value; };
    return static_cast<size_t>(
        std::ranges::find_if(pattern_.nodes,
                             [&](const Declared::Node &node) { return std::ranges::any_of(node.operands, uses); }) -
        pattern_.nodes.begin());
  }
  // Counts on, the first choice the fastest. False: that was all.
  static bool next(std::vector<size_t> &turn, const std::vector<Choice> &choices) {
    for (size_t i = 0; i < turn.size(); ++i) {
      if (++turn[i] < choices[i].count) return true;
      turn[i] = 0;
    }
    return false;
  }

  // Gives the sizes numbers of their own, as far as they may differ: those change together that have to be equal.
  void separate(Drawn &drawn) {
    std::vector<std::string> left = variables(pattern_, drawn);
    size_t tried = 0;
    for (int64_t fresh = 2; !left.empty(); ++fresh) {
      if (fresh == usual_size) ++fresh;
      const std::string first = left.front();
      left.erase(left.begin());
      for (size_t more = 0; more <= 3 && more <= left.size(); ++more)
        if (change_together(drawn, first, left, more, fresh, tried)) break;
    }
  }

  // Whether the sizes `first` and `more` of `left` may be `fresh`; then they are, and are no more in `left`.
  bool change_together(Drawn &drawn, const std::string &first, std::vector<std::string> &left, size_t more,
                       int64_t fresh, size_t &tried) {
    std::vector<bool> chosen(left.size());
    std::fill_n(chosen.begin(), more, true);
    do {
      if (++tried > tries_ / 8) return false;
      Drawn changed = drawn;
      changed.sizes[first] = fresh;
      for (size_t i = 0; i < left.size(); ++i)
        if (chosen[i]) changed.sizes[left[i]] = fresh;
      if (!finds(changed)) continue;
      drawn = std::move(changed);
      size_t at = 0;
      std::erase_if(left, [&](const std::string &) { return chosen[at++]; });
      return true;
    } while (std::prev_permutation(chosen.begin(), chosen.end()));
    return false;
  }

  // What else may be there, each by itself.
  std::vector<Change> changes(const Drawn &base) const {
    std::vector<Change> all;
    const auto add = [&all](std::function<void(Drawn &)> make, bool needs_others = false) {
      all.push_back({std::move(make), needs_others});
    };
    const auto swap_all = [this](Drawn &drawn) {
      for (size_t i = 0; i < pattern_.nodes.size(); ++i) drawn.swapped[i] = pattern_.nodes[i].commutes;
    };
    add(swap_all);
    add([](Drawn &drawn) { drawn.shows_inner = true; });
    add([](Drawn &drawn) { drawn.has_constants = true; });
    for (size_t i = 0; i < pattern_.captures.size(); ++i)
      if (pattern_.captures[i].optional) add([i](Drawn &drawn) { drawn.lacks_capture[i] = true; }, true);
    for (size_t i = 0; i < pattern_.nodes.size(); ++i) {
      const Declared::Node &node = pattern_.nodes[i];
      if (node.optional) add([i](Drawn &drawn) { drawn.lacks_node[i] = true; }, true);
      if (node.commutes) add([i](Drawn &drawn) { drawn.swapped[i] = true; });
      for (size_t k = 1; k < node.ops.size(); ++k) add([i, k](Drawn &drawn) { drawn.ops[i] = k; }, true);
    }
    for (const char *dtype : {"f64", "i32", "bf16"})
      add([this, dtype](Drawn &drawn) {
        for (size_t i = 0; i < drawn.dtypes.size(); ++i) {
          const std::vector<std::string> &known = pattern_.captures[i].dtypes;
          const bool may_be = known.empty() ? drawn.dtypes[i] == "f32" : std::ranges::find(known, dtype) != known.end();
          if (may_be) drawn.dtypes[i] = dtype;
        }
      });
    for (const std::string &size : variables(pattern_, base)) add([size](Drawn &drawn) { drawn.sizes[size] = 1; });
    for (size_t i = 0; i < pattern_.nodes.size(); ++i)
      for (size_t k = 0; k < pattern_.nodes[i].attrs.size(); ++k)
        for (size_t value = 0; value < pattern_.nodes[i].attrs[k].values.size(); ++value)
          add([i, k, value](Drawn &drawn) { drawn.attrs[i][k] = value; });
    for (const size_t rank : {size_t{1}, size_t{3}, size_t{4}, size_t{2}}) {
      add([this, rank](Drawn &drawn) {
        for (size_t i = 0; i < drawn.ranks.size(); ++i)
          if (!pattern_.captures[i].sizes) drawn.ranks[i] = rank;
      });
      for (size_t i = 0; i < pattern_.captures.size(); ++i)
        if (!pattern_.captures[i].sizes) add([i, rank](Drawn &drawn) { drawn.ranks[i] = rank; });
    }
    return all;
  }

  void add(const Drawn &drawn) {
    Item item;
    item.json = json_of(pattern_, drawn);
    if (!known_.insert(item.json).second) return;
    item.name = "pattern " + pattern_.pass + "/" + pattern_.name;
    if (!items_.empty()) item.name += " " + std::to_string(items_.size() + 1);
    items_.push_back(std::move(item));
  }

  const Context &context_;
  const Registered &registered_;
  const Declared &pattern_;
  std::vector<Item> items_;
  std::set<std::string> known_;
  const size_t tries_;
  size_t tries_left_ = 0;
};

}  // namespace

std::vector<Item> pattern_graphs(const Context &context, const Registered &registered) {
  const std::vector<Declared> patterns = declared_patterns(context, registered);
  std::vector<Item> all;
  if (patterns.empty()) return all;
  const size_t most = std::clamp(most_graphs / patterns.size(), size_t{1}, most_of_a_pattern),
               tries = std::clamp(most_tries / patterns.size(), least_of_one, most_of_one);
  for (const Declared &pattern : patterns) {
    if (all.size() >= most_graphs) break;
    for (Item &item : Search(context, registered, pattern, tries).graphs(most)) all.push_back(std::move(item));
  }
  return all;
}

}  // namespace kiln::cli::plugin_check
