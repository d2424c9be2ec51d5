#include "runtime/regions/grouping.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

namespace kiln {
namespace {

// A first grouping: runs the graph, a color as long as it goes. What has no color runs as soon as it can; a color, when
// nothing but itself is missing for the rest of it. Where each waits for another, the first goes as far as it can.
class Run {
 public:
  Run(std::span<const std::vector<uint32_t>> uses, std::span<const uint32_t> colors)
      : uses_(uses), colors_(colors), users_(uses.size()), missing_(uses.size()) {
    const uint32_t color_count = colors.empty() ? 1 : *std::ranges::max_element(colors) + 1;
    ready_.resize(color_count);
    awaited_.resize(color_count);
    for (uint32_t node = 0; node < uses.size(); ++node) {
      missing_[node] = static_cast<uint32_t>(uses[node].size());
      for (const uint32_t used : uses[node]) {
        users_[used].push_back(node);
        if (colors[used] != colors[node]) ++awaited_[colors[node]];
      }
    }
    for (uint32_t node = 0; node < uses.size(); ++node)
      if (missing_[node] == 0) make_ready(node);
    out_.group_of.resize(uses.size());
  }

  Grouping run() {
    for (;;) {
      if (!ready_[0].empty()) {
        run_one(0);
        ++out_.count;
        continue;
      }
      if (startable_.empty()) return std::move(out_);
      const uint32_t color = whole_.empty() ? *startable_.begin() : *whole_.begin();
      while (!ready_[color].empty()) run_one(color);
      startable_.erase(color);
      whole_.erase(color);
      ++out_.count;
    }
  }

 private:
  void make_ready(uint32_t node) {
    const uint32_t color = colors_[node];
    ready_[color].push_back(node);
    if (color == 0) return;
    startable_.insert(color);
    if (awaited_[color] == 0) whole_.insert(color);
  }
  void run_one(uint32_t color) {
    const uint32_t node = ready_[color].back();
    ready_[color].pop_back();
    out_.group_of[node] = out_.count;
    for (const uint32_t user : users_[node]) {
      if (colors_[user] != color && --awaited_[colors_[user]] == 0 && startable_.contains(colors_[user]))
        whole_.insert(colors_[user]);
      if (--missing_[user] == 0) make_ready(user);
    }
  }

  const std::span<const std::vector<uint32_t>> uses_;
  const std::span<const uint32_t> colors_;
  std::vector<std::vector<uint32_t>> users_;
  std::vector<uint32_t> missing_;             // by node: uses that have not run
  std::vector<std::vector<uint32_t>> ready_;  // by color
  std::vector<uint64_t> awaited_;             // by color: uses of nodes of other colors that have not run
  std::set<uint32_t> startable_;              // colors with nodes that are ready
  std::set<uint32_t> whole_;                  // of these, those of which no node awaits others
  Grouping out_;
};

// Numbers the groups that have nodes anew, in an order in which they can run: of those that can, the one whose first
// node stands first.
void renumber(std::span<const std::vector<uint32_t>> uses, Grouping &grouping) {
  std::vector<uint32_t> first(grouping.count, UINT32_MAX), missing(grouping.count), number(grouping.count);
  std::vector<std::vector<uint32_t>> users(grouping.count);
  for (uint32_t node = 0; node < uses.size(); ++node) {
    const uint32_t group = grouping.group_of[node];
    first[group] = std::min(first[group], node);
    for (const uint32_t used : uses[node]) {
      if (grouping.group_of[used] == group) continue;
      users[grouping.group_of[used]].push_back(group);
      ++missing[group];
    }
  }
  using Ready = std::pair<uint32_t, uint32_t>;  // first node, group
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (uint32_t group = 0; group < grouping.count; ++group)
    if (missing[group] == 0 && first[group] != UINT32_MAX) ready.emplace(first[group], group);
  grouping.count = 0;
  while (!ready.empty()) {
    const uint32_t group = ready.top().second;
    ready.pop();
    number[group] = grouping.count++;
    for (const uint32_t user : users[group])
      if (--missing[user] == 0) ready.emplace(first[user], user);
  }
  for (uint32_t &group : grouping.group_of) group = number[group];
}

// Makes one group of all of a color that lie equally deep. How deep a group lies is how often a way to it has left the
// color: what a group of the color leads to outside of itself lies deeper than it, so no cycle closes; and a group that
// lies deeper is there because of such a way, so no fewer would do. Looks, for a color, at what runs between its first
// group and its last.
class Merging {
 public:
  Merging(std::span<const std::vector<uint32_t>> uses, std::span<const uint32_t> colors, const Grouping &grouping)
      : uses_(grouping.count),
        colors_(grouping.count),
        into_(grouping.count),
        depth_(grouping.count),
        seen_(grouping.count) {
    for (uint32_t node = 0; node < uses.size(); ++node) {
      const uint32_t group = grouping.group_of[node];
      colors_[group] = colors[node];
      for (const uint32_t used : uses[node])
        if (grouping.group_of[used] != group) uses_[group].push_back(grouping.group_of[used]);
    }
    std::iota(into_.begin(), into_.end(), 0);
    order_ = place_ = into_;
    for (uint32_t group = 0; group < grouping.count; ++group) {
      if (of_color_.size() <= colors_[group]) of_color_.resize(colors_[group] + 1);
      of_color_[colors_[group]].push_back(group);
    }
  }

  void run() {
    for (uint32_t color = 1; color < of_color_.size(); ++color)
      if (of_color_[color].size() > 1) merge(color);
  }
  uint32_t now(uint32_t group) {  // what the group has become part of
    while (into_[group] != group) group = into_[group] = into_[into_[group]];
    return group;
  }

 private:
  static constexpr uint32_t gone = UINT32_MAX;

  void merge(uint32_t color) {
    const std::vector<uint32_t> &groups = of_color_[color];
    const auto by_place = [this](uint32_t group) { return place_[group]; };
    const uint32_t first = place_[*std::ranges::min_element(groups, {}, by_place)];
    const uint32_t last = place_[*std::ranges::max_element(groups, {}, by_place)];
    find_depths(color, first, last);
    std::vector<uint32_t> at_depth;
    bool merged = false;
    for (const uint32_t group : groups) {
      if (at_depth.size() <= depth_[group]) at_depth.resize(depth_[group] + 1, gone);
      uint32_t &one = at_depth[depth_[group]];
      if (one == gone) {
        one = group;
        continue;
      }
      into_[group] = one;
      uses_[one].insert(uses_[one].end(), uses_[group].begin(), uses_[group].end());
      merged = true;
    }
    if (merged) order_again(first, last);
  }

  void find_depths(uint32_t color, uint32_t first, uint32_t last) {
    for (uint32_t place = first; place <= last; ++place) {
      const uint32_t group = order_[place];
      if (group == gone) continue;
      uint32_t depth = 0;
      for (const uint32_t initial : uses_[group]) {
        const uint32_t used = now(initial);
        if (used == group || place_[used] < first) continue;
        depth = std::max(depth, depth_[used] + (colors_[used] == color && colors_[group] != color ? 1 : 0));
      }
      depth_[group] = depth;
    }
  }

  // Of what is left between the places, each behind what it uses.
  void order_again(uint32_t first, uint32_t last) {
    std::vector<uint32_t> left;
    for (uint32_t place = first; place <= last; ++place) {
      if (order_[place] != gone && now(order_[place]) == order_[place]) left.push_back(order_[place]);
      order_[place] = gone;
    }
    std::vector<std::pair<uint32_t, size_t>> open;  // a group, and which of its uses comes next
    std::vector<uint32_t> sorted;
    ++round_;
    const auto enter = [&](uint32_t group) {
      const bool between = place_[group] >= first && place_[group] <= last;
      if (between && std::exchange(seen_[group], round_) != round_) open.emplace_back(group, 0);
    };
    for (const uint32_t root : left) {
      enter(root);
      while (!open.empty()) {
        auto &[group, at] = open.back();
        if (at < uses_[group].size()) {
          const uint32_t used = now(uses_[group][at++]);
          if (used != group) enter(used);
          continue;
        }
        sorted.push_back(group);
        open.pop_back();
      }
    }
    for (uint32_t place = first; const uint32_t group : sorted) {
      order_[place] = group;
      place_[group] = place++;
    }
  }

  // By the number that a group had first; of those that merged, the one counts that the others went into.
  std::vector<std::vector<uint32_t>> uses_;  // first numbers
  std::vector<uint32_t> colors_, into_, depth_;
  std::vector<uint32_t> order_, place_;  // an order in which groups can run, with gaps; where each stands in it
  std::vector<std::vector<uint32_t>> of_color_;
  std::vector<uint32_t> seen_;  // in which round
  uint32_t round_ = 0;
};

}  // namespace

Grouping group(std::span<const std::vector<uint32_t>> uses, std::span<const uint32_t> colors) {
  Grouping grouping = Run(uses, colors).run();
  Merging merging(uses, colors, grouping);
  merging.run();
  for (uint32_t &group : grouping.group_of) group = merging.now(group);
  renumber(uses, grouping);
  return grouping;
}

}  // namespace kiln
