/* document.h — within api/gremlin: vertices and edges as items, in the form in which the service stores them, so that the SQL API sees the
 * same, and graphs written through it are traversed.
 *
 *     vertex  {"id":"7","label":"person","pk":"p","age":[{"id":"…","_value":29,"_meta":{…}}], …}
 *     edge    {"id":"…","label":"knows","_isEdge":true,"pk":"p","_vertexId":"7","_vertexLabel":"person",
 *              "_sink":"8","_sinkLabel":"person","_sinkPartition":"q","since":2009, …}
 *
 * A property of a vertex is an array of objects with a `_value`; the partition key and `ttl` are flat. Properties of edges are flat. An
 * edge lies in the partition of the vertex that it leaves. Items of any other form are no part of the graph.
 *
 * An element's `place` is the encoded partition key (pkey_encode), empty in a container without one. Pure functions, any thread. */
#pragma once

#include "api/gremlin/members.h"
#include "gremlin/run.h"
#include "item/item.h"

/* Whether a graph can lie in the container: of the SQL API, with no partition key or one of a single step that is not id or label. */
MUST_CHECK err document_check_container(op *o, const container *c);
slice document_key_name(const container *c); /* of the property that is the partition key; empty: there is none */

/* What an item says about its element, in one pass; texts and keys point into the body. */
typedef struct document_parts {
    slice id, label, vertex_id, vertex_label, sink, sink_label; /* texts; empty: there is none */
    pkey_value key, sink_key;                                   /* PKEY_UNDEFINED: there is none */
    bool is_edge, has_sink_key, shows_key;
} document_parts;

void document_take_apart(const container *c, slice body, document_parts *parts_out);

/* The element, in the arena; NULL: the item is neither a vertex nor an edge. With `keys`, it has the properties of these keys only. */
gremlin_element *document_read(arena *a, const container *c, slice body);
gremlin_element *document_read_keys(arena *a, const container *c, slice body, const slice *keys, size_t n);
gremlin_element *document_read_parts(arena *a, const container *c, slice body, const document_parts *parts);
/* For a traversal that needs the values of these keys and no more of the element: a vertex has neither id nor label nor place, and its
 * properties have neither ids nor meta-properties. */
gremlin_element *document_read_values(arena *a, const container *c, slice body, const slice *keys, size_t n);
bool document_is_edge(slice body);
slice document_member(slice body, const char *name);                              /* a text; empty: there is none */
void document_add_flat(arena *a, gremlin_element *e, slice key, gremlin_value v); /* a property that no array holds */

/* The place of an item, and of the vertex that an edge enters. */
slice document_place(arena *a, const container *c, const document_parts *parts);
slice document_sink_place(arena *a, const container *c, const document_parts *parts);

/* Places and keys. False: the value cannot be a partition key; the place is not one. */
bool document_place_of(arena *a, const container *c, gremlin_value key, slice *place_out);
bool document_place_value(arena *a, const container *c, slice place, gremlin_value *key_out); /* false: it has none */
MUST_CHECK err document_key(op *o, const container *c, slice place, slice id, item_key *key_out);

/* An id as text: strings and numbers. False: the value cannot be an id. */
bool document_id(arena *a, gremlin_value id, slice *text_out);

/* A name that a property may have: not empty, not one of the members above, without zero bytes. */
MUST_CHECK err document_check_key(op *o, slice key);
bool document_is_flat(const container *c, slice key); /* a member of a vertex that is not an array of values: the partition key, ttl */
