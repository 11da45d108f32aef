#include "query/filter.h"

#include <assert.h>

static const query_filter_kind *_Atomic kinds[QUERY_FILTER_IDS];

void query_filter_register(const query_filter_kind *kind) {
    assert(kind->id > QUERY_FILTER_NONE && kind->id < QUERY_FILTER_IDS && kind->passes);
    assert(!kinds[kind->id] || kinds[kind->id] == kind);
    kinds[kind->id] = kind;
}

const query_filter_kind *query_filter_kind_of(int64_t id) {
    return id > QUERY_FILTER_NONE && id < QUERY_FILTER_IDS ? kinds[id] : NULL;
}
