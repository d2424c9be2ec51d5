// Pieces: programs that were compiled by themselves, as parts of one plan. What they use is numbered anew there.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/plan/artifact.h"
#include "runtime/plan/node_names.h"
#include "runtime/regions/region.h"

namespace kiln {

struct Piece {
  Region region;  // of kind piece
  std::shared_ptr<const Artifact> program;
  // The graph whose nodes the program's messages name: the region's, or one that is equal but for names.
  GraphPtr named;
};

// What several programs use, each thing once.
class PieceParts {
 public:
  // By the numbers that a program gives them, those that they have here.
  struct Numbers {
    std::vector<uint32_t> images, graphs;
  };
  // `program` lives as long as the plan is made.
  const Numbers &add(const std::shared_ptr<const Artifact> &program);

  // By their numbers.
  std::vector<Image> images = {};
  std::vector<Contract> contracts = {};  // of the images
  std::vector<Bytes> kernels = {};       // likewise
  std::vector<std::string> graphs = {};
  std::map<uint32_t, Program> programs = {};  // of the graphs

 private:
  std::map<const Artifact *, Numbers> known_;
};

// The plan of a piece of `whole` with the numbers that what it uses has in the plan of all (`constants` those of its
// constants), and the names of the nodes that `outer` names.
Plan plan_of(const Piece &piece, const Graph &whole, const PieceParts::Numbers &numbers,
             std::span<const uint32_t> constants, const NodeNames &outer);

// By the slots of a step: which it writes. `nested` are the plans that its numbers speak of.
std::vector<bool> written_by(const Plan::Step &step, std::span<const Plan> nested, std::span<const Contract> contracts);

}  // namespace kiln
