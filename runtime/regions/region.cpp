#include "runtime/regions/region.h"

namespace kiln {

Result<std::vector<Region>> partition(GraphPtr graph, const std::string &backend) {
  return std::vector<Region>{{backend, std::move(graph)}};
}

}  // namespace kiln
