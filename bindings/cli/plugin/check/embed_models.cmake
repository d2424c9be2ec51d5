# Writes KILN_TO, a C++ file that holds the graphs of tests/models in KILN_SOURCE, with small sizes as their hints: the
# reference runs them.
set(files)
foreach(model digits chars)
  file(READ ${KILN_SOURCE}/tests/models/${model}/graph.json text)
  foreach(size batch:2 length:7)
    string(REPLACE ":" ";" size ${size})
    list(GET size 0 symbol)
    list(GET size 1 hint)
    string(REGEX REPLACE "(\"${symbol}\": {[^}]*\"hint\": )[0-9]+" "\\1${hint}" text "${text}")
  endforeach()
  string(APPEND files "    {\"${model}\", R\"kiln_file(${text})kiln_file\"},\n")
endforeach()

file(WRITE ${KILN_TO} "#include \"plugin/check/models.h\"

namespace kiln::cli::plugin_check {
namespace {

constexpr ModelFile files[] = {
${files}};

}  // namespace

std::span<const ModelFile> model_files() { return files; }

}  // namespace kiln::cli::plugin_check
")
