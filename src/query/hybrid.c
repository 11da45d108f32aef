/* hybrid.c — the plan of ORDER BY RANK over several ranges, as the service writes it.
 *
 * The client first asks every range for statistics of the texts (number of items, number of words, number of items with each term), and
 * adds them up. It puts the sums into one query for each score, in place of {documentdb-formattablehybridsearchquery-…}, takes the best
 * rows of all ranges, and fuses the ranks that each score gives. */
#include "doc/json.h"
#include "query/plan_int.h"
#include "query/rank.h"

#define PLACEHOLDER "{documentdb-formattablehybridsearchquery-"

enum { COMPONENT_ROWS_LEAST = 120 };

typedef struct hybrid {
    const query *query;
    const query_select *select;
    query_rank_part parts[QUERY_SCORES_MAX];
    size_t n;
    bool weighted;
    bool scored;    /* component queries return all scores; not needed for a single score if the client can do without */
    bool rewritten; /* rewrite ORDER BY as in other plans; otherwise rows come with their scores, and the client sorts them */
    double rows;    /* rows asked of each component; -1: all */
    bool limited;   /* the query has OFFSET and LIMIT, not TOP */
} hybrid;

unsigned query_hybrid_features(const query *q) {
    query_rank_part parts[QUERY_SCORES_MAX];
    bool weighted;
    query_rank_parts(q->select, parts, &weighted);
    return FEATURE_HYBRID_SEARCH | (weighted ? FEATURE_WEIGHTED_RANK_FUSION : 0);
}

/* ---- scores ---- */

static void add_list(buf *out, query_expr *const *items, size_t n) {
    for (size_t i = 0; i < n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
        query_print_expr(out, items[i]);
    }
}

/* The number of a text score among the text scores: 1 for the last one of [vector, text, text]. */
static size_t text_number(const hybrid *h, size_t part) {
    size_t number = 0;
    for (size_t i = 0; i < part; i++) {
        number += h->parts[i].text;
    }
    return number;
}

static void add_score(buf *out, const hybrid *h, size_t i) {
    const query_expr *e = h->parts[i].call;
    if (!h->parts[i].text) {
        buf_add_lit(out, "_VectorScore(");
        add_list(out, e->items, e->items_n);
        buf_add_byte(out, ')');
        return;
    }
    buf_add_lit(out, "_FullTextScore(");
    query_print_expr(out, e->items[0]);
    buf_add_lit(out, ", [");
    add_list(out, e->items + 1, e->items_n - 1);
    size_t number = text_number(h, i);
    buf_addf(out, "], " PLACEHOLDER "totaldocumentcount}, " PLACEHOLDER "totalwordcount-%zu}, " PLACEHOLDER "hitcountsarray-%zu})", number,
             number);
}

/* Rows without a score get the worst one. A score with a negative weight is negated, unless ORDER BY has its direction. */
static void add_component_score(buf *out, const hybrid *h, size_t i) {
    bool backwards = h->parts[i].weight < 0, turned = backwards && !h->rewritten;
    buf_add_slice(out, turned ? SLICE_LIT("(-1 * (") : SLICE_LIT("("));
    add_score(out, h, i);
    const char *worst = backwards ? " ?? 1.79769e+308" : h->parts[i].text ? " ?? -1" : " ?? -1.79769e+308";
    buf_add(out, worst, strlen(worst));
    buf_add_slice(out, turned ? SLICE_LIT("))") : SLICE_LIT(")"));
}

static void add_component_scores(buf *out, const hybrid *h) {
    buf_add_byte(out, '[');
    for (size_t i = 0; i < h->n && h->scored; i++) {
        buf_add_slice(out, i ? SLICE_LIT(", ") : SLICE_EMPTY);
        add_component_score(out, h, i);
    }
    buf_add_byte(out, ']');
}

/* ---- statistics ---- */

static void add_text_statistics(buf *out, const query_expr *e) {
    buf_add_lit(out, "{\"totalWordCount\": SUM(_FullTextWordCount(");
    query_print_expr(out, e->items[0]);
    buf_add_lit(out, ")), \"hitCounts\": [");
    for (size_t i = 1; i < e->items_n; i++) {
        buf_add_slice(out, i > 1 ? SLICE_LIT(", COUNTIF(FullTextContains(") : SLICE_LIT("COUNTIF(FullTextContains("));
        query_print_expr(out, e->items[0]);
        buf_add_lit(out, ", ");
        query_print_expr(out, e->items[i]);
        buf_add_lit(out, "))");
    }
    buf_add_lit(out, "]}");
}

static void add_statistics_query(buf *out, const hybrid *h) {
    bool any = false;
    buf_add_lit(out, "SELECT COUNT(1) AS documentCount, [");
    for (size_t i = 0; i < h->n; i++) {
        if (h->parts[i].text) {
            buf_add_slice(out, any ? SLICE_LIT(", ") : SLICE_EMPTY);
            add_text_statistics(out, h->parts[i].call);
            any = true;
        }
    }
    buf_add_lit(out, "] AS fullTextStatistics\nFROM ");
    query_print_sources(out, h->select);
}

/* ---- components ---- */

static void add_direction(buf *out, const query_rank_part *part) {
    buf_add_slice(out, part->weight < 0 ? SLICE_LIT(" ASC") : part->text ? SLICE_LIT(" DESC") : SLICE_EMPTY);
}

static void add_where(buf *out, const hybrid *h) {
    if (h->select->where) {
        buf_add_slice(out, h->rewritten ? SLICE_LIT("\nWHERE (") : SLICE_LIT("\nWHERE "));
        query_print_expr(out, h->select->where);
        buf_add_slice(out, h->rewritten ? SLICE_LIT(" AND (" ORDER_FILTER "))") : SLICE_EMPTY);
    } else if (h->rewritten) {
        buf_add_lit(out, "\nWHERE (" ORDER_FILTER ")");
    }
}

static void add_component_query(buf *out, const hybrid *h, size_t i) {
    buf_add_lit(out, "SELECT ");
    if (h->rows >= 0 && !h->limited) {
        buf_addf(out, "TOP %.0f ", h->rows);
    }
    buf_add_slice(out, h->select->sources[0].alias);
    if (h->rewritten) {
        buf_add_lit(out, "._rid, [{\"item\": ");
        add_score(out, h, i);
        buf_add_lit(out, "}] AS orderByItems, {\"payload\": ");
        query__payload(out, h->select);
        buf_add_lit(out, ", \"componentScores\": ");
        add_component_scores(out, h);
        buf_add_lit(out, "} AS payload\nFROM ");
    } else {
        buf_add_lit(out, "._rid, ");
        query__payload(out, h->select);
        buf_add_lit(out, " AS payload, ");
        add_component_scores(out, h);
        buf_add_lit(out, " AS componentScores\nFROM ");
    }
    query_print_sources(out, h->select);
    add_where(out, h);
    buf_add_lit(out, "\nORDER BY ");
    add_score(out, h, i);
    add_direction(out, &h->parts[i]);
    if (h->limited) {
        buf_addf(out, "\nOFFSET 0 LIMIT %.0f", h->rows);
    }
}

static void add_text(buf *out, const hybrid *h, size_t i, void (*print)(buf *, const hybrid *, size_t)) {
    buf text = buf_init_counted(BUF_NO_LIMIT, out->budget);
    print(&text, h, i);
    json_add_string(out, buf_view(&text));
    buf_free(&text);
}

static void print_statistics(buf *out, const hybrid *h, size_t i) {
    (void)i;
    add_statistics_query(out, h);
}

static void add_count(buf *out, const char *name, double value) {
    if (value >= 0) {
        buf_addf(out, ",\"%s\":%.0f", name, value);
    } else {
        buf_addf(out, ",\"%s\":null", name);
    }
}

static void add_component(buf *out, const hybrid *h, size_t i) {
    buf_add_lit(out, "{\"distinctType\":\"None\"");
    add_count(out, "top", h->rewritten && !h->limited ? h->rows : -1);
    add_count(out, "offset", h->rewritten && h->limited ? 0 : -1);
    add_count(out, "limit", h->rewritten && h->limited ? h->rows : -1);
    buf_add_lit(out, ",\"orderBy\":[");
    if (h->rewritten) {
        buf_addf(out, "\"%s\"],\"orderByExpressions\":[", h->parts[i].weight < 0 ? "Ascending" : "Descending");
        add_text(out, h, i, add_score);
    } else {
        buf_add_lit(out, "],\"orderByExpressions\":[");
    }
    buf_add_lit(out, "],\"groupByExpressions\":[],\"groupByAliases\":[],\"aggregates\":[],\"groupByAliasToAggregateType\":{},"
                     "\"rewrittenQuery\":");
    add_text(out, h, i, add_component_query);
    buf_addf(out, ",\"hasSelectValue\":false,\"dCountInfo\":null,\"hasNonStreamingOrderBy\":%s}", h->rewritten ? "true" : "false");
}

/* ---- the whole plan ---- */

static void add_info(buf *out, const hybrid *h) {
    const query *q = h->query;
    bool texts = text_number(h, h->n) > 0;
    buf_add_lit(out, "{\"partitionedQueryExecutionInfoVersion\":2,\"hybridSearchQueryInfo\":{\"globalStatisticsQuery\":");
    add_text(out, h, 0, print_statistics);
    buf_add_lit(out, ",\"componentQueryInfos\":[");
    for (size_t i = 0; i < h->n; i++) {
        buf_add_slice(out, i ? SLICE_LIT(",") : SLICE_EMPTY);
        add_component(out, h, i);
    }
    buf_add_lit(out, "],\"componentWithoutPayloadQueryInfos\":[],\"projectionQueryInfo\":null,\"componentWeights\":[");
    for (size_t i = 0; i < h->n && h->weighted; i++) {
        double weight = h->parts[i].weight;
        buf_addf(out, "%s%.17g", i ? "," : "", weight < 0 ? -weight : weight);
    }
    buf_add_byte(out, ']');
    add_count(out, "skip", q->offset);
    add_count(out, "take", q->top >= 0 ? q->top : q->limit);
    buf_addf(out, ",\"requiresGlobalStatistics\":%s},", texts ? "true" : "false");
}

void query_hybrid_write(const query *q, unsigned supported, buf *out) {
    hybrid h = {.query = q, .select = q->select, .rows = q->top >= 0 ? q->top : q->limit};
    h.n = query_rank_parts(q->select, h.parts, &h.weighted);
    h.scored = h.n > 1 || !(supported & FEATURE_HYBRID_SEARCH_SKIP_ORDER_BY_REWRITE);
    h.rewritten = h.n == 1 || !(supported & FEATURE_HYBRID_SEARCH_SKIP_ORDER_BY_REWRITE);
    h.limited = q->top < 0 && q->limit >= 0;
    if (h.rows >= 0) {
        h.rows = 2 * (h.rows + (q->offset > 0 ? q->offset : 0));
        h.rows = h.rows < COMPONENT_ROWS_LEAST ? COMPONENT_ROWS_LEAST : h.rows > INT32_MAX ? INT32_MAX : h.rows;
    }
    add_info(out, &h);
}
