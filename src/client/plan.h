/* plan.h — the server's plan of a query: which key ranges it asks, and what the client does with the rows.
 *
 * https://learn.microsoft.com/azure/cosmos-db/ has no page about it; the fields are those that the official SDKs read. */
#pragma once

#include "client/routing.h"

enum { PLAN_ORDERS_MAX = 16, PLAN_AGGREGATES_MAX = 64, PLAN_RANGES_MAX = 1 << 16 };

typedef enum plan_aggregate {
    PLAN_FIRST, /* no aggregate: the first row's value, as for a grouped property */
    PLAN_COUNT,
    PLAN_SUM,
    PLAN_AVERAGE,
    PLAN_MIN,
    PLAN_MAX,
    PLAN_LIST,
    PLAN_SET,
} plan_aggregate;

typedef struct plan_range {
    epk min, max;
    bool max_included;
} plan_range;

typedef struct query_plan {
    char *rewritten; /* NULL: the query as it is */
    bool distinct, select_value, non_streaming, grouped;
    int64_t top, offset, limit; /* −1: none */
    size_t orders_n;
    bool descending[PLAN_ORDERS_MAX];
    size_t aggregates_n;
    plan_aggregate aggregates[PLAN_AGGREGATES_MAX];
    struct {
        char *alias; /* with its quotes */
        plan_aggregate aggregate;
    } aliases[PLAN_AGGREGATES_MAX];
    size_t aliases_n;
    plan_range *ranges;
    size_t ranges_n;
} query_plan;

/* Reads a plan. The caller frees it in every case. */
tesela_status client__plan_read(slice body, query_plan *plan_out, tesela_error *error);
void client__plan_free(query_plan *plan);

/* Whether rows are combined to others, so that a cursor cannot say where it is. */
static inline bool client__plan_combines(const query_plan *p) {
    return p->distinct || p->grouped || p->aggregates_n || p->aliases_n || p->non_streaming;
}
