/* pipeline_int.h — within mql/: stages, the rows of their table, and running stages.
 *
 * Documents are pulled: mql_flow_step asks the last stage for a document, which asks the one before it, and so on to the input. A stage
 * answers with a document, with "blocked" (the flow's caller must bring something first), or with the end. A blocked stage is asked again
 * later, so it keeps what it has in its state.
 *
 * A document that a stage returns lives until that stage is asked again: in the flow's scratch arena (`run->arena`), or in the stage's own
 * memory. A stage that pulls several documents for one of its own releases the scratch arena between them.
 *
 * The stages of one subject are in one file, stage_<subject>.c, which ends with its rows; pipeline_table.c joins them. */
#pragma once

#include "mql/pipeline.h"

typedef struct mql__stage mql__stage;
typedef struct mql__stage_kind mql__stage_kind;
typedef struct mql__runner mql__runner;
typedef struct mql__stage_parser mql__stage_parser;

/* ---- parsed ---- */

struct mql__stage {
    const mql__stage_kind *kind;
    mql_value argument; /* as written */
    const void *detail; /* the parsed argument; its type depends on the kind */
};

struct mql_pipeline {
    mql__stage *stages;
    size_t n;
};

typedef enum mql__place { MQL__AT_TOP, MQL__IN_LOOKUP, MQL__IN_UNION, MQL__IN_FACET, MQL__IN_UPDATE } mql__place;

struct mql__stage_parser {
    mql_scope *scope;
    mql__place place;
    mql__stage *stages;
    size_t n, room;
};

enum { MQL__PIPELINE_STAGES_MAX = 1000, MQL__PIPELINES_DEPTH_MAX = 20 };

MUST_CHECK err mql__pipeline_parse(mql_scope *s, slice stages, mql__place place, const mql_pipeline **pipeline_out);
/* Parses the pipeline of an update: only stages that map one document to one document; 72 for others. */
MUST_CHECK err mql__pipeline_parse_update(mql_scope *s, slice stages, const mql_pipeline **pipeline_out);
MUST_CHECK err mql__pipeline_map(mql_run *r, const mql_pipeline *p, slice document, slice *document_out);

/* Moves $match stages forward where that changes nothing, and lets $sort know how many documents are wanted. */
void mql__pipeline_optimise(mql_pipeline *p);

/* Adds a stage; or parses one from {name: argument}, for stages that are defined by others, such as $sortByCount. */
MUST_CHECK err mql__add_stage(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument, const void *detail);
MUST_CHECK err mql__parse_stage(mql__stage_parser *p, slice name, mql_value argument);

/* ---- the table ---- */

typedef enum mql__status { MQL__DOCUMENT, MQL__BLOCKED, MQL__END } mql__status;

enum {
    MQL__STAGE_SERVICE = 1,   /* Azure's service has it */
    MQL__STAGE_FIRST = 2,     /* only as the first stage */
    MQL__STAGE_LAST = 4,      /* only as the last stage */
    MQL__STAGE_NO_FACET = 8,  /* not inside $facet */
    MQL__STAGE_UPDATE = 16,   /* allowed in updates */
    MQL__STAGE_TOP_ONLY = 32, /* not inside another pipeline */
    MQL__STAGE_SOURCE = 64    /* the front end brings its documents; in a flow it passes them on */
};

struct mql__stage_kind {
    slice name; /* with its $ */
    uint8_t flags;
    /* Checks the argument and adds one stage or several. */
    err (*parse)(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument);
    /* For stages that map one document to one: returns the new document, or an empty slice for none. `next` is then NULL. */
    err (*map)(mql_run *r, const mql__stage *s, slice document, slice *document_out);
    err (*next)(mql__runner *at, mql__status *status_out, slice *document_out);
    size_t state_bytes;           /* zeroed before the first `next` */
    void (*end)(mql__runner *at); /* frees the state; NULL: nothing to free */
    int variant;                  /* for functions that serve several stages, and for sources their kind */
};

typedef struct mql__stage_kinds {
    const mql__stage_kind *rows;
    size_t n;
} mql__stage_kinds;

extern const mql__stage_kinds mql__basic_stages, mql__field_stages, mql__facet_stages, mql__sort_stages, mql__group_stages,
    mql__bucket_stages, mql__lookup_stages, mql__graph_stages, mql__union_stages, mql__source_stages, mql__write_stages,
    mql__densify_stages, mql__fill_stages, mql__unwind_stages, mql__window_stages, mql__geo_stages;

/* The number of $limit, $skip and $sample. */
uint64_t mql__stage_number(const mql__stage *s);
/* Whether the stage is of this kind: "$match". */
bool mql__stage_is(const mql__stage *s, const char *name);

const mql__stage_kind *mql__stage_find(slice name);
/* The rows one after the other, for tests and documents; NULL: no more. */
const mql__stage_kind *mql__stage_at(size_t position);

/* ---- at work ---- */

struct mql__runner {
    const mql__stage *stage;
    mql_flow *flow;
    size_t position; /* in the flow */
    void *state;
};

/* A queue of documents; its memory is counted. */
typedef struct mql__queue {
    buf bytes;
    size_t at;
} mql__queue;

MUST_CHECK err mql__queue_push(mql__queue *q, slice document);
bool mql__queue_pop(mql__queue *q, slice *document_out); /* valid until the next push */

/* A find that a stage waits for. */
typedef struct mql__ask {
    mql_lookup lookup;
    mql__queue arrived;
    bool open, ended;
} mql__ask;

struct mql_flow {
    const mql_pipeline *pipeline;
    budget *budget;
    arena memory;  /* holds the states of the stages */
    arena scratch; /* holds documents between two stages */
    mql__runner *runners;
    size_t n;
    mql__queue input;
    buf times; /* of the documents in the queue: how many each of them stands for, as uint64_t */
    size_t times_at;
    uint64_t repeats; /* how many the last document stands for; only the first stage may ask (mql__times_of) */
    bool ended;
    mql_run *run; /* while it is stepped */
    mql_need need;
    mql__ask *asking;  /* MQL_NEED_LOOKUP */
    mql_flow *waiting; /* the flow of a sub-pipeline whose find is pending; NULL: none */
    slice output;
    uint64_t pulled; /* number of input documents */
};

static inline mql_run *mql__run_of(const mql__runner *at) {
    return at->flow->run;
}

/* How many documents of the input the pulled one stands for. */
static inline uint64_t mql__times_of(const mql__runner *at) {
    return at->position == 0 ? at->flow->repeats : 1;
}

/* The next document of the stage before. */
MUST_CHECK err mql__pull(mql__runner *at, mql__status *status_out, slice *document_out);

/* Begins a find; asks for its next document. The filter must live as long as the find. */
void mql__ask_begin(mql__runner *at, mql__ask *ask, slice collection, slice filter);
MUST_CHECK err mql__ask_next(mql__runner *at, mql__ask *ask, mql__status *status_out, slice *document_out);
void mql__ask_end(mql__ask *ask);

/* The flow of a sub-pipeline. Its documents come from mql__sub_next: MQL__BLOCKED with *hungry_out means that it needs input, otherwise
 * that it asks for a find, which the runner's flow passes on. */
mql_flow *mql__sub_begin(mql__runner *at, const mql_pipeline *p);
MUST_CHECK err mql__sub_next(mql__runner *at, mql_flow *sub, mql__status *status_out, slice *document_out, bool *hungry_out);

/* ---- helpers ---- */

/* Whether the argument is a document; otherwise `code` with the text, to which the type is added if the text ends with a blank. */
MUST_CHECK err mql__is_document(op *o, mql_value argument, int code, const char *text);
/* The built document, in the run's arena: 10334 if it is too large. Frees the buffer. */
MUST_CHECK err mql__document_made(mql_run *r, mql_builder *b, slice *document_out);
buf mql__document_buf(mql_run *r);
const slice *mql__split_path(arena *a, slice path, size_t *n_out); /* the components of a dotted path */
/* The value at a dotted path without arrays on the way; missing if there is none. */
mql_value mql__value_at(mql_value document, slice path);
/* A document like this one, with the value at the dotted path. Arrays on the way are replaced. A missing value removes the field. */
MUST_CHECK err mql__document_with(mql_run *r, slice document, slice path, mql_value v, slice *document_out);
/* A dotted field name: no empty parts, no $. `code` with a text. */
MUST_CHECK err mql__check_path(op *o, slice path, int code);
MUST_CHECK static inline err mql__arena_error(const arena *a) {
    return a->budget ? budget_error(a->budget) : OK;
}
MUST_CHECK static inline err mql__arena_room(arena *a, size_t bytes) {
    return arena_fits(a, bytes) ? OK : budget_error(a->budget);
}
