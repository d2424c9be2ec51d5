/* Needs a feature that a later host has. */
#define NOTE_FEATURES KILN_FEATURE_BACKENDS
#include "../frame.h"
