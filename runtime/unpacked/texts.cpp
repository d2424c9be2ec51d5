#include "runtime/unpacked/texts.h"

#include "runtime/unpacked/pretty.h"
#include "runtime/unpacked/text_reader.h"
#include "runtime/unpacked/text_writer.h"

namespace kiln::unpacked {

std::string text_of(const kernel::Kernel &kernel) { return pretty(TextWriter().text_of_item(kernel)); }

Result<kernel::Kernel> read_kernel(std::string_view text) {
  KILN_ASSIGN(const json::Document document, json::parse(text));
  TextReader reader;
  reader.in_kernel = true;
  kernel::Kernel kernel;
  KILN_TRY(reader.read(json::View(document.get(), ""), kernel));
  KILN_TRY(kernel::verify(kernel));
  return kernel;
}

std::string text_of(const Plan &plan) {
  TextWriter writer;
  std::string text = str_cat("{\"plan\":", writer.text_of_item(plan));
  std::string nested;
  for (size_t i = 0; i < writer.plans.size(); ++i) {  // writing one finds those in it
    const std::string one = writer.text_of_item(*writer.plans[i]);
    str_append(nested, str_cat(i ? "," : "", one));
  }
  if (!nested.empty()) str_append(text, str_cat(",\"plans\":[", nested, "]"));
  return pretty(text + "}");
}

Result<Plan> read_plan(std::string_view text) {
  KILN_ASSIGN(const json::Document document, json::parse(text));
  const json::View top(document.get(), "");
  KILN_TRY(top.allow_members({"plan", "plans"}));
  KILN_ASSIGN(const json::View outermost, top.required("plan"));
  TextReader reader;
  if (const auto plans = top.member("plans")) {
    KILN_ASSIGN(reader.plans, plans->as_list());
    reader.taken.resize(reader.plans.size());
  }
  Plan plan;
  KILN_TRY(reader.read(outermost, plan));
  for (size_t i = 0; i < reader.taken.size(); ++i)
    if (!reader.taken[i]) return reader.plans[i].fail("no plan has it among its nested ones");
  return plan;
}

}  // namespace kiln::unpacked
