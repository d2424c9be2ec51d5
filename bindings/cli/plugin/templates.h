// The sources that `kiln plugin new` begins with: those of plugins/ and docs/ that readers copy by hand, and what
// templates/ has beside them. They are in the program (embed.cmake), so that it needs no folder beside it.
#pragma once
#include <span>
#include <string_view>

namespace kiln::cli {

struct TemplateFile {
  std::string_view name;  // "c/pass/source"; "c/build", "rust/module/kiln/mod.rs": of each kind
  std::string_view text;
};
std::span<const TemplateFile> template_files();

}  // namespace kiln::cli
