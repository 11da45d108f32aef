/* pipeline.h — aggregation pipelines, run as a state machine that never waits: it asks its caller for what it needs.
 *
 * A pipeline is parsed into stages. A running pipeline (a flow) gets documents pushed into it, and is then stepped. Each step ends with
 * what the machine needs next: more input documents, documents of another collection ($lookup, $unionWith, $graphLookup), or room for its
 * output. The caller fetches documents by calls to the core, or takes the output, and steps again. So a pipeline works the same on a
 * worker, over several pages and on several nodes. The budget given counts the memory: a stage that exceeds it fails with 292
 * (QueryExceededMemoryLimitNoDiskUseAllowed).
 *
 *   mql_pipeline_parse, mql_pipeline_source     what to read, and how many stages that replaces
 *   mql_flow_begin
 *   loop: mql_flow_step  → MQL_NEED_INPUT   mql_flow_push …, or mql_flow_end if there are no more
 *                        → MQL_NEED_LOOKUP  mql_flow_lookup, then mql_flow_lookup_push …, or mql_flow_lookup_end
 *                        → MQL_NEED_TAKE    mql_flow_take
 *                        → MQL_NEED_NOTHING done
 *   mql_flow_free
 */
#pragma once

#include "mql/match.h"
#include "mql/sort.h"
#include "mql/update.h"

typedef struct mql_pipeline mql_pipeline; /* parsed; constant */
typedef struct mql_flow mql_flow;         /* running; one thread at a time */

/* `stages` is a BSON array. The pipeline refers to its bytes. */
MUST_CHECK err mql_pipeline_parse(mql_scope *s, slice stages, const mql_pipeline **pipeline_out);

/* ---- the source ---- */

typedef enum mql_source_kind {
    MQL_SOURCE_COLLECTION,
    MQL_SOURCE_NONE, /* the pipeline makes its documents ($documents): push nothing, call mql_flow_end */
    MQL_SOURCE_CHANGE_STREAM,
    MQL_SOURCE_COLL_STATS,
    MQL_SOURCE_CURRENT_OP,
    MQL_SOURCE_INDEX_STATS,
    MQL_SOURCE_LIST_SESSIONS,
    MQL_SOURCE_PLAN_CACHE_STATS
} mql_source_kind;

/* What the front end does for the stages at the beginning: a leading $match, $sort, $skip and $limit by the core's index; or the documents
 * of a stage such as $changeStream. */
typedef struct mql_source {
    mql_source_kind kind;
    mql_value argument;     /* argument of the stage that names the kind; missing for a collection */
    slice filter;           /* the leading $match stages as one filter; empty: all documents */
    const mql_match *match; /* the same, parsed; NULL: all documents */
    slice sort;             /* a sort specification; empty: natural order */
    uint64_t skip, limit;   /* UINT64_MAX: no limit */
    bool counts_only;       /* the rest of the pipeline needs only the number of documents: push empty documents */
    slice group_path;       /* it needs only how many documents have each value at this path; empty: it needs more */
} mql_source;

/* Takes what can be taken off the front; the flow must then be made with `from` = *stages_out, the number of stages that the source
 * replaces. In the scope's arena, since leading filters are joined. */
MUST_CHECK err mql_pipeline_source(mql_scope *s, const mql_pipeline *p, mql_source *source_out, size_t *stages_out);

/* ---- where the output goes ---- */

typedef enum mql_target_kind { MQL_TARGET_NONE, MQL_TARGET_OUT, MQL_TARGET_MERGE } mql_target_kind;
typedef enum mql_when_matched {
    MQL_MATCHED_MERGE,
    MQL_MATCHED_REPLACE,
    MQL_MATCHED_KEEP,
    MQL_MATCHED_FAIL,
    MQL_MATCHED_PIPELINE
} mql_when_matched;
typedef enum mql_when_not_matched { MQL_NOT_MATCHED_INSERT, MQL_NOT_MATCHED_DISCARD, MQL_NOT_MATCHED_FAIL } mql_when_not_matched;

/* $out and $merge: the caller writes the documents it takes, and answers with an empty cursor. */
typedef struct mql_target {
    mql_target_kind kind;
    slice database; /* empty: the pipeline's own */
    slice collection;
    const slice *on; /* $merge: the fields that identify a document; {_id} by default */
    size_t on_n;
    mql_when_matched when_matched;
    mql_when_not_matched when_not_matched;
    const mql_update *update; /* MQL_MATCHED_PIPELINE: applied to the document that is there, after mql_target_bind */
    slice pipeline, let;      /* … as written: an array, and a document or empty */
    size_t new_slot;          /* private to mql/ */
} mql_target;

void mql_pipeline_target(const mql_pipeline *p, mql_target *target_out);
/* Before `update` is applied: sets $$new to the new document, and the variables of $merge's `let`. The run's arena and the document must
 * live as long as the update is applied. */
MUST_CHECK err mql_target_bind(mql_run *r, const mql_pipeline *p, slice new_document);

/* Calls back for each collection that the pipeline reads besides its own, sub-pipelines included. */
void mql_pipeline_collections(const mql_pipeline *p, void (*visit)(void *context, slice collection), void *context);

/* ---- running ---- */

typedef enum mql_need {
    MQL_NEED_INPUT,  /* push documents (mql_flow_push), or tell that there are no more (mql_flow_end) */
    MQL_NEED_LOOKUP, /* the documents that mql_flow_lookup describes */
    MQL_NEED_TAKE,   /* output is waiting: mql_flow_take */
    MQL_NEED_NOTHING /* done */
} mql_need;

/* A find in another collection, for a stage. */
typedef struct mql_lookup {
    uint32_t id;      /* if the id is the same as before, continue that find */
    slice collection; /* in the pipeline's database */
    slice filter;     /* BSON; empty: all documents */
} mql_lookup;

/* `from`: the first stage to run. The budget counts all memory of the flow. The pipeline must outlive the flow. */
mql_flow *mql_flow_begin(const mql_pipeline *p, size_t from, budget *memory);
void mql_flow_free(mql_flow *f);

MUST_CHECK err mql_flow_push(mql_flow *f, slice document);
/* A document that stands for `times` documents; only for sources that count (mql_source.counts_only, group_path). */
MUST_CHECK err mql_flow_push_times(mql_flow *f, slice document, uint64_t times);
void mql_flow_end(mql_flow *f);

/* The run gives steps, variables, time and collation; it may be another one at each step. Its arena is not used. After an error the flow
 * can only be freed. */
MUST_CHECK err mql_flow_step(mql_flow *f, mql_run *r, mql_need *need_out);
slice mql_flow_take(mql_flow *f); /* after MQL_NEED_TAKE; valid until the next step */

void mql_flow_lookup(const mql_flow *f, mql_lookup *lookup_out);
MUST_CHECK err mql_flow_lookup_push(mql_flow *f, slice document);
void mql_flow_lookup_end(mql_flow *f);
