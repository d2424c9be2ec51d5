// All turns of a scan in one kernel: each point of the parallel axes goes through all turns by itself, with its part of
// what is carried in row_local buffers. The turn's stages get a block axis in front, which counts turns; before them
// what is carried is fetched, after each turn what was made takes its place, in the end it is stored.
#include <algorithm>
#include <map>

#include "jit/kernel/fuse_steps.h"

namespace kiln::kernel {
namespace {

constexpr int64_t most_in_a_row = 4096;  // elements that one point carries of a tensor: little beside a cache

Expr elements_of(const Tensor &tensor) {
  Expr count = 1;
  for (const Expr &dim : tensor.dims) count *= dim;
  return count;
}

// Gives stages without axes of their own, where the points lie side by side, a part of them: turn after turn a whole
// piece of memory is walked, not a line here and there (0.5 to 0.8 of a copy's rate for a recurrence of 4,096 values
// and turns, for 0.16).
void walk_side_by_side(Kernel &kernel) {
  const bool plain = std::ranges::all_of(kernel.stages, [](const Stage &stage) { return stage.axes.empty(); }) &&
                     kernel.buffers.back().space != Buffer::Space::row_local;  // which a point has for itself
  if (!plain || kernel.parallel.empty()) return;
  Expr &extent = kernel.parallel.back().extent;
  constexpr int64_t tasks = 4;  // at least, as far as that is known
  int64_t piece = 1024;
  const auto suits = [&] {
    return mod(extent, piece).is(0) && (!extent.is_integer() || extent.integer() >= tasks * piece);
  };
  while (piece >= 64 && !suits()) piece /= 2;
  if (piece < 64) return;
  const auto last = static_cast<uint32_t>(kernel.parallel.size()) - 1;
  extent = floor_div(extent, piece);
  const Expr at = Expr::axis(last, extent) * piece + Expr::axis(last + 1, piece);
  for (Stage &stage : kernel.stages) {
    stage.axes = {{piece, Axis::Role::loop}};
    for_each_expr_of_stage(stage, [&](Expr &e) {
      e = e.substitute([&](const Expr &leaf) -> std::optional<Expr> {
        if (leaf.kind() != Expr::Kind::axis || leaf.id() != last) return {};
        return at;
      });
    });
  }
}

class TurnsBuilder {
 public:
  TurnsBuilder(Built turn, const std::vector<Tensor> &tensors, const Turns &turns)
      : turn_(std::move(turn)), tensors_(tensors), turns_(turns), rows_(turn_.kernel.parallel.size()) {
    const Expr number = turns.count.is(1) ? Expr(0) : Expr::axis(static_cast<uint32_t>(rows_), turns.count);
    number_ = turns.reverse ? turns.count - 1 - number : number;
    for (size_t p = 0; p < rows_; ++p) {
      const Expr &extent = turn_.kernel.parallel[p].extent;
      point_ = point_ * extent + Expr::axis(static_cast<uint32_t>(p), extent);
      points_ *= extent;
    }
  }

  // Nothing: what points carry is not apart, or they carry too much.
  std::optional<Built> run() {
    if (!find_rows()) return std::nullopt;
    out_.kernel.parallel = turn_.kernel.parallel;
    add_buffers();
    for (size_t c = 0; c < rows_of_.size(); ++c) move(c, Move::fetch);
    for (Stage &stage : turn_.kernel.stages)
      if (!add_turn(std::move(stage))) return std::nullopt;
    for (size_t c = 0; c < rows_of_.size(); ++c) move(c, Move::carry_on);
    for (size_t c = 0; c < rows_of_.size(); ++c) move(c, Move::give_out);
    return std::move(out_);
  }

 private:
  // Where an access to a buffer of the turn goes: to the same index, to the point's own row, to the turn's element.
  struct Place {
    enum class Kind : uint8_t { same, row, element } kind = Kind::same;
    uint16_t buffer = 0;
    Expr size = 0;  // row, element: how many elements it has
  };
  struct Row {
    Expr size;
    uint16_t given = 0, held = 0, made = 0, end = 0;  // buffers
  };

  bool find_rows() {
    for (const Turns::Carried &carried : turns_.carried) {
      const Expr all = elements_of(tensors_[carried.before]), row = floor_div(all, points_);
      if (!row.is_integer() || row.integer() < 1 || row.integer() > most_in_a_row || !(row * points_ == all))
        return false;
      rows_of_.push_back({row});
    }
    return true;
  }

  uint16_t add(DType type, Buffer::Space space, Expr size) {
    out_.kernel.buffers.push_back({type, space, std::move(size)});
    return static_cast<uint16_t>(out_.kernel.buffers.size() - 1);
  }
  uint16_t add(uint32_t tensor, Buffer::Space space, Expr size) {
    out_.launch.buffers.push_back(tensor);
    return add(tensors_[tensor].dtype, space, std::move(size));
  }

  void add_buffers() {
    const std::vector<Buffer> &buffers = turn_.kernel.buffers;
    const auto tensor_of = [&](size_t buffer) { return turn_.launch.buffers[buffer]; };
    const auto add_elements = [&](const Turns::Sequence &s, Buffer::Space space) {
      const Expr size = elements_of(tensors_[s.element]);
      return Place{Place::Kind::element, add(s.whole, space, turns_.count * size), size};
    };
    reads_.resize(buffers.size());
    writes_.resize(buffers.size());
    for (size_t b = 0; b < turn_.launch.buffers.size() && buffers[b].space == Buffer::Space::in; ++b) {
      const auto sequence = std::ranges::find(turns_.read, tensor_of(b), &Turns::Sequence::element);
      if (sequence != turns_.read.end())
        reads_[b] = add_elements(*sequence, Buffer::Space::in);
      else if (std::ranges::find(turns_.carried, tensor_of(b), &Turns::Carried::before) == turns_.carried.end())
        reads_[b] = {Place::Kind::same, add(tensor_of(b), Buffer::Space::in, buffers[b].size)};
    }
    const auto carried_size = [&](size_t c) { return elements_of(tensors_[turns_.carried[c].before]); };
    for (size_t c = 0; c < rows_of_.size(); ++c)
      rows_of_[c].given = add(turns_.carried[c].before, Buffer::Space::in, carried_size(c));
    for (size_t c = 0; c < rows_of_.size(); ++c)
      rows_of_[c].end = add(turns_.carried[c].end, Buffer::Space::out, carried_size(c));
    std::map<uint32_t, std::vector<Place>> made;  // by tensor of the turn
    for (const Turns::Sequence &s : turns_.made) made[s.element].push_back(add_elements(s, Buffer::Space::out));
    for (size_t c = 0; c < rows_of_.size(); ++c) {
      Row &row = rows_of_[c];
      const DType type = tensors_[turns_.carried[c].before].dtype;
      row.held = add(type, Buffer::Space::row_local, row.size);
      row.made = add(type, Buffer::Space::row_local, row.size);
      made[turns_.carried[c].after].push_back({Place::Kind::row, row.made, row.size});
    }
    for (size_t b = 0; b < buffers.size(); ++b) {
      if (buffers[b].space == Buffer::Space::row_local) {
        reads_[b] = {Place::Kind::same, add(buffers[b].type, Buffer::Space::row_local, buffers[b].size)};
        writes_[b] = {reads_[b]};
      } else if (buffers[b].space == Buffer::Space::out) {
        writes_[b] = made.at(tensor_of(b));
        reads_[b] = writes_[b].back();
      } else {
        const auto carried = std::ranges::find(turns_.carried, tensor_of(b), &Turns::Carried::before);
        if (carried == turns_.carried.end()) continue;
        const Row &row = rows_of_[static_cast<size_t>(carried - turns_.carried.begin())];
        reads_[b] = {Place::Kind::row, row.held, row.size};
      }
    }
  }

  // Makes room for the axis of turns among a stage's.
  Expr shifted(const Expr &e) const {
    if (e.is_integer()) return e;
    return e.substitute([this](const Expr &leaf) -> std::optional<Expr> {
      if (leaf.kind() != Expr::Kind::axis || leaf.id() < rows_) return {};
      return Expr::axis(leaf.id() + 1, leaf.extent());
    });
  }

  bool redirect(Access &access, const Place &place) const {
    access.buffer = place.buffer;
    Expr &index = access.index[0];
    if (place.kind == Place::Kind::element) index += number_ * place.size;
    if (place.kind != Place::Kind::row) return true;
    index = index - point_ * place.size;
    if (access.valid >= 0 || access.index.size() != 1 || index.depends_on_value()) return false;
    for (uint32_t p = 0; p < rows_; ++p)
      if (index.depends_on_axis(p)) return false;
    return true;
  }

  bool add_turn(Body &body) const {
    for (Value &v : body.values) {
      v.expr = shifted(v.expr);
      for (Expr &index : v.access.index) index = shifted(index);
      if (reads_memory(v.op) && !redirect(v.access, reads_[v.access.buffer])) return false;
    }
    return true;
  }

  bool add_turn(Stage stage) {
    stage.axes.insert(stage.axes.begin(), {turns_.count, Axis::Role::block});
    if (!add_turn(stage.body)) return false;
    if (stage.contract) {
      if (!add_turn(stage.contract->a) || !add_turn(stage.contract->b)) return false;
    }
    std::vector<Store> stores;
    for (const Store &store : stage.stores) {
      if (store.combines() || store.scatters()) return false;
      for (const Place &place : writes_[store.to.buffer]) {
        Store &to = stores.emplace_back(store);
        to.to.index[0] = shifted(to.to.index[0]);
        if (!redirect(to.to, place)) return false;
      }
    }
    stage.stores = std::move(stores);
    out_.kernel.stages.push_back(std::move(stage));
    return true;
  }

  // A stage that moves the point's row.
  enum class Move : uint8_t { fetch, carry_on, give_out };
  void move(size_t c, Move what) {
    const Row &row = rows_of_[c];
    Stage stage;
    if (what == Move::carry_on) stage.axes.push_back({turns_.count, Axis::Role::block});
    Expr at = 0;
    if (!row.size.is(1)) {
      at = Expr::axis(static_cast<uint32_t>(rows_ + stage.axes.size()), row.size);
      stage.axes.push_back({row.size, Axis::Role::loop});
    }
    const Expr whole = point_ * row.size + at;
    const DType type = tensors_[turns_.carried[c].before].dtype;
    BodyBuilder body(stage.body);
    if (what == Move::fetch)
      body.yield(body.load(row.given, type, {whole}));
    else
      body.yield(body.load(what == Move::carry_on ? row.made : row.held, type, {at}));
    const bool out = what == Move::give_out;
    stage.stores.push_back({{.buffer = out ? row.end : row.held, .index = {out ? whole : at}, .valid = -1, .fill = 0},
                            0,
                            Store::Mode::plain});
    out_.kernel.stages.push_back(std::move(stage));
  }

  Built turn_;
  const std::vector<Tensor> &tensors_;
  const Turns &turns_;
  const size_t rows_;  // parallel axes
  Expr number_ = 0, point_ = 0, points_ = 1;
  std::vector<Row> rows_of_;                // by carried tensor
  std::vector<Place> reads_;                // by buffer of the turn
  std::vector<std::vector<Place>> writes_;  // likewise
  Built out_;
};

}  // namespace

std::optional<Built> take_turns(Built turn, const std::vector<Tensor> &tensors, const Turns &turns,
                                const Target &target) {
  collapse_axes(turn.kernel);
  if (!target.on_device()) walk_side_by_side(turn.kernel);
  return TurnsBuilder(std::move(turn), tensors, turns).run();
}

}  // namespace kiln::kernel
