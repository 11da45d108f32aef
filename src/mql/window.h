/* window.h — within mql/: functions of $setWindowFields.
 *
 * stage_window.c gathers the documents and parses the specification; window.c computes one output field for all documents of a partition.
 * The functions are rows of one table; a name that is not in it is that of an accumulator. */
#pragma once

#include "mql/stage_range.h"
#include "mql/stages.h"

typedef struct mql__window_function mql__window_function;

/* One end of a window. */
typedef enum mql__edge_kind { MQL__UNBOUNDED, MQL__CURRENT, MQL__AT } mql__edge_kind;

typedef struct mql__edge {
    mql__edge_kind kind;
    int64_t by;     /* documents: positions from the current document */
    mql__step step; /* range: the distance from the current document's value */
} mql__edge;

typedef struct mql__window {
    bool given, range;
    mql__edge low, high;
} mql__window;

typedef struct mql__window_output {
    slice path;
    const mql__window_function *function;
    const mql_accumulator *accumulator;  /* of MQL accumulators */
    const mql_expression *input, *other; /* the argument, or the arguments */
    mql_value fallback;                  /* $shift */
    int64_t by;                          /* $shift */
    double alpha;                        /* $expMovingAvg */
    bool has_unit;
    mql_unit unit; /* $derivative and $integral */
    mql__window window;
} mql__window_output;

/* A partition: documents in the order of the sort. */
typedef struct mql__partition {
    mql__runner *at;
    const mql__gathered *documents;
    size_t n;
    const mql_sort *sort; /* NULL: not sorted */
    arena *memory;        /* of the values */
} mql__partition;

/* Checks the argument of a function and its window. 9 with MongoDB's texts. */
MUST_CHECK err mql__window_parse(mql_scope *s, slice name, mql_value argument, bool sorted, mql__window_output *output);
/* The values of the output for all documents of the partition. */
MUST_CHECK err mql__window_compute(const mql__partition *p, const mql__window_output *output, mql_value *values);
/* The names in the table one after the other, for tests and documents; empty: no more. */
slice mql__window_name_at(size_t position);
