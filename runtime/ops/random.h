// What the ops share that draw random numbers: the key among their operands, and Philox for reference kernels.
#pragma once
#include "runtime/ops/family.h"

namespace kiln::ops {

// `args`, then a scalar seed and a scalar counter.
std::vector<ArgDef> keyed(std::vector<ArgDef> args);
// Operand `seed` and the one after it are scalars.
Status require_key(const InferContext &c, size_t seed);

// The bits of element i, by the operands `seed` and the next: 64, or 32; and as a number of [0, 1), 53 of them or 24.
uint64_t bits_at(const ReferenceContext &c, size_t seed, int64_t i, bool wide);
double unit_at(const ReferenceContext &c, size_t seed, int64_t i, bool wide);

// `before` and a key: (0, 0), or numbers of which all words count and the last overflows into the next.
void keyed_sample(SampleSink &out, const char *name, std::vector<TensorType> before, AttrMap attrs, bool large,
                  std::map<std::string, int64_t> sizes = {});

}  // namespace kiln::ops
