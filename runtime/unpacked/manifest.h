// What an unpacked artifact says of itself in artifact.json: all that is nobody's to edit, and a digest of each member.
// Internal to this folder.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "jit/base/hash.h"
#include "jit/base/status.h"
#include "runtime/plan/artifact.h"
#include "runtime/plan/plan_walk.h"

namespace kiln::unpacked {

inline constexpr uint32_t manifest_format = 1;

struct Manifest {
  // An image as an artifact has it, its code by number.
  struct CodeImage {
    uint32_t code = 0;
    uint64_t entry_offset = 0;
    std::string entry;
    kiln_kernel_use use = {};
    std::string compiler;
    Digest kernel_key;
    Contract contract;
  };
  struct Constant {
    DType dtype = DType::f32;
    std::vector<int64_t> shape;
  };
  struct GraphProgram {
    uint32_t graph = 0, parameters = 0;
    std::string backend;
  };
  struct Target {
    std::string backend, target;
  };
  struct Member {
    std::string path;   // with '/', from the folder on
    uint64_t size = 0;  // bytes
    Digest digest;
  };

  uint32_t format = 0;
  std::string build_id;
  std::vector<Target> targets;  // of an artifact for several: each has a folder of its own, and here is nothing else
  std::string backend, target;
  Digest key;
  std::vector<KeyComponent> components;
  std::vector<Use> uses;
  std::vector<Answer> answers;
  std::vector<std::string> edited;  // of what it was made
  std::vector<uint32_t> written_inputs, donated_inputs;
  uint32_t codes = 0;
  std::vector<CodeImage> images;
  bool has_graph = false;  // of several, which programs for some sizes are made of
  std::vector<Constant> constants;
  uint32_t graph_constants = 0;  // of these the last ones, which the graph has and the plan has not
  uint32_t graphs = 0;           // that steps of kind reference run
  std::vector<GraphProgram> programs;
  std::vector<std::string> entries;  // their sizes
  std::vector<Member> members;
};

// What a member of the folder is.
enum class Role : uint8_t { graph, plan, kernel, code, constant, step_graph, program, report };
struct MemberName {
  std::string path;
  Role role;
  uint32_t number = 0;
};
// All that an artifact has beside artifact.json and its entries: no path is taken from a file.
std::vector<MemberName> member_names(const Manifest &manifest);
std::string folder_of_entry(size_t number);
std::string folder_of_target(size_t number);

// With a digest of itself. Reading: code corrupt, also where it was edited; incompatible, of another build.
std::string text_of(const Manifest &manifest);
Result<Manifest> read_manifest(std::string_view text, std::string_view build_id);

}  // namespace kiln::unpacked
