// A program's bytes: numbers of 8 bytes in the order of its members, lists after their lengths.
#include <algorithm>
#include <cstring>

#include "program.h"

namespace onednn {
namespace {

constexpr int64_t magic = 0x31646c626e6e64;  // "dnnbld1": raised when what stands here changes

// The algorithms that steps have, by the numbers that stand for them: those of oneDNN's may change with its version.
constexpr Algorithm algorithms[] = {Algorithm::undef,
                                    Algorithm::eltwise_relu,
                                    Algorithm::eltwise_elu,
                                    Algorithm::eltwise_tanh,
                                    Algorithm::eltwise_logistic,
                                    Algorithm::eltwise_exp,
                                    Algorithm::eltwise_abs,
                                    Algorithm::eltwise_sqrt,
                                    Algorithm::eltwise_square,
                                    Algorithm::eltwise_log,
                                    Algorithm::eltwise_gelu_erf,
                                    Algorithm::eltwise_gelu_tanh,
                                    Algorithm::eltwise_swish,
                                    Algorithm::eltwise_mish,
                                    Algorithm::eltwise_hardswish,
                                    Algorithm::eltwise_clip,
                                    Algorithm::eltwise_linear,
                                    Algorithm::eltwise_round,
                                    Algorithm::binary_add,
                                    Algorithm::binary_sub,
                                    Algorithm::binary_mul,
                                    Algorithm::binary_div,
                                    Algorithm::binary_max,
                                    Algorithm::binary_min,
                                    Algorithm::pooling_max,
                                    Algorithm::pooling_avg_include_padding,
                                    Algorithm::pooling_avg_exclude_padding};
static_assert(algorithms[18] == Algorithm::binary_add && algorithms[24] == Algorithm::pooling_max);
constexpr int64_t first_binary = 18, first_pooling = 24, algorithm_count = 27;

int64_t number_of(Algorithm algorithm) {
  return std::find(std::begin(algorithms), std::end(algorithms), algorithm) - std::begin(algorithms);
}

// One description for both ways: a walk gives each member to `Bytes`, which writes it or reads it.
class Writer {
 public:
  std::vector<unsigned char> bytes;
  void number(int64_t value) { put(&value, sizeof value); }
  template <class T>
  void integer(T &value) {
    number(static_cast<int64_t>(value));
  }
  void real(float &value) {
    int64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    number(bits);
  }
  void algorithm(Algorithm &value) { number(number_of(value)); }
  void raw(std::vector<unsigned char> &value) {
    number(static_cast<int64_t>(value.size()));
    put(value.data(), value.size());
  }
  template <class T, class Each>
  void list(std::vector<T> &items, const Each &each) {
    number(static_cast<int64_t>(items.size()));
    for (T &item : items) each(item);
  }

 private:
  void put(const void *from, size_t size) {
    const auto *begin = static_cast<const unsigned char *>(from);
    bytes.insert(bytes.end(), begin, begin + size);
  }
};

[[noreturn]] void refuse(const char *why) {
  throw Failure(KILN_CORRUPT, std::string("the bytes are no program of onednn_backend: ") + why);
}

class Reader {
 public:
  Reader(const void *bytes, uint64_t size) : at_(static_cast<const unsigned char *>(bytes)), left_(size) {}
  int64_t number() {
    int64_t value = 0;
    take(&value, sizeof value);
    return value;
  }
  template <class T>
  void integer(T &value) {
    const int64_t wide = number();
    value = static_cast<T>(wide);
    if (static_cast<int64_t>(value) != wide) refuse("a number is too large");
  }
  void real(float &value) {
    const int64_t bits = number();
    std::memcpy(&value, &bits, sizeof value);
  }
  void algorithm(Algorithm &value) {
    const int64_t index = number();
    if (index < 0 || index >= algorithm_count) refuse("there is no such algorithm");
    value = algorithms[index];
  }
  void raw(std::vector<unsigned char> &value) {
    value.resize(count(1));
    take(value.data(), value.size());
  }
  template <class T, class Each>
  void list(std::vector<T> &items, const Each &each) {
    items.resize(count(8));
    for (T &item : items) each(item);
  }
  void end() const {
    if (left_ != 0) refuse("they go on after its end");
  }

 private:
  size_t count(uint64_t item_size) {  // no more than the bytes that are left can hold
    const int64_t length = number();
    if (length < 0 || static_cast<uint64_t>(length) > left_ / item_size) refuse("a list is longer than they are");
    return static_cast<size_t>(length);
  }
  void take(void *to, size_t size) {
    if (size > left_) refuse("they end too early");
    if (size != 0) std::memcpy(to, at_, size);
    at_ += size;
    left_ -= size;
  }
  const unsigned char *at_;
  uint64_t left_;
};

template <class Bytes>
void walk(Bytes &bytes, Program &program) {
  const auto each = [&](auto &item) { bytes.integer(item); };
  bytes.integer(program.inputs);
  bytes.integer(program.parameters);
  bytes.integer(program.outputs);
  bytes.list(program.slots, [&](Slot &slot) {
    bytes.integer(slot.dtype);
    bytes.integer(slot.rank);
    bytes.integer(slot.is_constant);
    bytes.integer(slot.is_bound);
    bytes.list(slot.shape, each);
    bytes.raw(slot.bytes);
  });
  bytes.list(program.steps, [&](Step &step) {
    bytes.integer(step.kind);
    bytes.list(step.operands, each);
    bytes.integer(step.result);
    bytes.algorithm(step.algorithm);
    bytes.real(step.alpha);
    bytes.real(step.beta);
    bytes.integer(step.transpose_a);
    bytes.integer(step.transpose_b);
    bytes.integer(step.axis);
    for (Dims *dims : {&step.kernel, &step.strides, &step.padding_low, &step.padding_high, &step.steps})
      bytes.list(*dims, each);
    bytes.integer(step.groups);
    bytes.integer(step.is_padding_zero);
    bytes.list(step.shape, each);
    bytes.list(step.nominal, each);
    bytes.list(step.posts, [&](Post &post) {
      bytes.integer(post.is_binary);
      bytes.algorithm(post.algorithm);
      bytes.real(post.alpha);
      bytes.real(post.beta);
      bytes.integer(post.operand);
    });
  });
}

// ---- what has been read

bool is_function(Algorithm a) { return number_of(a) > 0 && number_of(a) < first_binary; }
bool is_binary(Algorithm a) { return number_of(a) >= first_binary && number_of(a) < first_pooling; }

void check_sizes(const Dims &dims, int64_t least, int64_t most = INT32_MAX) {
  for (const int64_t size : dims)
    if (size < least || size > most) refuse("a size is out of range");
}

void check_slot(const Program &program, const Slot &slot, size_t index) {
  if (slot.dtype != KILN_F32 && slot.dtype != KILN_BF16) refuse("a slot is of another element type");
  if (slot.rank > most_rank) refuse("a slot has too many dims");
  const bool is_parameter = index >= program.inputs && index - program.inputs < program.parameters;
  if (slot.is_bound != is_parameter) refuse("a slot's place says what it is");
  if (!slot.is_bound && !slot.is_constant) return;
  if (slot.shape.size() != slot.rank) refuse("a slot's shape has another rank");
  check_sizes(slot.shape, 0);
  if (!slot.is_constant) return;
  if (index < program.arrays()) refuse("an array is no constant");
  uint64_t size = size_of(slot.dtype);
  for (const int64_t dim : slot.shape) {
    size *= static_cast<uint64_t>(dim);
    if (size > slot.bytes.size()) break;
  }
  if (size != slot.bytes.size()) refuse("a constant is of another size");
}

void check_windows(const Step &step, size_t space) {
  for (const Dims *dims : {&step.strides, &step.steps}) check_sizes(*dims, 1, most_window);
  for (const Dims *dims : {&step.padding_low, &step.padding_high}) check_sizes(*dims, 0, most_window);
  if (step.kind == Kind::pooling) check_sizes(step.kernel, 1, most_window);
  for (const Dims *dims : {&step.strides, &step.steps, &step.padding_low, &step.padding_high})
    if (dims->size() != space) refuse("a window has another rank");
  if (step.kind == Kind::pooling && step.kernel.size() != space) refuse("a window has another rank");
}

void check_step(const Program &program, const Step &step) {
  if (static_cast<uint32_t>(step.kind) >= kind_count) refuse("there is no such step");
  constexpr size_t counts[kind_count] = {3, 7, 1, 2, 1, 1, 5, 1, 1};
  if (step.operands.size() != counts[static_cast<uint32_t>(step.kind)]) refuse("a step has other operands");
  const size_t required = step.kind == Kind::product || step.kind == Kind::convolution ? 2 : step.operands.size();
  for (size_t i = 0; i < required; ++i)
    if (step.operands[i] == no_slot) refuse("a step lacks an operand");
  if (step.groups < 1 || step.groups > INT32_MAX) refuse("a step has no groups");
  const uint32_t rank = program.slots[step.operands[0]].rank;
  switch (step.kind) {
    case Kind::product:
      if (rank == 0 || program.slots[step.operands[1]].rank == 0) refuse("a product of a scalar");
      break;
    case Kind::convolution:
    case Kind::pooling:
      if (rank < 3 || rank > 5) refuse("a window has another rank");
      check_windows(step, rank - 2);
      if (step.kind == Kind::convolution && program.slots[step.operands[1]].rank != rank)
        refuse("weights of other rank");
      if (step.kind == Kind::pooling && (is_function(step.algorithm) || is_binary(step.algorithm)))
        refuse("no pooling");
      break;
    case Kind::eltwise:
      if (!is_function(step.algorithm)) refuse("a function is none");
      break;
    case Kind::binary:
      if (!is_binary(step.algorithm)) refuse("a function of two is none");
      break;
    case Kind::softmax:
      if (step.axis < 0 || step.axis >= rank) refuse("a softmax is along no dim");
      break;
    case Kind::norm:
      if (rank < 2) refuse("a norm has no channels");
      break;
    case Kind::reshape:
      for (const int64_t size : step.shape)
        if (size < -1 || size > INT32_MAX) refuse("a size is out of range");
      if (step.shape.size() != program.slots[step.result].rank) refuse("a shape is of another rank");
      break;
    case Kind::copy:
      break;
  }
  if (!step.nominal.empty() && step.nominal.size() != rank) refuse("a shape is of another rank");
  if (!is_moderate(step.nominal)) refuse("a size is out of range");
  for (const Post &post : step.posts)
    if (post.is_binary ? !is_binary(post.algorithm) || post.operand == no_slot
                       : !is_function(post.algorithm) || post.operand != no_slot)
      refuse("what follows a step is no function");
}

void check(const Program &program) {
  const uint64_t arrays = uint64_t{program.inputs} + program.parameters + program.outputs;
  if (arrays > program.slots.size()) refuse("it has more arrays than slots");
  for (size_t i = 0; i < program.slots.size(); ++i) check_slot(program, program.slots[i], i);
  std::vector<bool> is_made(program.slots.size(), false);
  for (size_t i = 0; i < is_made.size(); ++i)
    is_made[i] = i < program.inputs + program.parameters || program.slots[i].is_constant;
  const auto use = [&](uint32_t slot) {
    if (slot != no_slot && (slot >= is_made.size() || !is_made[slot])) refuse("a step uses what is not made");
  };
  for (const Step &step : program.steps) {
    for (const uint32_t operand : step.operands) use(operand);
    for (const Post &post : step.posts) use(post.operand);
    if (step.result >= is_made.size() || is_made[step.result]) refuse("a step makes what is there");
    check_step(program, step);
    is_made[step.result] = true;
  }
  for (uint32_t slot = program.inputs + program.parameters; slot < program.arrays(); ++slot) use(slot);
}

}  // namespace

std::vector<unsigned char> write(const Program &program) {
  Writer writer;
  writer.number(magic);
  walk(writer, const_cast<Program &>(program));
  return writer.bytes;
}

Program read(const void *bytes, uint64_t size) {
  Reader reader(bytes, size);
  if (reader.number() != magic) refuse("they begin otherwise");
  Program program;
  walk(reader, program);
  reader.end();
  check(program);
  return program;
}

}  // namespace onednn
