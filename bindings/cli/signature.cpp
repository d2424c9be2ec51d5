#include "signature.h"

#include <algorithm>
#include <cctype>

namespace kiln::cli {
namespace {

std::vector<Slot> slots(const Report &description, std::string_view side) {
  std::vector<Slot> result(description.count(side));
  for (size_t i = 0; i < result.size(); ++i) {
    result[i].name = description.text(path_of(side, i, "name"));
    result[i].dtype = description.text(path_of(side, i, "dtype"));
    result[i].is_stored = description.has(path_of(side, i, "stored_bytes"));
    const std::string shape = path_of(side, i, "shape"), strides = path_of(side, i, "strides");
    for (size_t d = 0; d < description.count(shape); ++d)
      result[i].shape.push_back(description.shown(path_of(shape, d)));
    if (side == "outputs") continue;
    for (size_t d = 0; description.has(strides) && d < description.count(strides); ++d)
      result[i].strides.push_back(description.shown(path_of(strides, d)));
  }
  return result;
}

bool is_symbol(std::string_view dimension) {
  if (dimension.empty() || std::isdigit(static_cast<unsigned char>(dimension[0]))) return false;
  for (const char c : dimension) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  }
  return true;
}

}  // namespace

std::string Slot::type() const {
  std::string text = dtype + " [";
  for (size_t i = 0; i < shape.size(); ++i) text.append(i ? ", " : "").append(shape[i]);
  return text + "]";
}

Signature signature_of(const Report &description) {
  Signature signature{
      slots(description, "inputs"), slots(description, "parameters"), slots(description, "outputs"), {}};
  for (size_t i = 0; i < description.count("symbols"); ++i) {
    const std::string name = description.key("symbols", i), path = "symbols." + name + ".";
    signature.symbols.push_back(
        {name, description.i64(path + "min"), description.i64(path + "max"), description.i64(path + "divisor")});
  }
  return signature;
}

void Sizes::set(const std::vector<std::pair<std::string, std::string>> &given, const std::vector<Symbol> &symbols) {
  std::vector<std::string_view> known;
  for (const Symbol &symbol : symbols) known.push_back(symbol.name);
  for (const auto &[name, value] : given) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end())
      throw Usage("--size " + name + ": the graph has no symbol of that name" + suggestion(name, known));
    const Symbol &symbol = symbols[static_cast<size_t>(found - known.begin())];
    const int64_t size = to_integer(value, 0, INT64_MAX, "--size " + name);
    const auto refuse = [&](const std::string &expected, int64_t bound) {
      throw Usage("--size " + name + ": " + value + " is given, the graph allows " + expected + std::to_string(bound));
    };
    if (size < symbol.min) refuse("at least ", symbol.min);
    if (size > symbol.max) refuse("at most ", symbol.max);
    if (size % symbol.divisor != 0) refuse("multiples of ", symbol.divisor);
    sizes_[name] = size;
  }
}

void Sizes::learn(const Slot &slot, const DLTensor &array) {
  if (static_cast<size_t>(array.ndim) != slot.shape.size()) return;  // a wrong rank: binding it will say so
  for (size_t d = 0; d < slot.shape.size(); ++d) {
    if (!is_symbol(slot.shape[d])) continue;
    const auto [known, fresh] = sizes_.emplace(slot.shape[d], array.shape[d]);
    if (!fresh && known->second != array.shape[d])
      throw Usage("dim " + std::to_string(d) + " of --input " + slot.name + " is " + std::to_string(array.shape[d]) +
                  ", but " + slot.shape[d] + " is " + std::to_string(known->second));
  }
}

void Sizes::add_hints(const Report &graph_description) {
  for (size_t i = 0; i < graph_description.count("symbols"); ++i) {
    const std::string name = graph_description.key("symbols", i);
    const int64_t hint = graph_description.i64("symbols." + name + ".hint");
    if (hint != 0) sizes_.emplace(name, hint);  // 0: none is given
  }
}

std::vector<int64_t> Sizes::evaluate(const Slot &slot, const std::vector<std::string> &all) const {
  std::vector<int64_t> result;
  for (const std::string &dimension : all) result.push_back(evaluate(slot, dimension));
  return result;
}

int64_t Sizes::evaluate(const Slot &slot, const std::string &dimension) const {
  std::vector<kiln_text> names;
  std::vector<int64_t> values;
  for (const auto &[name, value] : sizes_) {
    names.push_back({name.data(), name.size()});
    values.push_back(value);
  }
  kiln_dim dim = {};
  check(kiln_dim_parse(context_, dimension.data(), dimension.size(), &dim));
  int64_t value = 0;
  try {
    check(kiln_dim_evaluate(context_, &dim, names.data(), values.data(), names.size(), &value));
  } catch (const Failure &failure) {
    throw Usage("the size of '" + slot.name + "' " + slot.type() + " is not known; give --size NAME=N (" +
                failure.what() + ")");
  }
  return value;
}

}  // namespace kiln::cli
