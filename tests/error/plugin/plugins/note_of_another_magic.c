/* A note of the right owner and size that is not one of a plugin. */
#define NOTE_MAGIC 0x1234567812345678ull
#include "../frame.h"
