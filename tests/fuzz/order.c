/* Spellings of values (doc/order.h): bytes that can be read give BSON with the same spelling. The values of a BSON document can be spelled
 * and read back as equal values, and their spellings sort as the values compare. The first byte chooses the direction. */
#include <assert.h>

#include "base/limits.h"
#include "doc/order.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_spelling(slice spelled, bool descending) {
    buf value = buf_init(LIMIT_ITEM_BYTES), again = buf_init(LIMIT_ITEM_BYTES);
    bson_type_t type, measured_type;
    size_t n, measured;
    bool measurable = doc_order_read(spelled, descending, NULL, &measured_type, &measured);
    if (doc_order_read(spelled, descending, &value, &type, &n)) {
        doc_element e = {.type = type, .value = buf_view(&value)};
        assert(measurable && measured == n && measured_type == type);
        doc_order_spell(&again, &e, descending);
        assert(buf_ok(&again) && slice_eq(buf_view(&again), slice_of(spelled.p, n)));
        assert(doc_order_compare(&e, &e) == 0);
    } else {
        assert(value.n == 0 && (!measurable || !buf_ok(&value)));
    }
    buf_free(&value);
    buf_free(&again);
}

static int sign(int c) {
    return (c > 0) - (c < 0);
}

static void check_document(slice document, bool descending) {
    doc_walk w;
    doc_element e, before = {0};
    buf last = buf_init(LIMIT_ITEM_BYTES), next = buf_init(LIMIT_ITEM_BYTES);
    bool has_before = false;
    if (!doc_walk_init(&w, document)) {
        return;
    }
    while (doc_walk_next(&w, &e)) {
        buf_clear(&next);
        doc_order_spell(&next, &e, descending);
        if (has_before) {
            int c = sign(doc_order_compare(&before, &e));
            assert(c == -sign(doc_order_compare(&e, &before)));
            assert(!buf_ok(&next) || sign(slice_cmp(buf_view(&last), buf_view(&next))) == (descending ? -c : c));
        }
        if (buf_ok(&next)) {
            check_spelling(buf_view(&next), descending);
            before = e;
            has_before = true;
            buf_clear(&last);
            buf_add_slice(&last, buf_view(&next));
        }
    }
    buf_free(&last);
    buf_free(&next);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size) {
        bool descending = data[0] & 1;
        check_spelling(slice_of(data + 1, size - 1), descending);
        check_document(slice_of(data + 1, size - 1), descending);
    }
    return 0;
}
