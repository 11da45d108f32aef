/* machine_int.h — the machine that runs traversals. For this folder.
 *
 * A *flow* is a traversal being run: one state per step, each with a queue of traversers. The machine runs the last step that has work, so
 * results leave as early as possible. A step takes a batch off its queue and emits traversers to the next queue. A nested traversal is a
 * flow of its own, pushed on top of its parent: it runs to its end, then the step that pushed it goes on with the results.
 *
 * A nested traversal runs for all traversers of the batch at once. The *tag* of each traverser says which of them it came from, so steps
 * that gather (count, fold, order, limit, dedup …) keep one state per tag. The outermost flow has one tag, 0.
 *
 * `apply` handles the batch of a state. It returns
 *   DONE   the batch is handled
 *   YIELD  it will go on with the same batch, after the steps behind it
 *   WAIT   it has asked the graph, or pushed a flow; called again when that is done
 * and keeps its place in `phase`, which is 0 for a new batch. `finish`, of steps that gather, is called after the last batch, the
 * same way.
 *
 * Values move when memory is collected, between two turns. So nothing may keep values but the members of `state` and `gremlin_run` that
 * gremlin__collect knows. */
#pragma once

#include "gremlin/run.h"

typedef struct path_node path_node;
struct path_node {
    const path_node *prev;
    gremlin_value value;
    gremlin_labels labels;
    uint32_t n; /* nodes up to this one */
};

typedef struct loop_mark loop_mark;
struct loop_mark {
    const loop_mark *outer;
    slice name;
    int64_t count;
};

typedef struct traverser {
    gremlin_value value;
    gremlin_value sack;
    const path_node *path;
    const loop_mark *loops;
    int64_t bulk;
    uint32_t tag;
    bool seed; /* the one traverser with which a traversal starts: it has no value yet */
} traverser;

/* Bulks stop at the largest number. */
static inline int64_t bulk_plus(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}
static inline int64_t bulk_times(int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

/* Traversers, first in, first out. */
typedef struct queue {
    buf bytes;
    size_t from; /* entries taken so far */
} queue;

static inline size_t queue_n(const queue *q) {
    return q->bytes.n / sizeof(traverser) - q->from;
}
static inline traverser *queue_at(const queue *q) { /* by address, since an empty queue may have no bytes at all */
    return (traverser *)((uintptr_t)q->bytes.p + q->from * sizeof(traverser));
}

/* Entries by tag and key, in the order of insertion: what gathering steps keep. */
typedef struct entry {
    uint32_t tag;
    gremlin_value key, value;
    int64_t n;
    gremlin_items items;
    uint64_t hash;
} entry;

typedef struct table {
    buf entries; /* of entry */
    buf index;   /* of uint32_t: 1 + the entry's position; 0: free */
} table;

/* What a by() or a condition makes of a value: see gremlin__evaluate. */
typedef struct subject {
    traverser in;
    const gremlin_by *by;               /* or */
    const gremlin_traversal *traversal; /* NULL: `by` */
    bool done, productive;
    bool missing; /* what `in` should be does not exist */
    gremlin_value out;
} subject;

typedef struct flow flow;
typedef struct state state;
typedef enum status { DONE, YIELD, WAIT, FAILED } status;

typedef struct step_kind {
    status (*apply)(gremlin_run *m, flow *f, state *s);
    status (*finish)(gremlin_run *m, flow *f, state *s); /* NULL: none */
    bool loads;                                          /* needs the properties of the elements in its batch */
} step_kind;

struct state {
    const gremlin_step *step;
    const step_kind *kind;
    queue in;
    bool ended;    /* nothing will be added to `in` */
    bool finished; /* `finish` is done */
    bool pending;  /* YIELD */
    bool finishing;
    unsigned phase;
    queue batch;
    buf subjects;      /* of subject */
    size_t subject_at; /* the subject whose traversal is being evaluated */
    unsigned evaluating;
    queue results; /* of the last child flow, by tag */
    buf offsets;   /* of uint32_t: where the results of each tag begin; one more than tags */
    size_t child;  /* which child, for steps with several */
    table table;
    queue kept;
    slice position; /* in the graph's answer */
    flow *body;     /* repeat() */
    int64_t number;
    int64_t since_us;
    /* profile */
    int64_t took_us, traversers, elements, asks;
};

struct flow {
    const gremlin_traversal *traversal;
    flow *parent;
    size_t n;
    state *states;
    size_t current; /* the state that waits; SIZE_MAX: none */
    uint32_t tags;
    bool first_only;    /* one result per tag is enough */
    size_t number_seen; /* results that keep_first has looked at */
    buf done;           /* of bool per tag: has its result */
    queue out;
    state *into; /* the parent's state that gets the results */
    bool stays;  /* repeat(): used again, freed by its step */
};

typedef enum side_kind { SIDE_VALUE, SIDE_BAG, SIDE_COUNTS, SIDE_GROUPS, SIDE_TREE, SIDE_SUBGRAPH } side_kind;
typedef struct side side;
struct side {
    side *next;
    slice name;
    side_kind kind;
    gremlin_value value;
    gremlin_value reducer; /* of withSideEffect(): an Operator; null: none */
    table table;
    queue kept;
    const gremlin_step *step;
};

typedef struct answer_entry {
    size_t index;
    gremlin_element *element;
} answer_entry;

struct gremlin_run {
    op *op;
    const gremlin_traversal *traversal;
    gremlin_run_options options;
    arena heap;
    size_t collected_held; /* heap.held after the last collection */
    flow *root, *top;
    side *sides;
    bool tracks_path, tracks_labels;
    gremlin_condition everywhere; /* PartitionStrategy: a condition of all vertices that are read; key empty: none */
    gremlin_pair added;           /* PartitionStrategy: a property of all vertices that are added; key null: none */
    random_source seeded;         /* SeedStrategy */
    err failure;

    bool asking, answered;
    gremlin_ask ask;
    buf ask_room;     /* arrays of the ask */
    buf answers;      /* of answer_entry */
    slice answer_end; /* position */
    table loads;      /* LOAD: the elements, each once */
    buf load_pairs;   /* of answer_entry: every element to complete, and its index in the ask */

    int64_t result_n; /* results taken */
    gremlin_value result;
    int64_t result_bulk;
    bool ended, produced;
    table seen; /* toSet(): the results so far */
    int64_t started_us;
};

static inline bool gremlin__is_out_of_memory(const gremlin_run *m) {
    return m->op->budget && m->op->budget->exceeded;
}

/* ---- machine.c ---- */
status gremlin__fail(gremlin_run *m, err e, const char *format, ...) __attribute__((format(printf, 3, 4)));
void gremlin__emit(flow *f, state *s, const traverser *t); /* to the next step; bulk and tag as they are */
/* A copy with another value, behind `t` in its path. */
traverser gremlin__split(gremlin_run *m, const state *s, const traverser *t, gremlin_value value);
/* Emits the same traverser, with the step's labels. */
void gremlin__pass(gremlin_run *m, flow *f, state *s, const traverser *t);
void gremlin__emit_value(gremlin_run *m, flow *f, state *s, const traverser *t, gremlin_value value); /* split and emit */
traverser gremlin__fresh(uint32_t tag, gremlin_value value); /* without a past: what reducing steps emit */
void gremlin__emit_fresh(gremlin_run *m, flow *f, state *s, uint32_t tag, gremlin_value value);
/* Nothing before this step is needed any more. */
void gremlin__cut(flow *f, const state *s);

flow *gremlin__flow(gremlin_run *m, const gremlin_traversal *t, uint32_t tags, bool first_only);
void gremlin__flow_free(gremlin_run *m, flow *f);
void gremlin__flow_end(flow *f); /* no more input */
void gremlin__flow_rearm(flow *f);
/* Runs `t` on the traversers, tagged by their position, and returns WAIT. The results will be in s->results. */
status gremlin__run_child(gremlin_run *m, flow *f, state *s, const gremlin_traversal *t, const traverser *in, size_t n, bool first_only);
/* The same with the tags that the traversers have. */
status gremlin__run_tagged(gremlin_run *m, flow *f, state *s, const gremlin_traversal *t, const traverser *in, size_t n, uint32_t tags);
bool gremlin__has_result(const flow *f, uint32_t tag); /* in a flow that needs only one per tag */
static inline const traverser *results_of(const state *s, size_t tag, size_t *n_out) {
    const uint32_t *offsets = (const uint32_t *)(const void *)s->offsets.p;
    *n_out = offsets[tag + 1] - offsets[tag];
    return (const traverser *)((uintptr_t)queue_at(&s->results) + offsets[tag] * sizeof(traverser));
}
static inline size_t batch_n(const state *s) {
    return queue_n(&s->batch);
}
static inline const traverser *batch_at(const state *s) {
    return queue_at(&s->batch);
}

/* ---- queues and tables: table.c ---- */
void gremlin__put(queue *q, const traverser *t);
void gremlin__queue_clear(queue *q);
void gremlin__queue_free(queue *q);
void gremlin__queue_take(queue *q, size_t n); /* drops the first n */
/* The entry of (tag, key), made if there is none. NULL: no memory. Pointers are valid until the next call. */
entry *gremlin__entry(table *t, uint32_t tag, gremlin_value key, bool *new_out);
entry *gremlin__entry_find(const table *t, uint32_t tag, gremlin_value key);
static inline size_t table_n(const table *t) {
    return t->entries.n / sizeof(entry);
}
static inline entry *table_at(const table *t) {
    return (entry *)(void *)t->entries.p;
}
void gremlin__table_clear(table *t);
void gremlin__table_free(table *t);

/* ---- memory: heap.c ---- */
void gremlin__collect(gremlin_run *m); /* if there is enough garbage to make it worth while */

/* ---- asks: ask.c ---- */
/* True: all elements among the values are loaded. Otherwise an ask is made: return WAIT, and call again. */
bool gremlin__loaded(gremlin_run *m, state *s, const gremlin_value *values, size_t n, size_t stride);
void gremlin__ask_begin(gremlin_run *m, gremlin_ask_kind kind);
void *gremlin__ask_add(gremlin_run *m, const void *item, size_t size); /* to the ask's array */
status gremlin__ask_send(gremlin_run *m);
void gremlin__complete(gremlin_run *m, gremlin_element *e, const gremlin_element *read); /* e gets the label and properties of `read` */
static inline size_t answers_n(const gremlin_run *m) {
    return m->answers.n / sizeof(answer_entry);
}
static inline const answer_entry *answers_at(const gremlin_run *m) {
    return (const answer_entry *)(const void *)m->answers.p;
}

/* ---- subjects: evaluate.c ---- */
void gremlin__subject_by(state *s, const traverser *in, gremlin_value value, const gremlin_by *by); /* by NULL: identity */
void gremlin__subject_traversal(state *s, const traverser *in, const gremlin_traversal *t);
static inline size_t subjects_n(const state *s) {
    return s->subjects.n / sizeof(subject);
}
static inline subject *subjects_at(const state *s) {
    return (subject *)(void *)s->subjects.p;
}
/* DONE: all subjects are done; `productive` says whether there is a result, `out` is it. */
status gremlin__evaluate(gremlin_run *m, flow *f, state *s);
void gremlin__subjects_clear(state *s);
/* Phase 0 calls `list` for each traverser of the batch, which adds its subjects; evaluates them; DONE when they are ready. */
status gremlin__with_subjects(gremlin_run *m, flow *f, state *s, void (*list)(gremlin_run *m, state *s, const traverser *t));
const gremlin_by *gremlin__by(const gremlin_step *step, size_t i); /* the i-th, round robin; NULL: identity */

/* ---- values of elements ---- */
bool gremlin__property_value(gremlin_value v, slice key, gremlin_value *value_out); /* of an element, a vertex property or a map */
bool gremlin__token(gremlin_run *m, gremlin_value v, unsigned token, gremlin_value *value_out);
gremlin_value gremlin__path_value(gremlin_run *m, const traverser *t, slice from, slice to);
/* The value with a label: from a map, the path, or the side effects. */
bool gremlin__select(gremlin_run *m, const traverser *t, slice label, unsigned pop, gremlin_value *value_out);

/* ---- side effects: side.c ---- */
side *gremlin__side(gremlin_run *m, slice name, side_kind kind, const gremlin_step *step); /* made if there is none */
side *gremlin__side_find(gremlin_run *m, slice name);
gremlin_value gremlin__side_value(gremlin_run *m, side *e); /* not of groups with a value traversal */
gremlin_value gremlin__group_map(gremlin_run *m, const table *t, uint32_t tag, gremlin_type type);

extern const step_kind gremlin__kinds[GREMLIN_OPS];
