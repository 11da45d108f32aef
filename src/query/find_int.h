/* find_int.h — within query/: from conditions to a tree (find_tree.c), for find.c. */
#pragma once

#include "query/find.h"

/* SELECT * FROM c WHERE … ORDER BY …, not bound yet, in the arena. E_BAD_REQUEST with a sentence. */
MUST_CHECK err query__find_tree(op *o, arena *a, const container *c, const query_find *find, query_ast **ast_out);
