// A graph's JSON while it is written, node by node. The graphs that its nodes carry are written by texts of their own.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "corpus.h"

namespace kiln::cli::plugin_check {

class GraphText {
 public:
  // Values are of `dtype` unless something else is said; with `is_symbolic` they have n rows instead of five.
  GraphText(std::string dtype, bool is_symbolic, const Dress &dress)
      : dtype_(std::move(dtype)), is_symbolic_(is_symbolic), dress_(dress), root_(this) {}
  // Of a graph that a node of the other one's carries. Its last inputs are a vector and a matrix, which are what
  // `parameter` answers there: see operands_behind. What it carries in turn is the outermost one's to write.
  explicit GraphText(GraphText &outer)
      : dtype_(outer.dtype_), is_symbolic_(outer.is_symbolic_), dress_(outer.dress_), root_(outer.root_) {}

  const std::string &dtype() const { return dtype_; }
  bool is_nested() const { return root_ != this; }
  std::string rows() const { return is_symbolic_ ? R"(["n", 8])" : "[5, 8]"; }

  // Each answers the value's name.
  std::string input(const std::string &name, const std::string &shape, const std::string &dtype = "");
  std::string parameter(const std::string &shape);
  std::string constant(double value);
  std::string integer(int64_t value);
  std::string node(const std::string &op, const std::vector<std::string> &operands, const std::string &attrs = "");
  void yield(const std::string &value);

  // The inputs that stand behind all others in a nested graph.
  void end_inputs();
  // What its node is given for them: values of the graph around it.
  static std::vector<std::string> operands_behind(GraphText &outer) {
    return {outer.parameter(vector), outer.parameter(matrix)};
  }
  // Of a nested graph that is written: the name by which attributes of nodes say it.
  std::string close();
  // Of the outermost one.
  std::string json() const;

 private:
  static constexpr const char *vector = "[8]", *matrix = "[8, 8]";
  std::string typed(const std::string &name, const std::string &shape, const std::string &dtype) const;
  std::string members() const;

  std::string dtype_;
  bool is_symbolic_;
  const Dress &dress_;
  GraphText *root_;
  std::string inputs_, parameters_, constants_, nodes_, outputs_, graphs_;
  size_t node_count_ = 0, parameter_count_ = 0, constant_count_ = 0, output_count_ = 0, graph_count_ = 0;
};

}  // namespace kiln::cli::plugin_check
