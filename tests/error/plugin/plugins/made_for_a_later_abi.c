/* Made for another major version of the ABI. */
#define NOTE_MAJOR 2u
#include "../frame.h"
