/* A shape over a symbol that no input has. */
#define PASS_BODY                                                                       \
  kiln_dim shape[2] = {{0, 0}, {2, 0}};                                                 \
  kiln_attr attr = {"shape", 5, KILN_ATTR_DIM | KILN_ATTR_LIST, 0, 2, shape};           \
  const kiln_value w = value_of(host, edit, "w");                                       \
  kiln_op expand = 0;                                                                   \
  kiln_node node = 0;                                                                   \
  kiln_error *error = host->dim->parse(host->pass->context(call), "m", 1, &shape[0]);   \
  if (!error) error = host->op->find(host->pass->context(call), "expand", 6, &expand);  \
  if (!error) error = host->edit->add(edit, expand, "wide", 4, &w, 1, &attr, 1, &node); \
  const kiln_value values[2] = {node << 32, value_of(host, edit, "once")};              \
  if (!error) error = host->edit->outputs(edit, values, NULL, 2);                       \
  return error ? error : host->pass->done(call, 1)
#include "../frame.h"
