// The ops that oneDNN runs as Kiln means them, and what of them it takes.
#pragma once
#include <map>
#include <optional>

#include "reader.h"

namespace onednn {

enum class Family { product, convolution, function, binary, softmax, pooling, norm, reshape };

struct Op {
  const char *name;
  Family family;
  Algorithm algorithm = Algorithm::undef;
  float alpha = 0;
  float beta = 0;
  bool loses_not_finite = false;  // oneDNN makes a number of what Kiln says is NaN, or infinite
};

using Ops = std::map<kiln_op, const Op *>;
Ops find_ops(const kiln_host *host, kiln_context *context);

// What a compile chooses (backend.onednn.OPTION).
struct Options {
  bool all = false;              // "take" = "all": what stands alone, too, not only products and what follows them
  bool lose_not_finite = false;  // "not_finite" = "lost"
  bool relaxed = false;          // what is between a product and what follows it need not be rounded to bf16
};

using Why = const char *;  // why a node is not taken; NULL: it is

class Taker {
 public:
  Taker(const Ops &ops, bool has_bf16, Options options, const Reader &graph)
      : ops_(ops), has_bf16_(has_bf16), options_(options), graph_(graph) {}

  // NULL: of no kind that it knows.
  const Op *op_of(kiln_node node) const;
  // Why it does not run the node at all.
  Why not_run(kiln_node node) const;
  bool runs(kiln_node node) const { return !not_run(node); }
  // Why that, or why it is not better off here than on `cpu`, which fuses what stands between products with more than
  // oneDNN can.
  Why not_taken(kiln_node node) const;
  // The node's op, of a function of one operand with the algorithm and factors that its attributes say.
  Op function_of(kiln_node node) const;
  // Whether anything can be computed where what makes the value is.
  bool may_be_followed(kiln_value value) const;
  // Whether a binary node can be computed where its operand `operand`, of the result's shape, is made by `product`:
  // the other is then of that shape, too, a scalar, or has an element for each channel.
  bool follows(kiln_node binary, uint32_t operand, Family product) const;
  // Whether a node can be computed where its first operand, a product, is made.
  bool norm_follows(kiln_node norm) const;
  bool loses_not_finite() const { return options_.lose_not_finite; }

 private:
  Why unfit(kiln_node node, bool f32_only) const;
  Why convolution_not_run(kiln_node node) const;
  bool runs_binary(kiln_node node) const;
  bool is_fixed(kiln_value value) const;
  Why pooling_not_run(kiln_node node) const;
  bool comes_of_product(kiln_value value, int depth) const;

  const Ops &ops_;
  bool has_bf16_;
  Options options_;
  const Reader &graph_;
};

}  // namespace onednn
