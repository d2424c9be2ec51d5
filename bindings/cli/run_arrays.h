// The arrays of a run: what files give, what is drawn for the rest, and what comes out.
#pragma once
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "arrays.h"
#include "session.h"
#include "signature.h"

namespace kiln::cli {

inline constexpr Flag weights_flag{"--weights", "F.safetensors", "the graph's parameters, by name"};
inline constexpr Flag input_flag{"--input", "NAME=F", "an input, of a .npy or .safetensors file", true};
inline constexpr Flag size_flag{"--size", "SYMBOL=N", "the size of a symbolic dimension, for --random", true};

// Usage, with what is near, where there is none. `flag` names it.
const Slot &slot_named(const std::vector<Slot> &slots, const std::string &name, std::string_view flag);

// In order of the slots. All that can be wrong with them is found before anything is compiled.
class RunArrays {
 public:
  // Reads --weights, --input, --size and --random. `graph` may be empty: an artifact is run.
  RunArrays(const Args &args, const Session &session, const Signature &signature, const Graph &graph);
  // Of --weights alone: the parameters.
  RunArrays(const Args &args, const Session &session, const Signature &signature);

  // By number, since an output may have the same name.
  void bind(kiln_call *call) const;

 private:
  void add_parameters(const Args &args);
  void add(const Slot &slot, const DLTensor *tensor, bool is_given);
  void open_input(const std::string &name, const std::string &path);
  void open_weights(const std::string &path);
  const DLTensor *find_weight(const Slot &slot) const;
  const DLTensor *draw(const Slot &slot, bool parameter, const std::string &remedy);

  const Signature &signature_;
  Sizes sizes_;
  std::optional<int64_t> seed_;
  Tensors weights_;
  std::map<std::string, const DLTensor *> inputs_;
  std::deque<Array> given_, drawn_;
  std::vector<const DLTensor *> all_;  // by slot; null: it is left as it is
};

// Copies of a call's outputs, row-major whatever their strides.
std::vector<Array> outputs_of(kiln_call *call, const Signature &signature);

}  // namespace kiln::cli
