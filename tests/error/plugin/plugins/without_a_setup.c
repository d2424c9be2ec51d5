/* A table without setup. */
#define SETUP NULL
#include "../frame.h"
