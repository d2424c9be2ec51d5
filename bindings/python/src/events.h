// Events of a context: to a receiver, to `logging`, and the place where Ctrl-C ends compiles and runs.
#pragma once
#include "support.h"

namespace kiln_python {
class Events {
 public:
  explicit Events(nb::object receiver);
  const kiln_event_sink *sink() const { return &sink_; }
  /// Kiln has taken the sink over.
  void taken() { receiver_.release(); }

 private:
  nb::object receiver_;
  kiln_event_sink sink_{};
};
}  // namespace kiln_python
