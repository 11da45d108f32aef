/* An item of JSON that the SQL API writes into a table of Cassandra: refused with a reason; or a row, which reads as one that is live, and
 * stays the same if it is adopted again. */
#include <assert.h>

#include "api/cassandra/adopt.h"
#include "api/cassandra/row.h"
#include "doc/json.h"
#include "query/typed_body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Keys of types whose order needs a text, and columns of every type. */
static cass_table *table_of(arena *a) {
    return cass_table_of_text(
        a, SLICE_LIT("CREATE TABLE k.t (p double, c uuid, d int, a ascii, b blob, e date, f decimal, g duration, h float, "
                     "i inet, j time, l timestamp, m map<text, int>, o list<bigint>, q set<decimal>, r tuple<int, text>, "
                     "s frozen<map<blob, list<int>>>, u timeuuid, v varint, w vector<float, 2>, x boolean, y tinyint, "
                     "z smallint, PRIMARY KEY (p, c, d))"));
}

static void check(op *o, const cass_table *t, slice body) {
    enum { NOW_MS = 170000123 };
    slice stored, again;
    cass_row row;
    if (query_typed_body(o, body, &body) != OK || cass_adopt_row(o, t, NOW_MS, body, &stored) != OK) {
        return;
    }
    assert(doc_is_well_formed(stored, LIMIT_JSON_DEPTH));
    err code = cass_row_read(o, t, stored, NOW_MS / 1000, NULL, true, &row);
    assert(code == OK && cass_row_is_live(t, &row, NOW_MS / 1000));
    code = cass_adopt_row(o, t, NOW_MS, stored, &again);
    assert(code == OK && slice_eq(stored, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static cass_table *table;
    json_options options = {.drop = item_system_properties, .drop_n = ITEM_SYSTEM_PROPERTIES};
    buf body = buf_init(1 << 20);
    arena memory = arena_init();
    json_root root;
    op o;
    op_init(&o, &memory, 0);
    table = table ? table : table_of(&memory);
    if (json_to_bson(slice_of(data, n), &options, &body, &root, NULL) == OK && root == JSON_OBJECT) {
        check(&o, table, buf_view(&body));
    }
    buf_free(&body);
    arena_free(&memory);
    return 0;
}
