cmake_policy(VERSION 3.20)  # @NAMES@ stand for nothing in a string
# Writes KILN_TO, a C++ file that holds the page KILN_FROM. A literal may be no longer than compilers take.
file(READ ${KILN_FROM} text)
string(REPLACE "@KILN_VERSION@" "${KILN_VERSION}" text "${text}")
string(LENGTH "${text}" length)
set(parts)
set(at 0)
while(at LESS length)
  string(SUBSTRING "${text}" ${at} 8000 part)
  string(APPEND parts "    R\"kiln_page(${part})kiln_page\"\n")
  math(EXPR at "${at} + 8000")
endwhile()
file(WRITE ${KILN_TO} "#include \"runtime/report/page.h\"

namespace kiln {

std::string_view page_template() {
  return
${parts}    ;
}

}  // namespace kiln
")
