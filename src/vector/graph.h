/* graph.h — approximate nearest-neighbour search in a graph of vectors: a C interface to hnswlib.
 *
 * A graph holds vectors of one length as floats, each with a label. Searches are approximate: they may miss some vectors. The caller ranks
 * the results by the exact distance. A graph has no lock: searches may run concurrently, but a change must run alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/distance.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vector_graph vector_graph;

/* Has room for `room` vectors at first. `list`: the number of candidates among which a vector's links are chosen; 0: 150. NULL: out of
 * memory. */
vector_graph *vector_graph_new(search_distance distance, size_t dimensions, size_t list, size_t room);
void vector_graph_free(vector_graph *g); /* `g` may be NULL */

typedef enum vector_put_result {
    VECTOR_PUT,
    VECTOR_UNFIT,     /* not added, since its numbers are too large or too small for floats; the label's old vector was removed */
    VECTOR_ZERO,      /* not added, since a zero vector has no direction; the label's old vector was removed */
    VECTOR_NO_ROOM,   /* nothing was changed: call vector_graph_grow and retry */
    VECTOR_NO_MEMORY, /* the graph can only be freed */
} vector_put_result;

/* Adds a vector; replaces the one that had the label. */
vector_put_result vector_graph_put(vector_graph *g, uint64_t label, const double *numbers);
void vector_graph_remove(vector_graph *g, uint64_t label); /* does nothing if there is no such label */
bool vector_graph_grow(vector_graph *g, size_t room);      /* false: out of memory; the graph can only be freed */

typedef struct vector_near {
    uint64_t label;
    float distance; /* only for comparison: smaller is nearer */
} vector_near;

/* Finds the `n` nearest vectors, the nearest first; `n` is also the length of the search list, so a larger `n` gives better results.
 * Returns how many: fewer if most of the near vectors are dead. */
size_t vector_graph_search(const vector_graph *g, const double *numbers, size_t n, vector_near *near_out);

/* Whether a graph can store and search for this vector. */
bool vector_graph_fits(search_distance distance, const double *numbers, size_t dimensions);

size_t vector_graph_count(const vector_graph *g); /* live vectors */
size_t vector_graph_dead(const vector_graph *g);  /* removed or replaced vectors: they take room, and time, until the graph is rebuilt */
size_t vector_graph_room(const vector_graph *g);
size_t vector_graph_bytes(size_t dimensions, size_t room); /* estimated memory of a graph */

#ifdef __cplusplus
}
#endif
