/* An XML document of the Table API: refused; or what is written of it reads as the same document again. */
#include <assert.h>

#include "api/table/xml.h"
#include "doc/walk.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    arena memory = arena_init();
    op o;
    slice bson, again;
    op_init(&o, &memory, 0);
    if (xml_read(&o, slice_of(data, n), &bson) == TABLE_FINE) {
        buf text = buf_init(BUF_NO_LIMIT);
        assert(doc_is_well_formed(bson, 16));
        xml_write(&text, bson);
        table_error error = xml_read(&o, buf_view(&text), &again);
        assert(error == TABLE_FINE && slice_eq(bson, again));
        buf_free(&text);
    }
    arena_free(&memory);
    return 0;
}
