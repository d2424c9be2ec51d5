#include "signature.h"

#include <set>

#include "dtypes.h"

namespace kiln_python {
namespace {
// The symbols of an expression; min and max are no symbols where a parenthesis follows.
std::vector<std::string> symbols_of(std::string_view text) {
  std::vector<std::string> all;
  const auto is_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    while (end < text.size() && is_name(text[end])) ++end;
    if (end == at) {
      ++at;
      continue;
    }
    const bool number = std::isdigit(static_cast<unsigned char>(text[at]));
    if (!number && !(end < text.size() && text[end] == '(')) all.emplace_back(text.substr(at, end - at));
    at = end;
  }
  return all;
}

std::vector<Slot> slots_of(nb::handle list) {
  std::vector<Slot> slots;
  for (nb::handle each : nb::borrow<nb::list>(list)) {
    Slot slot;
    slot.name = nb::cast<std::string>(each["name"]);
    slot.dtype = to_dtype(each["dtype"]);
    slot.row_major = !nb::borrow<nb::dict>(each).contains("strides");
    slot.stored = nb::borrow<nb::dict>(each).contains("stored_bytes");
    slots.push_back(std::move(slot));
  }
  return slots;
}
}  // namespace

Signature::Signature(nb::handle description)
    : inputs(slots_of(description["inputs"])),
      parameters(slots_of(description["parameters"])),
      outputs(slots_of(description["outputs"])) {
  std::set<std::string> bound;
  for (nb::handle each : nb::borrow<nb::list>(description["inputs"]))
    for (nb::handle dim : nb::borrow<nb::list>(each["shape"]))
      if (PyUnicode_Check(dim.ptr())) bound.insert(nb::cast<std::string>(dim));
  for (size_t i = 0; i < outputs.size(); ++i) {
    nb::dict told = nb::borrow<nb::dict>(nb::borrow<nb::list>(description["outputs"])[i]);
    if (told.contains("view_of")) outputs[i].view_of = find(nb::cast<std::string>(told["view_of"]));
    if (outputs[i].view_of >= 0) inputs[static_cast<size_t>(outputs[i].view_of)].viewed = true;
    outputs[i].sized_by_inputs = outputs[i].view_of < 0 && outputs[i].row_major;
    for (nb::handle dim : nb::borrow<nb::list>(told["shape"]))
      if (PyUnicode_Check(dim.ptr()))
        for (const std::string &symbol : symbols_of(nb::cast<std::string>(dim)))
          if (!bound.contains(symbol)) outputs[i].sized_by_inputs = false;
  }
}

const Slot &Signature::slot(size_t number) const {
  if (number < inputs.size()) return inputs[number];
  number -= inputs.size();
  return number < parameters.size() ? parameters[number] : outputs[number - parameters.size()];
}

int Signature::find(std::string_view name) const {
  for (size_t i = 0; i < size(); ++i)
    if (slot(i).name == name) return static_cast<int>(i);
  return -1;
}

int Signature::find_output(std::string_view name) const {
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].name == name) return static_cast<int>(i);
  return -1;
}
}  // namespace kiln_python
