/* stages.h — within mql/: what stages of different files share. */
#pragma once

#include "mql/accumulator.h"
#include "mql/pipeline_int.h"

/* ---- $addFields (stage_add.c) ---- */
err mql__parse_add_fields(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument);
err mql__map_add_fields(mql_run *r, const mql__stage *s, slice document, slice *document_out);
bool mql__adds_field(const mql__stage *s, slice name); /* whether it computes the field or something inside it */

/* ---- $sort (stage_sort.c) ---- */
typedef struct mql__sort_stage {
    mql_sort sort;
    uint64_t limit; /* how many documents are wanted; UINT64_MAX: all */
} mql__sort_stage;

/* ---- $unwind (stage_unwind.c) ---- */
slice mql__unwind_path(const mql__stage *s);
slice mql__unwind_index(const mql__stage *s); /* includeArrayIndex; empty: none */

/* ---- $group (stage_group.c) ---- */
bool mql__group_counts_only(const mql__stage *s); /* it only counts, without reading the documents */
slice mql__group_path(const mql__stage *s);       /* it only counts the documents with each value at this path; empty: it does not */

/* Computed fields of groups: {total: {$sum: "$x"}, …}. */
typedef struct mql__output {
    slice name;
    const mql_accumulator *accumulator;
} mql__output;

typedef struct mql__outputs {
    mql__output *all;
    size_t n;
} mql__outputs;

/* All members of the document but _id. */
MUST_CHECK err mql__parse_outputs(mql_scope *s, slice fields, mql__outputs *outputs);
mql_tally **mql__tallies_begin(arena *memory, const mql__outputs *outputs);
void mql__tallies_free(mql_tally **tallies, const mql__outputs *outputs);
MUST_CHECK err mql__tallies_add(mql_run *r, mql_tally **tallies, const mql__outputs *outputs, uint64_t times);
/* {_id: …, total: …} in the run's arena. */
MUST_CHECK err mql__tallies_document(mql_run *r, mql_value id, mql_tally **tallies, const mql__outputs *outputs, slice *document_out);

/* ---- documents that are gathered and sorted (stage_gather.c) ---- */

typedef struct mql__gathered {
    slice document;
    slice partition; /* a key of the partition; empty: there is only one */
    slice key;       /* of the sort */
    uint64_t ordinal;
} mql__gathered;

typedef struct mql__gathering {
    bool started, ended;
    arena memory;
    mql__gathered *all;
    size_t n, room;
} mql__gathering;

typedef struct mql__gather_order {
    const mql_expression *partition; /* NULL: none */
    const mql_sort *sort;            /* NULL: in input order */
    const mql_expression *value;     /* sort by {v: value} instead of the document; NULL: by the document */
} mql__gather_order;

/* Pulls all documents and sorts them by partition and key. *status_out: MQL__BLOCKED, or MQL__END when all are there. */
MUST_CHECK err mql__gather(mql__runner *at, mql__gathering *g, const mql__gather_order *order, mql__status *status_out);
void mql__gather_free(mql__gathering *g);

/* ---- keys (stage_key.c) ---- */

/* Bytes that are equal exactly if the values are, by the run's collation; missing is like null. Appends to the buffer. */
MUST_CHECK err mql__value_key(mql_run *r, mql_value v, buf *key);

/* ---- sub-pipelines ---- */
typedef void (*mql__visit_pipeline)(void *context, const mql_pipeline *p);
void mql__facet_pipelines(const mql__stage *s, mql__visit_pipeline visit, void *context);
/* The collection of $lookup, $graphLookup and $unionWith, and the sub-pipeline; NULL: none. */
slice mql__lookup_from(const mql__stage *s, const mql_pipeline **pipeline_out);
slice mql__union_from(const mql__stage *s, const mql_pipeline **pipeline_out);
slice mql__graph_from(const mql__stage *s);
/* The filter that a sub-pipeline begins with, if it can be used for its find; empty: none. */
slice mql__leading_filter(const mql_pipeline *p);
/* Filters joined by $and; empty ones are left out. */
MUST_CHECK err mql__both_filters(arena *a, slice x, slice y, slice *both_out);

/* ---- $geoNear (stage_geo.c) ---- */
err mql__geo_filter(arena *a, const mql__stage *s, slice *filter_out); /* of $geoNear: `query`, and the distance; empty: none */
