// From a region's graph to the computes that fusion takes.
#pragma once
#include <cstdint>
#include <vector>

#include "jit/kernel/fuse.h"
#include "runtime/graph/graph.h"

namespace kiln {

// A region as computes, and which of their tensors meet the graph's signature. Its names are views of the graph's.
struct Lowered {
  kernel::Program program;
  std::vector<uint32_t> inputs, parameters;  // the tensor of each, in order of the signature
  struct Constant {
    uint32_t tensor;
    TensorPtr data;
  };
  std::vector<Constant> constants;  // those of more than one element; the others are in the computes
  // The tensor of each output, dense. One may stand for several outputs, and be an input, parameter or constant.
  std::vector<uint32_t> outputs;
  // copy_ epilogues: when all else has run, input number `input` is what the tensor `source` is, which has its strides.
  struct WriteBack {
    uint32_t input, source;
    std::string node = {};  // the copy_'s name
  };
  std::vector<WriteBack> write_backs;
  // Nodes that divide integers or index by values: a call can fail in them. Bits are KILN_ERROR_*.
  struct Risk {
    uint32_t def;  // of the program
    uint32_t bits;
  };
  std::vector<Risk> risks;
};

// `graph` is flat and decomposed: each op has a view map or a lowering. An error names the op and the node.
Result<Lowered> lower(const Graph &graph);

}  // namespace kiln
