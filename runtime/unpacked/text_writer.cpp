#include "runtime/unpacked/text_writer.h"

#include "runtime/graph/json_number.h"

namespace kiln::unpacked {

void TextWriter::key(std::string_view name) { json_.key(name); }
void TextWriter::begin(char bracket) { bracket == '[' ? json_.begin_list() : json_.begin_object(); }
void TextWriter::end(char bracket) { bracket == ']' ? json_.end_list() : json_.end_object(); }
void TextWriter::put_integer(int64_t value) { json_.value(value); }
void TextWriter::put_text(std::string_view text) { json_.value(text); }
void TextWriter::put_immediate(uint64_t bits, DType type) {
  json_.raw(json::text_of_element(immediate_type(type), bits));
}
void TextWriter::put(bool value) { json_.value(value); }
void TextWriter::put(const Expr &e) {
  if (e.is_integer())
    put_integer(e.integer());
  else
    put_text(e.text());
}

}  // namespace kiln::unpacked
