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
      : groups_(grouping.count), order_(grouping.count) {
    std::vector<std::pair<uint32_t, uint32_t>> crossing;  // a group, and one that it uses
    for (uint32_t node = 0; node < uses.size(); ++node) {
      const uint32_t group = grouping.group_of[node];
      groups_[group].color = colors[node];
      for (const uint32_t used : uses[node])
        if (grouping.group_of[used] != group) crossing.emplace_back(group, grouping.group_of[used]);
    }
    std::ranges::stable_sort(crossing, {}, &std::pair<uint32_t, uint32_t>::first);
    for (const auto &[group, used] : crossing) {
      if (groups_[group].uses_end == 0) groups_[group].uses_begin = static_cast<uint32_t>(uses_.size());
      uses_.push_back(used);
      groups_[group].uses_end = static_cast<uint32_t>(uses_.size());
    }
    std::iota(order_.begin(), order_.end(), 0);
    for (uint32_t group = 0; group < grouping.count; ++group) {
      groups_[group].into = groups_[group].last = groups_[group].place = group;
      const uint32_t color = groups_[group].color;
      if (of_color_.size() <= color) of_color_.resize(color + 1);
      of_color_[color].push_back(group);
    }
  }

  void run() {
    for (uint32_t color = 1; color < of_color_.size(); ++color)
      if (of_color_[color].size() > 1) merge(color);
  }
  uint32_t now(uint32_t group) {  // what the group has become part of
    while (groups_[group].into != group) group = groups_[group].into = groups_[groups_[group].into].into;
    return group;
  }

 private:
  static constexpr uint32_t gone = UINT32_MAX;

  void merge(uint32_t color) {
    const std::vector<uint32_t> &of_color = of_color_[color];
    const auto place = [this](uint32_t group) { return groups_[group].place; };
    const uint32_t first = place(*std::ranges::min_element(of_color, {}, place));
    const uint32_t last = place(*std::ranges::max_element(of_color, {}, place));
    find_depths(color, first, last);
    std::vector<uint32_t> at_depth;
    for (const uint32_t number : of_color) {
      const Group &group = groups_[number];
      if (at_depth.size() <= group.depth) at_depth.resize(group.depth + 1, gone);
      uint32_t &one = at_depth[group.depth];
      if (one == gone)
        one = number;
      else
        merge_into(one, number);
    }
    if (std::ranges::count_if(of_color, [this](uint32_t group) { return groups_[group].into == group; }) !=
        std::ssize(of_color))
      order_again(color, first, last, at_depth.size());
  }

  void merge_into(uint32_t one, uint32_t other) {
    groups_[other].into = one;
    groups_[groups_[one].last].next = other;
    groups_[one].last = groups_[other].last;
  }

  void find_depths(uint32_t color, uint32_t first, uint32_t last) {
    for (uint32_t place = first; place <= last; ++place) {
      const uint32_t group = order_[place];
      if (group == gone) continue;
      const bool outside = groups_[group].color != color;
      uint32_t depth = 0;
      for (uint32_t member = group; member != gone; member = groups_[member].next) {
        for (uint32_t at = groups_[member].uses_begin; at < groups_[member].uses_end; ++at) {
          uint32_t number = uses_[at];
          if (groups_[number].into != number) number = now(number);
          const Group &used = groups_[number];
          if (number == group || used.place < first) continue;
          depth = std::max(depth, used.depth + (used.color == color && outside ? 1 : 0));
        }
      }
      groups_[group].depth = depth;
    }
  }

  // Of what is left between the places, each behind what it uses: by depth and, of equal depth, the color last, for
  // nothing else that lies as deep comes after it; else as before.
  void order_again(uint32_t color, uint32_t first, uint32_t last, size_t depths) {
    const auto rank = [&](const Group &group) { return 2 * size_t{group.depth} + (group.color == color ? 1 : 0); };
    std::vector<uint32_t> begins(2 * depths + 3), left;
    for (uint32_t place = first; place <= last; ++place) {
      const uint32_t group = std::exchange(order_[place], gone);
      if (group == gone || groups_[group].into != group) continue;
      left.push_back(group);
      ++begins[rank(groups_[group]) + 1];
    }
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    for (const uint32_t group : left) {
      const uint32_t place = first + begins[rank(groups_[group])]++;
      order_[place] = group;
      groups_[group].place = place;
    }
  }

  // Of those that merged, the one counts that the others went into: their list begins with it.
  struct Group {
    uint32_t into = 0, place = 0, depth = 0, color = 0;
    uint32_t uses_begin = 0, uses_end = 0;  // among uses_
    uint32_t next = gone, last = 0;         // of those that are one: the next; of the first, the last one
  };
  std::vector<Group> groups_;    // by the number that each had first
  std::vector<uint32_t> uses_;   // first numbers
  std::vector<uint32_t> order_;  // in which groups can run, with gaps
  std::vector<std::vector<uint32_t>> of_color_;
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
