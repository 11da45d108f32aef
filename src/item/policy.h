/* policy.h — which properties a container indexes: its indexing policy, ready for use.
 *
 * Paths: "/a/b/?" is the scalar there, "/a/b/" and a star all below, "/a/[]/b" every array element's. The deeper path wins, and the scalar
 * form beats the star at its place.
 * A policy is built once with its container and then only read. */
#pragma once

#include <bson/bson.h>

#include "base/op.h"

typedef struct index_node index_node;

typedef struct index_policy {
    bool off;               /* indexingMode none */
    bool rest_included;     /* what no path names */
    const index_node *root; /* NULL: no path but the catch-all */
} index_policy;

/* Reads {"indexingMode","automatic","includedPaths","excludedPaths",…}; bytes live in the op's arena, which must be the container's.
 * E_BAD_REQUEST with the service's sentence. */
MUST_CHECK err index_policy_parse(op *o, slice bson, index_policy *policy_out);

/* How many terms a document has: one of its own and two for each indexed scalar. */
size_t index_terms(const index_policy *policy, slice document);

/* How many terms go or come when `after` takes the place of `before`. */
size_t index_terms_changed(arena *scratch, const index_policy *policy, slice before, slice after);
