/* Plain rows give the same result as rows that are read as cells, whatever columns are selected; rows that are not plain are told apart;
 * and damaged ones are never read beyond their end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "api/cassandra/plain.h"
#include "base/memory.h"
#include "cql/parse.h"

enum { NOW_S = 1700000000, COLUMNS = 14, ROUNDS = 400 };

static uint64_t seed = 1;

static uint32_t draw(uint32_t n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

static const cass_table *table_of(arena *a) {
    return cass_table_of_text(
        a, SLICE_LIT(
               "CREATE TABLE k.t (p int, c uuid, \"a long name of a column\" text, b blob, d double, f float, l bigint, m map<text, int>, "
               "o boolean, s smallint, t timestamp, u timeuuid, v varint, w text, PRIMARY KEY (p, c))"));
}

static const cass_selection *select_of(op *o, const cass_table *t, const char *text) {
    const cql_statement *tree;
    const cass_selection *s;
    assert_int_equal(cql_parse(o, slice_str(text), &tree), OK);
    assert_int_equal(cass_selection_make(o, t, &tree->select, &t->types.source, NULL, &s), OK);
    return s;
}

static cql_value text_value(op *o, const cql_type *type, const char *text) {
    cql_value v;
    assert_int_equal(cql_value_of_text(o, type, slice_str(text), &v), OK);
    return v;
}

static cql_value random_value(op *o, const cql_type *type) {
    static const char *const texts[] = {"", "a", "some text of a row", "\xC3\xA9\xE2\x82\xAC"};
    static const char *const numbers[] = {"0", "-1", "77", "32767", "-32768"};
    char bytes[40] = "d7a0c6b0-1c7e-11ee-9b5a-0242ac12000";
    cql_value value, both[2];
    switch (type->kind) {
    case CQL_TEXT:
        return cql_value_text(slice_str(texts[draw(4)]));
    case CQL_BLOB:
        return cql_value_of(arena_copy(o->arena, slice_str(texts[draw(4)])));
    case CQL_UUID:
    case CQL_TIMEUUID:
        bytes[35] = "0123456789abcdef"[draw(16)];
        return text_value(o, type, bytes);
    case CQL_BOOLEAN:
        return cql_value_bool(draw(2));
    case CQL_MAP:
        both[0] = cql_value_text(slice_str(texts[1 + draw(3)]));
        both[1] = cql_value_int(o->arena, (int32_t)draw(100));
        assert_true(cql_value_collect(o->arena, type, both, 2, &value));
        return value;
    case CQL_TIMESTAMP:
        return cql_value_bigint(o->arena, (int64_t)draw(1000000) - 500000);
    default:
        return text_value(o, type, numbers[draw(5)]);
    }
}

static slice random_row(op *o, const cass_table *t) {
    cass_row row;
    slice body;
    cass_row_init(o, t, &row);
    row.marked = true;
    row.marker = (cass_stamp){.us = 1000};
    for (uint32_t i = 0; i < t->table.n; i++) {
        if (i < 2 || draw(4)) {
            row.cells[i].there = true;
            row.cells[i].stamp = row.marker;
            row.cells[i].value = random_value(o, t->table.columns[i].type);
        }
    }
    assert_int_equal(cass_row_write(o, t, &row, NOW_S, &body), OK);
    return body;
}

static void put_as_cells(op *o, const cass_selection *s, slice body, buf *out) {
    cass_row row;
    assert_int_equal(cass_row_read(o, s->table, body, NOW_S, NULL, false, &row), OK);
    cass_scope scope = {.o = o, .table = s->table, .row = &row, .now_s = NOW_S};
    assert_int_equal(cass_result_row_put(&scope, s, out), OK);
}

static void assert_same(op *o, cass_plain *p, const cass_selection *s, slice body) {
    buf plain = buf_init(BUF_NO_LIMIT), cells = buf_init(BUF_NO_LIMIT);
    assert_int_equal(cass_plain_put(o, p, &plain), OK);
    put_as_cells(o, s, body, &cells);
    assert_int_equal(plain.n, cells.n);
    assert_memory_equal(plain.p, cells.p, cells.n);
    buf_free(&plain);
    buf_free(&cells);
}

static const char *const selects[] = {"SELECT * FROM k.t", "SELECT w, p, w FROM k.t", "SELECT u, m, c, v, s, f FROM k.t",
                                      "SELECT \"a long name of a column\", t, l, d, o, b FROM k.t"};
enum { SELECTS = sizeof selects / sizeof *selects };

static void test_plain_rows_are_as_cells(void **state) {
    budget limit = budget_init(NULL, 64 << 20);
    arena a = arena_init_counted(&limit);
    op o;
    (void)state;
    op_init(&o, &a, NOW_S);
    const cass_table *t = table_of(&a);
    assert_int_equal(t->table.n, COLUMNS);
    for (size_t k = 0; k < SELECTS; k++) {
        const cass_selection *s = select_of(&o, t, selects[k]);
        cass_plain *p = cass_plain_make(&o, s);
        assert_non_null(p);
        for (unsigned i = 0; i < ROUNDS; i++) {
            slice body = random_row(&o, t);
            assert_true(cass_plain_find(p, body));
            assert_same(&o, p, s, body);
        }
    }
    assert_null(cass_plain_make(&o, select_of(&o, t, "SELECT writetime(w) FROM k.t")));
    cass_table_give(t);
    arena_free(&a);
}

static void test_other_rows_are_not_plain(void **state) {
    budget limit = budget_init(NULL, 64 << 20);
    arena a = arena_init_counted(&limit);
    cass_row row;
    slice body;
    op o;
    (void)state;
    op_init(&o, &a, NOW_S);
    const cass_table *t = table_of(&a);
    cass_plain *p = cass_plain_make(&o, select_of(&o, t, selects[0]));
    for (unsigned i = 0; i < 5; i++) {
        cass_row_init(&o, t, &row);
        assert_int_equal(cass_row_read(&o, t, random_row(&o, t), NOW_S, NULL, true, &row), OK);
        row.marked = i != 0;
        row.deleted_us = i == 1 ? 5 : CASS_NEVER;
        row.marker.ttl = i == 2 ? 60 : 0;
        row.marker.expires_s = i == 2 ? NOW_S + 60 : 0;
        row.cells[13] =
            (cass_cell){.there = true, .value = cql_value_text(SLICE_LIT("x")), .stamp.us = i == 3 ? 2000 : 1000, .deleted_us = CASS_NEVER};
        assert_int_equal(cass_row_write(&o, t, &row, NOW_S, &body), OK);
        assert_int_equal(cass_plain_find(p, body), i == 4);
    }
    cass_table_give(t);
    arena_free(&a);
}

/* Each body is in memory of its own, so that AddressSanitizer sees a step beyond its end. */
static void test_damaged_rows_stay_within_bounds(void **state) {
    budget limit = budget_init(NULL, 64 << 20);
    arena lasting = arena_init_counted(&limit), a = arena_init_counted(&limit);
    op planned, o;
    (void)state;
    op_init(&planned, &lasting, NOW_S);
    op_init(&o, &a, NOW_S);
    const cass_table *t = table_of(&lasting);
    cass_plain *p = cass_plain_make(&planned, select_of(&planned, t, selects[0]));
    unsigned found = 0;
    for (unsigned i = 0; i < 20 * ROUNDS; i++) {
        slice body = random_row(&o, t);
        size_t n = draw(4) ? body.n : 5 + draw((uint32_t)body.n - 5);
        char *own = mem_alloc(n);
        memcpy(own, body.p, n);
        for (uint32_t k = draw(4); k > 0 && n > 5; k--) {
            own[4 + draw((uint32_t)n - 4)] = (char)draw(256);
        }
        doc_store_i32(own, (int32_t)n);
        if (cass_plain_find(p, slice_of(own, n))) {
            buf out = buf_init(BUF_NO_LIMIT);
            found += cass_plain_put(&o, p, &out) == OK; /* it may refuse a value */
            o.detail_n = 0;
            buf_free(&out);
        }
        free(own);
        arena_reset(&a);
    }
    assert_true(found > ROUNDS);
    cass_table_give(t);
    arena_free(&a);
    arena_free(&lasting);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain_rows_are_as_cells),
        cmocka_unit_test(test_other_rows_are_not_plain),
        cmocka_unit_test(test_damaged_rows_stay_within_bounds),
    };
    return cmocka_run_group_tests_name("api_cassandra_plain", tests, NULL, NULL);
}
