/* A table that ends before its setup. */
#define TABLE_SIZE 16u
#include "../frame.h"
