#include "client/plan.h"

#include <stdlib.h>

#include "base/memory.h"
#include "client/json.h"

static const struct {
    const char *name;
    plan_aggregate aggregate;
} names[] = {{"\"Count\"", PLAN_COUNT}, {"\"CountIf\"", PLAN_COUNT}, {"\"Sum\"", PLAN_SUM},       {"\"Average\"", PLAN_AVERAGE},
             {"\"Min\"", PLAN_MIN},     {"\"Max\"", PLAN_MAX},       {"\"MakeList\"", PLAN_LIST}, {"\"MakeSet\"", PLAN_SET}};

static bool aggregate_of(slice value, plan_aggregate *out) {
    *out = PLAN_FIRST;
    if (slice_eq(value, SLICE_LIT("null"))) {
        return true;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (slice_eq(value, slice_str(names[i].name))) {
            *out = names[i].aggregate;
            return true;
        }
    }
    return false;
}

static bool read_orders(query_plan *p, slice list) {
    json_walk w;
    slice value;
    if (!json_enter(list, &w)) {
        return !list.n || slice_eq(list, SLICE_LIT("null"));
    }
    while (json_next(&w, NULL, &value)) {
        if (p->orders_n == PLAN_ORDERS_MAX) {
            return false;
        }
        p->descending[p->orders_n++] = slice_eq(value, SLICE_LIT("\"Descending\""));
    }
    return !w.broken;
}

static bool read_aggregates(query_plan *p, slice list, slice aliases) {
    json_walk w;
    slice name, value;
    if (json_enter(list, &w)) {
        while (json_next(&w, NULL, &value)) {
            if (p->aggregates_n == PLAN_AGGREGATES_MAX || !aggregate_of(value, &p->aggregates[p->aggregates_n++])) {
                return false;
            }
        }
    }
    if (json_enter(aliases, &w)) {
        while (json_next(&w, &name, &value)) {
            if (p->aliases_n == PLAN_AGGREGATES_MAX || !aggregate_of(value, &p->aliases[p->aliases_n].aggregate)) {
                return false;
            }
            p->aliases[p->aliases_n++].alias = mem_text(name.p, name.n);
        }
    }
    return true;
}

static bool read_bound(slice range, const char *name, epk *out) {
    buf text = buf_init(1024);
    bool good = json_text(json_member(range, name), &text) && epk_parse(buf_view(&text), out);
    buf_free(&text);
    return good;
}

static bool read_ranges(query_plan *p, slice list) {
    json_walk w;
    slice range;
    if (!json_enter(list, &w)) {
        return false;
    }
    while (json_next(&w, NULL, &range)) {
        if (p->ranges_n == PLAN_RANGES_MAX) {
            return false;
        }
        if ((p->ranges_n & (p->ranges_n - 1)) == 0) {
            p->ranges = mem_resize(p->ranges, (p->ranges_n ? p->ranges_n * 2 : 1) * sizeof *p->ranges);
        }
        plan_range *r = &p->ranges[p->ranges_n++];
        *r = (plan_range){.max_included = json_true(json_member(range, "isMaxInclusive"))};
        if (!read_bound(range, "min", &r->min) || !read_bound(range, "max", &r->max)) {
            return false;
        }
    }
    return !w.broken;
}

static bool has_elements(slice list) {
    json_walk w;
    slice value;
    return json_enter(list, &w) && json_next(&w, NULL, &value);
}

static int64_t count_of(slice info, const char *name) {
    return json_whole(json_member(info, name), 0, INT64_C(1) << 53, -1);
}

tesela_status client__plan_read(slice body, query_plan *p, tesela_error *error) {
    slice info = json_member(body, "queryInfo"), hybrid = json_member(body, "hybridSearchQueryInfo");
    buf rewritten = buf_init(4 << 20);
    *p = (query_plan){0};
    if (hybrid.n && !slice_eq(hybrid, SLICE_LIT("null"))) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "Hybrid search over several partitions is not supported; name a partition key.");
    }
    p->top = count_of(info, "top");
    p->offset = count_of(info, "offset");
    p->limit = count_of(info, "limit");
    slice distinct = json_member(info, "distinctType");
    p->distinct = slice_eq(distinct, SLICE_LIT("\"Ordered\"")) || slice_eq(distinct, SLICE_LIT("\"Unordered\""));
    p->select_value = json_true(json_member(info, "hasSelectValue"));
    p->non_streaming = json_true(json_member(info, "hasNonStreamingOrderBy"));
    p->grouped = has_elements(json_member(info, "groupByExpressions"));
    if (json_text(json_member(info, "rewrittenQuery"), &rewritten) && rewritten.n) {
        p->rewritten = mem_text(rewritten.p, rewritten.n);
    }
    buf_free(&rewritten);
    if (!read_orders(p, json_member(info, "orderBy")) ||
        !read_aggregates(p, json_member(info, "aggregates"), json_member(info, "groupByAliasToAggregateType")) ||
        !read_ranges(p, json_member(body, "queryRanges"))) {
        return client__fail(error, TESELA_BAD_RESPONSE, "The query's plan cannot be understood.");
    }
    return TESELA_OK;
}

void client__plan_free(query_plan *p) {
    for (size_t i = 0; i < p->aliases_n; i++) {
        free(p->aliases[i].alias);
    }
    free(p->rewritten);
    free(p->ranges);
}
