// Which element types of which op are run on which backend: told from the records of ops and from what conformance_test
// runs, never written by hand. `./dev types` prints the table.
#include <gtest/gtest.h>

#include "tests/backend/backends.h"
#include "tests/backend/cuda_backend.h"

namespace kiln::testing {
namespace {

struct Coverage {
  DTypes taken = 0;    // operands may have them, as the record says
  DTypes tested = 0;   // operands have them in a case
  DTypes results = 0;  // results have them in a case
  DTypes asked = 0;    // an attribute may ask for them
};

std::vector<DType> all_types() {
  std::vector<DType> all;
  for (int number = 1; number <= dtype_count; ++number) all.push_back(static_cast<DType>(number));
  return all;
}

// What inference accepts as an attribute that is a dtype, in some sample: no record tells it.
DTypes asked_of(const Op &op) {
  DTypes asked = 0;
  SampleSink samples;
  op.samples(samples);
  for (const AttrDef &attr : op.attrs) {
    if (attr.kind != AttrKind::dtype) continue;
    for (Sample sample : samples)
      for (DType type : all_types()) {
        sample.attrs.insert_or_assign(std::string(attr.name), type);
        if (retyped(op, sample, DType::f32)) asked |= dtypes(type);
      }
  }
  return asked;
}

Result<Coverage> coverage_of(const Op &op) {
  Coverage all;
  for (const ArgDef &arg : op.args) all.taken |= arg.dtypes;
  all.asked = asked_of(op);
  KILN_ASSIGN(const std::vector<Case> cases, all_cases_of(op));
  for (const Case &made : cases)
    for (const Node &node : made.graph->nodes()) {
      if (node.op != &op) continue;
      for (ValueId input : node.inputs) all.tested |= dtypes(made.graph->type(input).dtype);
      for (const TensorType &type : node.results) all.results |= dtypes(type.dtype);
    }
  return all;
}

std::vector<Backend> backends_and_standins() {
  std::vector<Backend> all = backends();
  all.push_back(cuda_on_standins());
  return all;
}

std::string row_of(const Op &op, const Coverage &coverage) {
  std::string row = str_cat("| `", op.name, "` |");
  for (DType type : all_types()) {
    const DTypes one = dtypes(type);
    str_append(row, coverage.tested & one    ? " x |"
                    : coverage.results & one ? " r |"
                    : coverage.taken & one   ? " ? |"
                                             : " |");
  }
  for (const Backend &backend : backends_and_standins())
    if (const auto excluded = backend.excluded.find(op.name); excluded != backend.excluded.end())
      str_append(row, str_cat(" not on ", backend.name, ": ", excluded->second, ";"));
  return row + " |\n";
}

TEST(Coverage, OfEveryTypeThatARecordNames) {
  const std::vector<DType> types = all_types();
  std::string table =
      str_cat("x: operands of the type are tested; r: results of it alone\non: ",
              join(backends_and_standins(), "; ", [](const Backend &backend) { return backend.name; }), "\n\n| op |",
              join(types, "|", [](DType type) { return str_cat(" ", name_of(type), " "); }), "| exclusions |\n|---|");
  for (size_t column = 0; column <= types.size(); ++column) str_append(table, "---|");
  str_append(table, "\n");
  for (const Op *op : all_ops()) {
    const Result<Coverage> coverage = coverage_of(*op);
    ASSERT_TRUE(coverage.ok()) << op->name << ": " << coverage.status().message();
    for (DType type : types) {
      EXPECT_FALSE(coverage->taken & ~coverage->tested & dtypes(type))
          << op->name << " takes " << name_of(type) << ", and no case has it";
      EXPECT_FALSE(coverage->asked & ~coverage->results & dtypes(type))
          << op->name << " gives " << name_of(type) << " where it is asked to, and no case does";
    }
    str_append(table, row_of(*op, *coverage));
  }
  std::printf("%s", table.c_str());
}

}  // namespace
}  // namespace kiln::testing
