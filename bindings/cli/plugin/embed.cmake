# Writes KILN_TO, a C++ file that holds the templates of `kiln plugin new`, from the sources in KILN_SOURCE.
set(files)
function(embed name text)
  set(files "${files}    {\"${name}\", R\"kiln_file(${text})kiln_file\"},\n" PARENT_SCOPE)
endfunction()

# The first block of C++ of a page, which tests build as it stands.
function(read_page page out)
  file(READ ${KILN_SOURCE}/docs/${page} text)
  string(FIND "${text}" "```cpp\n" begin)
  math(EXPR begin "${begin} + 7")
  string(SUBSTRING "${text}" ${begin} -1 text)
  string(FIND "${text}" "```" end)
  string(SUBSTRING "${text}" 0 ${end} text)
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

# The graph and what a test expects of it.
macro(embed_case name path)
  foreach(ending json txt)
    file(READ ${KILN_SOURCE}/${path}.${ending} text)
    embed(${name}/${ending} "${text}")
  endforeach()
endmacro()

file(READ ${KILN_SOURCE}/plugins/template/CMakeLists.txt text)
embed(build "${text}")
foreach(entry pass:template op:op_template backend:backend_template)
  string(REPLACE ":" ";" entry ${entry})
  list(GET entry 0 kind)
  list(GET entry 1 folder)
  file(READ ${KILN_SOURCE}/plugins/${folder}/${folder}.c text)
  embed(c/${kind}/source "${text}")
  embed_case(c/${kind} plugins/${folder}/golden/${folder})
endforeach()
read_page(write-a-pass.md text)
embed(cpp/pass/source "${text}")
embed_case(cpp/pass plugins/template/golden/template)
read_page(write-an-op.md text)
embed(cpp/op/source "${text}")
embed_case(cpp/op bindings/cli/plugin/templates/op_cpp)

file(WRITE ${KILN_TO} "#include \"plugin/templates.h\"

namespace kiln::cli {
namespace {

constexpr TemplateFile files[] = {
${files}};

}  // namespace

std::span<const TemplateFile> template_files() { return files; }

}  // namespace kiln::cli
")
