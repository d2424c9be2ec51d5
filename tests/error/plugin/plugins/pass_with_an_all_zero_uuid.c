/* Registers a pass whose UUID was forgotten. */
#define CHANGE_PASS                    \
  static const uint8_t zero[16] = {0}; \
  pass.uuid = zero
#include "../frame.h"
