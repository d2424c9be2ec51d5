// A context, and what of its ops is known.
#pragma once
#include <map>

#include "support.h"

namespace kiln_python {
/// What adding a node must know of an op.
struct OpInfo {
  kiln_op number = 0;
  struct Attr {
    std::string name;  // the op's
    uint32_t kind = 0;
    bool list = false;
  };
  std::vector<Attr> attrs;
  std::vector<bool> same_dtype;  // of each operand that is named
  bool variadic = false;         // the last one
  size_t results = 0;            // that are named; 0: as many as the node has
  const Attr *find(std::string_view name) const;
};

class Context {
 public:
  Context(OptionsHandle options, nb::object on_event);
  ~Context();

  kiln_context *get() const { return handle_.get(); }
  /// By its name; asked of the library once.
  const OpInfo &op(std::string_view name);
  /// Joins background work, with the interpreter unlocked.
  void close();

 private:
  ContextHandle handle_;
  std::map<std::string, OpInfo, std::less<>> ops_;
};

/// The one that is used where none is said.
nb::object default_context();
/// `object`, or for None the default one.
Context &context_or_default(nb::handle object, nb::object &owner);
}  // namespace kiln_python
