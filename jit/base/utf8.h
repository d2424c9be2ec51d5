// UTF-8 as Unicode defines it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace kiln {

// The length of the valid sequence that `text` begins with, or 0. `text` is not empty.
size_t utf8_sequence(std::string_view text);
bool is_utf8(std::string_view text);
// For a message of one line: control characters and what is not UTF-8 as \xNN, and cut after `longest` bytes.
std::string printable(std::string_view text, size_t longest = 1000);
void append_utf8(std::string &out, char32_t code_point);

}  // namespace kiln
