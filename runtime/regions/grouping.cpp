#include "runtime/regions/grouping.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

namespace kiln {
namespace {

// The nodes that use each.
Lists users_of(const Lists &uses) {
  return Lists(uses.size(), [&](const auto &add) {
    for (uint32_t node = 0; node < uses.size(); ++node)
      for (const uint32_t used : uses[node]) add(used, node);
  });
}

// A first grouping: runs the graph, a color as long as it goes. What has no color runs as soon as it can; a color, when
// nothing but itself is missing for the rest of it. Where each waits for another, the first goes as far as it can.
class Run {
 public:
  Run(const Lists &uses, std::span<const uint32_t> colors)
      : colors_(colors), users_(users_of(uses)), missing_(uses.size()) {
    const uint32_t color_count = colors.empty() ? 1 : *std::ranges::max_element(colors) + 1;
    ready_.resize(color_count);
    awaited_.resize(color_count);
    for (uint32_t node = 0; node < uses.size(); ++node) {
      missing_[node] = static_cast<uint32_t>(uses[node].size());
      for (const uint32_t used : uses[node])
        if (colors[used] != colors[node]) ++awaited_[colors[node]];
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

  const std::span<const uint32_t> colors_;
  const Lists users_;
  std::vector<uint32_t> missing_;             // by node: uses that have not run
  std::vector<std::vector<uint32_t>> ready_;  // by color
  std::vector<uint64_t> awaited_;             // by color: uses of nodes of other colors that have not run
  std::set<uint32_t> startable_;              // colors with nodes that are ready
  std::set<uint32_t> whole_;                  // of these, those of which no node awaits others
  Grouping out_;
};

// Calls visit(a group, another that it uses), once for each use.
template <class Visit>
void for_each_crossing(const Lists &uses, const Grouping &grouping, const Visit &visit) {
  for (uint32_t node = 0; node < uses.size(); ++node)
    for (const uint32_t used : uses[node])
      if (grouping.group_of[used] != grouping.group_of[node]) visit(grouping.group_of[node], grouping.group_of[used]);
}

// Numbers the groups that have nodes anew, in an order in which they can run: of those that can, the one whose first
// node stands first.
void renumber(const Lists &uses, Grouping &grouping) {
  std::vector<uint32_t> first(grouping.count, UINT32_MAX), missing(grouping.count), number(grouping.count);
  for (uint32_t node = 0; node < uses.size(); ++node) {
    uint32_t &of_group = first[grouping.group_of[node]];
    of_group = std::min(of_group, node);
  }
  const Lists users(grouping.count, [&](const auto &add) {
    for_each_crossing(uses, grouping, [&](uint32_t group, uint32_t used) { add(used, group); });
  });
  for_each_crossing(uses, grouping, [&](uint32_t group, uint32_t) { ++missing[group]; });
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
  Merging(const Lists &uses, std::span<const uint32_t> colors, const Grouping &grouping)
      : uses_(grouping.count,
              [&](const auto &add) {
                for_each_crossing(uses, grouping, [&](uint32_t group, uint32_t used) { add(group, used); });
              }),
        groups_(grouping.count),
        into_(grouping.count),
        rank_(grouping.count) {
    std::iota(into_.begin(), into_.end(), 0);
    last_ = place_ = order_ = into_;
    for (uint32_t node = 0; node < uses.size(); ++node) groups_[grouping.group_of[node]].color = colors[node];
    for (uint32_t group = 0; group < grouping.count; ++group) {
      groups_[group].uses = uses_[group];
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
    while (into_[group] != group) group = into_[group] = into_[into_[group]];
    return group;
  }

 private:
  static constexpr uint32_t gone = UINT32_MAX;
  struct Group {  // what find_ranks() reads, in one place
    std::span<const uint32_t> uses = {};
    uint32_t color = 0;
    uint32_t next = gone;  // of those that are one
  };

  void merge(uint32_t color) {
    const std::vector<uint32_t> &of_color = of_color_[color];
    const auto place = [this](uint32_t group) { return place_[group]; };
    const uint32_t first = place(*std::ranges::min_element(of_color, {}, place));
    const uint32_t last = place(*std::ranges::max_element(of_color, {}, place));
    find_ranks(color, first, last);
    std::vector<uint32_t> at_depth;
    for (const uint32_t group : of_color) {
      const uint32_t depth = rank_[group] / 2;
      if (at_depth.size() <= depth) at_depth.resize(depth + 1, gone);
      uint32_t &one = at_depth[depth];
      if (one == gone)
        one = group;
      else
        merge_into(one, group);
    }
    if (std::ranges::any_of(of_color, [this](uint32_t group) { return into_[group] != group; }))
      order_again(first, last, at_depth.size());
  }

  void merge_into(uint32_t one, uint32_t other) {
    into_[other] = one;
    groups_[last_[one]].next = other;
    last_[one] = last_[other];
  }

  // What lies before the first place has rank 0, and so has a group that uses itself until it is ranked. All that are
  // one have its rank, so that nothing has to be sought for what they are part of: that takes most of the time there
  // is.
  void find_ranks(uint32_t color, uint32_t first, uint32_t last) {
    std::ranges::fill(rank_, 0);
    for (uint32_t place = first; place <= last; ++place) {
      const uint32_t group = order_[place];
      if (group == gone) continue;
      const bool outside = groups_[group].color != color;
      uint32_t highest = 0;
      for (uint32_t member = group; member != gone; member = groups_[member].next)
        for (const uint32_t used : groups_[member].uses) highest = std::max(highest, rank_[used]);
      const uint32_t rank = (highest + outside) / 2 * 2 + !outside;
      for (uint32_t member = group; member != gone; member = groups_[member].next) rank_[member] = rank;
    }
  }

  // Of what is left between the places, each behind what it uses: by rank, for nothing else that lies as deep comes
  // after the color; else as before.
  void order_again(uint32_t first, uint32_t last, size_t depths) {
    std::vector<uint32_t> begins(2 * depths + 3), left;
    for (uint32_t place = first; place <= last; ++place) {
      const uint32_t group = std::exchange(order_[place], gone);
      if (group == gone || into_[group] != group) continue;
      left.push_back(group);
      ++begins[rank_[group] + 1];
    }
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    for (const uint32_t group : left) {
      place_[group] = first + begins[rank_[group]]++;
      order_[place_[group]] = group;
    }
  }

  // By the number that each group had first. Of those that merged, the one counts that the others went into: their list
  // begins with it.
  const Lists uses_;  // first numbers
  std::vector<Group> groups_;
  std::vector<uint32_t> into_, place_;
  std::vector<uint32_t> last_;   // of the first of those that are one
  std::vector<uint32_t> rank_;   // while a color is merged: twice how deep it lies, and 1 if it has the color
  std::vector<uint32_t> order_;  // in which groups can run, with gaps
  std::vector<std::vector<uint32_t>> of_color_;
};

}  // namespace

Grouping group(const Lists &uses, std::span<const uint32_t> colors) {
  Grouping grouping = Run(uses, colors).run();
  Merging merging(uses, colors, grouping);
  merging.run();
  for (uint32_t &group : grouping.group_of) group = merging.now(group);
  renumber(uses, grouping);
  return grouping;
}

}  // namespace kiln
