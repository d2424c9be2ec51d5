#include "run_arrays.h"

#include <cstdio>

namespace kiln::cli {
namespace {

// "'a', 'b', 'c' and 9 more"
std::string listed(const std::set<std::string> &names) {
  constexpr size_t most = 3;
  std::string text = names.empty() ? "nothing" : "";
  size_t count = 0;
  for (const std::string &name : names) {
    if (count == most) return text + " and " + std::to_string(names.size() - most) + " more";
    text += (count++ ? ", '" : "'") + name + "'";
  }
  return text;
}

// A file's one tensor, whatever it is called; of several, the one with the input's name.
const DLTensor *only_or_named(const Tensors &file, const std::string &name, const std::string &path) {
  const DLTensor *tensor = nullptr;
  std::set<std::string> names;
  for (uint64_t i = 0; i < kiln_tensors_count(file.get()); ++i) {
    kiln_text text = {};
    check(kiln_tensors_at(file.get(), i, &text, &tensor));
    names.emplace(view(text));
  }
  if (names.size() == 1) return tensor;
  if (!names.contains(name)) throw Failure(path + ": has no tensor '" + name + "'; it has " + listed(names));
  check(kiln_tensors_find(file.get(), name.data(), name.size(), &tensor));
  return tensor;
}

}  // namespace

const Slot &slot_named(const std::vector<Slot> &slots, const std::string &name, std::string_view flag) {
  std::vector<std::string_view> known;
  for (const Slot &slot : slots) {
    if (slot.name == name) return slot;
    known.push_back(slot.name);
  }
  throw Usage(std::string(flag) + ": the graph has no '" + name + "'" + suggestion(name, known));
}

RunArrays::RunArrays(const Args &args, const Session &session, const Signature &signature, const Graph &graph)
    : signature_(signature), sizes_(session.context()), seed_(args.integer("--random", 0)) {
  sizes_.set(args.pairs("--size"), signature.symbols);
  if (!seed_ && args.has("--size")) throw Usage("--size is for --random, which is not given");
  for (const auto &[name, path] : args.pairs("--input")) open_input(name, path);
  if (graph) sizes_.add_hints(report_of(kiln_graph_describe, graph.get()));
  for (const Slot &slot : signature.inputs) {
    const auto given = inputs_.find(slot.name);
    const bool is_given = given != inputs_.end();
    add(slot, is_given ? given->second : draw(slot, false, "--input " + slot.name + "=F.npy"), is_given);
  }
  add_parameters(args);
}

RunArrays::RunArrays(const Args &args, const Session &session, const Signature &signature)
    : signature_(signature), sizes_(session.context()), all_(signature.inputs.size()) {
  add_parameters(args);
}

void RunArrays::add_parameters(const Args &args) {
  if (const auto path = args.get("--weights")) open_weights(*path);
  for (const Slot &slot : signature_.parameters) {
    const DLTensor *tensor = weights_ ? find_weight(slot) : nullptr;
    if (!tensor && slot.is_stored)
      all_.push_back(nullptr);
    else
      add(slot, tensor ? tensor : draw(slot, true, "--weights F.safetensors with it"), tensor != nullptr);
  }
}

void RunArrays::bind(kiln_call *call) const {
  for (uint32_t slot = 0; slot < all_.size(); ++slot)
    if (all_[slot]) check(kiln_call_bind(call, slot, all_[slot]));
}

// As the graph declares its layout. Of a wrong rank: binding it will say so.
void RunArrays::add(const Slot &slot, const DLTensor *tensor, bool is_given) {
  if (!slot.strides.empty() && slot.strides.size() == static_cast<size_t>(tensor->ndim)) {
    drawn_.push_back(Array::laid_out(*tensor, sizes_.strides(slot), slot.name, is_given));
    tensor = drawn_.back().tensor();
  }
  all_.push_back(tensor);
}

void RunArrays::open_input(const std::string &name, const std::string &path) {
  const Slot &slot = slot_named(signature_.inputs, name, "--input");
  const Tensors file = make<Tensors>(kiln_tensors_open, path.data(), path.size());
  const DLTensor *tensor = only_or_named(file, name, path);
  given_.push_back(Array::copy_of(*tensor, name));  // the file's memory is read only, and copy_ may write to an input
  inputs_[name] = given_.back().tensor();
  sizes_.learn(slot, *tensor);
}

// A file that has none of the parameters is the wrong one, and --random must not hide that. One that has some of them
// and other names is told of: a name may be misspelt.
void RunArrays::open_weights(const std::string &path) {
  weights_ = make<Tensors>(kiln_tensors_open, path.data(), path.size());
  std::set<std::string> left;  // names of the file that no parameter has
  for (uint64_t i = 0; i < kiln_tensors_count(weights_.get()); ++i) {
    kiln_text name = {};
    check(kiln_tensors_at(weights_.get(), i, &name, nullptr));
    left.emplace(view(name));
  }
  std::set<std::string> missing;
  for (const Slot &slot : signature_.parameters)
    if (!left.erase(slot.name) && !slot.is_stored) missing.insert(slot.name);
  if (missing.empty()) return;
  if (missing.size() == signature_.parameters.size())
    throw Failure(path + ": has none of the graph's parameters, " + listed(missing) + "; it has " + listed(left));
  if (!seed_)
    throw Failure(path + ": has no " + listed(missing) + "; of what the graph does not want, it has " + listed(left));
  if (!left.empty())
    std::fprintf(stderr, "kiln: warning: %s: the graph has no parameter %s; drawn at random: %s\n",
                 printable(path).c_str(), printable(listed(left)).c_str(), printable(listed(missing)).c_str());
}

const DLTensor *RunArrays::find_weight(const Slot &slot) const {
  const DLTensor *tensor = nullptr;
  kiln_error *error = kiln_tensors_find(weights_.get(), slot.name.data(), slot.name.size(), &tensor);
  kiln_error_destroy(error);
  return error ? nullptr : tensor;  // none: to be drawn
}

const DLTensor *RunArrays::draw(const Slot &slot, bool parameter, const std::string &remedy) {
  if (!seed_)
    throw Usage("'" + slot.name + "' " + slot.type() + " is not given; give " + remedy + ", or --random SEED");
  const auto seed = static_cast<uint64_t>(*seed_);
  drawn_.push_back(Array::random(slot.dtype, sizes_.dims(slot), seed, slot.name, parameter));
  return drawn_.back().tensor();
}

std::vector<Array> outputs_of(kiln_call *call, const Signature &signature) {
  std::vector<Array> outputs;
  auto index = static_cast<uint32_t>(signature.inputs.size() + signature.parameters.size());
  for (const Slot &slot : signature.outputs) {
    const DLTensor *tensor = nullptr;
    check(kiln_call_output(call, index++, &tensor));
    outputs.push_back(Array::copy_of(*tensor, slot.name));
  }
  return outputs;
}

}  // namespace kiln::cli
