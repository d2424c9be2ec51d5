// A name that is not UTF-8, has a NUL inside, or a path that is empty.
#include "tests/error/expect.h"

namespace refused {

TEST(Handles, TextsThatAreNone) {
  const host::Context context = host::make_context();
  kiln_op op = 0;
  kiln_tensors *tensors = nullptr;
  EXPECT_REFUSED(host::take(kiln_op_find(context.get(), "\xc3\x28", 2, &op)), "INVALID_ARGUMENT",
                 "kiln_op_find: name is not UTF-8 text, at byte 0");
  EXPECT_REFUSED(host::take(kiln_op_find(context.get(), "a\0b", 3, &op)), "INVALID_ARGUMENT",
                 "kiln_op_find: name is not UTF-8 text, at byte 1");
  EXPECT_REFUSED(host::take(kiln_tensors_open("", 0, &tensors)), "INVALID_ARGUMENT",
                 "kiln_tensors_open: path is empty");
  EXPECT_REFUSED(host::take(kiln_tensors_open("a\0.npy", 6, &tensors)), "INVALID_ARGUMENT",
                 "kiln_tensors_open: path has a NUL byte inside");
}

}  // namespace refused
