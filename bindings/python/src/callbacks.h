// What every callback of Kiln's into Python does.
#pragma once
#include "context.h"

namespace kiln_python {
/// What Kiln is given as `user`. The context is not kept alive: it would keep itself alive by its own callbacks.
struct Callback {
  PyObject *context;
  PyObject *object;
  Callback(nb::handle in, nb::handle of) : context(in.ptr()), object(of.inc_ref().ptr()) {}
  virtual ~Callback() {
    if (!Py_IsInitialized()) return;
    nb::gil_scoped_acquire locked;
    Py_DECREF(object);
  }
  Callback(const Callback &) = delete;
  Callback &operator=(const Callback &) = delete;
  static void destroy(void *user) { delete static_cast<Callback *>(user); }
};

/// Runs `body` with the interpreter's lock; what it raises becomes an error, and the cause of what Kiln's caller gets.
template <class Body>
kiln_error *callback(Body body) {
  nb::gil_scoped_acquire locked;
  try {
    body();
    return nullptr;
  } catch (...) {
    return keep_current_exception();
  }
}
}  // namespace kiln_python
