/* An entity of the Table API as JSON: refused; or what is written of it, with metadata, reads as the same entity again. And the same text
 * as an item that the SQL API writes into a table: refused with a reason; or an entity, which stays the same if it is adopted again. */
#include <assert.h>

#include "api/table/adopt.h"
#include "api/table/entity.h"
#include "doc/json.h"
#include "query/typed_body.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_again(op *o, const entity *e) {
    buf text = buf_init(BUF_NO_LIMIT);
    entity again;
    entity_view view = {.metadata = ENTITY_FULL_METADATA,
                        .base = SLICE_LIT("http://h"),
                        .account = SLICE_LIT("a"),
                        .table = SLICE_LIT("t"),
                        .element = true};
    entity_write(&text, &view, e->body, 7, 1);
    table_error error = entity_read(o, &(entity_ask){.json = buf_view(&text), .now_ms = 1}, &again);
    assert(error == TABLE_FINE);
    assert(slice_eq(e->body, again.body));
    buf_free(&text);
}

static void check_adopted(op *o, slice body) {
    static const container table; /* its memo is empty: not for large entities */
    slice stored, again;
    if (query_typed_body(o, body, &body) != OK || adopt_entity(o, &table, 5, body, &stored) != OK) {
        return;
    }
    assert(doc_is_well_formed(stored, 4));
    assert(entity_check_limits(stored, false) == TABLE_FINE);
    assert(entity_check_key(entity_text(stored, SLICE_LIT("RowKey"))) == TABLE_FINE);
    err code = adopt_entity(o, &table, 5, stored, &again);
    assert(code == OK && slice_eq(stored, again));
}

static void adopt(op *o, slice json) {
    json_options options = {.drop = item_system_properties, .drop_n = ITEM_SYSTEM_PROPERTIES};
    buf body = buf_init(1 << 20);
    json_root root;
    if (json_to_bson(json, &options, &body, &root, NULL) == OK && root == JSON_OBJECT) {
        check_adopted(o, buf_view(&body));
    }
    buf_free(&body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    arena memory = arena_init();
    op o;
    entity e;
    op_init(&o, &memory, 0);
    if (entity_read(&o, &(entity_ask){.json = slice_of(data, n), .now_ms = 1}, &e) == TABLE_FINE) {
        size_t properties;
        assert(doc_is_well_formed(e.body, 4));
        assert(entity_size(e.body, &properties) <= ENTITY_LARGE_BYTES_MAX && properties <= ENTITY_PROPERTIES_MAX);
        assert(entity_check_key(e.partition) == TABLE_FINE && entity_check_key(e.row) == TABLE_FINE);
        check_again(&o, &e);
    }
    adopt(&o, slice_of(data, n));
    arena_free(&memory);
    return 0;
}
