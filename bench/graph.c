#include "graph.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "data.h"

uint64_t graph_vertices;

static bool is_edge(uint64_t number) {
    return graph_vertices > 0 && number >= graph_vertices && number < graph_vertices * (1 + GRAPH_DEGREE);
}

static uint64_t source_of(uint64_t edge) {
    return (edge - graph_vertices) / GRAPH_DEGREE;
}

/* bench/gremlin.py has the same in Groovy. */
uint64_t graph_neighbour(uint64_t vertex, unsigned edge) {
    return data_mix(vertex * GRAPH_DEGREE + edge) % graph_vertices;
}

size_t graph_id(uint64_t number, char *out) {
    return (size_t)snprintf(out, GRAPH_NAME_BYTES, "%c%09" PRIu64, is_edge(number) ? 'e' : 'v', number);
}

size_t graph_key(uint64_t number, char *out) {
    uint64_t vertex = is_edge(number) ? source_of(number) : number;
    return (size_t)snprintf(out, GRAPH_NAME_BYTES, "p%03" PRIu64, vertex % GRAPH_PARTITIONS);
}

static size_t vertex_item(uint64_t number, char *out) {
    char id[GRAPH_NAME_BYTES], key[GRAPH_NAME_BYTES], name[DATA_VALUE_MAX], city[DATA_VALUE_MAX];
    graph_id(number, id);
    graph_key(number, key);
    name[data_value(DATA_NAME, number, name)] = 0;
    city[data_value(DATA_CITY, number, city)] = 0;
    return (size_t)sprintf(out,
                           "{\"id\":\"%s\",\"label\":\"person\",\"pk\":\"%s\",\"name\":[{\"id\":\"%s-name\",\"_value\":\"%s\"}],"
                           "\"city\":[{\"id\":\"%s-city\",\"_value\":\"%s\"}],\"age\":[{\"id\":\"%s-age\",\"_value\":%u}]}",
                           id, key, id, name, id, city, id, (unsigned)(number % 80));
}

static size_t edge_item(uint64_t number, char *out) {
    char id[GRAPH_NAME_BYTES], from[GRAPH_NAME_BYTES], from_key[GRAPH_NAME_BYTES], to[GRAPH_NAME_BYTES], to_key[GRAPH_NAME_BYTES];
    uint64_t source = source_of(number), target = graph_neighbour(source, (unsigned)((number - graph_vertices) % GRAPH_DEGREE));
    graph_id(number, id);
    graph_id(source, from);
    graph_key(source, from_key);
    graph_id(target, to);
    graph_key(target, to_key);
    return (size_t)sprintf(
        out,
        "{\"id\":\"%s\",\"label\":\"knows\",\"_isEdge\":true,\"pk\":\"%s\",\"_vertexId\":\"%s\",\"_vertexLabel\":\"person\","
        "\"_sink\":\"%s\",\"_sinkLabel\":\"person\",\"_sinkPartition\":\"%s\",\"weight\":%.2f}",
        id, from_key, from, to, to_key, (double)(number % 100) / 100);
}

size_t graph_item(uint64_t number, char *out) {
    return is_edge(number) ? edge_item(number, out) : vertex_item(number, out);
}
