#include "runtime/unpacked/pretty.h"

#include <vector>

namespace kiln::unpacked {
namespace {

constexpr size_t columns = 120;

class Printer {
 public:
  explicit Printer(std::string_view json) : json_(json) { find_ends(); }

  std::string print() && {
    bool in_text = false;
    for (size_t i = 0; i < json_.size(); ++i) {
      const char c = json_[i];
      if (in_text) {
        out_ += c;
        if (c == '\\') out_ += json_[++i];
        in_text = c != '"';
        continue;
      }
      in_text = c == '"';
      if (c == '{' || c == '[') {
        out_ += c;
        open(i);
      } else if (c == '}' || c == ']') {
        close(c);
      } else {
        out_ += c;
        if (c == ':') out_ += ' ';
        if (c == ',') after_comma();
      }
    }
    out_ += '\n';
    return std::move(out_);
  }

 private:
  // Where each list and object ends, in the order in which they begin.
  void find_ends() {
    std::vector<size_t> begun;
    bool in_text = false;
    for (size_t i = 0; i < json_.size(); ++i) {
      const char c = json_[i];
      if (in_text && c == '\\')
        ++i;
      else if (c == '"')
        in_text = !in_text;
      else if (!in_text && (c == '{' || c == '['))
        begun.push_back(ends_.size()), ends_.push_back(i);
      else if (!in_text && (c == '}' || c == ']')) {
        ends_[begun.back()] = i;
        begun.pop_back();
      }
    }
  }
  void open(size_t at) {
    const size_t size = ends_[opened_++] - at, column = out_.size() - line_;
    const bool is_inside = !broken_.empty() && !broken_.back();
    const bool fits = is_inside || size < 2 || (!broken_.empty() && column + size + size / 4 < columns);
    broken_.push_back(!fits);
    if (!fits) break_line();
  }
  void close(char bracket) {
    const bool was_broken = broken_.back();
    if (was_broken) indent_ -= 2, new_line();
    broken_.pop_back();
    out_ += bracket;
  }
  void after_comma() {
    if (broken_.back())
      new_line();
    else
      out_ += ' ';
  }
  void break_line() {
    indent_ += 2;
    new_line();
  }
  void new_line() {
    out_ += '\n';
    line_ = out_.size();
    out_.append(indent_, ' ');
  }

  std::string_view json_;
  std::vector<size_t> ends_;
  size_t opened_ = 0;
  std::vector<bool> broken_;  // of what is open: whether it is on several lines
  std::string out_;
  size_t line_ = 0, indent_ = 0;
};

}  // namespace

std::string pretty(std::string_view json) { return Printer(json).print(); }

}  // namespace kiln::unpacked
