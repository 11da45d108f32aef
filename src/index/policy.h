/* policy.h — which properties a container indexes: its indexing policy, ready for use.
 *
 * Paths: "/a/b/?" is the scalar there, "/a/b/" and a star all below, "/a/[]/b" every array element's. The deeper path wins, and the scalar
 * form beats the star at its place. The id, _ts and the partition key are indexed whatever the paths say, unless the mode is none.
 * A policy is built once with its container and then only read. */
#pragma once

#include "base/op.h"
#include "doc/path.h"
#include "index/key.h"

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
} index_composite_part;

typedef struct index_composite {
    index_path id; /* what its entries stand under */
    const index_composite_part *parts;
    size_t n;
} index_composite;

typedef struct index_policy {
    bool off;               /* indexingMode none */
    bool rest_included;     /* what no path names */
    const index_node *root; /* NULL: no path but the catch-all */
    const index_composite *composites;
    size_t composites_n;
} index_policy;

/* Reads {"indexingMode","automatic","includedPaths","excludedPaths",…}; `keys` are the partition key's paths. Bytes live in the op's
 * arena, which must be the container's. E_BAD_REQUEST with the service's sentence. */
MUST_CHECK err index_policy_parse(op *o, slice bson, const doc_path *keys, size_t keys_n, index_policy *policy_out);

/* What a policy's path or a query's is made of. */
typedef struct index_step {
    slice name;
    bool element; /* any element of an array */
} index_step;

index_path index_path_of(const index_step *steps, size_t n);

/* Whether scalars at this path have entries. */
bool index_policy_covers(const index_policy *policy, const index_step *steps, size_t n);

const index_node *index_node_child(const index_node *node, slice name); /* NULL: none; of NULL none */

/* Whether two policies give the same entries for every item. */
bool index_policy_same(const index_policy *a, const index_policy *b);
