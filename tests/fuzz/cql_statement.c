/* CQL text (cql/parse.h): any bytes give a statement or an error with a message. The terms of a SELECT are written as text that parses to
 * the same text, and WHERE is checked against a table. */
#include <assert.h>

#include "cql/restrict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was written parses again, and is written as the same text. */
static void check_again(op *o, const cql_select *s) {
    buf first = buf_init(1 << 20), second = buf_init(1 << 20), text = buf_init(1 << 20);
    const cql_statement *again;
    cql_term_write(&first, s->selectors[0].term);
    buf_addf(&text, "SELECT %.*s FROM t", (int)first.n, first.p ? first.p : "");
    if (buf_ok(&text) && first.n < 10000 && !memchr(text.p, '$', text.n) && cql_parse(o, buf_view(&text), &again) == OK &&
        again->select.selectors_n == 1) {
        cql_term_write(&second, again->select.selectors[0].term);
        assert(slice_eq(buf_view(&first), buf_view(&second)));
    }
    cql_term_name(&second, s->selectors[0].term);
    buf_free(&first);
    buf_free(&second);
    buf_free(&text);
}

static void check_where(op *o, const cql_select *s) {
    const cql_type *text = cql_type_of(CQL_TEXT), *number = cql_type_of(CQL_INT);
    const cql_column columns[] = {
        {.name = SLICE_LIT("a"), .type = number, .kind = CQL_COLUMN_PARTITION},
        {.name = SLICE_LIT("b"), .type = number, .kind = CQL_COLUMN_CLUSTERING},
        {.name = SLICE_LIT("c"), .type = text, .kind = CQL_COLUMN_CLUSTERING, .position = 1, .descending = true},
        {.name = SLICE_LIT("d"), .type = cql_type_of(CQL_DECIMAL), .kind = CQL_COLUMN_CLUSTERING, .position = 2},
        {.name = SLICE_LIT("m"),
         .type = cql_type_map(o->arena, text, number, false),
         .kind = CQL_COLUMN_REGULAR,
         .indexed = CQL_INDEXED_KEYS},
        {.name = SLICE_LIT("v"), .type = number, .kind = CQL_COLUMN_REGULAR},
    };
    cql_table table = {.columns = columns, .n = 6, .partition_n = 1, .clustering_n = 3};
    cql_restrict_input in = {.table = &table, .where = s->where, .where_n = s->where_n, .allow_filtering = s->allow_filtering};
    cql_restrictions r;
    cql_run run = {0};
    const cql_value *keys;
    const cql_range *ranges;
    uint32_t n;
    if (cql_restrict(o, &in, &r) != OK || (r.whole_partition_key && cql_restrict_keys(o, &run, &r, &keys, &n) != OK) ||
        cql_restrict_ranges(o, &run, &r, &ranges, &n) != OK) {
        assert(o->detail_n > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    budget b = budget_init(NULL, 64 << 20);
    arena memory = arena_init_counted(&b);
    const cql_statement *s;
    op o;
    op_init(&o, &memory, 0);
    if (cql_parse(&o, slice_of(data, size), &s) != OK) {
        assert(o.detail_n > 0 || b.exceeded);
    } else if (s->verb == CQL_SELECT) {
        if (s->select.selectors_n) {
            check_again(&o, &s->select);
        }
        check_where(&o, &s->select);
    }
    arena_free(&memory);
    return 0;
}
