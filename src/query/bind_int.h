/* bind_int.h — shared by bind.c and bind_order.c. Private to query/. */
#pragma once

#include "query/bind.h"

typedef struct binder {
    op *op;
    arena *arena;
    query *query;
    slice text;                     /* the text that spans refer to */
    unsigned udfs_max;              /* limit for UDF references */
    query_select *select;           /* the select being bound */
    int visible;                    /* number of its sources that may be named so far (a JOIN sees those before it); -1: all */
    const query_expr *in_aggregate; /* the aggregate whose argument is being bound, or NULL */
    bool ranks;                     /* ORDER BY RANK is being bound */
    bool from_item;                 /* an unresolved name in FROM means the item */
    bool aggregates_allowed;
    unsigned not_grouped;     /* columns found that are neither grouped nor aggregates */
    query_computed *computed; /* computed properties used so far; NULL inside a computed property, which cannot use others */
    size_t *computed_n;
} binder;

/* A span as clients see it: in UTF-16 units. */
static inline query_span query__at(const binder *b, query_span span) {
    return query_location(b->text, span);
}

err query__bind_expr(binder *b, query_expr *e);
void query__bind_parameter(binder *b, query_expr *e);

/* Binds a tree that was made without a text (find.c): no computed properties, no parameters. */
err query__bind_tree(op *o, arena *a, query_ast *ast, query *query_out);

/* ---- bind_order.c ---- */

err query__bind_order(binder *b, query_select *s);
err query__check_subquery(binder *b, const query_select *s); /* rejects clauses that subqueries may not have */
