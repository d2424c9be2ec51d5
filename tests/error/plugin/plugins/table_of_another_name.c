/* The table names another plugin than the note. */
#define TABLE_NAME "other"
#include "../frame.h"
