/* Its entry returns NULL. */
#define WITHOUT_TABLE
#include "../frame.h"
