#include "api/sql/target.h"

static void narrow(sql_target *t, const epk *min, const epk *end) {
    sql_scope *s = &t->scope;
    s->min = epk_cmp(&s->min, min) < 0 ? *min : s->min;
    s->end = epk_cmp(end, &s->end) < 0 ? *end : s->end;
}

static err scope_range(sql_request *q, sql_target *t) {
    uint32_t id;
    range_info named;
    TRY(sql_range_id(q, &id));
    if (!range_info_by_id(q->container, id, &named)) {
        return E_RANGE_GONE;
    }
    narrow(t, &named.range.min, &named.range.max);
    t->scope.plain = true;
    return OK;
}

static err scope_epk(sql_request *q, sql_target *t, slice from, slice to) {
    epk min, end;
    if (!epk_parse(from, &min) || !epk_parse(to, &end) || epk_cmp(&min, &end) >= 0) {
        return op_fail(&q->op, E_BAD_REQUEST, "x-ms-start-epk and x-ms-end-epk must be hexadecimal, the first below the second.");
    }
    narrow(t, &min, &end);
    return OK;
}

/* A whole key is one logical partition. A prefix of a hierarchical key is a part of the hash space, filtered to the items with that
 * prefix. */
static err scope_key(sql_request *q, sql_target *t) {
    const container *c = q->container;
    if (q->partition.n < c->key.n && c->key.kind == PKEY_MULTI_HASH) {
        epk min, end;
        epk_prefix_range(&c->key, &q->partition, &min, &end);
        narrow(t, &min, &end);
        t->cursor.prefix = &q->partition;
        return OK;
    }
    TRY(item_check_key(&q->op, c, &q->partition, SLICE_EMPTY, &t->key));
    t->cursor.partition = &t->key;
    t->scope.min = t->scope.end = t->key.epk;
    t->scope.plain = true;
    return OK;
}

static err read_scope(sql_request *q, sql_target *t) {
    t->scope = (sql_scope){.container = sql_container_rid(q->container), .min = epk_min(), .end = epk_max()};
    if (sql_has(q, FIELD_RANGE_ID)) {
        TRY(scope_range(q, t));
    }
    if (sql_has(q, FIELD_START_EPK) || sql_has(q, FIELD_END_EPK)) {
        TRY(scope_epk(q, t, sql_get(q, FIELD_START_EPK), sql_get(q, FIELD_END_EPK)));
    }
    return q->key_given ? scope_key(q, t) : OK;
}

/* Most of a target is the array of stretches, of which few are used: the array is not cleared. */
static sql_target *make_target(sql_request *q) {
    sql_target *t = arena_alloc(q->http->arena, sizeof *t);
    memset(t, 0, offsetof(sql_target, cursor.stretches));
    return t;
}

err sql_target_read(sql_request *q, slice continuation, sql_target **target_out) {
    sql_target *t = *target_out = make_target(q);
    TRY(read_scope(q, t));
    return sql_continuation_read(continuation, &t->scope, &t->cursor);
}
