/* graph.h — within api/gremlin: answers what a running traversal asks of its graph (gremlin/run.h), by calls of the core.
 *
 *   ids and loads     reads by key if the partition is known; otherwise a find by `id`
 *   conditions        a find, by the index; within one partition if a condition says which
 *   out               a find of edges by `_vertexId`, within one partition if all vertices lie in it
 *   in                a find of edges by `_sink`, over all partitions
 *   writes            a commit of the batch: each element by itself, in order, until one fails; of an atomic script, a part of its
 * transaction drop of vertices  first their edges, page by page, then themselves
 *
 * One ask is answered at a time. Its memory is freed when it is answered, so that a long traversal does not collect it. A traversal is
 * admitted once: after its first answer it is charged, but no more refused, since it could not go on from there. */
#pragma once

#include "api/gremlin/document.h"
#include "api/gremlin/edit_kind.h"
#include "api/gremlin/gremlin_int.h"

/* An element of the ask by its id and place, to recognise it in what was read. */
typedef struct gremlin_wanted {
    slice id, place;
    size_t index;
    gremlin_element *element;
} gremlin_wanted;

typedef struct gremlin_answered {
    size_t index;
    gremlin_element *element;
} gremlin_answered;

struct gremlin_graph {
    gremlin_eval *q;
    arena memory; /* of this ask; the operation's arena meanwhile */
    arena *outer;
    const gremlin_ask *ask;

    buf found;      /* gremlin_answered */
    unsigned shown; /* projection.c: system properties that elements of this statement have */

    /* reading */
    gremlin_wanted *wanted; /* sorted by id, then place */
    size_t wanted_n;
    item_key *keys;
    size_t *indexes; /* of keys: of the ask */
    size_t keys_n;
    const slice *loose; /* ids whose partition is not known */
    size_t loose_n;
    bool entering; /* ADJACENT and drops: edges by their sink */
    void (*take)(gremlin_graph *g, slice body);
    const item_head *head;          /* of the item that it takes */
    void (*read)(gremlin_graph *g); /* after the find */
    size_t found_before;            /* bytes of `found` when the find began */
    err failed;                     /* in a sink */
    int part;                       /* atomic.c: of a find that has two; 0: it has one */
    slice next;                     /* where the find goes on; empty: it has ended */
    slice where;                    /* its condition, if it has several pages */
    void (*then)(gremlin_graph *g); /* after the places were read */

    /* writing */
    item_op *ops;
    size_t ops_n;
    size_t *targets;                             /* of ops: targets of the ask; NULL: edges of vertices that are dropped */
    buf dropping;                                /* item_key: these edges */
    buf position;                                /* where the find of them goes on */
    arena_mark mark;                             /* memory of one page of them */
    void (*written)(gremlin_graph *g, size_t i); /* reads the result of ops[i] */
    void (*after)(gremlin_graph *g);             /* when they are given back */
};

gremlin_graph *gremlin_graph_new(gremlin_eval *q);
void gremlin_graph_free(gremlin_graph *g);
void gremlin_graph_answer(gremlin_eval *q); /* then gremlin_eval_go_on, or gremlin_fail */

/* ---- within the graph ---- */

/* Each ends the ask. */
void gremlin_graph_done(gremlin_graph *g, slice position);
void gremlin_graph_fail(gremlin_graph *g, err code);

void gremlin_graph_found(gremlin_graph *g, size_t index, gremlin_element *e);
arena *gremlin_graph_elements(gremlin_graph *g); /* where elements live */

/* E_FORBIDDEN: the client may not do this with the partition at the place; `place` NULL: with all of the container. */
MUST_CHECK err gremlin_graph_allows(gremlin_graph *g, unsigned verbs, const slice *place);

/* Sorts the elements, so that gremlin_graph_match finds each in what was read. */
void gremlin_graph_want(gremlin_graph *g, gremlin_element *const *elements, size_t n);
/* The first of those with this id and place; `n_out` says how many follow. The place does not count if `anywhere`. NULL: none. */
const gremlin_wanted *gremlin_graph_match(const gremlin_graph *g, slice id, slice place, bool anywhere, size_t *n_out);

/* Finds items by a condition, in one partition if `place` is not NULL: `take` gets each, `read` is called after the page. */
void gremlin_graph_find(gremlin_graph *g, slice where, const slice *place, slice from, size_t rows_max);

/* read.c */
void gremlin_read_find(gremlin_graph *g);
void gremlin_read_adjacent(gremlin_graph *g);
void gremlin_read_load(gremlin_graph *g);
void gremlin_read_places(gremlin_graph *g, void (*then)(gremlin_graph *g)); /* of elements that came without one, from the client */
/* The vertex that an edge was looked for by; `n_out` as for gremlin_graph_match. An edge that does not say where its target lies is one of
 * any partition. */
const gremlin_wanted *gremlin_read_owner(gremlin_graph *g, const document_parts *edge, size_t *n_out);
void gremlin_read_edges(gremlin_graph *g, bool entering, slice from, size_t rows_max); /* of the wanted vertices; no labels */

/* write.c */
void gremlin_write_add(gremlin_graph *g);
void gremlin_write_set(gremlin_graph *g);
void gremlin_write_drop(gremlin_graph *g);
bool gremlin_write_is_gone(const item_op *one, err code); /* what is gone already needs no change and no drop */

/* atomic.c: within the script's transaction */
void gremlin_atomic_write(gremlin_graph *g); /* `ops`, then `after` or gremlin_graph_fail */
void gremlin_atomic_read(gremlin_graph *g, void (*read)(void *context, size_t i, const item_found *found), call_step done); /* `keys` */
/* A find: where it reads now, and from where; which rows it leaves out; where it goes on. */
MUST_CHECK err gremlin_atomic_divide(gremlin_graph *g, const slice **place, slice *from);
bool gremlin_atomic_leaves_out(gremlin_graph *g, slice body);
slice gremlin_atomic_next(gremlin_graph *g, slice next);

/* projection.c: ProjectionStrategy of the running statement */
void gremlin_projection_begin(gremlin_graph *g);
bool gremlin_projection_shows(const gremlin_graph *g, slice key);                         /* not a property of the item's body */
void gremlin_projection_add(gremlin_graph *g, gremlin_element *e, const item_head *head); /* `e` may be NULL */
slice gremlin_projection_etag(const gremlin_graph *g, const gremlin_element *e);          /* which a write of it requires; empty: none */

/* where.c: conditions of query/find.h, in the operation's arena; empty: they do not fit, and a find with them fails */
slice gremlin_where_elements(gremlin_graph *g); /* FIND without ids; the conditions that an index can answer */
slice gremlin_where_ids(gremlin_graph *g, const slice *ids, size_t n);
slice gremlin_where_edges(gremlin_graph *g, bool entering);   /* edges of the wanted vertices, with the ask's labels */
bool gremlin_where_place(gremlin_graph *g, slice *place_out); /* the one partition that the conditions allow */
