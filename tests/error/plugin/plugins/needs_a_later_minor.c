/* Needs functions that a later version has. */
#define NOTE_MINOR 99u
#include "../frame.h"
