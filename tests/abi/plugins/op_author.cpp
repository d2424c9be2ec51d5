// An op by kiln/op.hpp, which uses all of it and fails where its attribute "fails" says; op_header_test.cpp runs it.
#include <kiln/op.hpp>
#include <stdexcept>

KILN_PLUGIN_NOTE(0, KILN_FEATURE_OPS, "op_author");

namespace {

using kiln::op::Arrays;
using kiln::op::Call;
using kiln::op::Error;

// y = by * x + plus, with `more` elements of `plus` at the end; counts its runs in the last one, where `counts`.
class Author {
 public:
  static constexpr std::string_view schema = R"({"name": "author.extend", "args": [
      {"name": "x", "dtypes": ["f32", "f64"]}, {"name": "like", "dtypes": ["f32", "f64"], "arity": "optional"}],
      "results": ["y"], "attrs": [
      {"name": "by", "kind": "f64", "default": 1}, {"name": "plus", "kind": "i64", "default": 0},
      {"name": "more", "kind": "dim", "default": 0}, {"name": "counts", "kind": "bool", "default": false},
      {"name": "fails", "kind": "text", "default": ""}]})";
  static constexpr std::array<uint8_t, 16> uuid = {0xa1, 3};
  static constexpr uint32_t flags = 0;

  static void infer(Call &call) {
    std::vector<kiln_dim> x = call.dims(0);
    if (x.size() != 1) call.fail("x is " + call.text(x) + ", expected [n]");
    if (call.operand_count() > 1) call.require_equal(x[0], call.dims(1)[0], "x dim 0 and like dim 0");
    fail_at(call, "infer");
    if (call.word("fails") == "kind") call.integer("by");
    if (call.word("fails") == "name") call.integer("tall");
    if (call.word("fails") == "operand") call.dims(7);
    x[0] = call.parse(call.text(x[0]) + " + " + call.text(call.dim("more")));
    call.result(0, call.dtype(0), x);
  }

  explicit Author(Call &call)
      : by_(call.number("by")), plus_(call.integer("plus")), counts_(call.truth("counts")), fails_(call.word("fails")) {
    fail_at(call, "open");
  }

  void run(const Arrays &arrays) {
    if (fails_ == "run") throw Error(KILN_OUT_OF_RANGE, "no such luck");
    if (fails_ == "memory") throw std::bad_alloc();
    if (fails_ == "int") throw 3;
    if (fails_ == "exception") throw std::runtime_error("thrown");
    runs_++;
    if (arrays.is_f64(0))
      extend<double>(arrays);
    else
      extend<float>(arrays);
  }

 private:
  static void fail_at(const Call &call, std::string_view place) {
    if (call.word("fails") == place) throw Error(KILN_UNIMPLEMENTED, "no such luck in " + std::string(place));
  }

  template <class T>
  void extend(const Arrays &arrays) const {
    const auto given = static_cast<size_t>(arrays.shape(0)[0]),
               made = static_cast<size_t>(arrays.shape(arrays.size() - 1)[0]);
    T *const y = arrays.data<T>(arrays.size() - 1);
    for (size_t i = 0; i < made; i++)
      y[i] = static_cast<T>(plus_) + (i < given ? static_cast<T>(by_) * arrays.data<T>(0)[i] : 0);
    if (counts_) y[made - 1] = static_cast<T>(runs_);
  }

  const double by_;
  const int64_t plus_;
  const bool counts_;
  const std::string fails_;
  int64_t runs_ = 0;
};

}  // namespace

const kiln_plugin *kiln_plugin_entry_v1(void) { return kiln::op::plugin<Author>("op_author"); }
