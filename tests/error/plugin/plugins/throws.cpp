/* Throws a C++ exception into the host. */
#include <stdexcept>
#define PASS_BODY \
  (void)host;     \
  (void)call;     \
  throw std::runtime_error("out of luck")
#include "../frame.h"
