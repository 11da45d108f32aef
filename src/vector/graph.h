/* graph.h — vectors, each linked to some that are near it, so that the nearest to a given one are found without looking at all: hnswlib,
 * behind an interface of ours.
 *
 * A graph holds vectors of one length as floats, each under a label. What it finds is approximate: now and then it misses one. Whoever asks
 * ranks what it gets by the real distance. A graph has no lock: searches may go on beside each other, changes are alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "text/distance.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vector_graph vector_graph;

/* For `room` vectors at first. `list`: of how many each one's links are chosen; 0: 150. NULL: there is no memory for it. */
vector_graph *vector_graph_new(search_distance distance, size_t dimensions, size_t list, size_t room);
void vector_graph_free(vector_graph *g); /* NULL too */

typedef enum vector_put_result {
    VECTOR_PUT,
    VECTOR_UNFIT,     /* its numbers are too large or too small for floats: it is not in the graph, nor the one it takes the place of */
    VECTOR_NOWHERE,   /* nor is this one: it has no direction, so nothing is near it */
    VECTOR_NO_ROOM,   /* nothing was done: vector_graph_grow, and again */
    VECTOR_NO_MEMORY, /* the graph can only be freed */
} vector_put_result;

/* In the place of the one that had the label. */
vector_put_result vector_graph_put(vector_graph *g, uint64_t label, const double *numbers);
void vector_graph_remove(vector_graph *g, uint64_t label); /* if it is there */
bool vector_graph_grow(vector_graph *g, size_t room);      /* false: there is no memory, and the graph can only be freed */

typedef struct vector_near {
    uint64_t label;
    float distance; /* of any two, the smaller is nearer; no more than that */
} vector_near;

/* The `n` nearest that it finds, the nearest first, from a list of `n`: the longer, the better. Returns how many: fewer
 * where most that is near is dead. */
size_t vector_graph_search(const vector_graph *g, const double *numbers, size_t n, vector_near *near_out);

/* Whether vectors like this one can be looked for. */
bool vector_graph_fits(search_distance distance, const double *numbers, size_t dimensions);

size_t vector_graph_count(const vector_graph *g); /* of those that can be found */
size_t vector_graph_dead(const vector_graph *g);  /* removed or replaced: they take their room, and time, until the graph is made anew */
size_t vector_graph_room(const vector_graph *g);
size_t vector_graph_bytes(size_t dimensions, size_t room); /* what one takes, about */

#ifdef __cplusplus
}
#endif
