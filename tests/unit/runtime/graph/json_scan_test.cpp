#include "runtime/graph/json_scan.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

std::string scanned(std::string_view text) { return scan_json(text).message(); }

TEST(JsonScan, AcceptsJson) {
  for (std::string_view text : {"{}", " [1, -0, 0.5e-3, 1E+2, true, false, null, \"\"] ", "{\"a\":{\"a\":[]}}",
                                "\"\\u00e9\\ud83d\\ude00\\n\"", "9007199254740992", "1e-400", "0.0e999"})
    EXPECT_EQ(scanned(text), "") << text;
}

TEST(JsonScan, RefusesWhatParsersTakeForGranted) {
  EXPECT_EQ(scanned("{} x"), "JSON, line 1, column 4: expected the end, found 'x'");
  EXPECT_EQ(scanned("[01]"), "JSON, line 1, column 2: a number begins with 0");
  EXPECT_EQ(scanned("[-]"), "JSON, line 1, column 3: expected a digit, found ']'");
  EXPECT_EQ(scanned("[1.]"), "JSON, line 1, column 4: expected a digit, found ']'");
  EXPECT_EQ(scanned("[1,]"), "JSON, line 1, column 4: expected a value, found ']'");
  EXPECT_EQ(scanned("{\n \"a\": 1,\n \"a\": 2}"), "JSON, line 3, column 2: key 'a' stands twice in one object");
  EXPECT_EQ(scanned("{\"a\": 1, \"\\u0061\": 2}"), "JSON, line 1, column 10: key 'a' stands twice in one object");
  EXPECT_EQ(scanned("\"a\\u0000b\""), "JSON, line 1, column 3: \\u0000 is not allowed");
  EXPECT_EQ(scanned("\"\\ud800\""), "JSON, line 1, column 2: a lone surrogate");
  EXPECT_EQ(scanned("\"\\ud800\\u0041\""), "JSON, line 1, column 2: a lone surrogate");
  EXPECT_EQ(scanned("\"\\udc00\""), "JSON, line 1, column 2: a lone surrogate");
  EXPECT_EQ(scanned("\"\\x\""),
            "JSON, line 1, column 2: an escape is none of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
  EXPECT_EQ(scanned("\"\\u12g4\""), "JSON, line 1, column 6: expected four hexadecimal digits, found 'g'");
  EXPECT_EQ(scanned("\"\xc0\x80\""), "JSON, line 1, column 2: a string is not UTF-8");
  EXPECT_EQ(scanned("\"\xed\xa0\x80\""), "JSON, line 1, column 2: a string is not UTF-8");
  EXPECT_EQ(scanned("\"a\nb\""), "JSON, line 1, column 3: a control character in a string; write it as \\u00XX");
  EXPECT_EQ(scanned("\"abc"), "JSON, line 1, column 1: a string has no end");
  EXPECT_EQ(scanned("1e400"), "JSON, line 1, column 1: number 1e400 is too large; write \"inf\" for infinity");
  EXPECT_EQ(scanned("9007199254740993"),
            "JSON, line 1, column 1: integer 9007199254740993 is beyond 2^53; write it as a string");
  EXPECT_EQ(scanned(std::string(70, '1') + ".5"), "JSON, line 1, column 1: a number has more than 63 characters");
  EXPECT_EQ(scanned(std::string(100, '[')), "JSON, line 1, column 81: nested deeper than 80");
  EXPECT_EQ(scanned("{1: 2}"), "JSON, line 1, column 2: expected a key in quotes, found '1'");
  EXPECT_EQ(scanned("nul"), "JSON, line 1, column 1: expected a value, found 'n'");
  EXPECT_EQ(scanned(std::string_view("[1]\0", 4)), "JSON, line 1, column 4: expected the end, found byte 0");
  EXPECT_EQ(scanned(""), "JSON, line 1, column 1: expected a value, found the end");
}

}  // namespace
}  // namespace kiln
