/* host GRAPH CACHE [--map] [--pass NAME:STAGE:UUID_BYTE:VERSION:PRIORITY]… [--option NAME=i64:N|NAME=bool:N]…
 *
 * A host program as small as they come: registers passes that change nothing, compiles, and prints LOOKUP, a tab and
 * the reason; with --map also its memory map. The tests flip one component of the key at a time with it. */
#include <kiln/kiln.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(kiln_error *error) {
  if (!error) return;
  kiln_text message;
  kiln_error_message(error, &message);
  fprintf(stderr, "host: %.*s\n", (int)message.size, message.data);
  exit(1);
}

static void usage(void) {
  fprintf(stderr, "host: see its head for the arguments\n");
  exit(2);
}

static kiln_error *change_nothing(void *user, kiln_pass_call *call) {
  (void)user;
  return kiln_pass_done(call, 0);
}

/* UUID_BYTE 0: no identity. */
static void register_pass(kiln_context *context, const char *words) {
  char name[32], version[32];
  unsigned stage;
  int byte, priority;
  if (sscanf(words, "%31[^:]:%u:%d:%31[^:]:%d", name, &stage, &byte, version, &priority) != 5) usage();
  uint8_t uuid[16];
  memset(uuid, byte, sizeof uuid);
  kiln_pass pass;
  memset(&pass, 0, sizeof pass);
  pass.struct_size = sizeof pass;
  pass.stage = stage;
  pass.priority = priority;
  pass.flags = byte ? KILN_PASS_UUID_SUFFICES : 0;
  pass.name = name;
  pass.name_size = strlen(name);
  pass.version = version;
  pass.version_size = strlen(version);
  pass.uuid = byte ? uuid : NULL;
  pass.run = change_nothing;
  check(kiln_pass_register(context, &pass, NULL, NULL));
}

static void set_option(kiln_options *options, const char *words) {
  char name[32], kind[8];
  long long value;
  if (sscanf(words, "%31[^=]=%7[^:]:%lld", name, kind, &value) != 3) usage();
  if (strcmp(kind, "bool") == 0) {
    check(kiln_options_set_bool(options, name, strlen(name), value != 0));
  } else {
    check(kiln_options_set_i64(options, name, strlen(name), value));
  }
}

static void print_file(const char *path) {
  FILE *file = fopen(path, "rb");
  int letter;
  if (!file) exit(1);
  while ((letter = fgetc(file)) != EOF) putchar(letter);
  fclose(file);
}

int main(int argc, char **argv) {
  if (argc < 3) usage();
  static char json[1 << 20];
  FILE *file = fopen(argv[1], "rb");
  if (!file) usage();
  const size_t size = fread(json, 1, sizeof json, file);
  fclose(file);

  kiln_options *settings, *options;
  kiln_context *context;
  kiln_graph *graph;
  kiln_executable *program;
  kiln_report *report;
  check(kiln_options_create(&settings));
  check(kiln_options_create(&options));
  check(kiln_options_set_text(settings, "cache", 5, argv[2], strlen(argv[2])));
  check(kiln_context_create(settings, NULL, &context));
  int show_map = 0;
  for (int i = 3; i < argc; ++i) {
    if (strcmp(argv[i], "--map") == 0) {
      show_map = 1;
    } else if (i + 1 < argc && strcmp(argv[i], "--pass") == 0) {
      register_pass(context, argv[++i]);
    } else if (i + 1 < argc && strcmp(argv[i], "--option") == 0) {
      set_option(options, argv[++i]);
    } else {
      usage();
    }
  }
  check(kiln_graph_parse(context, json, size, &graph));
  check(kiln_compile(context, graph, options, &program, &report));
  kiln_text lookup, reason;
  check(kiln_report_get_text(report, "lookup", 6, &lookup));
  check(kiln_report_get_text(report, "reason", 6, &reason));
  printf("%.*s\t%.*s\n", (int)lookup.size, lookup.data, (int)reason.size, reason.data);
  if (show_map) print_file("/proc/self/maps");

  kiln_report_destroy(report);
  kiln_executable_destroy(program);
  kiln_graph_destroy(graph);
  kiln_options_destroy(settings);
  kiln_options_destroy(options);
  check(kiln_context_close(context));
  kiln_context_destroy(context);
  return 0;
}
