// A plugin's backend beside Kiln's own, on both models: plugins/onednn_backend.
#include "models.h"

namespace kiln::bench {
namespace {

using namespace cli;

void load_onednn(kiln_context *context) {
  const std::string path = KILN_BENCH_ONEDNN;
  check(kiln_plugin_load(context, path.data(), path.size(), nullptr));
}

void compare(benchmark::State &state, const std::string &model, Array input, std::vector<int64_t> output_shape,
             const std::string &not_finite) {
  const std::string json = model_json(model);
  Program cpu(json, 0);
  Program onednn(json, 0, "all", {}, load_onednn, {{"backend", "onednn"}, {"backend.onednn.not_finite", not_finite}});
  report_beside(state, model, std::move(input), std::move(output_shape), {&cpu, &onednn}, {"cpu", "onednn"}, 1e-4f);
}

void compare_digits(benchmark::State &state, int64_t batch, const std::string &not_finite) {
  compare(state, "digits", images_of(batch), {batch, 10}, not_finite);
}
void compare_chars(benchmark::State &state, int64_t length) {
  compare(state, "chars", tokens_of(length), {1, length, 63}, "kept");
}

void onednn_digits_64(benchmark::State &state) { compare_digits(state, 64, "lost"); }
void onednn_digits_64_kept(benchmark::State &state) { compare_digits(state, 64, "kept"); }
void onednn_digits_1(benchmark::State &state) { compare_digits(state, 1, "lost"); }
void onednn_chars_128(benchmark::State &state) { compare_chars(state, 128); }
void onednn_chars_1(benchmark::State &state) { compare_chars(state, 1); }

KILN_FIGURE(onednn_digits_64)
KILN_FIGURE(onednn_digits_64_kept)
KILN_FIGURE(onednn_digits_1)
KILN_FIGURE(onednn_chars_128)
KILN_FIGURE(onednn_chars_1)

}  // namespace
}  // namespace kiln::bench
