/* build_int.h — a traversal under construction. For this folder. */
#pragma once

#include "gremlin/traversal.h"

/* What the strategies of the statement that is read ask of all its traversals (strategy.c). */
typedef struct gremlin_rules {
    const gremlin_traversal *vertices, *edges; /* filters of SubgraphStrategy; NULL: none */
    bool crosses_edges;                        /* out(), in() and both() must look at their edges */
    bool names_edges;                          /* out() and its like need a label */
    size_t reserved_n;
    const gremlin_value *reserved; /* keys that no property may have */
} gremlin_rules;

struct gremlin_builder {
    op *op;
    arena *arena;
    const gremlin_limits *limits;
    size_t steps; /* so far, in all traversals */
    unsigned depth;
    gremlin_rules rules;
};

struct gremlin_draft {
    gremlin_traversal traversal;
    gremlin_source source;
    size_t n, cap;
    gremlin_step *steps;
    /* emit() and until() that came before repeat() */
    const gremlin_traversal *early_until, *early_emit;
    bool early_emits;
    int64_t early_times; /* 1 + times() before repeat(); 0: none */
};

/* The array with one more entry; arrays grow by doubling, so `n` tells their capacity. */
void *gremlin__appended(arena *a, const void *at, size_t n, const void *item, size_t size);

/* A modulator, such as by() or as(): changes the last step. `done_out` false: `name` is a step of its own. */
MUST_CHECK err gremlin__modulate(gremlin_builder *b, gremlin_draft *d, gremlin_op op, const gremlin_value *args, size_t n, bool *done_out);

/* has() and its relatives: sets the step's conditions. */
MUST_CHECK err gremlin__conditions(gremlin_builder *b, gremlin_step *s, const gremlin_value *args, size_t n);

/* property(): the settings of a step. */
MUST_CHECK err gremlin__settings(gremlin_builder *b, gremlin_step *s, const gremlin_value *args, size_t n);

/* A traversal with one step is(predicate). */
const gremlin_traversal *gremlin__is_traversal(arena *a, gremlin_value predicate);

gremlin_step *gremlin__push(gremlin_builder *b, gremlin_draft *d, gremlin_op op, const gremlin_value *args, size_t n);

/* strategy.c */
MUST_CHECK err gremlin__take_strategy(gremlin_builder *b, const gremlin_strategy *s);
MUST_CHECK err gremlin__check_rules(gremlin_builder *b, const gremlin_draft *d);
MUST_CHECK err gremlin__restrict(gremlin_builder *b, gremlin_draft *d);

/* After the last step: moves conditions and limits into the steps that read the graph, and notes what the traversal needs. */
MUST_CHECK err gremlin__plan(gremlin_builder *b, gremlin_draft *d);

/* A finite float or double as JSON has it: 1.0, 0.1, 5e-324. */
void gremlin__show_finite(buf *out, gremlin_value v);

/* Anything but a predicate becomes eq(). */
const gremlin_predicate *gremlin__predicate(arena *a, gremlin_value v);
