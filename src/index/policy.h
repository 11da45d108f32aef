/* policy.h — which properties a container indexes: its indexing policy, ready for use.
 *
 * Paths: "/a/b/?" is the scalar there, "/a/b/" and a star all below, "/a/[]/b" every array element's. The deeper path wins, and the scalar
 * form beats the star at its place. The id, _ts and the partition key are indexed whatever the paths say, unless the mode is none.
 * A policy is built once with its container and then only read.
 *
 * A lean policy leaves these out, and with them the shapes of items (terms.h): for containers whose rows are found by their keys, so that
 * an item costs an entry for each path that is named. Which items lack a path is then not known to the index.
 *
 * Beside these, shapes (GeoJSON) at spatial paths have entries of their cells (cells.h), and texts at full-text paths entries of their
 * words, under paths of their own. Vectors have no entries: those of diskANN are in graphs (item/nearest.h). */
#pragma once

#include "base/op.h"
#include "doc/path.h"
#include "index/key.h"
#include "text/search.h"

typedef enum index_rule { RULE_NONE, RULE_INCLUDE, RULE_EXCLUDE } index_rule;

/* A step of the policy's paths. The name of an array step is "[]". */
typedef struct index_node index_node;
struct index_node {
    slice name;
    index_rule scalar;  /* by a question mark */
    index_rule subtree; /* by a star */
    bool always;        /* id and partition key */
    index_node *children;
    index_node *next;
    const index_node **sorted; /* the children by name, once all paths are read */
    size_t sorted_n;
};

typedef struct index_composite_part {
    doc_path path;
    index_path hash;
    bool descending;
    bool ts;   /* it is _ts, which is no part of a document */
    bool made; /* it is another of the system's properties, which no document has: the composite's order is not theirs */
} index_composite_part;

typedef struct index_composite {
    index_path id; /* what its entries stand under */
    const index_composite_part *parts;
    size_t n;
} index_composite;

/* What a policy's path or a query's is made of. */
typedef struct index_step {
    slice name;
    bool element; /* any element of an array */
} index_step;

/* What entries of shapes and of words stand under: index_path_mixed with the path itself. */
enum { INDEX_OF_CELLS = 2, INDEX_OF_WORDS = 16 /* and the language */ };

typedef struct index_spatial {
    const index_step *steps;
    size_t n;
    bool below; /* by a star: shapes below it too */
} index_spatial;

typedef struct index_text {
    doc_path path;
    index_path hash, id; /* of the path; what its words stand under */
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
    bool rest_included;     /* what no path names */
    bool lean;              /* the paths that are named have entries, and nothing else: see above */
    const index_node *root; /* NULL: no path but the catch-all */
    const index_composite *composites;
    size_t composites_n;
    const index_spatial *spatials;
    size_t spatials_n;
    const index_text *texts;
    size_t texts_n;
    const index_vector *vectors;
    size_t vectors_n;
    const index_embedding *embeddings; /* of the vector embedding policy */
    size_t embeddings_n;
} index_policy;

/* ---- reading ---- */

/* What the policy is read from: a container's indexingPolicy with what else of its properties it needs (fullTextPolicy,
 * vectorEmbeddingPolicy, geospatialConfig, whether its rows are lean) as members of it. */
slice index_policy_source(arena *a, slice properties);

/* `bson` as index_policy_source gives it; `keys` are the partition key's paths. Bytes live in the op's arena, which must be the
 * container's. E_BAD_REQUEST with the service's sentence. */
MUST_CHECK err index_policy_parse(op *o, slice bson, const doc_path *keys, size_t keys_n, index_policy *policy_out);

/* The indexing policy as a client sees it, appended to its container's settings: defaults in place, old forms in the new one. `read` is
 * what was parsed of it; what is written parses, too. */
void index_policy_canonical(bson_t *settings, slice given, const index_policy *read);

/* What a replace may not change: vectors. */
MUST_CHECK err index_policy_check_replace(op *o, const index_policy *before, const index_policy *after);

/* ---- asking ---- */

index_path index_path_of(const index_step *steps, size_t n);

/* A property that items have from the system. Of these only _ts has entries. */
bool index_is_system(index_step step);

/* Whether scalars at this path have entries. */
bool index_policy_covers(const index_policy *policy, const index_step *steps, size_t n);

bool index_policy_has_shapes(const index_policy *policy, const index_step *steps, size_t n);
const index_text *index_policy_text(const index_policy *policy, const index_step *steps, size_t n); /* NULL: words have no entries */

const index_embedding *index_policy_embedding(const index_policy *policy, index_path path);
const index_vector *index_policy_vector(const index_policy *policy, index_path path); /* NULL: it has no vector index */

const index_node *index_node_child(const index_node *node, slice name); /* NULL: none; of NULL none */

/* Whether two policies give the same entries for every item. */
bool index_policy_same(const index_policy *a, const index_policy *b);
