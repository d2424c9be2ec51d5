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
    const std::string shape = path_of(side, i, "shape");
    for (size_t d = 0; d < description.count(shape); ++d)
      result[i].shape.push_back(description.shown(path_of(shape, d)));
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
  for (size_t i = 0; i < description.count("symbols"); ++i) signature.symbols.push_back(description.key("symbols", i));
  return signature;
}

void Sizes::set(const std::vector<std::pair<std::string, std::string>> &given,
                const std::vector<std::string> &symbols) {
  for (const auto &[name, value] : given) {
    if (std::find(symbols.begin(), symbols.end(), name) == symbols.end())
      throw Usage("--size " + name + ": the graph has no symbol of that name" +
                  suggestion(name, std::vector<std::string_view>(symbols.begin(), symbols.end())));
    sizes_[name] = to_integer(value, 0, "--size " + name);
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

std::vector<int64_t> Sizes::dims(const Slot &slot) const {
  std::vector<int64_t> result;
  for (const std::string &dimension : slot.shape) result.push_back(evaluate(slot, dimension));
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
