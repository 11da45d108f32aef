/* accumulator_int.h — within mql/: the table of accumulators, and what a tally has. */
#pragma once

#include "mql/accumulator.h"
#include "mql/expression_int.h"

typedef struct mql__accumulator_row mql__accumulator_row;

struct mql_accumulator {
    const mql__accumulator_row *row;
    const mql_expression *input; /* what is added; NULL: nothing ($count) */
    const mql_expression *n;     /* of $firstN, $lastN, $minN, …; NULL: 1 */
    mql_sort sort;               /* of $top, $bottom, $topN and $bottomN */
    const double *percentiles;
    size_t percentiles_n;
};

struct mql__accumulator_row {
    const char *name; /* with its $ */
    bool service;     /* Azure's service has it */
    bool expression;  /* it is also an expression, whose arguments are a list of operands */
    int variant;
    err (*parse)(mql_scope *s, mql_accumulator *a, mql_value argument); /* NULL: one expression */
    err (*add)(mql_run *r, mql_tally *t, mql_value v);
    err (*merge)(mql_run *r, mql_tally *t, const mql_tally *from);
    err (*value)(mql_run *r, const mql_tally *t, mql_value *value_out);
    /* The state as members of a document, and back. */
    err (*save)(mql_run *r, const mql_tally *t, mql__maker *state);
    err (*load)(mql_run *r, mql_tally *t, mql_value state);
};

typedef struct mql__accumulators {
    const mql__accumulator_row *rows;
    size_t n;
} mql__accumulators;

extern const mql__accumulators mql__number_accumulators, mql__keep_accumulators, mql__n_accumulators, mql__percentile_accumulators;

const mql__accumulator_row *mql__accumulator_find(slice name); /* NULL: none */
/* The rows one after the other, for tests and documents; NULL: no more. */
const mql__accumulator_row *mql__accumulator_at(size_t position);

/* ---- tallies ---- */

/* A sum of numbers of any type: integers exactly, doubles with compensation for rounding, decimals. */
typedef struct mql__total {
    __int128 integers;
    double doubles, lost; /* the sum, and its rounding error */
    bson_decimal128_t decimals;
    bson_type_t type; /* the widest so far */
} mql__total;

/* A value that is kept beyond its document, counted by the budget. */
typedef struct mql__kept {
    mql_value value, key; /* key: a sort key, or missing */
    uint64_t order;       /* its position among the values added */
} mql__kept;

struct mql_tally {
    const mql_accumulator *a;
    budget *budget;
    uint64_t count;
    mql__total total;
    double mean, squares; /* squares: sum of squared deviations from the mean */
    int64_t limit;        /* how many values are kept at most; 0: not known yet */
    mql__kept *kept;
    size_t kept_n, kept_room, sorted_n;
    buf bytes; /* doubles; or the elements of an array */
    uint32_t elements;
};

void mql__total_clear(mql__total *t);
void mql__total_add(mql__total *t, mql_value number);
void mql__total_merge(mql__total *t, const mql__total *from);
mql_value mql__total_value(arena *a, const mql__total *t);

MUST_CHECK err mql__keep_value(mql_tally *t, mql_value value, mql_value key); /* appends it */
MUST_CHECK err mql__keep_only(mql_tally *t, mql_value value);                 /* replaces all kept values */
void mql__drop_kept(mql_tally *t, size_t position);                           /* frees the value; the caller fills its place */
MUST_CHECK err mql__list_kept(mql_run *r, const mql__kept *kept, size_t n, mql_value *value_out); /* the values as an array */

/* Evaluates an accumulator as an expression: adds the operands and returns the value. */
MUST_CHECK err mql__accumulate(mql_run *r, const mql_accumulator *a, const mql_value *operands, size_t n, int64_t limit,
                               mql_value *value_out);

/* Evaluates the `n` of $firstN, $lastN, $minN, …. */
MUST_CHECK err mql__take_n(op *o, arena *a, mql_value v, int64_t *n_out);
