/* Throws a C++ exception while the key is made. */
#include <kiln/plugin.h>

#include <stdexcept>
static kiln_error *fingerprint(void *, kiln_pass_call *) { throw std::runtime_error("out of luck"); }
#define CHANGE_PASS pass.fingerprint = fingerprint
#include "../frame.h"
