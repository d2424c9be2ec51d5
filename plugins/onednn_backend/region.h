#pragma once
#include "ops.h"

namespace onednn {

Program build(const Taker &taker, const Reader &graph);

}  // namespace onednn
