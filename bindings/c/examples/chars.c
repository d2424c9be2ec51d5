/* chars MODEL_FOLDER [PLUGIN.so [COUNT]]: samples text from a character model, one call per character on the growing
 * context.
 *
 * One compilation serves every length, because the graph's `length` is a symbol. Needs kiln.h alone. */
#include <kiln/kiln.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LETTERS = 256, MOST_TOKENS = 1024 };

static void check(kiln_error *error) {
  if (!error) return;
  kiln_text message;
  kiln_error_message(error, &message);
  fprintf(stderr, "chars: %.*s\n", (int)message.size, message.data);
  exit(1);
}

/* FOLDER/NAME; the caller frees it. */
static char *path_of(const char *folder, const char *name) {
  const size_t size = strlen(folder) + strlen(name) + 2;
  char *path = malloc(size);
  if (!path) exit(1);
  snprintf(path, size, "%s/%s", folder, name);
  return path;
}

/* The file's bytes and a terminator; the caller frees them. */
static char *read_file(const char *folder, const char *name) {
  char *path = path_of(folder, name);
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END)) {
    perror(path);
    exit(1);
  }
  const long size = ftell(file);
  char *bytes = calloc((size_t)size + 1, 1);
  rewind(file);
  if (!bytes || fread(bytes, 1, (size_t)size, file) != (size_t)size) exit(1);
  fclose(file);
  free(path);
  return bytes;
}

/* Reads ["\n", " ", "a", …]: letters[token] is the character. Returns how many there are. */
static int read_vocabulary(const char *json, char *letters) {
  int count = 0;
  for (const char *at = strchr(json, '"'); at && count < MOST_LETTERS; at = strchr(at + 1, '"')) {
    char letter = *++at;
    if (letter == '\\') letter = *++at == 'n' ? '\n' : *at;
    letters[count++] = letter;
    ++at; /* the closing quote */
  }
  return count;
}

/* Uniform in [0, 1): xorshift64*, the same on every machine. */
static double uniform(uint64_t *state) {
  *state ^= *state >> 12;
  *state ^= *state << 25;
  *state ^= *state >> 27;
  return (double)((*state * 0x2545f4914f6cdd1dULL) >> 11) * 0x1p-53;
}

/* A token, drawn with the probabilities of softmax(logits / temperature). */
static int sample(const float *logits, int count, double temperature, uint64_t *state) {
  double weights[MOST_LETTERS], sum = 0, most = -INFINITY;
  for (int i = 0; i < count; ++i) most = fmax(most, logits[i]);
  for (int i = 0; i < count; ++i) sum += weights[i] = exp((logits[i] - most) / temperature);
  double left = uniform(state) * sum;
  for (int i = 0; i < count; ++i) {
    left -= weights[i];
    if (left < 0) return i;
  }
  return count - 1;
}

/* Binds every tensor of the weights to the parameter of its name. */
static void bind_weights(kiln_call *call, const kiln_tensors *weights) {
  for (uint64_t i = 0; i < kiln_tensors_count(weights); ++i) {
    kiln_text name;
    const DLTensor *tensor;
    uint32_t slot;
    check(kiln_tensors_at(weights, i, &name, &tensor));
    check(kiln_call_slot(call, name.data, name.size, &slot));
    check(kiln_call_bind(call, slot, tensor));
  }
}

int main(int argc, char **argv) {
  if (argc < 2 || argc > 4) {
    fprintf(stderr, "usage: chars MODEL_FOLDER [PLUGIN.so [COUNT]]\n");
    return 2;
  }
  const char *folder = argv[1];
  char *graph_json = read_file(folder, "graph.json"), *vocabulary = read_file(folder, "vocab.json");
  char *prompt = read_file(folder, "prompt.txt"), *weights_path = path_of(folder, "weights.safetensors");
  char letters[MOST_LETTERS];
  const int letter_count = read_vocabulary(vocabulary, letters);

  kiln_context *context;
  kiln_graph *graph;
  kiln_executable *program;
  kiln_tensors *weights;
  kiln_call *call;
  check(kiln_context_create(NULL, NULL, &context));
  if (argc > 2) check(kiln_plugin_load(context, argv[2], strlen(argv[2]), NULL));
  check(kiln_graph_parse(context, graph_json, strlen(graph_json), &graph));
  check(kiln_compile(context, graph, NULL, &program, NULL));
  check(kiln_tensors_open(weights_path, strlen(weights_path), &weights));
  check(kiln_call_create(program, &call));
  bind_weights(call, weights);

  int64_t tokens[MOST_TOKENS], shape[2] = {1, 0}, logits_shape[3] = {1, 0, letter_count};
  float *logits = malloc(sizeof(float) * MOST_TOKENS * (size_t)letter_count);
  const DLTensor input = {tokens, {kDLCPU, 0}, 2, {kDLInt, 64, 1}, shape, NULL, 0};
  const DLTensor output = {logits, {kDLCPU, 0}, 3, {kDLFloat, 32, 1}, logits_shape, NULL, 0};
  const DLTensor *args[] = {&input, &output};
  int64_t length = 0;
  for (const char *c = prompt; *c && length < MOST_TOKENS / 2; ++c) {
    const char *found = memchr(letters, *c, (size_t)letter_count);
    if (found) tokens[length++] = found - letters;
  }

  uint64_t state = 1611; /* the seed */
  const int count = argc > 3 ? atoi(argv[3]) : 200;
  for (int i = 0; i < count && length < MOST_TOKENS; ++i) {
    shape[1] = logits_shape[1] = length;
    check(kiln_call_run(call, args, 2, NULL));
    tokens[length] = sample(logits + (length - 1) * letter_count, letter_count, 0.7, &state);
    putchar(letters[tokens[length++]]);
  }
  putchar('\n');

  kiln_call_destroy(call);
  kiln_tensors_destroy(weights);
  kiln_executable_destroy(program);
  kiln_graph_destroy(graph);
  kiln_context_destroy(context);
  free(logits), free(graph_json), free(vocabulary), free(prompt), free(weights_path);
  return 0;
}
