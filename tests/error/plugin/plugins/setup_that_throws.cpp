/* Setup throws a C++ exception. */
#include <stdexcept>
#define SETUP_BODY \
  (void)host;      \
  (void)context;   \
  throw std::runtime_error("no licence")
#include "../frame.h"
