// Backends: who makes code of a region, and where it runs. A row each, in a file of its own.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "jit/base/status.h"
#include "jit/base/target.h"
#include "runtime/graph/graph.h"

namespace kiln {

// All that others ask of a backend. What it means is in skeleton.cpp, which is made to be copied.
struct BackendInfo {
  // What it shows of its kernels.
  struct Listing {
    std::string_view name;     // "asm"
    uint32_t want;             // KILN_CODEGEN_*
    std::string_view comment;  // what begins one in the listing's language
  };
  std::string_view name;
  std::string_view module = {};  // the library beside libkiln that makes its code and, for a device, runs it
  std::span<const std::string_view> archs = {};  // of a device: what it can be compiled for
  // Whether a device of one arch runs code for another. Null: its own alone.
  bool (*runs_on)(std::string_view code, std::string_view device) = nullptr;
  int32_t device_type = 1;  // of the memory that its kernels work on, in DLPack's numbers
  std::span<const Listing> listings = {};
  bool compiles_outside = false;  // the module's code is made by a compiler that is no part of Kiln's build
  // Why its code cannot do what a node does, with the types that it has: "it ...". Nothing: it can. Pure; null: it can
  // do all.
  std::optional<std::string> (*refuses)(const Graph &graph, const Node &node) = nullptr;

  bool on_device() const { return !archs.empty(); }  // else this processor runs it
  bool runs(std::string_view code, std::string_view device) const {
    return runs_on ? runs_on(code, device) : code == device;
  }
  bool makes_code() const { return !module.empty(); }  // else it runs graphs as they were given
};

std::span<const BackendInfo *const> backends();
// code unknown_name: names those that there are, and `others`, which are registered.
Result<const BackendInfo *> find_backend(std::string_view name, std::span<const std::string> others = {});
// The one of that name; of a registered one, that which has what it does not take.
const BackendInfo &base_backend(std::string_view name);

// For rows: a node that is marked to be kept whole, of an op that has code by its decomposition alone.
std::optional<std::string> refuse_kept_composites(const Graph &graph, const Node &node);

// The target of `backend` for the options `cpu` (Target::by_name) and `arch` (one of its archs, or "native"; only of a
// device). "native" on a device is a target without arch: whoever needs code has to ask the device. Errors:
// unknown_name; invalid_argument for an option that the backend does not have.
Result<Target> target_of(const BackendInfo &backend, std::string_view cpu, std::string_view arch);

// What a backend says of nodes, and of those of the graphs that they carry. Threads: one at a time.
class Refusals {
 public:
  explicit Refusals(const BackendInfo &backend) : backend_(backend) {}
  const BackendInfo &backend() const { return backend_; }
  // Why the backend does not take the node as it is: "it ...".
  std::optional<std::string> of(const Graph &graph, const Node &node);
  // Whether it takes all nodes.
  bool takes(const Graph &graph) { return !first_in(graph, {}); }
  // Of a graph that is called by a node with these annotations, which its nodes have, too, unless they have others.
  bool takes_called(const Graph &graph, const AttrMap &annotations) {
    return !first_in(graph, handed_down(annotations));
  }

 private:
  static std::string handed_down(const AttrMap &annotations);
  const std::optional<std::string> &first_in(const Graph &graph, const std::string &decompose);

  const BackendInfo &backend_;
  // By graph, and what its nodes are to do about their decompositions, unless they say it themselves.
  std::map<std::pair<const Graph *, std::string>, std::optional<std::string>> known_;
};

}  // namespace kiln
