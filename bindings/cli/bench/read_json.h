// JSON that was read: what a process of `kiln bench` told, or a file of figures. A reader of its own, since Google
// Benchmark writes NaN and Infinity, which no JSON has, and libraries refuse.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace kiln::cli::bench {

struct Json {
  enum class Kind { null, boolean, number, text, list, object };
  Kind kind = Kind::null;
  double number = 0;  // of a boolean 1 or 0
  std::string text;
  std::vector<Json> values;        // of a list or an object
  std::vector<std::string> names;  // of an object, of each value

  const Json *find(std::string_view name) const;  // NULL: there is none
  // What is not there, or of another kind, is 0 or "".
  double number_at(std::string_view name) const;
  std::string text_at(std::string_view name) const;
};

// Throws a Failure that begins with `what` and says at which byte it is no JSON.
Json read_json(std::string_view text, const std::string &what);

}  // namespace kiln::cli::bench
