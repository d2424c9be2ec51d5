// A program at the sizes of one run: primitives, in order, over memory.
#pragma once
#include <utility>

#include "weights.h"

namespace onednn {

class Plan {
 public:
  // For arrays of these shapes: inputs, parameters, outputs. `program` and the weights' parameters outlive it.
  Plan(const Program &program, Weights &weights, std::vector<Dims> shapes);

  const std::vector<Dims> &shapes() const { return shapes_; }
  // Whether it can run with them: others may have other steps padded.
  bool fits(const Weights &weights) const { return padded_ == weights.padded(); }
  void run(Weights &weights, const DLTensor *const *args, const dnnl::stream &stream);

 private:
  using Arguments = std::vector<std::pair<int, memory>>;
  struct Value {
    Dims dims;
    memory data;            // in the layout that it was made in
    memory row_major;       // the same, where there is one
    bool is_array = false;  // row_major lies in an array of the run,
    uint32_t array = 0;     // this one
  };
  struct Execution {
    dnnl::primitive primitive;
    Arguments arguments;
    std::vector<dnnl_exec_arg_t> raw;
  };
  struct Weight {  // an argument that another binding of parameters has anew
    size_t execution, argument;
    uint32_t step;
    memory::desc layout;  // zero: it is a bias
  };
  struct Product {  // what posts see of the step before them
    Dims dims;      // of its result, as the primitive counts them
    size_t channel;
    memory::desc layout;
  };

  memory array(uint32_t slot, const memory::desc &desc);
  memory row_major_of(uint32_t slot);
  memory seen(uint32_t slot, const memory::desc &desc);       // its elements in row-major order, as another array
  memory moved(const memory &from, const memory::desc &to);   // the same dims, in a layout
  memory in_layout(uint32_t slot, const memory::desc &desc);  // the same dims
  memory room_for(uint32_t slot, const memory::desc &desc);
  void keep(uint32_t slot, Dims dims, const memory &made);

  bool keep_empty(uint32_t slot, const Dims &dims);  // where there is nothing to compute

  void add_step(uint32_t index);
  void add_product(uint32_t index);
  void add_convolution(uint32_t index);
  memory pad(const Step &step);
  void add_binary(const Step &step);
  void add_norm(const Step &step);
  void add_pooling(const Step &step);
  void add_function(const Step &step);
  void add_copy(const Step &step);
  template <class Description>
  void add(const Description &description, Arguments arguments);
  void add_reorder(const memory &from, const memory &to);
  // A product or convolution and what follows it: `make` gives the primitive's description with these attributes; where
  // it has none with all the posts, they are steps of their own. The weights are argument 1, in `weights` if that is
  // not zero, and the bias, if a norm is in it, argument 2. Ends with the result kept.
  template <class Make>
  void add_with_posts(uint32_t index, const Make &make, const Product &product, Dims dims, Arguments arguments,
                      const memory::desc &weights);
  memory post_operand(const Post &post, const Product &product, const Dims &dims);
  void add_post(const Post &post, const memory &to, const memory &other);

  const Dims &dims_of(uint32_t slot) const { return values_[slot].dims; }
  kiln_dtype dtype_of(uint32_t slot) const { return program_.slots[slot].dtype; }

  const Program &program_;
  Weights *weights_;  // of the last run
  std::vector<Dims> shapes_;
  std::vector<Value> values_;
  std::vector<Execution> executions_;
  std::vector<Weight> bound_weights_;
  std::vector<std::pair<uint32_t, memory>> arrays_;  // whose data each run tells, several of one
  std::vector<memory> scratchpads_, padding_;
  memory scratch_;
  std::set<uint32_t> padded_;
  std::vector<void *> at_;  // where `arrays_` were at the last run
  uint64_t serial_ = 0;
};

template <class Description>
void Plan::add(const Description &description, Arguments arguments) {
  const memory::desc scratch = description.scratchpad_desc();
  if (scratch.get_size() != 0) {
    scratchpads_.emplace_back(scratch, cpu(), nullptr);
    arguments.emplace_back(DNNL_ARG_SCRATCHPAD, scratchpads_.back());
  }
  executions_.push_back({dnnl::primitive(description.get()), std::move(arguments), {}});
}

}  // namespace onednn
