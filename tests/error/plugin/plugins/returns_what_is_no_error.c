/* Returns a pointer to something else. */
#define PASS_BODY              \
  static uint64_t nothing[64]; \
  (void)host;                  \
  (void)call;                  \
  return (kiln_error *)nothing
#include "../frame.h"
