// Passes that a host brings, of stage post_grad, without an identity.
#pragma once
#include <kiln/kiln.h>

#include <string_view>

namespace kiln::bench {

// `name` and `user` are the caller's: the one until it is registered, the other as long as the context.
inline kiln_pass host_pass(std::string_view name, kiln_error *(*run)(void *, kiln_pass_call *), void *user) {
  kiln_pass pass = {};
  pass.struct_size = sizeof pass;
  pass.stage = KILN_STAGE_POST_GRAD;
  pass.name = name.data();
  pass.name_size = name.size();
  pass.user = user;
  pass.run = run;
  return pass;
}

}  // namespace kiln::bench
