/* Two JSON texts with a zero byte between them, a document and a patch: the patch is rejected with a message, or gives a valid document.
 * The patch is also applied to its own bytes, and to the raw input as BSON. */
#include <assert.h>
#include <bson/bson.h>

#include "base/limits.h"
#include "doc/json.h"
#include "doc/patch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_result(slice bson) {
    buf text = buf_init(BUF_NO_LIMIT);
    buf again = buf_init(BUF_NO_LIMIT);
    buf text2 = buf_init(BUF_NO_LIMIT);
    json_from_bson(&text, bson);
    err code = json_to_bson(buf_view(&text), NULL, &again, NULL, NULL);
    assert(code == OK);
    json_from_bson(&text2, buf_view(&again));
    assert(slice_eq(buf_view(&text), buf_view(&text2)));
    bson_t b;
    bool good = bson_init_static(&b, (const uint8_t *)bson.p, bson.n);
    assert(good);
    if (!memmem(bson.p, bson.n, "\xC0\x80", 2)) {
        good = bson_validate(&b, BSON_VALIDATE_UTF8 | BSON_VALIDATE_UTF8_ALLOW_NULL, NULL);
        assert(good);
    }
    buf_free(&text);
    buf_free(&again);
    buf_free(&text2);
}

static void apply(op *o, const patch *p, slice document, bool trusted) {
    buf out = buf_init(LIMIT_ITEM_BYTES);
    err code = patch_apply(o, p, document, &out);
    if (code != OK) {
        assert(out.n == 0 && buf_ok(&out));
    } else if (trusted) {
        check_result(buf_view(&out));
    }
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t first = zero ? (size_t)(zero - data) : size;
    arena a = arena_init();
    op o;
    op_init(&o, &a, 0);
    buf document = buf_init(BUF_NO_LIMIT);
    buf request = buf_init(BUF_NO_LIMIT);
    json_root root = JSON_ARRAY;
    patch p;
    bool has_document = json_to_bson(slice_of(data, first), NULL, &document, &root, NULL) == OK && root == JSON_OBJECT;
    if (zero && json_to_bson(slice_of(zero + 1, size - first - 1), NULL, &request, &root, NULL) == OK &&
        patch_parse(&o, buf_view(&request), &p) == OK) {
        if (has_document) {
            apply(&o, &p, buf_view(&document), true);
        }
        apply(&o, &p, buf_view(&request), false);
        apply(&o, &p, slice_of(data, size), false);
    }
    if (patch_parse(&o, slice_of(data, size), &p) == OK) { /* hostile BSON, which front ends reject */
        apply(&o, &p, slice_of(data, size), false);
    }
    buf_free(&document);
    buf_free(&request);
    arena_free(&a);
    return 0;
}
