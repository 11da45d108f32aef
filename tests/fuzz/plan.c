/* Any query that can be planned has a plan that is JSON, with ranges in order, and a rewritten query that can be parsed. The first byte
 * chooses the partition key. */
#include "query/plan.h"
#include "world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define ORDER_FILTER "{documentdb-formattableorderbyquery-filter}"

/* Partition key definitions, one of each kind. */
static const pkey_definition *key_of(unsigned kind) {
    static world worlds[WORLD_KINDS];
    world *w = &worlds[kind % WORLD_KINDS];
    if (!w->c) {
        world_open(w, kind);
    }
    return &w->c->key;
}

/* The query that an SDK sends to each range: with the filter placeholder replaced by "true". */
static slice first_page(arena *a, slice rewritten) {
    const char *filter = rewritten.n ? memmem(rewritten.p, rewritten.n, ORDER_FILTER, strlen(ORDER_FILTER)) : NULL;
    if (!filter) {
        return rewritten;
    }
    buf text = buf_init(BUF_NO_LIMIT);
    size_t before = (size_t)(filter - rewritten.p);
    buf_add_slice(&text, slice_of(rewritten.p, before));
    buf_add_lit(&text, "true");
    buf_add_slice(&text, slice_skip(rewritten, before + strlen(ORDER_FILTER)));
    slice result = arena_copy(a, buf_view(&text));
    buf_free(&text);
    return result;
}

static void check_rewritten(arena *a, slice text) {
    query again;
    op o;
    op_init(&o, a, 0);
    if (text.n == 0 || text.n > LIMIT_QUERY_BYTES - 256) {
        return;
    }
    err code = query_prepare(&o, a, first_page(a, text), NULL, 0, NULL, &again);
    if (code != OK && !strstr(o.detail, "SC3021")) { /* rewriting may make it too deep */
        fail_msg("rewritten as %.*s: %.*s", (int)text.n, text.p, (int)o.detail_n, o.detail);
    }
}

static void check_ranges(const bson_t *plan) {
    bson_iter_t it, each, member;
    char last[600] = "";
    assert_true(bson_iter_init_find(&it, plan, "queryRanges") && BSON_ITER_HOLDS_ARRAY(&it) && bson_iter_recurse(&it, &each));
    while (bson_iter_next(&each)) {
        assert_true(bson_iter_recurse(&each, &member) && bson_iter_find(&member, "min"));
        const char *min = bson_iter_utf8(&member, NULL);
        assert_true(strcmp(last, min) < 0 || !*last);
        snprintf(last, sizeof last, "%s", min);
        assert_true(bson_iter_recurse(&each, &member) && bson_iter_find(&member, "max"));
        assert_true(strcmp(min, bson_iter_utf8(&member, NULL)) <= 0);
    }
}

static void check_plan(arena *a, slice json) {
    buf bson = buf_init(BUF_NO_LIMIT);
    bson_t plan;
    bson_iter_t it, found;
    assert_int_equal(json_to_bson(json, NULL, &bson, NULL, NULL), OK);
    assert_true(bson_init_static(&plan, (const uint8_t *)bson.p, bson.n));
    assert_true(bson_iter_init(&it, &plan) && bson_iter_find_descendant(&it, "queryInfo.rewrittenQuery", &found));
    assert_true(BSON_ITER_HOLDS_UTF8(&found));
    check_rewritten(a, arena_copy(a, doc_text(&found)));
    check_ranges(&plan);
    buf_free(&bson);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n == 0 || memmem(data, n, ORDER_FILTER, strlen(ORDER_FILTER)) ||
        !bson_utf8_validate((const char *)data + 1, n - 1, true)) { /* checked before a text becomes a query */
        return 0;
    }
    const pkey_definition *key = key_of(data[0]);
    arena memory = arena_init();
    buf plan = buf_init(BUF_NO_LIMIT);
    query q;
    op o;
    op_init(&o, &memory, 0);
    err code = query_prepare(&o, &memory, slice_of(data + 1, n - 1), NULL, 0, NULL, &q);
    if (code == OK) {
        code = query_plan_write(&o, &memory, &q, key, ~0u, &plan);
        if (code == OK && !q.select->order_by_rank) { /* ORDER BY RANK has another form of plan */
            check_plan(&memory, buf_view(&plan));
        }
    }
    assert_true(code == OK || code == E_BAD_QUERY);
    buf_free(&plan);
    arena_free(&memory);
    return 0;
}
