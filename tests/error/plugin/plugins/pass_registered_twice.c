/* Registers one pass twice. */
#define SETUP_BODY                                  \
  kiln_error *error = register_pass(host, context); \
  return error ? error : register_pass(host, context)
#include "../frame.h"
