/* Extended JSON in a query's text or parameters (query/value_typed.c): a value read as a type that JSON lacks is written as the object that
 * it was read from, and can be spelled by the index and read back. */
#include <assert.h>

#include "doc/json.h"
#include "doc/order.h"
#include "index/entry_key.h"
#include "query/demand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_index(const query_value *typed) {
    doc_element e = {.type = (bson_type_t)typed->extended, .value = typed->bytes};
    buf spelled = buf_init(BUF_NO_LIMIT), sought = buf_init(BUF_NO_LIMIT), value = buf_init(BUF_NO_LIMIT);
    index_value v;
    bson_type_t type;
    index_spell_element(&spelled, &e);
    bool read = index_value_read(buf_view(&spelled), &v);
    assert(read && v.n == spelled.n && spelled.n <= INDEX_VALUE_BYTES_MAX);
    bool point = query_index_encode(&sought, typed);
    assert(point == v.placed && slice_starts(buf_view(&spelled), buf_view(&sought)));
    if (index_value_typed(buf_view(&spelled), &v, &value, &type)) {
        doc_element back = {.type = type, .value = buf_view(&value)};
        assert(v.placed && doc_order_compare(&e, &back) == 0);
    }
    buf_free(&spelled);
    buf_free(&sought);
    buf_free(&value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    if (json_to_bson(slice_of(data, size), NULL, &bson, &root, NULL) == OK && root == JSON_OBJECT) {
        arena a = arena_init();
        query_value object = value_document(TYPE_OBJECT, buf_view(&bson)), typed;
        if (value_typed(&a, &object, &typed)) {
            query_value shown = value_plain(&a, &typed);
            assert(typed.extended && value_may_be_typed(&object));
            assert(value_same(&shown, &object) && value_equal(&typed, &object) && value_compare(&typed, &object) > 0);
            check_index(&typed);
        }
        arena_free(&a);
    }
    buf_free(&bson);
    return 0;
}
