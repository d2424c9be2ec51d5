# Writes KILN_TO, a C++ file that holds the page KILN_FROM. A literal may be no longer than compilers take.
file(READ ${KILN_FROM} text)
string(LENGTH "${text}" length)
set(parts)
set(at 0)
while(at LESS length)
  string(SUBSTRING "${text}" ${at} 8000 part)
  string(APPEND parts "    R\"kiln_page(${part})kiln_page\"\n")
  math(EXPR at "${at} + 8000")
endwhile()
file(WRITE ${KILN_TO} "#include \"report.h\"

namespace kiln::cli {

std::string_view report_page() {
  return
${parts}    ;
}

}  // namespace kiln::cli
")
