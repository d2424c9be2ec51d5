/* Needs a feature that no host has. */
#define NOTE_FEATURES 0x8000000000000000ull
#include "../frame.h"
