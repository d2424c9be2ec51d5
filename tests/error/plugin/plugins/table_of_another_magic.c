/* The note is right, the table is none. */
#define TABLE_MAGIC 1ull
#include "../frame.h"
