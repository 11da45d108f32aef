/* expression_path.h — within mql/: field paths and variables, "$a.b", "$$ROOT", "$$this.c". */
#pragma once

#include "mql/expression_int.h"

/* `text` begins with $. */
MUST_CHECK err mql__parse_path(mql_scope *s, mql_expression *node, slice text);
MUST_CHECK err mql__evaluate_path(mql_run *r, const mql_expression *e, mql_value *value_out);
