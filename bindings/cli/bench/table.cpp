// What a person reads.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>

#include "../session.h"
#include "results.h"

namespace kiln::cli::bench {
namespace {

constexpr size_t most_steps = 5, most_step_tables = 8;

using Shown = std::string (*)(double);

struct Unit {
  double of;
  std::string_view name;
};

std::string in_units(double value, std::span<const Unit> units) {
  const Unit *unit = &units.front();
  for (const Unit &larger : units)
    if (value >= larger.of) unit = &larger;
  const double number = value / unit->of;
  char text[48];
  std::snprintf(text, sizeof text, "%.*f %.*s",
                number < 10     ? 3
                : number < 100  ? 2
                : number < 1000 ? 1
                                : 0,
                number, static_cast<int>(unit->name.size()), unit->name.data());
  return text;
}

std::string time_text(double seconds) {
  constexpr Unit units[] = {{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}};
  return in_units(seconds, units);
}

std::string memory_text(double bytes) {
  constexpr Unit units[] = {{1 << 10, "KiB"}, {1 << 20, "MiB"}, {1 << 30, "GiB"}};
  return in_units(bytes, units);
}

std::string right(const std::string &text, size_t width) {
  return text.size() < width ? std::string(width - text.size(), ' ') + text : text;
}

std::string ratio_text(double ratio) {
  char text[32];
  std::snprintf(text, sizeof text, ratio < 10 ? "%.3f" : "%.1f", ratio);
  return text;
}

// One line: "  NAME   12.3 us   12.1 us to 12.9 us".
std::string line_of(const std::string &name, size_t width, const Quartiles &value, Shown shown) {
  return "  " + padded(name, width) + right(shown(value.median), 10) + "   " + shown(value.low) + " to " +
         shown(value.high);
}

// The ratios of values of the same rounds.
Quartiles ratios_of(const std::vector<double> &values, const std::vector<double> &first) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(values.size(), first.size()); ++i)
    if (first[i] > 0) ratios.push_back(values[i] / first[i]);
  return quartiles_of(std::move(ratios));
}

class Table {
 public:
  explicit Table(const std::vector<Measured> &all) {
    for (const Measured &one : all) {
      if (one.error.empty()) good_.push_back(&one);
      width_ = std::max(width_, one.variant->name.size() + 1);
    }
  }

  // Of variants that have the figure.
  template <class Values>
  void add(std::string_view title, Shown shown, const Values &values_of) {
    const std::vector<double> *first = nullptr;
    std::vector<double> kept;
    for (const Measured *one : good_) {
      const std::vector<double> values = values_of(*one);
      if (values.empty()) continue;
      if (!first) text_ += "\n" + std::string(title) + "\n";
      text_ += line_of(printable(one->variant->name), width_, quartiles_of(values), shown);
      if (first) {
        const Quartiles ratio = ratios_of(values, *first);
        text_ +=
            "   x " + ratio_text(ratio.median) + " (" + ratio_text(ratio.low) + " to " + ratio_text(ratio.high) + ")";
      } else {
        kept = values;
        first = &kept;
      }
      text_ += "\n";
    }
  }

  void add_steps() {
    for (size_t i = 0; i < std::min(good_.size(), most_step_tables); ++i)
      if (const Measured &one = *good_[i]; !one.steps.empty())
        text_ += "\nsteps of a run of " + printable(one.variant->name) + "\n" +
                 printed_lines(profile_table(one.steps, one.roof, most_steps));
  }

  const std::string &text() const { return text_; }

 private:
  static std::string printed_lines(const std::string &lines) {
    std::string text;
    for (size_t begin = 0; begin < lines.size();) {
      const size_t end = lines.find('\n', begin);
      text += printable(std::string_view(lines).substr(begin, end - begin)) + "\n";
      begin = end + 1;
    }
    return text;
  }

  std::vector<const Measured *> good_;
  size_t width_ = 0;
  std::string text_;
};

}  // namespace

std::string table_of(const std::vector<Measured> &all) {
  Table table(all);
  for (size_t i = 0; i < figure_count; ++i)
    table.add(figure_rows[i].title, time_text, [i](const Measured &one) { return real_of(one.samples[i]); });
  table.add("peak memory of the process of the runs", memory_text, [](const Measured &one) { return one.peak_bytes; });
  table.add_steps();
  std::string notes;
  for (const Measured &one : all) {
    const std::string name = printable(one.variant->name);
    if (!one.not_hit.empty()) notes += "the warm compile of " + name + " was no hit: " + printable(one.not_hit) + "\n";
    if (!one.difference.empty())
      notes += "outputs of " + name + " differ from the first's: " + printable(one.difference) +
               (one.is_beyond ? ", beyond the tolerance\n" : "\n");
    if (!one.error.empty()) notes += name + " failed: " + printable(one.error) + "\n";
  }
  if (table.text().empty()) return notes;
  return "medians with quartiles of the rounds; x: beside the first, the same of each round's ratio\n" + table.text() +
         (notes.empty() ? "" : "\n" + notes);
}

std::string table_of(const Comparison &comparison, const std::string &path) {
  std::string text = "\nagainst " + printable(path) + ": before, now, and now beside before\n";
  size_t width = 0, within = 0;
  for (const Compared &one : comparison.figures) width = std::max(width, one.name.size() + 1);
  for (const Compared &one : comparison.figures) {
    if (one.change == Change::none) {
      ++within;
      continue;
    }
    const Shown shown = one.is_memory ? memory_text : time_text;
    const bool more = one.change == Change::slower;
    text += padded(one.is_memory ? (more ? "  larger" : "  smaller") : (more ? "  slower" : "  faster"), 11) +
            padded(printable(one.name), width) + right(shown(one.before.median), 10) +
            right(shown(one.now.median), 12) + "   x " +
            ratio_text(one.before.median > 0 ? one.now.median / one.before.median : 0) + "\n";
  }
  text += "  " + std::to_string(within) + " of " + std::to_string(comparison.figures.size()) +
          " figures are within noise\n";
  const auto only = [&](const std::vector<std::string> &names, const std::string &where) {
    if (!names.empty())
      text += "  " + std::to_string(names.size()) + " are " + where + " alone, as " + printable(names.front()) + "\n";
  };
  only(comparison.only_before, "there");
  only(comparison.only_now, "here");
  return text;
}

}  // namespace kiln::cli::bench
