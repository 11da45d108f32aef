/* The pure parts of the client library: what is sent again, session tokens, JSON text, the order of values, signatures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "client/json.h"
#include "client/retry.h"
#include "client/sessions.h"
#include "client/sign.h"
#include "client/value.h"

/* ---- retries ---- */

static const retry_limits limits = {.throttle_retries = 9, .throttle_wait_ms = 30000};

static retry_answer after(retry_state *s, int status, int substatus, uint32_t told, bool read) {
    return client__retry_decide(s, &limits, &(retry_fact){.status = status, .substatus = substatus, .retry_after_ms = told, .read = read});
}

static void throttling_is_bounded(void **state) {
    (void)state;
    retry_state s = {0}, t = {0};
    for (int i = 0; i < 9; i++) {
        retry_answer a = after(&s, 429, 3200, 100, false);
        assert_true(a.again);
        assert_int_equal(a.wait_ms, 100);
    }
    assert_false(after(&s, 429, 3200, 100, false).again);
    assert_true(after(&t, 429, 3200, 20000, true).again);
    assert_false(after(&t, 429, 3200, 20000, true).again); /* 40 seconds together */
}

/* How long a status is retried in all. */
static uint64_t total(int status, int substatus, bool read, unsigned *tries_out) {
    retry_state s = {0};
    uint64_t sum = 0;
    for (*tries_out = 0;; ++*tries_out) {
        retry_answer a = after(&s, status, substatus, 0, read);
        if (!a.again) {
            assert_int_equal(client__retry_gone_spent(&s), status == 410);
            return sum;
        }
        sum += a.wait_ms;
        assert_true(*tries_out < 1000);
    }
}

static void totals(void **state) {
    (void)state;
    unsigned tries;
    assert_in_range(total(410, 1007, false, &tries), 29000, 30000);
    assert_in_range(total(449, 0, false, &tries), 29000, 30000);
    assert_in_range(total(404, 1002, true, &tries), 4900, 5000);
    total(503, 0, false, &tries);
    assert_int_equal(tries, 10);
    assert_in_range(after(&(retry_state){0}, 503, 0, 3999999999u, true).wait_ms, 1, 5000);
    total(403, 3, false, &tries);
    assert_int_equal(tries, 10);
    int never[][2] = {{400, 0}, {401, 0}, {403, 1014}, {404, 0}, {404, 1003}, {408, 0}, {409, 0}, {412, 0}, {413, 0}, {500, 0}};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        total(never[i][0], never[i][1], false, &tries);
        assert_int_equal(tries, 0);
    }
    total(408, 0, true, &tries);
    assert_true(tries > 0);
}

static void what_may_have_been_written(void **state) {
    (void)state;
    for (int read = 0; read < 2; read++) {
        retry_state s = {0};
        assert_true(client__retry_decide(&s, &limits, &(retry_fact){.broken = RETRY_UNSENT, .read = read}).again);
        assert_int_equal(client__retry_decide(&s, &limits, &(retry_fact){.broken = RETRY_BROKEN, .read = read}).again, read);
        assert_int_equal(client__retry_decide(&s, &limits, &(retry_fact){.broken = RETRY_TIMEOUT, .read = read}).again, read);
        assert_false(client__retry_decide(&s, &limits, &(retry_fact){.broken = RETRY_NEVER, .read = read}).again);
    }
}

static void gone_ranges(void **state) {
    (void)state;
    retry_state s = {0};
    retry_answer a = client__retry_decide(&s, &limits, &(retry_fact){.status = 410, .substatus = 1002, .routed = true});
    assert_true(!a.again && a.refresh_ranges);
    a = after(&s, 410, 1002, 0, false);
    assert_true(a.again && a.refresh_ranges && a.wait_ms == 0);
    assert_true(after(&s, 410, 1002, 0, false).wait_ms > 0);
    assert_true(after(&s, 403, 3, 0, false).refresh_account);
    assert_true(after(&s, 503, 0, 0, false).next_endpoint);
}

/* ---- session tokens ---- */

static void expect_merged(const char *a, const char *b, bool good, const char *wanted) {
    buf out = buf_init(4096);
    assert_int_equal(client__session_merge_tokens(slice_str(a), slice_str(b), &out), good);
    buf_add_byte(&out, 0);
    assert_string_equal(out.p, wanted);
    buf_free(&out);
}

static void tokens_merge(void **state) {
    (void)state;
    expect_merged("-1#31", "-1#7", true, "-1#31");
    expect_merged("1#6#7=-1", "1#9#7=4", true, "1#9#7=4");
    expect_merged("1#9#7=4#8=2", "1#6#7=5#8=1", true, "1#9#7=5#8=2");
    expect_merged("2#5#7=1", "1#9#7=4", true, "2#9#7=4");
    expect_merged("nonsense", "1#2", false, "1#2");
    expect_merged("1#2", "1", false, "1");
}

static void expect_tokens(sessions *s, const char *wanted) {
    buf out = buf_init(4096);
    client__sessions_write(s, SLICE_LIT("dbs/d/colls/c"), &out);
    buf_add_byte(&out, 0);
    assert_string_equal(out.p, wanted);
    buf_free(&out);
}

static void tokens_are_kept(void **state) {
    (void)state;
    sessions *s = client__sessions_new();
    slice owner = SLICE_LIT("dbs/d/colls/c");
    client__sessions_merge(s, owner, SLICE_LIT("r1"), SLICE_LIT("0:-1#5,1:-1#3"));
    client__sessions_merge(s, owner, SLICE_EMPTY, SLICE_LIT("1:-1#9"));
    client__sessions_merge(s, SLICE_LIT("dbs/d/colls/other"), SLICE_LIT("r9"), SLICE_LIT("0:-1#70"));
    expect_tokens(s, "0:-1#5,1:-1#9");
    client__sessions_merge(s, owner, SLICE_LIT("r2"), SLICE_LIT("0:-1#1")); /* another container of this name */
    expect_tokens(s, "0:-1#1");
    client__sessions_forget(s, owner);
    expect_tokens(s, "");
    client__sessions_free(s);
}

/* ---- JSON ---- */

static void members(void **state) {
    (void)state;
    slice text = SLICE_LIT(" { \"a\" : [1, {\"b\":\"}]\\\"\"}] , \"c\":\"\\u00e1\\ud83d\\ude00\\n\", \"d\":-1.5e3 } ");
    buf out = buf_init(100);
    assert_true(slice_eq(json_member(text, "a"), SLICE_LIT("[1, {\"b\":\"}]\\\"\"}]")));
    assert_true(json_text(json_member(text, "c"), &out));
    assert_true(slice_eq(buf_view(&out), SLICE_LIT("\xC3\xA1\xF0\x9F\x98\x80\n")));
    assert_true(json_number(json_member(text, "d"), 0) == -1500);
    assert_int_equal(json_member(text, "e").n, 0);
    assert_true(json_is_value(text));
    buf_free(&out);
}

/* Every part of a text, and every text with one byte changed: never outside of it (AddressSanitizer looks). */
static void broken_texts(void **state) {
    (void)state;
    static const char whole[] = "{\"a\":[1,{\"b\":\"x\\u00e1\\\"\"},[]],\"c\":{\"d\":null}}";
    for (size_t n = 0; n < sizeof whole - 1; n++) {
        char *part = malloc(n ? n : 1);
        memcpy(part, whole, n);
        assert_false(json_is_value(slice_of(part, n)));
        for (size_t i = 0; i < n; i++) {
            char kept = part[i];
            for (const char *c = "{}[]\",:\\x"; *c; c++) {
                json_walk w;
                slice name, value;
                buf out = buf_init(100);
                part[i] = *c;
                json_member(slice_of(part, n), "c");
                if (json_enter(slice_of(part, n), &w)) {
                    while (json_next(&w, &name, &value)) {
                        json_text(value, &out);
                    }
                }
                buf_free(&out);
            }
            part[i] = kept;
        }
        free(part);
    }
    const char *bad[] = {"", "{", "}", "[1", "{\"a\"", "\"x", "1 2", "{\"a\":1}}", ","};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(json_is_value(slice_str(bad[i])));
    }
}

static void broken_walks(void **state) {
    (void)state;
    const char *bad[] = {"[1 2]", "[{}{}]", "[1,]", "[,1]", "[1}", "{\"a\":1]", "{\"a\":1,}", "{\"a\" 1}", "{1:2}", "[1,2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        json_walk w;
        slice value;
        assert_true(json_enter(slice_str(bad[i]), &w));
        while (json_next(&w, NULL, &value)) {
        }
        assert_true(w.broken);
    }
}

static void numbers(void **state) {
    (void)state;
    const char *none[] = {"", "nan", "inf", "0x10", "1e999", "-", "\"1\"", "1 ", "[1]"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        assert_true(json_number(slice_str(none[i]), 7) == 7);
        assert_int_equal(json_whole(slice_str(none[i]), 0, 100, 7), 7);
    }
    assert_int_equal(json_whole(SLICE_LIT("12.9"), 0, 100, 7), 12);
    assert_int_equal(json_whole(SLICE_LIT("1e300"), 0, 100, 7), 7);
    assert_int_equal(json_whole(SLICE_LIT("-1"), 0, 100, 7), 7);
}

static void long_texts(void **state) {
    (void)state;
    buf out = buf_init(8);
    assert_false(json_text(SLICE_LIT("\"0123456789\""), &out));
    assert_int_equal(out.n, 0);
    buf_free(&out);
}

/* ---- values ---- */

static void order_of_types(void **state) {
    (void)state;
    const char *ascending[] = {NULL,    "null",   "false", "true", "-5",    "0",   "1.5", "9007199254740993", "\"\"",      "\"A\"",
                               "\"a\"", "\"aa\"", "[]",    "[1]",  "[1,2]", "[2]", "{}",  "{\"a\":1}",        "{\"a\":2}", "{\"b\":0}"};
    size_t n = sizeof ascending / sizeof *ascending;
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            buf x = buf_init(4096), y = buf_init(4096);
            doc_element a, b;
            assert_true(i == 0 || client__value_read(slice_str(ascending[i]), &x, &a));
            assert_true(k == 0 || client__value_read(slice_str(ascending[k]), &y, &b));
            int c = client__value_compare(i ? &a : NULL, k ? &b : NULL);
            assert_int_equal((c > 0) - (c < 0), (i > k) - (i < k));
            buf_free(&x);
            buf_free(&y);
        }
    }
}

static bool same(const char *a, const char *b) {
    buf x = buf_init(4096), y = buf_init(4096), s = buf_init(4096), t = buf_init(4096);
    doc_element e;
    assert_true(client__value_read(slice_str(a), &x, &e));
    client__value_canonical(&s, &e);
    assert_true(client__value_read(slice_str(b), &y, &e));
    client__value_canonical(&t, &e);
    bool equal = slice_eq(buf_view(&s), buf_view(&t));
    buf_free(&x);
    buf_free(&y);
    buf_free(&s);
    buf_free(&t);
    return equal;
}

static void canonical_texts(void **state) {
    (void)state;
    assert_true(same("1", "1.0"));
    assert_true(same("{\"a\":1,\"b\":[2]}", "{\"b\":[2.0],\"a\":1}"));
    assert_false(same("\"1\"", "1"));
    assert_false(same("[1,2]", "[2,1]"));
    assert_false(same("null", "false"));
    assert_false(same("[\"a\",\"b\"]", "[\"a\\\"1:b\"]"));
}

/* ---- signatures ---- */

static void signatures(void **state) {
    (void)state;
    buf out = buf_init(1024);
    sign_key *k = client__sign_key_new(SLICE_LIT("key"));
    client__sign(k, "GET", "docs", SLICE_LIT("dbs/D/colls/C/docs/1"), SLICE_LIT("Thu, 27 Apr 2017 00:51:12 GMT"), &out);
    client__sign_key_free(k);
    /* openssl dgst -sha256 -hmac key -binary | base64 of "get\ndocs\ndbs/D/colls/C/docs/1\nthu, 27 apr 2017 00:51:12 gmt\n\n" */
    buf_add_byte(&out, 0);
    assert_string_equal(out.p, "type%3Dmaster%26ver%3D1.0%26sig%3DJoZR5YPZpZ0pBw1XMCK9zKGctR4Y4LXU1Rq7X%2F5NHrU%3D");
    buf_clear(&out);
    client__percent(&out, SLICE_LIT("a/b c~\xC3\xA1"));
    assert_true(slice_eq(buf_view(&out), SLICE_LIT("a%2Fb%20c~%C3%A1")));
    buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(throttling_is_bounded),
        cmocka_unit_test(totals),
        cmocka_unit_test(what_may_have_been_written),
        cmocka_unit_test(gone_ranges),
        cmocka_unit_test(tokens_merge),
        cmocka_unit_test(tokens_are_kept),
        cmocka_unit_test(members),
        cmocka_unit_test(broken_texts),
        cmocka_unit_test(order_of_types),
        cmocka_unit_test(canonical_texts),
        cmocka_unit_test(broken_walks),
        cmocka_unit_test(numbers),
        cmocka_unit_test(long_texts),
        cmocka_unit_test(signatures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
