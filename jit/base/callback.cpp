#include "jit/base/callback.h"

namespace kiln {
namespace {

thread_local bool in_callback = false;

}  // namespace

InCallback::InCallback(bool is) : before_(in_callback) { in_callback = before_ || is; }
InCallback::~InCallback() { in_callback = before_; }
bool InCallback::here() { return in_callback; }

}  // namespace kiln
