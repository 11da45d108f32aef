/* schema.h — what a container's settings mean to queries: computed properties, which distance a vector is compared by, which language a
 * text is in.
 *
 * Looked up in the settings as they are (BSON), when a query is bound; nothing is kept, so any thread may. */
#pragma once

#include "base/op.h"
#include "text/search.h"

typedef struct query_schema {
    slice computed;           /* computedProperties: an array of {name, query}; all of these may be empty */
    slice vectors;            /* vectorEmbeddingPolicy.vectorEmbeddings: {path, distanceFunction, …} */
    slice texts;              /* fullTextPolicy.fullTextPaths: {path, language} */
    search_language language; /* fullTextPolicy.defaultLanguage */
} query_schema;

/* The settings must live as long. */
query_schema query_schema_of(slice settings);

/* The query of the computed property of this name, SELECT VALUE expression FROM c. */
bool query_schema_computed(const query_schema *s, slice name, slice *query_out);

/* Of the property that these steps lead to from the item; what the policies do not name has the distance cosine and the default language.
 */
search_distance query_schema_distance(const query_schema *s, const slice *steps, size_t n);
search_language query_schema_language(const query_schema *s, const slice *steps, size_t n);

/* Are the computed properties of these settings such as the service takes? At most 20, each name once and none of the system's; the query
 * computes one value from one item and always the same. Quick enough for a loop: their texts are short. E_BAD_REQUEST with a sentence. */
enum { QUERY_COMPUTED_MAX = 20, QUERY_COMPUTED_BYTES_MAX = 8192 };
MUST_CHECK err query_schema_check(op *o, slice settings);
