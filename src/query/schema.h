/* schema.h — the container settings that queries need: computed properties, distance functions of vectors, languages of texts.
 *
 * They are looked up in the settings (BSON) whenever a query is bound; nothing is cached, so any thread may call this. */
#pragma once

#include "base/op.h"
#include "text/search.h"

typedef struct query_schema {
    slice computed;           /* computedProperties: an array of {name, query}; empty slices mean none */
    slice vectors;            /* vectorEmbeddingPolicy.vectorEmbeddings: {path, distanceFunction, …} */
    slice texts;              /* fullTextPolicy.fullTextPaths: {path, language} */
    search_language language; /* fullTextPolicy.defaultLanguage */
} query_schema;

/* The result points into the settings. */
query_schema query_schema_of(slice settings);

/* Finds the query of a computed property, SELECT VALUE expression FROM c. */
bool query_schema_computed(const query_schema *s, slice name, slice *query_out);

/* The setting for the property at this path of the item. Paths that the policies do not name have the distance cosine and the default
 * language. */
search_distance query_schema_distance(const query_schema *s, const slice *steps, size_t n);
search_language query_schema_language(const query_schema *s, const slice *steps, size_t n);

/* Checks the computed properties in the settings as the service does: at most 20, no duplicate or system names; each query computes one
 * value from one item, deterministically. Fast enough for a loop, because the texts are short. E_BAD_REQUEST with a message. */
enum { QUERY_COMPUTED_MAX = 20, QUERY_COMPUTED_BYTES_MAX = 8192 };
MUST_CHECK err query_schema_check(op *o, slice settings);
