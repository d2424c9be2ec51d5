// Values by name, each with an id of its user's by which it is taken back: what hosts register.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jit/base/str.h"

namespace kiln {

template <class Value>
class NamedTable {
 public:
  struct Entry {
    uint64_t id;
    Value value;
  };

  bool empty() const { return entries_.empty(); }
  auto begin() const { return entries_.begin(); }  // pairs of name and entry, by name
  auto end() const { return entries_.end(); }
  // Null: there is none.
  const Value *find(std::string_view name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() ? nullptr : &found->second.value;
  }
  const std::string *name_of(uint64_t id) const {
    const auto found = std::ranges::find(entries_, id, [](const auto &e) { return e.second.id; });
    return found == entries_.end() ? nullptr : &found->first;
  }
  // False: the name has one already.
  bool add(uint64_t id, std::string_view name, Value value) {
    return entries_.try_emplace(std::string(name), Entry{id, std::move(value)}).second;
  }
  // False: none has the id.
  bool remove(uint64_t id) {
    return std::erase_if(entries_, [id](const auto &e) { return e.second.id == id; }) > 0;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto &entry : entries_) all.push_back(entry.first);
    return all;
  }
  // What a message says of a name that is not there: "; there are a, b", or that there are none.
  std::string known() const {
    if (entries_.empty()) return "; none is registered";
    return str_cat("; there are ", join(entries_, ", ", [](const auto &e) { return e.first; }));
  }

 private:
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace kiln
