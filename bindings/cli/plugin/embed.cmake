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

macro(embed_file name path)
  file(READ ${KILN_SOURCE}/${path} text)
  embed(${name} "${text}")
endmacro()

set(own bindings/cli/plugin/templates)
embed_file(c/build plugins/template/CMakeLists.txt)
embed_file(cpp/build plugins/template/CMakeLists.txt)
embed_file(rust/build ${own}/rust/CMakeLists.txt)
foreach(entry pass:template op:op_template backend:backend_template)
  string(REPLACE ":" ";" entry ${entry})
  list(GET entry 0 kind)
  list(GET entry 1 folder)
  embed_file(c/${kind}/source plugins/${folder}/${folder}.c)
  embed_file(rust/${kind}/source ${own}/rust/${kind}.rs)
  foreach(lang c cpp rust)
    if(kind STREQUAL op AND NOT lang STREQUAL c)  # its ops are others
      embed_case(${lang}/${kind} ${own}/op)
    else()
      embed_case(${lang}/${kind} plugins/${folder}/golden/${folder})
    endif()
  endforeach()
endforeach()
read_page(write-a-pass.md text)
embed(cpp/pass/source "${text}")
read_page(write-an-op.md text)
embed(cpp/op/source "${text}")
read_page(patterns.md text)
embed(cpp/pattern/source "${text}")
embed_file(rust/pattern/source ${own}/rust/pattern.rs)
foreach(lang cpp rust)
  embed_case(${lang}/pattern ${own}/pattern)
endforeach()
embed_file(cpp/backend/source ${own}/backend.cpp)
file(GLOB module RELATIVE ${KILN_SOURCE}/${own}/rust/kiln ${KILN_SOURCE}/${own}/rust/kiln/*.rs)
foreach(file IN LISTS module)
  embed_file(rust/module/kiln/${file} ${own}/rust/kiln/${file})
endforeach()

file(WRITE ${KILN_TO} "#include \"plugin/templates.h\"

namespace kiln::cli {
namespace {

constexpr TemplateFile files[] = {
${files}};

}  // namespace

std::span<const TemplateFile> template_files() { return files; }

}  // namespace kiln::cli
")
