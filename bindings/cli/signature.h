// What an executable wants and gives: names, dtypes and shapes over symbols, and the sizes of the symbols.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "args.h"
#include "handles.h"

namespace kiln::cli {

struct Slot {
  std::string name;
  std::string dtype;                 // "f32"
  std::vector<std::string> shape;    // each an integer or an expression over symbols
  std::vector<std::string> strides;  // likewise, in elements; empty: row-major
  bool is_stored = false;            // of a parameter: the artifact's file has it
  std::string type() const;          // "f32 [batch, 10]"
};

struct Symbol {
  std::string name;
  int64_t min, max, divisor;
};

struct Signature {
  std::vector<Slot> inputs, parameters, outputs;
  std::vector<Symbol> symbols;
};
// Of kiln_graph_describe or kiln_executable_describe.
Signature signature_of(const Report &description);

// Sizes of symbols: from --size NAME=N, then from given inputs, then the graph's hints.
class Sizes {
 public:
  explicit Sizes(kiln_context *context) : context_(context) {}

  // Usage unless every name is one of `symbols`, and every value one that it may have.
  void set(const std::vector<std::pair<std::string, std::string>> &given, const std::vector<Symbol> &symbols);
  // Takes the sizes of `slot`'s bare symbols from an array that is given for it; Usage where they are known to differ.
  void learn(const Slot &slot, const DLTensor &array);
  // Takes the hints of the symbols that have no size yet. Of kiln_graph_describe; an artifact keeps no hints.
  void add_hints(const Report &graph_description);
  // The slot's dims; Usage names a symbol of which nothing is known.
  std::vector<int64_t> dims(const Slot &slot) const { return evaluate(slot, slot.shape); }
  std::vector<int64_t> strides(const Slot &slot) const { return evaluate(slot, slot.strides); }

 private:
  std::vector<int64_t> evaluate(const Slot &slot, const std::vector<std::string> &all) const;
  int64_t evaluate(const Slot &slot, const std::string &dimension) const;

  kiln_context *context_;
  std::map<std::string, int64_t> sizes_;
};

}  // namespace kiln::cli
