/* What plugin "linking" links. */
__attribute__((visibility("default"))) const char *kiln_test_replacement(void);
const char *kiln_test_replacement(void) { return REPLACEMENT; }
