/* An entity of the Table API as JSON: refused; or what is written of it, with metadata, reads as the same entity again. */
#include <assert.h>

#include "api/table/entity.h"

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
    arena_free(&memory);
    return 0;
}
