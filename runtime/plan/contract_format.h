// The bytes of contracts.
#pragma once
#include <vector>

#include "jit/base/bytes.h"
#include "runtime/plan/contract.h"

namespace kiln {

// Writes a table of expressions and the contracts. Returns the table: a plan's numbers go on from it (plan.h).
std::vector<Expr> serialize(const std::vector<Contract> &contracts, ByteWriter &out);
// Appends the table to `table`. code corrupt.
Result<std::vector<Contract>> parse_contracts(ByteReader &in, std::vector<Expr> &table);

}  // namespace kiln
