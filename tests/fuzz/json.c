/* Any bytes as JSON are rejected, or read into a valid document whose text reads as the same document. Any bytes as BSON are written as
 * well-formed JSON, without reading outside. */
#include <assert.h>
#include <bson/bson.h>

#include "doc/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_text(buf *text, slice bson, json_root root) {
    if (root == JSON_OBJECT) {
        json_from_bson(text, bson);
    } else {
        json_from_bson_array(text, bson);
    }
    assert(buf_ok(text));
}

static void check_document(slice bson) {
    bson_t b;
    bool good = bson_init_static(&b, (const uint8_t *)bson.p, bson.n);
    assert(good);
    if (!memmem(bson.p, bson.n, "\xC0\x80", 2)) { /* our NUL in keys, which libbson rejects */
        good = bson_validate(&b, BSON_VALIDATE_UTF8 | BSON_VALIDATE_UTF8_ALLOW_NULL, NULL);
        assert(good);
    }
}

static void check_text(slice input) {
    buf bson = buf_init(BUF_NO_LIMIT);
    buf text = buf_init(BUF_NO_LIMIT);
    buf text2 = buf_init(BUF_NO_LIMIT);
    json_root root, root2;
    json_error why = {0};
    err code = json_to_bson(input, NULL, &bson, &root, &why);
    assert(code == OK || code == E_BAD_JSON);
    if (code == OK) {
        check_document(buf_view(&bson));
        write_text(&text, buf_view(&bson), root);
        buf_clear(&bson);
        code = json_to_bson(buf_view(&text), NULL, &bson, &root2, NULL);
        assert(code == OK && root2 == root);
        check_document(buf_view(&bson));
        write_text(&text2, buf_view(&bson), root);
        assert(slice_eq(buf_view(&text), buf_view(&text2)));
    } else {
        assert(bson.n == 0 && why.reason && why.offset <= input.n);
    }
    buf_free(&bson);
    buf_free(&text);
    buf_free(&text2);
}

/* With a small limit and keys to leave out: the same result, or E_TOO_LARGE. */
static void check_limited(slice input) {
    static const slice drop[] = {SLICE_LIT("_ts"), SLICE_LIT("a")};
    json_options options = {.drop = drop, .drop_n = 2, .depth_max = 5};
    buf bson = buf_init(input.n);
    buf text = buf_init(input.n / 2);
    err code = json_to_bson(input, &options, &bson, NULL, NULL);
    assert(code == OK || code == E_BAD_JSON || code == E_TOO_LARGE);
    if (code == OK) {
        check_document(buf_view(&bson));
        json_from_bson(&text, buf_view(&bson));
        assert(text.n <= input.n / 2);
    }
    buf_free(&bson);
    buf_free(&text);
}

static void check_bytes(slice input) {
    buf text = buf_init(BUF_NO_LIMIT);
    buf bson = buf_init(BUF_NO_LIMIT);
    json_options deep = {.depth_max = 1000};
    json_error why = {0};
    json_from_bson(&text, input);
    err code = json_to_bson(buf_view(&text), &deep, &bson, NULL, &why);
    assert(code == OK || strstr(why.reason, "UTF-8")); /* strings are copied unchecked */
    buf_free(&text);
    buf_free(&bson);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    slice input = slice_of(data, size);
    check_text(input);
    check_limited(input);
    check_bytes(input);
    return 0;
}
