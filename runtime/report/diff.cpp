#include "runtime/report/diff.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "jit/base/str.h"

namespace kiln {
namespace {

constexpr size_t context = 3;  // lines around a change
constexpr uint32_t none = UINT32_MAX;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Which line of `b` each line of `a` is, by patience: lines that stand once in both are put in the longest order that
// they have in both, then likewise what lies between.
class Matching {
 public:
  Matching(std::span<const std::string_view> a, std::span<const std::string_view> b) {
    std::unordered_map<std::string_view, uint32_t> known;
    const auto number = [&](std::string_view line) {
      return known.try_emplace(line, static_cast<uint32_t>(known.size())).first->second;
    };
    for (const std::string_view line : a) a_.push_back(number(line));
    for (const std::string_view line : b) b_.push_back(number(line));
    partner_.assign(a.size(), none);
    seen_.resize(known.size());
    const auto size = [](auto lines) { return static_cast<uint32_t>(lines.size()); };
    open_.push_back({0, size(a), 0, size(b)});
    while (!open_.empty()) {
      const Range range = open_.back();
      open_.pop_back();
      match(range);
    }
  }
  const std::vector<uint32_t> &partners() const { return partner_; }

 private:
  struct Range {
    uint32_t a, a_end, b, b_end;
  };
  struct Seen {
    uint32_t in_a = 0, in_b = 0, at = 0;  // at: in b, the last one
  };

  void match(Range r) {
    for (; r.a < r.a_end && r.b < r.b_end && a_[r.a] == b_[r.b]; ++r.a, ++r.b) partner_[r.a] = r.b;
    for (; r.a < r.a_end && r.b < r.b_end && a_[r.a_end - 1] == b_[r.b_end - 1];) partner_[--r.a_end] = --r.b_end;
    if (r.a == r.a_end || r.b == r.b_end) return;
    uint32_t a = r.a, b = r.b;
    for (const auto &[at_a, at_b] : anchors(r)) {
      open_.push_back({a, at_a, b, at_b});
      partner_[at_a] = at_b;
      a = at_a + 1;
      b = at_b + 1;
    }
    if (a != r.a) open_.push_back({a, r.a_end, b, r.b_end});
  }

  // The longest increasing sequence of the lines that stand once on both sides.
  std::vector<std::pair<uint32_t, uint32_t>> anchors(const Range &r) {
    for (uint32_t i = r.a; i < r.a_end; ++i) ++seen_[a_[i]].in_a;
    for (uint32_t i = r.b; i < r.b_end; ++i) seen_[b_[i]] = {seen_[b_[i]].in_a, seen_[b_[i]].in_b + 1, i};
    std::vector<std::pair<uint32_t, uint32_t>> common;
    for (uint32_t i = r.a; i < r.a_end; ++i)
      if (const Seen &seen = seen_[a_[i]]; seen.in_a == 1 && seen.in_b == 1) common.emplace_back(i, seen.at);
    for (uint32_t i = r.a; i < r.a_end; ++i) seen_[a_[i]] = {};
    for (uint32_t i = r.b; i < r.b_end; ++i) seen_[b_[i]] = {};
    std::vector<uint32_t> piles, before(common.size(), none);  // numbers of `common`, the tops of piles
    for (uint32_t i = 0; i < common.size(); ++i) {
      const auto pile =
          std::ranges::lower_bound(piles, common[i].second, {}, [&](uint32_t n) { return common[n].second; });
      if (pile != piles.begin()) before[i] = *(pile - 1);
      if (pile == piles.end())
        piles.push_back(i);
      else
        *pile = i;
    }
    std::vector<std::pair<uint32_t, uint32_t>> longest;
    for (uint32_t i = piles.empty() ? none : piles.back(); i != none; i = before[i]) longest.push_back(common[i]);
    std::ranges::reverse(longest);
    return longest;
  }

  std::vector<uint32_t> a_, b_, partner_;
  std::vector<Seen> seen_;
  std::vector<Range> open_;
};

struct Line {
  char mark;  // ' ', '-' or '+'
  std::string_view text;
};

std::vector<Line> script_of(std::span<const std::string_view> a, std::span<const std::string_view> b) {
  std::vector<Line> script;
  size_t next = 0;  // of b
  const Matching matching(a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    const uint32_t partner = matching.partners()[i];
    if (partner == none) {
      script.push_back({'-', a[i]});
      continue;
    }
    while (next < partner) script.push_back({'+', b[next++]});
    script.push_back({' ', b[next++]});
  }
  while (next < b.size()) script.push_back({'+', b[next++]});
  return script;
}

}  // namespace

std::string unified_diff(std::string_view before, std::string_view after, std::string_view name_before,
                         std::string_view name_after) {
  if (before == after) return "";
  const std::vector<std::string_view> a = lines_of(before), b = lines_of(after);
  const std::vector<Line> script = script_of(a, b);
  std::string out = str_cat("--- ", name_before, "\n+++ ", name_after, "\n");
  size_t line_a = 1, line_b = 1, at = 0;  // the next of each text, and of the script
  while (at < script.size()) {
    if (script[at].mark == ' ') {
      ++at, ++line_a, ++line_b;
      continue;
    }
    // From here a hunk: until more lines are alike than two contexts have.
    size_t end = at, last = at;
    for (; end < script.size() && end - last <= 2 * context; ++end)
      if (script[end].mark != ' ') last = end;
    const size_t first = at - std::min(at, context);
    end = std::min(last + context + 1, script.size());
    line_a -= at - first;
    line_b -= at - first;
    size_t count_a = 0, count_b = 0;
    std::string body;
    for (size_t i = first; i < end; ++i) {
      count_a += script[i].mark != '+';
      count_b += script[i].mark != '-';
      str_append(body, str_cat(script[i].mark, script[i].text, "\n"));
    }
    // Of an empty side the line before it.
    str_append(out, str_cat("@@ -", count_a ? line_a : line_a - 1, ",", count_a, " +", count_b ? line_b : line_b - 1,
                            ",", count_b, " @@\n", body));
    line_a += count_a;
    line_b += count_b;
    at = end;
  }
  return out;
}

}  // namespace kiln
