/* Any lines as items and operations of the adviser: the report, as text and as JSON, is well-formed. Lines that begin with "log" are
 * operations. */
#include "advise/advise.h"
#include "doc/json.h"
#include "world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void add_line(advise *a, slice line) {
    buf bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    const char *why = NULL;
    bool is_log = slice_starts(line, SLICE_LIT("log"));
    slice json = is_log ? slice_skip(line, 3) : line;
    if (json_to_bson(json, NULL, &bson, &root, NULL) == OK && root == JSON_OBJECT) {
        if (!is_log) {
            advise_add_item(a, buf_view(&bson), json.n);
        } else if (!advise_add_operation(a, buf_view(&bson), &why)) {
            assert_true(why != NULL);
        }
    }
    buf_free(&bson);
}

static void check(const advise_report *r) {
    buf text = buf_init(BUF_NO_LIMIT), bson = buf_init(BUF_NO_LIMIT);
    json_root root;
    advise_show(&text, r, 5);
    buf_clear(&text);
    advise_write_json(&text, r);
    assert_int_equal(json_to_bson(buf_view(&text), NULL, &bson, &root, NULL), OK);
    for (size_t i = 0; i < r->n; i++) {
        assert_true(r->keys[i]->score >= 0 && r->keys[i]->score <= 100);
        assert_true(r->keys[i]->refused >= 0 && r->keys[i]->refused <= 1 && r->keys[i]->hottest <= 1);
    }
    buf_free(&text);
    buf_free(&bson);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    advise *a = advise_new(&advise_defaults);
    for (slice rest = slice_of(data, n); rest.n;) {
        const char *end = memchr(rest.p, '\n', rest.n);
        size_t line = end ? (size_t)(end - rest.p) : rest.n;
        add_line(a, slice_of(rest.p, line));
        rest = slice_skip(rest, line + 1);
    }
    const advise_report *r = advise_finish(a);
    if (r) {
        check(r);
    }
    advise_free(a);
    return 0;
}
