/* bind_int.h — what the parts of binding share. For this folder. */
#pragma once

#include "query/bind.h"

typedef struct binder {
    op *op;
    arena *arena;
    query *query;
    slice text;                     /* that the parts stand in */
    unsigned udfs_max;              /* references to user-defined functions */
    query_select *select;           /* whose parts are being bound */
    int visible;                    /* sources of it that may be named yet: a JOIN sees those before it */
    const query_expr *in_aggregate; /* its argument is being bound */
    bool ranks;                     /* ORDER BY RANK is being bound */
    bool from_item;                 /* a FROM that names nothing known means the item */
    bool aggregates_allowed;
    query_computed *computed; /* of the query, as many as it has named so far; NULL in a computed property, which knows no others */
    size_t *computed_n;
} binder;

/* A place in the text, as clients see it. */
static inline query_span query__at(const binder *b, query_span span) {
    return query_location(b->text, span);
}

err query__bind_expr(binder *b, query_expr *e);

/* Of a tree that was made without a text (find.c): no computed properties, no parameters. */
err query__bind_tree(op *o, arena *a, query_ast *ast, query *query_out);

/* ---- bind_order.c ---- */

err query__bind_order(binder *b, query_select *s);
err query__check_subquery(binder *b, const query_select *s); /* what subqueries may not have */
