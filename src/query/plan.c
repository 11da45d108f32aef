#include "query/plan.h"

#include "doc/json.h"
#include "query/gather.h"
#include "query/plan_int.h"

static const char *const feature_names[] = {
    "Aggregate",
    "CompositeAggregate",
    "Distinct",
    "GroupBy",
    "MultipleAggregates",
    "MultipleOrderBy",
    "OffsetAndLimit",
    "OrderBy",
    "Top",
    "NonValueAggregate",
    "NonStreamingOrderBy",
    "ListAndSetAggregate",
    "CountIf",
    "HybridSearch",
    "DCount",
    "WeightedRankFusion",
    "HybridSearchSkipOrderByRewrite",
};

enum { FEATURES = sizeof feature_names / sizeof *feature_names };

/* ---- features ---- */

unsigned query_features_parse(slice header) {
    unsigned found = 0;
    while (header.n) {
        const char *comma = memchr(header.p, ',', header.n);
        slice word = slice_trim(slice_of(header.p, comma ? (size_t)(comma - header.p) : header.n));
        header = comma ? slice_skip(header, (size_t)(comma - header.p) + 1) : SLICE_EMPTY;
        for (unsigned i = 0; i < FEATURES; i++) {
            found |= slice_eq_nocase(word, slice_str(feature_names[i])) ? 1u << i : 0;
        }
    }
    return found;
}

static unsigned aggregate_features(const query_select *s) {
    unsigned needed = s->aggregates_n ? (unsigned)FEATURE_AGGREGATE : 0;
    for (size_t i = 0; i < s->aggregates_n; i++) {
        query_aggregate_kind kind = query_aggregate_of(s->aggregates[i]->name);
        needed |= kind == AGGREGATE_COUNT_IF ? FEATURE_COUNT_IF : 0;
        needed |= kind == AGGREGATE_MAKE_LIST || kind == AGGREGATE_MAKE_SET ? FEATURE_LIST_AND_SET_AGGREGATE : 0;
    }
    needed |= s->aggregates_n > 1 ? FEATURE_MULTIPLE_AGGREGATES : 0;
    needed |= s->aggregates_n && !s->value ? FEATURE_NON_VALUE_AGGREGATE : 0;
    return needed;
}

/* Whether the client merges rows in the order of ORDER BY. Over aggregates ORDER BY has no effect: each range returns one row. */
static bool merges_in_order(const query_select *s) {
    return s->order_n && !s->aggregates_n;
}

/* Orders by score: ranges cannot stream their rows in order, so the client must sort. */
static bool has_score_order(const query_select *s) {
    return merges_in_order(s) && !s->order_by_rank && s->order[0].expr->kind == EXPR_CALL;
}

unsigned query_features_needed(const query *q) {
    const query_select *s = q->select;
    unsigned needed = query_has_gathered_subquery(s) ? (unsigned)FEATURE_DCOUNT : aggregate_features(s);
    needed |= s->distinct ? FEATURE_DISTINCT : 0;
    needed |= s->group_n ? FEATURE_GROUP_BY : 0;
    if (s->order_by_rank) {
        return needed | query_hybrid_features(q);
    }
    needed |= s->order_n > 1 ? FEATURE_MULTIPLE_ORDER_BY : 0;
    needed |= s->order_n ? FEATURE_ORDER_BY : 0;
    needed |= has_score_order(s) ? FEATURE_NON_STREAMING_ORDER_BY : 0;
    needed |= s->offset.given || s->limit.given ? FEATURE_OFFSET_AND_LIMIT : 0;
    needed |= s->top.given ? FEATURE_TOP : 0;
    return needed;
}

bool query_is_plain(const query *q) {
    return query_features_needed(q) == 0;
}

bool query_is_rewritten(const query *q) {
    const query_select *s = q->select;
    if (s->group_n) {
        return s->columns_n == 2 && s->columns[0].expr->kind == EXPR_ARRAY && slice_eq(s->columns[0].alias, SLICE_LIT("groupByItems")) &&
               slice_eq(s->columns[1].alias, SLICE_LIT("payload"));
    }
    const query_expr *shown = s->aggregates_n && s->columns_n == 1 ? s->columns[0].expr : NULL;
    if (shown && !s->value) {
        return shown->kind == EXPR_OBJECT && slice_eq(s->columns[0].alias, SLICE_LIT("payload"));
    }
    const query_expr *item = shown && shown->kind == EXPR_ARRAY && shown->items_n == 1 ? shown->items[0] : NULL;
    return item && item->kind == EXPR_OBJECT && item->items_n && slice_eq(item->names[0], SLICE_LIT("item"));
}

static err check_features(op *o, unsigned needed, unsigned supported) {
    for (unsigned i = 0; i < FEATURES; i++) {
        if (needed & ~supported & 1u << i) {
            return op_fail(o, E_BAD_QUERY,
                           "{\"errors\":[{\"severity\":\"Error\",\"message\":\"Query contains 1 or more unsupported features. Upgrade your "
                           "SDK to a version that does support the requested features: Query contained %s, which the calling client does "
                           "not support.\"}]}",
                           feature_names[i]);
        }
    }
    return OK;
}

/* ---- parts of rewrites ---- */

static void add_call(buf *out, const char *name, const query_expr *e) {
    buf_add(out, name, strlen(name));
    buf_add_byte(out, '(');
    query_print_expr(out, e->items[0]);
    buf_add_byte(out, ')');
}

/* Prints {"item": …}, the part of an aggregate that the client can add up over ranges. */
static void add_aggregate(buf *out, const query_expr *e) {
    buf_add_lit(out, "{\"item\": ");
    switch (query_aggregate_of(e->name)) {
    case AGGREGATE_AVG:
        buf_add_lit(out, "{\"sum\": ");
        add_call(out, "SUM", e);
        buf_add_lit(out, ", \"count\": ");
        add_call(out, "COUNT", e);
        buf_add_byte(out, '}');
        break;
    case AGGREGATE_MIN:
    case AGGREGATE_MAX: {
        const char *name = query_aggregate_of(e->name) == AGGREGATE_MIN ? "MIN" : "MAX";
        add_call(out, name, e);
        buf_addf(out, ", \"item2\": {\"%s\": ", name[1] == 'I' ? "min" : "max");
        add_call(out, name, e);
        buf_add_lit(out, ", \"count\": ");
        add_call(out, "COUNT", e);
        buf_add_byte(out, '}');
        break;
    }
    default:
        query_print_expr(out, e);
    }
    buf_add_byte(out, '}');
}

static void add_column(buf *out, const query_expr *e) {
    if (e->kind == EXPR_CALL && e->aggregate >= 0) {
        add_aggregate(out, e);
    } else {
        query_print_expr(out, e);
    }
}

/* {"a": c.a, "n": {"item": COUNT(1)}} */
static void add_object(buf *out, const query_select *s) {
    buf_add_byte(out, '{');
    for (size_t i = 0; i < s->columns_n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
        json_add_string(out, s->columns[i].alias);
        buf_add_lit(out, ": ");
        add_column(out, s->columns[i].expr);
    }
    buf_add_byte(out, '}');
}

void query__payload(buf *out, const query_select *s) {
    if (s->star) {
        buf_add_slice(out, s->sources[0].alias);
    } else if (!s->value) {
        add_object(out, s);
    } else if (s->aggregates_n) {
        buf_add_byte(out, '[');
        add_column(out, s->columns[0].expr);
        buf_add_byte(out, ']');
    } else {
        query_print_expr(out, s->columns[0].expr);
    }
}

static void add_payload(buf *out, const query_select *s) {
    query__payload(out, s);
    buf_add_lit(out, " AS payload");
}

static void add_from(buf *out, const query *q) {
    const query_select *s = q->select;
    if (s->sources_n) {
        buf_add_lit(out, "\nFROM ");
        query_print_sources(out, s);
    }
}

static void add_where(buf *out, const query_select *s) {
    if (s->where) {
        buf_add_lit(out, "\nWHERE ");
        query_print_expr(out, s->where);
    }
}

static void add_items(buf *out, query_expr *const *list, const query_order *order, size_t n) {
    buf_add_byte(out, '[');
    for (size_t i = 0; i < n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(", {\"item\": ") : SLICE_LIT("{\"item\": "));
        query_print_expr(out, list ? list[i] : order[i].expr);
        buf_add_byte(out, '}');
    }
    buf_add_byte(out, ']');
}

static void add_bounds(buf *out, const query *q) {
    if (q->limit >= 0) {
        buf_addf(out, "\nOFFSET 0 LIMIT %.0f", q->limit + (q->offset > 0 ? q->offset : 0));
    }
}

/* ---- the rewrites ---- */

/* Prints WHERE ({filter}) or WHERE (w AND ({filter})), and with SELECT VALUE x wraps either as (… AND IS_DEFINED(x)). */
static void add_order_where(buf *out, const query_select *s) {
    bool defined = s->value && !s->star;
    buf_add_slice(out, defined ? SLICE_LIT("\nWHERE (") : SLICE_LIT("\nWHERE "));
    if (s->where) {
        buf_add_byte(out, '(');
        query_print_expr(out, s->where);
        buf_add_lit(out, " AND (" ORDER_FILTER "))");
    } else {
        buf_add_lit(out, "(" ORDER_FILTER ")");
    }
    if (defined) {
        buf_add_lit(out, " AND IS_DEFINED(");
        query_print_expr(out, s->columns[0].expr);
        buf_add_lit(out, "))");
    }
}

static void add_order(buf *out, const query_select *s) {
    for (size_t i = 0; i < s->order_n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_LIT("\nORDER BY "));
        query_print_expr(out, s->order[i].expr);
        buf_add_slice(out, !s->order[i].direction_given ? SLICE_EMPTY : s->order[i].descending ? SLICE_LIT(" DESC") : SLICE_LIT(" ASC"));
    }
}

static void rewrite_order(buf *out, const query *q) {
    const query_select *s = q->select;
    buf_add_lit(out, "SELECT ");
    if (q->top >= 0 && !s->distinct) { /* with DISTINCT, the client removes duplicates and counts rows, since each has its _rid */
        buf_addf(out, "TOP %.0f ", q->top);
    }
    buf_add_slice(out, s->sources[0].alias);
    buf_add_lit(out, "._rid, ");
    add_items(out, NULL, s->order, s->order_n);
    buf_add_lit(out, " AS orderByItems, ");
    add_payload(out, s);
    add_from(out, q);
    add_order_where(out, s);
    add_order(out, s);
    if (!s->distinct) {
        add_bounds(out, q);
    }
}

static void rewrite_group(buf *out, const query *q) {
    const query_select *s = q->select;
    buf_add_lit(out, "SELECT ");
    add_items(out, s->group, NULL, s->group_n);
    buf_add_lit(out, " AS groupByItems, ");
    add_payload(out, s);
    add_from(out, q);
    add_where(out, s);
    buf_add_lit(out, "\nGROUP BY ");
    for (size_t i = 0; i < s->group_n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
        query_print_expr(out, s->group[i]);
    }
}

static void rewrite_aggregate(buf *out, const query *q) {
    const query_select *s = q->select;
    if (s->value) {
        buf_add_lit(out, "SELECT VALUE [");
        add_column(out, s->columns[0].expr);
        buf_add_byte(out, ']');
    } else {
        buf_add_lit(out, "SELECT ");
        add_payload(out, s);
    }
    add_from(out, q);
    add_where(out, s);
    add_order(out, s);
}

/* Prints the query for one range: without OFFSET, and LIMIT enlarged by it; with DISTINCT without bounds, since ranges may have equal
 * rows. */
static void rewrite_bounds(buf *out, const query *q) {
    query_select s = *q->select;
    s.limit.given = s.offset.given = false;
    s.top.given = s.top.given && !s.distinct;
    query_print_lines(out, &s);
    if (!s.distinct) {
        add_bounds(out, q);
    }
}

/* Whether it counts the rows of SELECT DISTINCT …: ranges return distinct rows, and the client merges and counts them. */
static bool is_distinct_count(const query_select *s) {
    const query_select *inner = s->sources_n == 1 ? s->sources[0].select : NULL;
    if (!inner || !inner->distinct || inner->aggregates_n || inner->group_n || query_has_gathered_subquery(inner)) {
        return false;
    }
    const query_expr *e = s->columns_n == 1 ? s->columns[0].expr : NULL;
    return e && e->kind == EXPR_CALL && e->aggregate >= 0 && query_aggregate_of(e->name) == AGGREGATE_COUNT &&
           (e->items[0]->kind == EXPR_LITERAL || e->items[0]->kind == EXPR_NAME) && !s->where && !s->group_n && !s->order_n &&
           !s->distinct && !s->top.given && !s->offset.given;
}

static void rewrite(buf *out, const query *q) {
    const query_select *s = q->select;
    if (is_distinct_count(s)) {
        query_print_lines(out, s->sources[0].select);
    } else if (s->group_n) {
        rewrite_group(out, q);
    } else if (s->aggregates_n) {
        rewrite_aggregate(out, q);
    } else if (s->order_n) {
        rewrite_order(out, q);
    } else if (q->limit >= 0 || (q->top >= 0 && s->distinct)) {
        rewrite_bounds(out, q);
    }
}

/* ---- the plan ---- */

static const char *aggregate_name(const query_expr *e) {
    static const char *const names[] = {"Count", "Sum", "Average", "Min", "Max", "CountIf", "MakeList", "MakeSet"};
    return names[query_aggregate_of(e->name)];
}

/* Each aggregate must be a column by itself: SUM(c.a) + 1 cannot be computed from the ranges' results. */
static err check_compositions(op *o, const query_select *s) {
    size_t alone = 0;
    if (query_has_gathered_subquery(s) && !is_distinct_count(s)) {
        return op_fail(
            o, E_BAD_QUERY,
            "{\"Errors\":[\"Cross partition query only supports COUNT over a DISTINCT subquery in FROM, and no other subquery there "
            "with DISTINCT, GROUP BY or aggregates.\"]}");
    }
    for (size_t i = 0; i < s->columns_n; i++) {
        alone += s->columns[i].expr->kind == EXPR_CALL && s->columns[i].expr->aggregate >= 0;
    }
    return alone == s->aggregates_n
               ? OK
               : op_fail(o, E_BAD_QUERY, "{\"Errors\":[\"Compositions of aggregates and other expressions are not allowed.\"]}");
}

static const char *distinct_type(const query *q) {
    const query_select *s = q->select;
    if (is_distinct_count(s)) {
        return "Unordered";
    }
    if (!s->distinct) {
        return "None";
    }
    bool ordered = s->order_n == 1 && s->columns_n == 1 && query_same_expr(s->columns[0].expr, s->order[0].expr);
    return ordered ? "Ordered" : "Unordered";
}

static void add_count(buf *out, const char *name, double value) {
    if (value >= 0) {
        buf_addf(out, ",\"%s\":%.0f", name, value);
    } else {
        buf_addf(out, ",\"%s\":null", name);
    }
}

static void add_printed(buf *out, const query_expr *e) {
    buf text = buf_init_counted(BUF_NO_LIMIT, out->budget);
    query_print_expr(&text, e);
    json_add_string(out, buf_view(&text));
    buf_free(&text);
}

static void add_order_info(buf *out, const query_select *s) {
    size_t n = merges_in_order(s) ? s->order_n : 0;
    buf_add_lit(out, ",\"orderBy\":[");
    for (size_t i = 0; i < n; i++) {
        buf_addf(out, "%s\"%s\"", i ? "," : "", s->order[i].descending ? "Descending" : "Ascending");
    }
    buf_add_lit(out, "],\"orderByExpressions\":[");
    for (size_t i = 0; i < n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(",") : SLICE_EMPTY);
        add_printed(out, s->order[i].expr);
    }
    buf_add_byte(out, ']');
}

static void add_alias_types(buf *out, const query_select *s) {
    buf_add_lit(out, "],\"groupByAliasToAggregateType\":{");
    for (size_t i = 0; i < s->columns_n && !s->value; i++) {
        const query_expr *e = s->columns[i].expr;
        buf_add_slice(out, i ? SLICE_LIT(",") : SLICE_EMPTY);
        json_add_string(out, s->columns[i].alias);
        if (e->kind == EXPR_CALL && e->aggregate >= 0) {
            buf_addf(out, ":\"%s\"", aggregate_name(e));
        } else {
            buf_add_lit(out, ":null");
        }
    }
    buf_add_byte(out, '}');
}

static void add_group_info(buf *out, const query_select *s) {
    bool counted = is_distinct_count(s), grouped = s->group_n > 0, named = !counted && !s->value && (grouped || s->aggregates_n);
    buf_add_lit(out, ",\"groupByExpressions\":[");
    for (size_t i = 0; i < s->group_n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(",") : SLICE_EMPTY);
        add_printed(out, s->group[i]);
    }
    buf_add_lit(out, "],\"groupByAliases\":[");
    for (size_t i = 0; i < s->columns_n && named; i++) {
        buf_add_slice(out, i ? SLICE_LIT(",") : SLICE_EMPTY);
        json_add_string(out, s->columns[i].alias);
    }
    buf_add_lit(out, "],\"aggregates\":[");
    for (size_t i = 0; i < s->aggregates_n && s->value && !counted; i++) {
        buf_addf(out, "%s\"%s\"", i ? "," : "", aggregate_name(s->aggregates[i]));
    }
    if (named) {
        add_alias_types(out, s);
    } else {
        buf_add_lit(out, "],\"groupByAliasToAggregateType\":{}");
    }
}

static void add_distinct_count(buf *out, const query_select *s) {
    if (!is_distinct_count(s)) {
        buf_add_lit(out, ",\"dCountInfo\":null");
        return;
    }
    buf_add_lit(out, ",\"dCountInfo\":{\"dCountAlias\":");
    json_add_string(out, s->value ? SLICE_EMPTY : s->columns[0].alias);
    buf_add_byte(out, '}');
}

static void add_ranges(buf *out, arena *a, const query *q, const pkey_definition *key) {
    size_t n;
    const query_range *list = query_ranges(a, q, key, &n);
    buf_add_lit(out, "\"queryRanges\":[");
    if (!list && n) {
        buf_add_lit(out, "{\"min\":\"\",\"max\":\"FF\",\"isMinInclusive\":true,\"isMaxInclusive\":false}");
    } else if (!list) { /* nothing can be found, but COUNT of nothing is a row: one range returns it */
        buf_add_lit(out, "{\"min\":\"\",\"max\":\"\",\"isMinInclusive\":true,\"isMaxInclusive\":true}");
    }
    for (size_t i = 0; list && i < n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(",{\"min\":\"") : SLICE_LIT("{\"min\":\""));
        epk_write(out, &list[i].min);
        buf_add_lit(out, "\",\"max\":\"");
        epk_write(out, &list[i].max);
        buf_addf(out, "\",\"isMinInclusive\":true,\"isMaxInclusive\":%s}", list[i].point ? "true" : "false");
    }
    buf_add_byte(out, ']');
}

/* Drops bounds that the client need not apply: a single partition applies OFFSET and LIMIT itself, and so does a query without FROM. */
static query without_needless_bounds(arena *a, const query *q, const pkey_definition *key) {
    const query_select *s = q->select;
    query bare = *q;
    size_t n;
    const query_range *list = query_ranges(a, q, key, &n);
    if (list && n == 1 && list[0].point && !s->distinct && !s->aggregates_n && !s->group_n && !s->order_n) {
        bare.offset = bare.limit = -1;
    }
    if (s->sources_n == 0) {
        bare.top = -1;
    }
    return bare;
}

err query_plan_write(op *o, arena *a, const query *given, const pkey_definition *key, unsigned supported, buf *out) {
    const query bare = without_needless_bounds(a, given, key), *q = &bare;
    const query_select *s = q->select;
    buf rewritten = buf_init_counted(BUF_NO_LIMIT, out->budget);
    TRY(check_features(o, query_features_needed(q), supported));
    TRY(check_compositions(o, s));
    if (s->order_by_rank) {
        query_hybrid_write(q, supported, out);
        add_ranges(out, a, q, key);
        buf_add_byte(out, '}');
        return out->budget ? budget_error(out->budget) : OK;
    }
    rewrite(&rewritten, q);
    buf_addf(out, "{\"partitionedQueryExecutionInfoVersion\":2,\"queryInfo\":{\"distinctType\":\"%s\"", distinct_type(q));
    add_count(out, "top", q->top);
    add_count(out, "offset", q->offset);
    add_count(out, "limit", q->limit);
    add_order_info(out, s);
    add_group_info(out, s);
    buf_add_lit(out, ",\"rewrittenQuery\":");
    json_add_string(out, buf_view(&rewritten));
    buf_addf(out, ",\"hasSelectValue\":%s", s->value ? "true" : "false");
    add_distinct_count(out, s);
    buf_addf(out, ",\"hasNonStreamingOrderBy\":%s},", has_score_order(s) ? "true" : "false");
    add_ranges(out, a, q, key);
    buf_add_lit(out, ",\"hybridSearchQueryInfo\":null}");
    buf_free(&rewritten);
    return out->budget ? budget_error(out->budget) : OK;
}
