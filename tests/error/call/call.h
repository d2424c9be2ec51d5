// What the cases of calls share: a graph compiled for each backend, arrays of the host's, and what a run answers.
#pragma once
#include <atomic>
#include <chrono>
#include <deque>
#include <thread>

#include "tests/abi/host.h"
#include "tests/error/expect.h"

namespace refused {

// Every case runs on the compiling backend and on the reference.
class OnEachBackend : public testing::TestWithParam<const char *> {
 protected:
  void compile(std::string_view json) {
    graph_ = host::parse(context_.get(), json);
    host::Compiled compiled = host::compile(context_.get(), graph_.get(), [](kiln_options *options) {
      EXPECT_OK(kiln_options_set_text(options, "backend", 7, GetParam(), std::strlen(GetParam())));
    });
    ASSERT_EQ(compiled.error.code, KILN_OK) << compiled.error.message;
    executable_ = std::move(compiled.executable);
    kiln_call *made = nullptr;
    ASSERT_OK(kiln_call_create(executable_.get(), &made));
    call_.reset(made);
  }

  // y[n, 2] = x[n, 2] + w[2], of f32; w is a parameter, which the second binds.
  void compile_sum() {
    compile(R"({"kiln": 1,
      "inputs": [{"name": "x", "type": {"dtype": "f32", "shape": ["n", 2]}}],
      "parameters": [{"name": "w", "type": {"dtype": "f32", "shape": [2]}}],
      "nodes": [{"name": "y", "op": "add", "inputs": ["x", "w"]}],
      "outputs": [{"name": "y", "value": "y"}]})");
  }
  void compile_bound_sum() {
    compile_sum();
    ASSERT_EQ(bind("w", f32({2})), host::Error());
  }
  // y = op(a, b) of two vectors; `a` and `b` are their dims, as JSON.
  void compile_binary(const std::string &op, const std::string &dtype, const std::string &a, const std::string &b) {
    const auto input = [&](const std::string &name, const std::string &dim) {
      return R"({"name": ")" + name + R"(", "type": {"dtype": ")" + dtype + R"(", "shape": [)" + dim + "]}}";
    };
    compile(R"({"kiln": 1, "inputs": [)" + input("a", a) + ", " + input("b", b) +
            R"(], "nodes": [{"name": "y", "op": ")" + op + R"(", "inputs": ["a", "b"]}],)" +
            R"( "outputs": [{"name": "y", "value": "y"}]})");
  }
  // An integer by 0 in one element; both `op`s of them say the same.
  void expect_integer_division_by_0(const std::string &op) {
    compile_binary(op, "i64", "2", "2");
    EXPECT_REFUSED(run({i64({7, 7}), i64({1, 0})}), "OUT_OF_RANGE",
                   by_backend("an integer is divided by zero in node 'y' [" + op + "] (first in step 0, kernel 0)",
                              "node 'y' (" + op + "): integer division by zero: operand b holds 0"));
    EXPECT_EQ(run({i64({7, INT64_MIN}), i64({2, -1})}), host::Error()) << "the smallest by -1 wraps";
  }

  const DLTensor *f32(std::vector<int64_t> shape) {
    int64_t count = 1;
    for (int64_t dim : shape) count *= dim;
    return &floats_.emplace_back(std::move(shape), std::vector<float>(static_cast<size_t>(count), 1.0f)).tensor;
  }
  const DLTensor *i64(std::vector<int64_t> values) {
    integers_.push_back(std::move(values));
    shapes_.push_back({static_cast<int64_t>(integers_.back().size())});
    DLTensor &tensor = tensors_.emplace_back();
    tensor = {integers_.back().data(), {kDLCPU, 0}, 1, {kDLInt, 64, 1}, shapes_.back().data(), nullptr, 0};
    return &tensor;
  }

  // Where the compiled code knows less than the reference.
  static std::string by_backend(const std::string &cpu, const std::string &reference) {
    return std::string_view(GetParam()) == "cpu" ? cpu : reference;
  }

  host::Error bind(std::string_view slot, const DLTensor *tensor) {
    uint32_t number = 0;
    EXPECT_OK(kiln_call_slot(call_.get(), slot.data(), slot.size(), &number));
    return host::take(kiln_call_bind(call_.get(), number, tensor));
  }
  host::Error run(std::vector<const DLTensor *> args) {
    return host::take(kiln_call_run(call_.get(), args.data(), args.size(), nullptr));
  }

  host::Context context_ = host::make_context();
  host::Graph graph_;
  host::Executable executable_;
  host::Call call_;

 private:
  std::deque<host::Array> floats_;
  std::deque<std::vector<int64_t>> integers_, shapes_;
  std::deque<DLTensor> tensors_;
};

}  // namespace refused
