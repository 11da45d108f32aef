/* run.h — running a traversal: a machine that works in slices, and asks its caller for the graph.
 *
 * The machine knows no store. When a step needs the graph it stops with GREMLIN_NEED_GRAPH; gremlin_run_ask() describes what it wants, as
 * data: find elements, read neighbours, load properties, write. The caller answers, now or later, and lets the machine go on. So a
 * traversal never blocks a thread, and the caller may do its reading on whatever thread it likes.
 *
 *     gremlin_run *run = gremlin_run_begin(o, traversal, &options);
 *     for (bool done = false; !done;) {
 *         TRY(gremlin_run_step(run, &need));                 // works for about `options.slice_steps`, then returns
 *         switch (need) {
 *         case GREMLIN_NEED_TURN:  break;                    // give way to others, check the deadline, call again
 *         case GREMLIN_NEED_GRAPH: answer(run, gremlin_run_ask(run)); break;
 *         case GREMLIN_NEED_TAKE:  result = gremlin_run_take(run); break;
 *         case GREMLIN_NEED_NOTHING: done = true;
 *         }
 *     }
 *     gremlin_run_free(run);
 *
 * Evaluation is breadth-first: each step takes a batch of traversers, so that one ask covers the vertices of all of them, in nested
 * traversals too. Results come as soon as the last step has some; a limit() stops what is before it.
 *
 * Memory: everything lives in an arena that is counted against the operation's budget. From time to time, between two steps, the machine
 * copies what is still reachable to a new arena and frees the old one. So values that a caller got from the run (results, asks) are
 * valid only until the next gremlin_run_step. Beyond the budget the run ends with E_MEMORY, beyond `loops_max` rounds of a repeat() with
 * E_BAD_QUERY.
 *
 * A run belongs to one thread at a time. */
#pragma once

#include "base/clock.h"
#include "base/random.h"
#include "gremlin/traversal.h"

typedef struct gremlin_run gremlin_run;

typedef struct gremlin_run_options {
    const clock_source *clock; /* for profile() and timeLimit() */
    random_source *random;     /* for coin(), sample() and shuffle */
    int64_t loops_max;         /* rounds of one repeat(); 0: 10,000 */
    size_t slice_steps;        /* work before GREMLIN_NEED_TURN, about 1 µs each, and 2 ms at most; 0: 500 */
    size_t batch;              /* traversers that a step takes at once; 0: 512 */
    bool bare_results;         /* results are references: elements in them are not loaded, as for bytecode */
    slice text;                /* the script, for executionProfile() */
} gremlin_run_options;

typedef enum gremlin_need {
    GREMLIN_NEED_TURN,   /* the slice is used up: call again when it is your turn */
    GREMLIN_NEED_GRAPH,  /* answer gremlin_run_ask() */
    GREMLIN_NEED_TAKE,   /* a result is ready: gremlin_run_take() */
    GREMLIN_NEED_NOTHING /* the traversal has ended */
} gremlin_need;

/* The traversal and the operation must outlive the run. */
gremlin_run *gremlin_run_begin(op *o, const gremlin_traversal *t, const gremlin_run_options *options);
void gremlin_run_free(gremlin_run *run);

/* After an error the run can only be freed; the operation's detail explains it. What was written before stays written. */
MUST_CHECK err gremlin_run_step(gremlin_run *run, gremlin_need *need_out);

/* After GREMLIN_NEED_TAKE: the result and how often it occurs, valid until the next step. */
gremlin_value gremlin_run_take(gremlin_run *run, int64_t *bulk_out);

/* ---- asking the graph ---- */

typedef enum gremlin_ask_kind {
    GREMLIN_ASK_FIND,     /* vertices or edges, by ids or conditions */
    GREMLIN_ASK_ADJACENT, /* edges or neighbours of vertices */
    GREMLIN_ASK_LOAD,     /* the properties of vertices and edges that are not loaded */
    GREMLIN_ASK_ADD,      /* new vertices or edges */
    GREMLIN_ASK_SET,      /* properties of elements */
    GREMLIN_ASK_DROP      /* elements or properties */
} gremlin_ask_kind;

/* A property to write. */
typedef struct gremlin_write {
    int cardinality; /* CARDINALITY_SINGLE, …; -1: the graph's default */
    slice key;
    gremlin_value value;
    size_t n;
    const gremlin_pair *metas; /* string to value */
} gremlin_write;

/* One element of ADD, SET or DROP. */
typedef struct gremlin_target {
    gremlin_element *element;            /* SET, DROP: what is changed */
    const gremlin_property *property;    /* DROP: only this property of it; its owner is `element`. NULL: the element */
    const gremlin_property *of_property; /* SET, DROP: the vertex property whose meta-property is meant; NULL: none */
    gremlin_value id;                    /* ADD: wanted by the client; null: the graph chooses */
    slice label;                         /* ADD */
    gremlin_element *out, *in;           /* ADD of an edge; not necessarily loaded */
    size_t n;
    const gremlin_write *writes; /* ADD, SET */
} gremlin_target;

/* What the machine wants. Lists are batches: the graph may read or write all of it together, in any order, except that targets are written
 * in theirs. All pointers are valid until the next gremlin_run_step. */
typedef struct gremlin_ask {
    gremlin_ask_kind kind;
    bool edges; /* FIND, ADJACENT, ADD: edges are wanted, not vertices */

    /* FIND: these ids (as the client gave them: strings, numbers, a pair [partition key, id], elements), or all */
    bool by_ids;
    size_t id_n;
    const gremlin_value *ids;

    /* ADJACENT: of these vertices; LOAD: these elements */
    size_t element_n;
    gremlin_element *const *elements;
    size_t key_n; /* LOAD: only the properties with these keys are needed; 0: all */
    const slice *keys;
    unsigned direction; /* ADJACENT: DIRECTION_OUT, … */
    size_t label_n;     /* ADJACENT: edges with one of these labels; 0: any */
    const slice *labels;

    /* FIND, ADJACENT: all these conditions must hold. The graph may use them to read less, but need not: the machine tests them again.
     * With ADJACENT they are conditions of the vertex at the other end, not of the edge. */
    size_t condition_n;
    const gremlin_condition *conditions;
    int64_t limit;  /* FIND, ADJACENT: the machine takes at most this many that meet the conditions; -1: unknown */
    size_t wanted;  /* a good number of elements for one answer */
    slice position; /* FIND, ADJACENT: where the previous answer ended; empty: from the beginning */

    size_t target_n; /* ADD, SET, DROP */
    const gremlin_target *targets;
} gremlin_ask;

const gremlin_ask *gremlin_run_ask(const gremlin_run *run);

/* ---- answering ----
 *
 * Give elements, then gremlin_answer_end once. Make elements with gremlin_answer_arena as memory: they live as long as the run needs them.
 *   FIND      gremlin_answer_element(run, 0, e) for each, in any order
 *   ADJACENT  gremlin_answer_element(run, i, e): e is an edge, or the neighbour, of elements[i]. A vertex's own loops come once for `out`,
 *             once for `in`, and so twice for `both`
 *   LOAD      gremlin_answer_element(run, i, e): e has the properties of elements[i]; without an answer the element has none
 *   ADD, SET  gremlin_answer_element(run, i, e): the element of targets[i] as it is now
 *   DROP      nothing
 * A neighbour may be given as a reference, not `loaded`, if its id, label and place are known without reading it. */

arena *gremlin_answer_arena(gremlin_run *run);
void gremlin_answer_element(gremlin_run *run, size_t index, gremlin_element *e);
/* `position`: not empty if there is more; the machine then asks again, with it, when it needs more. */
void gremlin_answer_end(gremlin_run *run, slice position);
/* The graph failed: the next step ends the run with this error. */
void gremlin_answer_failure(gremlin_run *run, err e);

/* Helpers for making elements in the arena; texts are copied. Properties must be added key by key, those of one key together. */
gremlin_element *gremlin_make_vertex(arena *a, gremlin_value id, slice label);
gremlin_element *gremlin_make_edge(arena *a, gremlin_value id, slice label, gremlin_element *out, gremlin_element *in);
gremlin_property *gremlin_make_property(arena *a, gremlin_element *e, gremlin_value id, slice key, gremlin_value value);
void gremlin_make_meta(arena *a, gremlin_property *p, slice key, gremlin_value value);
gremlin_value gremlin_copy(arena *a, gremlin_value v); /* deep */

/* Whether an element fulfils the conditions; it must be loaded if there is one on a property. */
bool gremlin_fulfils(const gremlin_element *e, const gremlin_condition *conditions, size_t n);
