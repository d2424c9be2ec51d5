/* Registers a pass whose struct_size was forgotten. */
#define CHANGE_PASS pass.struct_size = 0
#include "../frame.h"
