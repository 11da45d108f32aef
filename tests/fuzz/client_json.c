/* Bytes of a hostile server, as libtesela reads them: JSON text without decoding it, a query's plan, rows to be combined, a resolver's
 * state.
 *
 * What the walk gives lies inside the text; every document that the real parser takes is walked to its end; a plan or a state is read or
 * refused; a state that was read is saved as one that reads as the same. */
#include <assert.h>

#include "client/combine.h"
#include "client/json.h"
#include "client/plan.h"
#include "client/resolver_int.h"
#include "doc/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { DEPTH_MAX = 64, MEMORY = 1 << 20 };

static void assert_inside(slice part, slice whole) {
    assert(part.n > 0 && part.p >= whole.p && part.p + part.n <= whole.p + whole.n);
}

static void read_leaf(slice value) {
    buf text = buf_init(64 * 1024);
    buf_add_lit(&text, "before");
    if (!json_text(value, &text)) {
        assert(text.n == 6);
    }
    int64_t whole = json_whole(value, -5, 999, 7);
    assert(whole >= -5 && whole <= 999);
    double number = json_number(value, 0);
    assert(number - number == 0); /* finite */
    buf_free(&text);
}

/* True: it ended as it must, all the way down. */
static bool walk(slice value, unsigned depth) {
    json_walk w;
    slice name, inner;
    bool good = true;
    read_leaf(value);
    if (depth == 0 || !json_enter(value, &w)) {
        return depth == 0 || (*value.p != '{' && *value.p != '[');
    }
    while (json_next(&w, &name, &inner)) {
        assert_inside(inner, value);
        if (w.object) {
            assert_inside(name, value);
        }
        good = walk(inner, depth - 1) && good;
    }
    return good && !w.broken;
}

static void read_text(slice text) {
    buf bson = buf_init(MEMORY);
    json_root root;
    bool valid = json_to_bson(text, NULL, &bson, &root, NULL) == OK;
    if (text.n) {
        bool walked = walk(text, DEPTH_MAX);
        assert(!valid || (walked && json_is_value(text)));
        json_member(text, "id");
    }
    buf_free(&bson);
}

/* The plan, and its own ranges as rows. */
static void read_plan(slice text) {
    query_plan plan;
    tesela_error error;
    json_walk w;
    slice row;
    tesela_status status = client__plan_read(text, &plan, &error);
    assert(status == TESELA_OK || status == TESELA_BAD_RESPONSE || status == TESELA_BAD_ARGUMENT);
    if (status == TESELA_OK) {
        combiner *c = client__combiner_new(&plan, MEMORY);
        buf out = buf_init(MEMORY);
        bool more = json_enter(json_member(text, "rows"), &w);
        while (more && json_next(&w, NULL, &row)) {
            more = client__combiner_add(c, row, &error) == TESELA_OK;
        }
        for (size_t i = 0; i < client__combiner_count(c); i++) {
            buf_clear(&out);
            client__combiner_write(c, i, &out);
        }
        buf_free(&out);
        client__combiner_free(c);
    }
    client__plan_free(&plan);
}

/* No ring of more than 99 virtual nodes: large ones take long, rightly, and are for the unit tests. */
static bool is_small(slice text) {
    const char *p = text.p, *end = p + text.n;
    while ((p = memmem(p, (size_t)(end - p), "virtualNodes\"", 13))) {
        unsigned digits = 0;
        for (p += 13; p < end && strchr(" \t\r\n:0123456789", *p); p++) {
            digits += *p >= '0' && *p <= '9';
        }
        if (digits > 2 || (p < end && *p != ',' && *p != '}')) {
            return false;
        }
    }
    return true;
}

static void read_state(const char *text) {
    tesela_resolver *r, *again;
    tesela_error error;
    char *state, *second;
    if (tesela_resolver_load(text, NULL, &r, &error) != TESELA_OK) {
        assert(!r && error.status == TESELA_BAD_ARGUMENT);
        return;
    }
    tesela_status status = tesela_resolver_save(r, &state, &error);
    assert(status == TESELA_OK);
    status = tesela_resolver_load(state, NULL, &again, &error);
    assert(status == TESELA_OK);
    status = tesela_resolver_save(again, &second, &error);
    assert(status == TESELA_OK && strcmp(state, second) == 0);
    tesela_text_free(state);
    tesela_text_free(second);
    tesela_resolver_free(r);
    tesela_resolver_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    slice text = slice_of(data, n);
    if (n == 0 || n > 64 * 1024) {
        return 0;
    }
    read_text(text);
    read_plan(text);
    if (!memchr(data, 0, n) && is_small(text)) {
        buf copy = buf_init(n + 1);
        buf_add_slice(&copy, text);
        buf_add_byte(&copy, 0);
        read_state(copy.p);
        buf_free(&copy);
    }
    return 0;
}
