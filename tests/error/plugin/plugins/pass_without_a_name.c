/* Registers a pass without a name. */
#define CHANGE_PASS pass.name_size = 0
#include "../frame.h"
