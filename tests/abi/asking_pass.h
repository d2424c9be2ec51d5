// A pass that scales the graph's output by what it is answered, and counts its runs.
#pragma once
#include <cstdlib>

#include "host.h"
#include "test_pass.h"

namespace host {

// Of no answer 1; of an integer itself; of a digest 1 and its first digit; of another text the number that it is.
inline float number_of(const kiln_attr &answer) {
  if (answer.kind == KILN_ATTR_I64) return static_cast<float>(*static_cast<const int64_t *>(answer.data));
  if (answer.kind != KILN_ATTR_TEXT) return 1;
  const std::string text = text_of(*static_cast<const kiln_text *>(answer.data));
  if (text.size() == 64) return 1 + static_cast<float>(std::strtol(text.substr(0, 1).c_str(), nullptr, 16));
  return std::strtof(text.c_str(), nullptr);
}

inline kiln_error *scale_output(kiln_pass_call *call, float by) {
  kiln_context *context = kiln_pass_context(call);
  kiln_edit *edit = kiln_pass_edit(call);
  kiln_value output = 0, constant = 0;
  uint64_t count = 0;
  kiln_op mul = 0;
  kiln_node scaled = 0;
  Array factor({}, {by});
  kiln_error *error = kiln_graph_signature(kiln_edit_view(edit), KILN_SIDE_OUTPUTS, &output, 1, &count);
  if (!error) error = kiln_edit_constant(edit, nullptr, 0, &factor.tensor, &constant);
  if (!error) error = kiln_op_find(context, "mul", 3, &mul);
  const kiln_value operands[] = {output, constant};
  if (!error) error = kiln_edit_add(edit, mul, nullptr, 0, operands, 2, nullptr, 0, &scaled);
  const kiln_value result = scaled << 32;
  if (!error) error = kiln_edit_outputs(edit, &result, nullptr, 1);
  return error ? error : kiln_pass_done(call, 1);
}

struct AskingPass : TestPass {
  int runs = 0;
  // Where the first is answered 2, the last is not asked.
  explicit AskingPass(std::vector<std::string> questions, std::string_view name = "asks")
      : TestPass(
            [this, questions](kiln_pass_call *call) -> kiln_error * {
              runs++;
              float product = 1;
              for (size_t i = 0; i < questions.size(); i++) {
                if (i > 0 && i + 1 == questions.size() && product == 2) break;
                kiln_attr answer{};
                const std::string &question = questions[i];
                if (kiln_error *error = kiln_pass_query(call, question.data(), question.size(), &answer)) return error;
                product *= number_of(answer);
              }
              return scale_output(call, product);
            },
            name) {
    identify();
  }
};

inline void set_fact(const Context &context, std::string_view name, int64_t value) {
  const kiln_attr fact = attr(name, KILN_ATTR_I64, 1, &value);
  EXPECT_OK(kiln_fact_set(context.get(), &fact));
}

// y of scaled(factor) at x = 1.
inline float run_scaled(const Compiled &compiled) {
  kiln_call *made = nullptr;
  EXPECT_OK(kiln_call_create(compiled.executable.get(), &made));
  const Call call(made);
  const Array x({1}, {1}), y({1}, {0});
  const DLTensor *args[] = {&x.tensor, &y.tensor};
  EXPECT_OK(kiln_call_run(call.get(), args, 2, nullptr));
  return y.values[0];
}

}  // namespace host
