// kiln._kiln: what the Python files of the package stand on. One file a concept adds its part.
#include "support.h"

NB_MODULE(_kiln, module) {
  using namespace kiln_python;
  nb::set_leak_warnings(false);  // what lives at exit (the default context, dtypes) is meant to
  module.doc() = "Kiln's C ABI for the package kiln; nothing here is to be imported by its own.";
  module.attr("abi_version") = nb::make_tuple(kiln_version() >> 16, kiln_version() & 0xffff);
  add_dtypes(module);
  add_dims(module);
  add_arrays(module);
  add_events(module);
  add_context(module);
  add_graph(module);
  add_values(module);
  add_executable(module);
  add_call(module);
  add_tensors(module);
  add_passes(module);
  add_host_ops(module);
  add_functions(module);
}
