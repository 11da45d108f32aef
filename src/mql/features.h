/* features.h — every stage, operator and accumulator by name, for documents and tests: docs/mongo-features.md is checked against it. */
#pragma once

#include "base/slice.h"

typedef enum mql_feature_kind {
    MQL_FEATURE_STAGE,
    MQL_FEATURE_EXPRESSION,
    MQL_FEATURE_ACCUMULATOR,
    MQL_FEATURE_WINDOW, /* functions of $setWindowFields only; accumulators work there too */
    MQL_FEATURE_FILTER,
    MQL_FEATURE_SHAPE, /* of $geoWithin and $geoIntersects */
    MQL_FEATURE_UPDATE,
} mql_feature_kind;

typedef struct mql_feature {
    slice name;   /* with its $ */
    bool service; /* Azure's service has it */
} mql_feature;

/* The names of a kind one after the other, in no order; false: no more. */
bool mql_feature_at(mql_feature_kind kind, size_t position, mql_feature *feature_out);
