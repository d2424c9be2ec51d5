#include "runtime/graph/json.h"
#include "tests/backend/random/drawing.h"

namespace kiln::testing {
namespace {

// A third of the graphs are of f32, i64 and booleans; in the others all types come, a few in each.
std::vector<DType> draw_types(Dice &dice) {
  std::vector<DType> types = {DType::f32, DType::i64, DType::boolean};
  if (dice.chance(0.35)) return types;
  types = {dice.pick(std::vector<DType>{DType::f64, DType::f32, DType::f16, DType::bf16})};
  if (dice.chance(0.3)) types = {static_cast<DType>(dice.between(1, dtype_count))};
  for (int64_t more = dice.between(1, 4); more > 0; --more) {
    const auto type = static_cast<DType>(dice.between(1, dtype_count));
    if (std::ranges::find(types, type) == types.end()) types.push_back(type);
  }
  return types;
}

Palette draw_palette(Dice &dice) {
  Palette palette;
  palette.types = draw_types(dice);
  const bool large = dice.chance(0.06);
  // Few, so that shapes meet again.
  palette.dims = {1};
  for (int64_t more = dice.between(2, 4); more > 0; --more)
    palette.dims.push_back(dice.pick(std::vector<int64_t>{1, 2, 3, 4, 5, 8}));
  if (large) {
    palette.dims.insert(palette.dims.end(), {17, 33, 70, 300});
    palette.max_elements = 1 << 15;
  }
  if (dice.chance(0.05)) palette.dims.push_back(0);
  std::vector<std::string> symbols = {"n", "m"};
  if (dice.chance(0.1)) symbols = {"s1", "s0"};  // a kernel names its symbols like this
  const double how_many = dice.unit();
  symbols.resize(how_many > 0.7 ? 2 : how_many > 0.3 ? 1 : 0);
  for (const std::string &symbol : symbols) {
    const Dim dim = Expr::symbol(symbol);
    palette.dims.insert(palette.dims.end(), {dim, dim, dim, dice.pick(std::vector<Dim>{2 * dim, dim + 1, dim})});
  }
  const bool equal = dice.chance(0.15);
  const std::vector<int64_t> usual =
      large ? std::vector<int64_t>{17, 33, 67} : std::vector<int64_t>{2, 3, 4, 5, 7, 9, 17};
  const std::vector<int64_t> other = {0, 0, 1, 1, 2, 3, 8, large ? 130 : 16};
  const int64_t calls = symbols.empty() ? 1 : dice.between(2, 3);
  for (int64_t call = 0; call < calls; ++call) {
    SymbolSizes sizes;
    for (const std::string &symbol : symbols)
      sizes[symbol] = equal && !sizes.empty() ? sizes.begin()->second : dice.pick(call == 0 ? usual : other);
    palette.calls.push_back(std::move(sizes));
  }
  return palette;
}

int64_t draw_node_count(Dice &dice) {
  const double kind = dice.unit();
  return kind < 0.6 ? dice.between(1, 8) : kind < 0.92 ? dice.between(9, 18) : dice.between(19, 40);
}

const Op &draw_op_with(Dice &dice, uint32_t flag) {
  for (;;)
    if (const Op &op = *dice.pick(all_ops()); op.flags & flag) return op;
}

// A size that a run tells, early, and a view: what follows may be of that size.
Status add_resolved(Dice &dice, Drawing &drawing) {
  KILN_TRY(drawing.add_node(draw_op_with(dice, op_flags::resolves)).take_status());
  return drawing.add_node(draw_op_with(dice, op_flags::view)).take_status();
}

// Views and cheap ops are what fusion is made of: they come twice as often.
const Op &draw_op(Dice &dice) {
  for (;;) {
    const Op &op = *dice.pick(all_ops());
    if (dice.chance(op.flags & op_flags::view || op.args.size() == 2 ? 1.0 : 0.5)) return op;
  }
}

}  // namespace

// A graph of its own, whose symbols are sizes of the caller's; of a cond it is both branches.
std::optional<Proposal> Proposer::call(const Op &op) {
  if (palette_.nested) return std::nullopt;
  Palette inner = draw_palette(dice_);
  inner.types = palette_.types;
  inner.nested = true;
  inner.max_elements = 256;
  Drawing drawing(dice_, inner);
  if (!drawing.start().ok()) return std::nullopt;
  if (dice_.chance(0.2)) (void)add_resolved(dice_, drawing).ok();
  for (int64_t nodes = dice_.between(1, 5); nodes > 0; --nodes) (void)drawing.add_node(draw_op(dice_)).ok();
  Result<GraphPtr> graph = drawing.finish();
  if (!graph.ok()) return std::nullopt;

  const bool resolves = std::ranges::any_of((*graph)->nodes(), [](const Node &node) { return !node.symbols.empty(); });
  std::map<std::string, Dim> outside;
  for (const auto &[name, size] : inner.calls.front()) outside[name] = random_size();
  Proposal made{&op, {}, {}};
  for (const AttrDef &attr : op.attrs) made.attrs.emplace(attr.name, *graph);
  if (op.name == "cond") {
    std::optional<Operand> predicate = operand_of(make_type(DType::boolean, {}), Sample(), resolves);
    if (!predicate) return std::nullopt;
    made.operands.push_back(std::move(*predicate));
  }
  for (uint32_t input : (*graph)->inputs()) {
    TensorType type = (*graph)->find(input)->results[0];
    for (Dim &dim : type.dims)
      dim = dim.substitute([&](const Expr &leaf) -> std::optional<Expr> { return outside.at(leaf.symbol_name()); });
    std::optional<Operand> operand = operand_of(make_type(type.dtype, type.dims), Sample(), resolves);
    if (!operand) return std::nullopt;
    made.operands.push_back(std::move(*operand));
  }
  return made;
}

Result<RandomCase> draw_case(uint64_t seed) {
  Dice dice(seed);
  const Palette palette = draw_palette(dice);
  Drawing drawing(dice, palette);
  KILN_TRY(drawing.start());
  // Each op in turn is the first of some graph, so that none is left out.
  const std::span<const Op *const> ops = all_ops();
  KILN_TRY(drawing.add_node(*ops[seed % ops.size()], /*most_tries=*/60).take_status());
  if (dice.chance(0.3)) KILN_TRY(add_resolved(dice, drawing));
  for (int64_t nodes = draw_node_count(dice); nodes > 1; --nodes)
    KILN_TRY(drawing.add_node(draw_op(dice)).take_status());
  KILN_ASSIGN(GraphPtr graph, drawing.finish());
  // What is compiled is what a report prints.
  KILN_ASSIGN(graph, read_json(write_json(*graph), builtin_ops()));
  RandomCase made{seed, std::move(graph), {}};
  for (size_t call = 0; call < palette.calls.size(); ++call)
    made.calls.push_back({palette.calls[call], drawing.arguments(call)});
  return made;
}

}  // namespace kiln::testing
