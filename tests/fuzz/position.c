/* Continuations of queries, as a client may send them. The first byte chooses the query; the second whether the rest is the text itself, or
 * the BSON of the position in it.
 *
 * Whatever the continuation is, the query ends, and the continuation that a page ends with reads back as it was written. */
#include "base/base64.h"
#include "queryworld.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { PAGES_MAX = 60 };

static const char *const queries[] = {
    "SELECT * FROM c ORDER BY c.n",
    "SELECT VALUE c.id FROM c ORDER BY c.o DESC",
    "SELECT DISTINCT VALUE c.n FROM c ORDER BY c.n",
    "SELECT c.id, x FROM c JOIN x IN c.t ORDER BY c.s, c.n DESC",
    "SELECT VALUE c.id FROM c ORDER BY c.t OFFSET 2 LIMIT 4",
    "SELECT DISTINCT VALUE c.s FROM c",
    "SELECT c.n, COUNT(1) FROM c GROUP BY c.n",
    "SELECT VALUE x FROM c JOIN x IN c.t",
    "SELECT VALUE c.id FROM c OFFSET 1 LIMIT 5",
    "SELECT VALUE x FROM (SELECT DISTINCT VALUE c.n FROM c) AS x",
    "SELECT 1",
    "SELECT VALUE [COUNT(1), SUM(c.n), AVG(c.n), MIN(c.s), MAX(c.n), COUNTIF(c.b), MAKELIST(c.n), MAKESET(c.s)] FROM c",
    "SELECT [{\"item\": c.s}, {\"item\": c.n}] AS groupByItems, {\"n\": {\"item\": MAX(c.id)}} AS payload FROM c GROUP BY c.s, c.n",
};

static slice token_of(arena *a, slice bson) {
    buf text = buf_init(BUF_NO_LIMIT);
    buf_add_lit(&text, "QPS:");
    base64_encode(&text, bson);
    buf_add_byte(&text, ';');
    slice result = arena_copy(a, buf_view(&text));
    buf_free(&text);
    return result;
}

static bool same_values(const query *q, const query_position *a, const query_position *b) {
    for (size_t i = 0; i < query_position_values(q); i++) {
        if (value_compare(&a->values[i], &b->values[i]) != 0) {
            return false;
        }
    }
    return true;
}

/* A position that was read and written again is the same, except for values that are too long to be written. */
static void check_again(arena *a, const query *q, slice text) {
    query_position first, second;
    slice rest;
    buf again = buf_init(BUF_NO_LIMIT);
    if (sql_position_read(a, text, q, &first, &rest) == OK) {
        sql_position_write(&again, a, q, &first);
        assert_int_equal(sql_position_read(a, arena_copy(a, buf_view(&again)), q, &second, &rest), OK);
        assert_int_equal(rest.n, 0);
        assert_int_equal(first.given, second.given);
        assert_int_equal(first.skipped, second.skipped);
        assert_int_equal(first.begun_n, second.begun_n);
        for (size_t i = 0; i < first.begun_n; i++) {
            const query_begun *a_begun = &first.begun[i], *b_begun = &second.begun[i];
            assert_true(a_begun->number == b_begun->number && a_begun->rows == b_begun->rows && epk_cmp(&a_begun->epk, &b_begun->epk) == 0);
        }
        assert_int_equal(first.stage, second.stage);
        assert_true(slice_eq(first.carried, second.carried));
        if (second.ordered && !second.cut) {
            assert_true(first.ordered && first.number == second.number && first.row == second.row && same_values(q, &first, &second));
        }
    }
    buf_free(&again);
}

static void read_on(const items *s, world *w, op *o, const query *q, slice from) {
    buf continuation = buf_init(BUF_NO_LIMIT), rows = buf_init(BUF_NO_LIMIT);
    buf_add_slice(&continuation, from);
    err code = OK;
    for (int pages = 0; code == OK && (pages == 0 || continuation.n); pages++) {
        query_page p;
        assert_true(pages < PAGES_MAX);
        code = query_world_page(s, w, o, q, 2, &continuation, &p, &rows);
        assert_true(code == OK || code == E_QUERY_TOO_LONG || (code == E_BAD_CONTINUATION && pages == 0));
    }
    buf_free(&continuation);
    buf_free(&rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    world *w;
    const items *s = query_world_open(&w);
    if (n < 2) {
        return 0;
    }
    arena memory = arena_init();
    query q;
    op o;
    op_init(&o, &memory, harness_now_s(&w->h));
    const char *chosen = queries[data[0] % (sizeof queries / sizeof *queries)];
    assert_int_equal(query_prepare(&o, &memory, slice_str(chosen), NULL, 0, NULL, &q), OK);
    slice given = arena_copy(&memory, slice_of(data + 2, n - 2));
    slice text = data[1] & 1 ? token_of(&memory, given) : given;
    check_again(&memory, &q, text);
    read_on(s, w, &o, &q, text);
    arena_free(&memory);
    return 0;
}
