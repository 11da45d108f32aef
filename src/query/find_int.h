/* find_int.h — within query/: builds a tree from conditions (find_tree.c); for find.c. */
#pragma once

#include "query/find.h"

/* Builds SELECT * FROM c WHERE … ORDER BY … in the arena, not bound yet. E_BAD_REQUEST with a message. */
MUST_CHECK err query__find_tree(op *o, arena *a, const container *c, const query_find *find, query_ast **ast_out);

/* Reads query_find.each into a bound query. */
MUST_CHECK err query__find_each(op *o, arena *a, const container *c, slice each, query *q);
