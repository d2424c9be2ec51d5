// A pass of the host's own whose run is any function.
#pragma once
#include <functional>

#include "host.h"

namespace host {

inline constexpr uint8_t some_uuid[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

// A pass whose run is any function; counts how often it was destroyed.
struct TestPass {
  std::function<kiln_error *(kiln_pass_call *)> body;
  int destroyed = 0;
  kiln_pass pass{};

  explicit TestPass(std::function<kiln_error *(kiln_pass_call *)> does, std::string_view name = "test")
      : body(std::move(does)) {
    pass.struct_size = sizeof pass;
    pass.stage = KILN_STAGE_POST_GRAD;
    pass.name = name.data();
    pass.name_size = name.size();
    pass.user = this;
    pass.run = [](void *user, kiln_pass_call *call) { return static_cast<TestPass *>(user)->body(call); };
    pass.destroy = [](void *user) { static_cast<TestPass *>(user)->destroyed++; };
  }
  TestPass(const TestPass &) = delete;
  void identify() {
    pass.uuid = some_uuid;
    pass.flags |= KILN_PASS_UUID_SUFFICES;
  }
};

inline kiln_error *nothing(kiln_pass_call *call) { return kiln_pass_done(call, 0); }

}  // namespace host
