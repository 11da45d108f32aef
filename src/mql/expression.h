/* expression.h — aggregation expressions: parsed once, evaluated for many documents.
 *
 * An expression is parsed from BSON ("$a.b", {$add: [1, "$x"]}, {$let: …}) into a tree in an arena. The operators are rows of one table,
 * which also says what Azure's service offers. A parsed expression is constant and may be evaluated by several threads. */
#pragma once

#include "mql/run.h"

typedef struct mql_expression mql_expression;

/* Finds the views of a database. */
typedef struct mql_views mql_views;
struct mql_views {
    /* What the name stands for: the collection, and the pipeline through which it is seen; empty: the name is no view. The results live in
     * the operation's arena. */
    err (*find)(mql_views *v, op *o, slice name, slice *collection_out, slice *stages_out);
};

/* The names that an expression may use, while it is parsed: the variables in scope and their slots. */
typedef struct mql_scope {
    op *op;                            /* error messages; the tree lives in its arena */
    bool service;                      /* refuse what Azure's service refuses */
    const mql_collation *collation;    /* for comparisons in filters; NULL: by bytes */
    const struct mql_text_index *text; /* what $text searches (match.h); NULL: it is refused */
    mql_views *views;                  /* what $lookup and others may read besides collections; NULL: there are none */
    size_t slots;                      /* number of variable slots needed so far; mql_run.variables must have as many */
    const struct mql_name *names;      /* innermost first; private to mql/ */
    unsigned depth;
} mql_scope;

mql_scope mql_scope_of(op *o, bool service);
/* Declares a variable for the expressions parsed afterwards (the command's `let`). Returns its slot. E_BAD_REQUEST: not a valid name. */
MUST_CHECK err mql_scope_declare(mql_scope *s, slice name, size_t *slot_out);

MUST_CHECK err mql_expression_parse(mql_scope *s, mql_value text, const mql_expression **expression_out);
/* Missing is a result. The value's bytes live in the run's arena, in the document, or in the expression. */
MUST_CHECK err mql_evaluate(mql_run *r, const mql_expression *e, mql_value *value_out);

/* Whether the expression is a constant, and its value. */
bool mql_expression_constant(const mql_expression *e, mql_value *value_out);
/* The path of an expression that is just "$a.b"; empty if it is something else. */
slice mql_expression_path(const mql_expression *e);

/* Visits the paths of the document that the expression reads; an empty path is the whole document. */
void mql_expression_paths(const mql_expression *e, void (*visit)(void *context, slice path), void *context);
