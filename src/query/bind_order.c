/* bind_order.c — checks ORDER BY and ORDER BY RANK, sets their default directions, and rejects clauses that subqueries may not have. */
#include "query/bind_int.h"
#include "text/search.h"

static query_span clause_from(const binder *b, const char *word, uint32_t before, uint32_t end) {
    slice text = slice_of(b->text.p, before);
    size_t n = strlen(word);
    for (size_t i = text.n; i-- > 0;) {
        if (text.n - i >= n && slice_eq_nocase(slice_of(text.p + i, n), slice_str(word))) {
            return query__at(b, (query_span){(uint32_t)i, end});
        }
    }
    return query__at(b, (query_span){before, end});
}

err query__check_subquery(binder *b, const query_select *s) {
    if (s->order_by_rank) {
        return query_fail(b->op, clause_from(b, "ORDER", s->order[0].expr->span.start, s->order[s->order_n - 1].expr->span.end), "SC2228",
                          "The ORDER BY RANK clause is not supported in subqueries.");
    }
    if (s->order_n) {
        const query_order *last = &s->order[s->order_n - 1];
        uint32_t end = last->expr->span.end;
        if (last->direction_given) {
            slice rest = slice_skip(b->text, end);
            end += (uint32_t)(rest.n - slice_trim(rest).n) + (last->descending ? 4 : 3);
        }
        return query_fail(b->op, clause_from(b, "ORDER", s->order[0].expr->span.start, end), "SC2202",
                          "'ORDER BY' is not supported in subqueries.");
    }
    if (s->top.given) {
        return query_fail(b->op, clause_from(b, "TOP", s->top.span.start, s->top.span.end), "SC2203",
                          "'TOP' is not supported in subqueries.");
    }
    if (s->offset.given) {
        return query_fail(b->op, clause_from(b, "OFFSET", s->offset.span.start, s->limit.span.end), "SC2204",
                          "'OFFSET LIMIT' clause is not supported in subqueries.");
    }
    return OK;
}

static err unsupported_order(binder *b) {
    return op_fail(b->op, E_BAD_QUERY,
                   "{\"errors\":[{\"severity\":\"Error\",\"code\":2206,\"message\":\"Unsupported ORDER BY clause. ORDER BY item expression "
                   "could not be mapped to a document path.\"}]}");
}

static bool is_called(const query_expr *e, const char *name) {
    return e->kind == EXPR_CALL && !e->udf && slice_eq_nocase(e->name, slice_str(name));
}

/* The distance function of a VectorDistance call: from its options, or from the container's policy. */
static search_distance distance_of(const binder *b, const query_expr *e) {
    search_distance distance = (search_distance)e->setting;
    const query_expr *options = e->items_n > 3 ? e->items[3] : NULL;
    query_value name = value_undefined();
    if (options && options->kind == EXPR_PARAMETER && options->slot >= 0) {
        name = value_member(b->arena, &b->query->parameters[options->slot].value, SLICE_LIT("distanceFunction"));
    }
    for (size_t i = 0; options && options->kind == EXPR_OBJECT && i < options->items_n; i++) {
        if (slice_eq(options->names[i], SLICE_LIT("distanceFunction")) && options->items[i]->kind == EXPR_LITERAL) {
            name = options->items[i]->value;
        }
    }
    if (name.type == TYPE_STRING) {
        search_distance_named(name.bytes, &distance);
    }
    return distance;
}

/* A score or distance without ASC or DESC is ordered best first. */
static bool is_score_order(const binder *b, query_order *order) {
    const query_expr *e = order->expr;
    bool vector = is_called(e, "VectorDistance"), score = is_called(e, "_VectorScore") || is_called(e, "_FullTextScore");
    if ((vector || score) && !order->direction_given) {
        order->descending = score || distance_of(b, e) != SEARCH_EUCLIDEAN;
    }
    return vector || score;
}

/* Scores are ordered best first: ASC and DESC are rejected. */
static err check_direction(binder *b, const query_select *s, const query_order *order) {
    if (!order->direction_given || !(s->order_by_rank || is_called(order->expr, "VectorDistance"))) {
        return OK;
    }
    return op_fail(b->op, E_BAD_QUERY, "{\"errors\":[{\"severity\":\"Error\",\"message\":\"%s\"}]}",
                   s->order_by_rank ? "Specifying a sort order (ASC or DESC) in the ORDER BY RANK clause is not allowed."
                                    : "Specifying a sorting order (ASC or DESC) with VectorDistance function is not supported.");
}

/* ORDER BY takes paths of the item, and VectorDistance. */
static err check_order(binder *b, const query_select *s, query_order *order, bool *correlated_out) {
    const query_expr *e = order->expr;
    if (e->kind == EXPR_KEY || is_score_order(b, order)) {
        return OK;
    }
    while (e->kind == EXPR_MEMBER || (e->kind == EXPR_INDEX && e->items[1]->kind == EXPR_LITERAL)) {
        e = e->items[0];
    }
    const query_source *source = e->kind == EXPR_NAME && e->slot >= s->first_slot ? &s->sources[e->slot - s->first_slot] : NULL;
    if (!source || source->kind == SOURCE_SUBQUERY || s->sources[0].kind == SOURCE_SUBQUERY) {
        return unsupported_order(b);
    }
    *correlated_out |= e->slot != s->first_slot || source->kind == SOURCE_ITEMS;
    return OK;
}

static bool is_score(const query_expr *e) {
    return is_called(e, "FullTextScore") || is_called(e, "VectorDistance");
}

static query_span order_clause(const binder *b, const query_select *s) {
    return clause_from(b, "ORDER", s->order[0].expr->span.start, s->order[s->order_n - 1].expr->span.end);
}

static bool is_weight(const query_expr *e) {
    e = e->kind == EXPR_UNARY && e->op == OP_MINUS ? e->items[0] : e;
    return e->kind == EXPR_LITERAL && e->value.type == TYPE_NUMBER;
}

/* Weights that come as a parameter become an array of literals, as if they were written. */
static void read_weights(binder *b, query_expr *e) {
    double *numbers;
    size_t n;
    query__bind_parameter(b, e);
    const query_value *v = e->slot < 0 ? NULL : &b->query->parameters[e->slot].value;
    if (!v || v->type != TYPE_ARRAY || !search_vector_of(b->arena, v->bytes, &numbers, &n)) {
        return;
    }
    e->kind = EXPR_ARRAY;
    e->items = arena_array(b->arena, query_expr *, n);
    e->items_n = n;
    for (size_t i = 0; i < n; i++) {
        e->items[i] = arena_new(b->arena, query_expr);
        *e->items[i] = (query_expr){.kind = EXPR_LITERAL, .span = e->span, .depth = 1, .value = value_number(numbers[i])};
    }
}

/* The last argument of RRF may be an array of weights, one number for each score. */
static bool are_weights(const query_expr *e, size_t scores) {
    bool good = e->kind == EXPR_ARRAY && e->items_n == scores;
    for (size_t i = 0; good && i < scores; i++) {
        good = is_weight(e->items[i]);
    }
    return good;
}

static err check_ranked(binder *b, const query_select *s, query_expr *e) {
    bool fused = is_called(e, "RRF");
    size_t scores = fused ? 0 : is_score(e);
    while (fused && scores < e->items_n && is_score(e->items[scores])) {
        scores++;
    }
    if (fused && scores + 1 == e->items_n && e->items[scores]->kind == EXPR_PARAMETER) {
        read_weights(b, e->items[scores]);
    }
    if (scores < (fused ? 2 : 1) || (fused && scores + 1 < e->items_n)) {
        return query_fail(b->op, order_clause(b, s), "SC2221",
                          "The ORDER BY RANK clause must be followed by a VectorDistance and/or a FullTextScore function call.");
    }
    if (scores > QUERY_SCORES_MAX || (fused && scores < e->items_n && !are_weights(e->items[scores], scores))) {
        return query_fail(
            b->op, order_clause(b, s), "SC2229",
            "The last parameter of the RRF function is an optional array of weights. When present, it must be a literal array "
            "of numbers, one for each of the component scores used for the RRF function. The length of this array must be the "
            "same as the number of the component scores.");
    }
    return OK;
}

/* Rejects clauses that ORDER BY RANK cannot be combined with. */
static err check_rank_clauses(binder *b, const query_select *s) {
    if (s->sources_n > 1) {
        query_span all = {s->sources[0].span.start, s->sources[s->sources_n - 1].span.end};
        return query_fail(b->op, query__at(b, all), "SC2224", "The JOIN operator is not allowed with the ORDER BY RANK clause.");
    }
    if (s->sources_n && s->sources[0].kind == SOURCE_SUBQUERY) {
        return query_fail(b->op, query__at(b, s->sources[0].span), "SC2225",
                          "Subqueries in the FROM clause are not allowed with the ORDER BY RANK clause.");
    }
    if (s->sources_n == 0 || s->aggregates_n || s->group_n || s->distinct) {
        return query_fail(b->op, order_clause(b, s), "SC2221", "The ORDER BY RANK clause is allowed over items alone.");
    }
    return OK;
}

err query__bind_order(binder *b, query_select *s) {
    bool correlated = false;
    if (s->order_by_rank) {
        TRY(check_rank_clauses(b, s));
    }
    for (size_t i = 0; i < s->order_n; i++) {
        query_expr *e = s->order[i].expr;
        TRY(check_direction(b, s, &s->order[i]));
        if (s->order_by_rank) {
            TRY(check_ranked(b, s, e));
        }
        b->ranks = s->order_by_rank;
        TRY(query__bind_expr(b, e));
        b->ranks = false;
        if (!s->order_by_rank) {
            TRY(check_order(b, s, &s->order[i], &correlated));
        }
        s->order[i].descending |= s->order_by_rank;
    }
    correlated = correlated && !s->aggregates_n; /* one row has no order, so the service lets it pass */
    return correlated ? op_fail(b->op, E_BAD_QUERY, "{\"Errors\":[\"Order-by over correlated collections is not supported.\"]}") : OK;
}
