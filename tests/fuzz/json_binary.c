/* Any bytes as Cosmos binary JSON: refused, or read into a text that is JSON, within its limit, and comes back from binary the same. Any
 * bytes as text: refused, or written as a document that can be read. */
#include <assert.h>

#include "doc/json_binary.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TEXT_MAX = 100000 };

static void check_round(slice text) {
    buf binary = buf_init(BUF_NO_LIMIT), back = buf_init(BUF_NO_LIMIT), again = buf_init(BUF_NO_LIMIT);
    bool written = json_binary_from_text(text, &binary);
    assert(written && json_is_binary(buf_view(&binary)));
    if (json_binary_to_text(buf_view(&binary), &back, NULL) == OK) { /* otherwise it is too deep */
        buf_clear(&binary);
        written = json_binary_from_text(buf_view(&back), &binary);
        err code = json_binary_to_text(buf_view(&binary), &again, NULL);
        assert(written && code == OK && slice_eq(buf_view(&back), buf_view(&again)));
    }
    buf_free(&binary);
    buf_free(&back);
    buf_free(&again);
}

static void check_binary(slice input) {
    buf text = buf_init(TEXT_MAX), bson = buf_init(BUF_NO_LIMIT);
    json_error why = {0};
    json_root root;
    err code = json_binary_to_text(input, &text, &why);
    assert(code == OK || (text.n == 0 && buf_ok(&text)));
    if (code == OK) {
        assert(text.n <= TEXT_MAX);
        bool is_container = text.p[0] == '{' || text.p[0] == '[';
        err read = json_to_bson(buf_view(&text), NULL, &bson, &root, NULL);
        assert(!is_container || read == OK);
        check_round(buf_view(&text));
    } else if (code == E_BAD_JSON) {
        assert(why.reason && why.offset <= input.n + 1);
    }
    buf_free(&text);
    buf_free(&bson);
}

static void check_text(slice input) {
    buf binary = buf_init(BUF_NO_LIMIT), bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    bool good = json_to_bson(input, NULL, &bson, &root, NULL) == OK;
    bool written = json_binary_from_text(input, &binary);
    assert(written || !good);
    if (good) {
        check_round(input);
    }
    buf_free(&binary);
    buf_free(&bson);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    slice input = slice_of(data, size);
    check_binary(input);
    check_text(input);
    return 0;
}
