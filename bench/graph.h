/* graph.h — the measured graph: people, each of whom knows ten others. Vertices and edges are functions of their numbers, as all items of
 * data.h: the vertices come first, then the edges, ten for each vertex in turn. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { GRAPH_DEGREE = 10, GRAPH_PARTITIONS = 1000, GRAPH_NAME_BYTES = 32 };

extern uint64_t graph_vertices; /* how many there are; set once, at the start */

uint64_t graph_neighbour(uint64_t vertex, unsigned edge); /* edge: 0 … GRAPH_DEGREE - 1 */

/* Without quotes; each returns its bytes. `out` has GRAPH_NAME_BYTES. */
size_t graph_id(uint64_t number, char *out);
size_t graph_key(uint64_t number, char *out);

/* An item as the service stores vertices and edges, as JSON text. */
size_t graph_item(uint64_t number, char *out);
