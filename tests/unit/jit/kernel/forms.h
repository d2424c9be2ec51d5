// Kernels of the forms that no op uses yet, with what to run them on: each emitter runs them all against the
// interpreter. Numbers are small integers, so that sums are exact in every type.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/unit/jit/kernel/by_hand.h"
#include "tests/unit/jit/kernel/interpreter.h"

namespace kiln::kernel::testing {

struct Form {
  std::string name;
  Kernel kernel;
  std::vector<int64_t> sizes = {};  // of the symbols
  uint32_t error_word = 0;          // that a run leaves
  // What buffer `b` holds at `element` before the run. Empty: integers from -4 to 4.
  std::function<double(size_t b, size_t element, std::mt19937 &random)> draw = {};
};

// The memory of a form, as a kernel has it.
class FormMemory {
 public:
  explicit FormMemory(const Form &form) : form_(form) {
    std::mt19937 random(17);
    for (size_t b = 0; b < form.kernel.buffers.size(); ++b) {
      const Buffer &buffer = form.kernel.buffers[b];
      if (buffer.space == Buffer::Space::row_local) break;
      Array array(static_cast<size_t>(value(buffer.size)));
      for (size_t e = 0; e < array.size(); ++e) {
        const double drawn = form.draw ? form.draw(b, e, random) : static_cast<double>(random() % 9) - 4;
        if (dtype_info(buffer.type).is_float)
          array[e].f = drawn;
        else
          array[e].i = static_cast<int64_t>(immediate_of(buffer.type, drawn));
      }
      bytes.push_back(encode(array, buffer.type));
      before_.push_back(decode(bytes.back(), buffer.type));
    }
  }

  std::vector<std::vector<uint8_t>> bytes;  // by buffer: what a kernel is to run on

  int64_t value(const Expr &e) const {
    return e.evaluate([&](const std::string &name) {
      const auto &symbols = form_.kernel.symbols;
      return form_.sizes.at(static_cast<size_t>(std::find(symbols.begin(), symbols.end(), name) - symbols.begin()));
    });
  }

  // After the run: every bit is what the interpreter says, but for those of NaN.
  void expect_interpreted() const {
    std::vector<Array> expected = before_;
    std::vector<Array *> buffers;
    for (Array &array : expected) buffers.push_back(&array);
    Sizes sizes;
    for (size_t i = 0; i < form_.sizes.size(); ++i) sizes[form_.kernel.symbols[i]] = form_.sizes[i];
    Interpreter(form_.kernel, buffers, sizes).run();
    for (size_t b = 0; b < bytes.size(); ++b) {
      const DType type = form_.kernel.buffers[b].type;
      const Array got = decode(bytes[b], type);
      for (size_t e = 0; e < got.size(); ++e) {
        const Scalar x = got[e], y = expected[b][e];
        const bool same = dtype_info(type).is_float && std::isnan(x.f) ? std::isnan(y.f) : x.i == y.i;
        ASSERT_TRUE(same) << form_.name << ": buffer " << b << " element " << e << " is "
                          << (dtype_info(type).is_float ? x.f : static_cast<double>(x.i)) << ", expected "
                          << (dtype_info(type).is_float ? y.f : static_cast<double>(y.i)) << "\n"
                          << print(form_.kernel);
      }
    }
  }

 private:
  static std::vector<uint8_t> encode(const Array &array, DType type) {
    const size_t size = size_of(type);
    std::vector<uint8_t> bytes(array.size() * size);
    for (size_t e = 0; e < array.size(); ++e) {
      int64_t bits = array[e].i;
      if (type == DType::f32)
        bits = std::bit_cast<int32_t>(static_cast<float>(array[e].f));
      else if (is_small_float(type))
        bits = encode_float(array[e].f, small_format(type));
      std::memcpy(bytes.data() + e * size, &bits, size);
    }
    return bytes;
  }
  static Array decode(const std::vector<uint8_t> &bytes, DType type) {
    const size_t size = size_of(type);
    Array array(bytes.size() / size);
    for (size_t e = 0; e < array.size(); ++e) {
      int64_t bits = 0;
      std::memcpy(&bits, bytes.data() + e * size, size);
      if (type == DType::f32)
        array[e].f = std::bit_cast<float>(static_cast<int32_t>(bits));
      else if (is_small_float(type))
        array[e].f = decode_float(static_cast<uint16_t>(bits), small_format(type));
      else
        array[e].i = dtype_info(type).is_signed && size < 8 ? bits << (64 - 8 * size) >> (64 - 8 * size) : bits;
    }
    return array;
  }

  const Form &form_;
  std::vector<Array> before_;
};

}  // namespace kiln::kernel::testing
