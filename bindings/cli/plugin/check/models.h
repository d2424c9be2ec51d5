// The graphs of the models that come with Kiln. They are in the program (embed_models.cmake).
#pragma once
#include <span>
#include <string_view>

namespace kiln::cli::plugin_check {

struct ModelFile {
  std::string_view name, json;
};
std::span<const ModelFile> model_files();

}  // namespace kiln::cli::plugin_check
