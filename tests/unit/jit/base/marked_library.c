/* The library of marked_library.h: one mark lies in pages that only the file fills, the other in pages that the loader
 * may write, behind some that it has no reason to. */
#define EXPORT __attribute__((visibility("default")))

EXPORT const char kiln_read_only_mark[] = "read-only mark: 0";
EXPORT struct {
  char before[8192], text[32], after[8192];
} kiln_written_mark = {"", "written mark: 0", ""};
