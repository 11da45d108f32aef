/* policy.h — which properties a container indexes: its indexing policy, parsed.
 *
 * Paths: "/a/b/?" names the scalar at /a/b, "/a/b/" with a star everything below it, "/a/[]/b" the b of every array element. The deeper
 * path wins; at the same depth the scalar form beats the star. The id, _ts and the partition key are always indexed, unless the mode is
 * none. A policy is built once with its container and is read-only from then on.
 *
 * A lean policy indexes only the paths that it includes: not the id, _ts and the partition key, and not the shapes of items (terms.h). It
 * is for containers whose rows are found by their keys. Such an index cannot tell which items lack a path.
 *
 * A lean policy may have *key indexes*: their entries are a document's keys by a pattern of paths (mql/key.h), in MongoDB's order of
 * values. Each item that the index does not leave out has an entry, also if it lacks the paths.
 *
 * In addition, GeoJSON shapes at spatial paths have an entry for each of their cells (geo/cells.h), and texts at full-text paths one for
 * each word. These entries have index paths of their own. Vectors have no entries; those with a diskANN index are in graphs
 * (item/nearest.h). */
#pragma once

#include "base/op.h"
#include "doc/path.h"
#include "index/entry_key.h"
#include "mql/key.h"
#include "text/search.h"

typedef enum index_rule { RULE_NONE, RULE_INCLUDE, RULE_EXCLUDE } index_rule;

/* A step of the policy's paths. The name of an array step is "[]". */
typedef struct index_node index_node;
struct index_node {
    slice name;
    index_rule scalar;  /* rule of a path that ends with "?" */
    index_rule subtree; /* rule of a path that ends with a star */
    bool always;        /* id or partition key: indexed even if excluded */
    index_node *children;
    index_node *next;
    const index_node **sorted; /* the children sorted by name; set after all paths are read */
    size_t sorted_n;
};

typedef struct index_composite_part {
    doc_path path;
    index_path hash;
    bool descending;
    bool ts;   /* the path is _ts, which is not stored in the document */
    bool made; /* the path is another system property: documents lack it, so the composite does not sort by it */
} index_composite_part;

typedef struct index_composite {
    index_path id; /* index path of its entries */
    const index_composite_part *parts;
    size_t n;
} index_composite;

/* A step of a policy's path or of a query's. */
typedef struct index_step {
    slice name;
    bool element;   /* any element of an array */
    index_path key; /* the path of a key index, which is the only step then; 0: none */
} index_step;

/* Mixed with a property's path by index_path_mixed, these give the index paths of its cells and words. */
enum { INDEX_OF_CELLS = 2, INDEX_OF_KEYS = 3, INDEX_OF_WORDS = 16 /* plus the language */ };

/* A key index. Its entries are the keys, spelled as strings. */
typedef struct index_key {
    slice spec;          /* as mql_index_parse takes it */
    index_path id, many; /* index paths: of its entries; of items that have more than one */
    index_path arrays;   /* of items with one key, in which a path of the pattern meets an array */
    const mql_index *index;
} index_key;

typedef struct index_spatial {
    const index_step *steps;
    size_t n;
    bool below; /* the path ends with a star: also shapes below it */
} index_spatial;

typedef struct index_text {
    doc_path path;
    index_path hash, id; /* the property's path; the index path of its words */
    search_language language;
} index_text;

typedef enum index_vector_kind { VECTOR_FLAT, VECTOR_QUANTIZED_FLAT, VECTOR_DISK_ANN } index_vector_kind;

typedef struct index_vector {
    doc_path path;
    index_path hash;
    index_vector_kind kind;
    uint32_t quantization_bytes, search_list; /* 0: not given */
} index_vector;

typedef struct index_embedding {
    doc_path path;
    index_path hash;
    slice type;
    uint32_t dimensions;
    search_distance distance;
} index_embedding;

typedef struct index_policy {
    bool off;               /* indexingMode none */
    bool rest_included;     /* properties that no path names are indexed */
    uint32_t round;         /* of a lean policy: one that differs only in this has the same entries, built anew */
    bool lean;              /* only included paths have entries: see above */
    const index_node *root; /* NULL: the policy has no path besides the catch-all */
    const index_composite *composites;
    size_t composites_n;
    const index_key *keys;
    size_t keys_n;
    const index_spatial *spatials;
    size_t spatials_n;
    const index_text *texts;
    size_t texts_n;
    const index_vector *vectors;
    size_t vectors_n;
    const index_embedding *embeddings; /* from the vector embedding policy */
    size_t embeddings_n;
} index_policy;

/* ---- reading ---- */

/* Makes the input of index_policy_parse: the container's indexingPolicy, with the other properties that parsing needs (fullTextPolicy,
 * vectorEmbeddingPolicy, geospatialConfig, lean) added as members. `rows`: how its rows are stored (account/account.h), or empty. */
slice index_policy_source(arena *a, slice properties, slice rows);

/* `bson` comes from index_policy_source; `keys` are the partition key's paths. The policy lives in the op's arena, which must be the
 * container's. Fails with E_BAD_REQUEST and the service's message. */
MUST_CHECK err index_policy_parse(op *o, slice bson, const doc_path *keys, size_t keys_n, index_policy *policy_out);

/* Appends the indexing policy to the container's settings as clients see it: with defaults filled in and old forms converted. `read` is the
 * parsed form of `given`. The result can be parsed again. */
void index_policy_canonical(bson_t *settings, slice given, const index_policy *read);

/* Fails if replacing a container would change its vector policy, which is not allowed. */
MUST_CHECK err index_policy_check_replace(op *o, const index_policy *before, const index_policy *after);

/* ---- lookups ---- */

index_path index_path_of(const index_step *steps, size_t n);

/* Whether a step names a system property. Of these only _ts has entries. */
bool index_is_system(index_step step);

/* Whether scalars at this path have entries. */
bool index_policy_covers(const index_policy *policy, const index_step *steps, size_t n);

index_path index_key_path(slice spec);                                        /* of the key index with this specification */
const index_key *index_policy_key(const index_policy *policy, index_path id); /* NULL: the policy has no such key index */

bool index_policy_has_shapes(const index_policy *policy, const index_step *steps, size_t n);
const index_text *index_policy_text(const index_policy *policy, const index_step *steps, size_t n); /* NULL: no full-text index there */

const index_embedding *index_policy_embedding(const index_policy *policy, index_path path);
const index_vector *index_policy_vector(const index_policy *policy, index_path path); /* NULL: no vector index at this path */

const index_node *index_node_child(const index_node *node, slice name); /* NULL if there is none; `node` may be NULL */

/* Whether two policies give the same entries for every item. */
bool index_policy_same(const index_policy *a, const index_policy *b);
