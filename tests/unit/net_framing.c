/* The two readers of heads: head.c, which accepts only ordinary ones, gives what http-parser gives. */
// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on

#include "framing_client.h"
#include "rounds.h"

static int make_names(void **state) {
    *state = http_names_new(framing_fields, FRAMING_FIELDS);
    return 0;
}

static int free_names(void **state) {
    http_names_free(*state);
    return 0;
}

#define HOST "Host: h\r\n"
#define END "\r\n"

/* ---- which head is read by whom ---- */

static void ordinary_heads_need_no_parser(void **state) {
    static const char *const requests[] = {
        "GET / HTTP/1.1\r\n" HOST END,
        "GET /a%20b/?c=d?e&f=\"<>\\^`{|}~ HTTP/1.1\r\nhOSt:   a.b:81   \r\n" END,
        "POST /x HTTP/1.1\r\n" HOST "Content-Length: 2\r\n" END "hi",
        "POST /x HTTP/1.1\r\n" HOST "CONTENT-LENGTH:0000002  \r\n" END "hi",
        "PUT /x HTTP/1.1\r\n" HOST "Content-Length: 0\r\nConnection: keep-alive\r\n" END,
        "PATCH /x HTTP/1.1\r\n" HOST "Connection: KEEP-alive \r\nConnection: close\r\n" END,
        "DELETE /x HTTP/1.1\r\nConnection: Close\r\n" HOST END,
        "HEAD /x HTTP/1.1\r\n" HOST "If-Match: \"*\"\r\nx-ms-date: \r\nX:\r\n" END,
        "OPTIONS /x HTTP/1.1\r\n" HOST "Origin: null\r\nAccess-Control-Request-Method: PUT\r\n" END,
        "MERGE /x HTTP/1.1\r\n" HOST "x: 1\r\nX: 2\r\nx:3\r\n" END,
        "GET /x HTTP/1.1\r\n" HOST "Authorization: \xC3\xA9\xFF:=;, \"(){}[]<>@?/\\\r\nOrigin:\r\n" END,
        "POST /x HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 2\r\n" END "hi",
        "POST /x HTTP/1.1\r\n" HOST "Content-Length: 999999999\r\n" END,
        "GET /x HTTP/1.1\r\n" HOST
        "x-ms-documentdb-responsecontinuationtokenlimitinkb-and-more: y\r\nConnectio: close\r\nContent-Length0: a\r\n" END,
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        framing_result r = framing_compare(slice_str(requests[i]), *state, false, i);
        assert_int_equal(r.ordinary, r.requests);
        assert_int_equal(r.requests, 1);
        framing_result_free(&r);
    }
}

static void other_heads_are_left_to_the_parser(void **state) {
    static const char *const requests[] = {
        /* request lines */
        "GET / HTTP/1.0\r\n" HOST END,
        "GET /\r\n" END,
        "GET * HTTP/1.1\r\n" HOST END,
        "GET http://other/ HTTP/1.1\r\n" HOST END,
        "GET /a#b HTTP/1.1\r\n" HOST END,
        "GET /a\xC3\xA9 HTTP/1.1\r\n" HOST END,
        "GET /a\tb HTTP/1.1\r\n" HOST END,
        "GET  / HTTP/1.1\r\n" HOST END,
        "GET /  HTTP/1.1\r\n" HOST END,
        "GET / HTTP/1.1 \r\n" HOST END,
        "GET / HTTP/1.1\n" HOST END,
        "GET / HTTP/2.1\r\n" HOST END,
        "get / HTTP/1.1\r\n" HOST END,
        "REPORT / HTTP/1.1\r\n" HOST END,
        "CONNECT h:80 HTTP/1.1\r\n" HOST END,
        "GETS / HTTP/1.1\r\n" HOST END,
        /* names */
        "GET / HTTP/1.1\r\n" HOST "a_b: c\r\n" END,
        "GET / HTTP/1.1\r\n" HOST "a b: c\r\n" END,
        "GET / HTTP/1.1\r\n" HOST "a : c\r\n" END,
        "GET / HTTP/1.1\r\n" HOST ": c\r\n" END,
        "GET / HTTP/1.1\r\n" HOST "a\r\n" END,
        "GET / HTTP/1.1\r\n" HOST "a\x11: c\r\n" END,
        "GET / HTTP/1.1\r\n" HOST "a(: c\r\n" END,
        "GET / HTTP/1.1\r\n" HOST "\xC3\xA9: c\r\n" END,
        /* values and line ends */
        "GET / HTTP/1.1\r\n" HOST "a:\tc\r\n" END,
        "GET / HTTP/1.1\r\n" HOST "a: b\tc\r\n" END,
        "GET / HTTP/1.1\r\n" HOST "a: b\r\n c\r\n" END,
        "GET / HTTP/1.1\r\n" HOST "a:\r\n c\r\n" END,
        "GET / HTTP/1.1\r\n" HOST "a: b\n" END,
        "GET / HTTP/1.1\r\n" HOST "a: b\rc: d\r\n" END,
        "GET / HTTP/1.1\r\n" HOST "a: b\x7F\r\n" END,
        "GET / HTTP/1.1\r\n" HOST "a: b\x01\r\n" END,
        "GET / HTTP/1.1\r\n" HOST "\n",
        "GET / HTTP/1.1\r\n" HOST "\rX",
        /* fields that need a decision */
        "GET / HTTP/1.1\r\n" END,
        "GET / HTTP/1.1\r\n" HOST HOST END,
        "GET / HTTP/1.1\r\n" HOST "Origin: a\r\nOrigin: a\r\n" END,
        "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n" END "x",
        "POST / HTTP/1.1\r\n" HOST "Content-Length:\r\n" END,
        "POST / HTTP/1.1\r\n" HOST "Content-Length: +1\r\n" END "x",
        "POST / HTTP/1.1\r\n" HOST "Content-Length: 1,1\r\n" END "x",
        "POST / HTTP/1.1\r\n" HOST "Content-Length: 1 1\r\n" END "x",
        "POST / HTTP/1.1\r\n" HOST "Content-Length: 0x1\r\n" END "x",
        "POST / HTTP/1.1\r\n" HOST "Content-Length: 1000000000\r\n" END "x",
        "POST / HTTP/1.1\r\n" HOST "Content-Length: 18446744073709551617\r\n" END "x",
        "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n" END "1\r\nx\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: gzip\r\n" END,
        "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n" END "1\r\nx\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n" END "1\r\nx\r\n0\r\n\r\n",
        "GET / HTTP/1.1\r\n" HOST "Connection: keep-alive, close\r\n" END,
        "GET / HTTP/1.1\r\n" HOST "Connection: close\r\nConnection: x\r\n" END,
        "GET / HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n" END,
        "GET / HTTP/1.1\r\n" HOST "Connection:\r\n" END,
        "GET / HTTP/1.1\r\n" HOST "Proxy-Connection: close\r\n" END,
        "GET / HTTP/1.1\r\n" HOST "Upgrade: h2c\r\n" END,
        "POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\nTransfer-Encodings: x\r\n" END, /* http-parser refuses this one */
        /* incomplete */
        "GET / HTTP/1.1\r\n" HOST,
        "GET / HTTP/1.1\r\n" HOST "\r",
        "GET / HTTP/1.1\r\n" HOST "a",
        "GET / HTTP/1.1\r\n" HOST "a: b",
        "GET / HTTP/1.",
        "GET",
    };
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        framing_result r = framing_compare(slice_str(requests[i]), *state, false, i);
        assert_int_equal(r.ordinary, 0);
        framing_result_free(&r);
    }
}

static void limits_are_those_of_the_parser(void **state) {
    static const struct {
        const char *before;
        unsigned filler;
        const char *after;
        bool ordinary;
    } cases[] = {
        {"GET /", 59, " HTTP/1.1\r\n" HOST END, true}, /* the limits are 60, 6 and 300 */
        {"GET /", 60, " HTTP/1.1\r\n" HOST END, false},
        {"GET / HTTP/1.1\r\n" HOST "a:b\r\na:b\r\na:b\r\na:b\r\na:", 1, "\r\n" END, true},
        {"GET / HTTP/1.1\r\n" HOST "a:b\r\na:b\r\na:b\r\na:b\r\na:b\r\na:", 1, "\r\n" END, false},
        {"GET / HTTP/1.1\r\n" HOST "a:", 300 - 16 - 9 - 2 - 4, "\r\n" END, true},
        {"GET / HTTP/1.1\r\n" HOST "a:", 300 - 16 - 9 - 2 - 4 + 1, "\r\n" END, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf b = buf_init(BUF_NO_LIMIT);
        buf_add_slice(&b, slice_str(cases[i].before));
        for (unsigned k = 0; k < cases[i].filler; k++) {
            buf_add_byte(&b, 'x');
        }
        buf_add_slice(&b, slice_str(cases[i].after));
        framing_result r = framing_compare(buf_view(&b), *state, true, i);
        assert_int_equal(r.requests, cases[i].ordinary);
        assert_int_equal(r.ordinary, cases[i].ordinary);
        framing_result_free(&r);
        buf_free(&b);
    }
}

static void too_many_known_fields(void **state) {
    buf b = buf_init(BUF_NO_LIMIT);
    buf_add_lit(&b, "GET / HTTP/1.1\r\nHost: h\r\n"); /* the front end asks for Host too */
    for (unsigned i = 1; i < HTTP_FOUND_MAX; i++) {
        buf_add_lit(&b, "x: y\r\n");
    }
    size_t most = b.n;
    buf_add_lit(&b, END);
    framing_result r = framing_compare(buf_view(&b), *state, false, 1);
    assert_int_equal(r.ordinary, 1);
    framing_result_free(&r);
    b.n = most;
    buf_add_lit(&b, "x: y\r\n" END);
    r = framing_compare(buf_view(&b), *state, false, 1);
    assert_int_equal(r.requests, 0);
    framing_result_free(&r);
    buf_free(&b);
}

/* ---- the same results ---- */

static const char insert[] = "POST /devstoreaccount1/items?timeout=30 HTTP/1.1\r\n"
                             "Authorization: SharedKeyLite devstoreaccount1:0123456789/+=\r\n"
                             "x-ms-date: Thu, 19 Nov 2026 18:00:00 GMT\r\n"
                             "Content-Type: application/json\r\nPrefer: return-no-content\r\n"
                             "Content-Length: 3\r\nHost: here:81\r\nConnection: keep-alive\r\n\r\nabc";

static void every_byte_at_every_place(void **state) {
    char text[sizeof insert];
    unsigned ordinary = 0, other = 0;
    memcpy(text, insert, sizeof insert);
    for (size_t at = 0; at < sizeof insert - 1; at++) {
        for (unsigned c = 0; c < 256; c += SANITIZED ? 1 + (unsigned)(at + c) % 3 : 1) {
            text[at] = (char)c;
            framing_result r = framing_compare_whole(slice_of(text, sizeof insert - 1), *state, false);
            r.ordinary ? ordinary++ : other++;
            framing_result_free(&r);
        }
        text[at] = insert[at];
    }
    assert_true(ordinary > 1000 && other > 1000);
}

static void every_split_in_two(void **state) {
    http_limits limits = framing_limits(false, false);
    framing_result whole = framing_run(SLICE_LIT(insert), *state, &limits, NULL);
    assert_int_equal(whole.ordinary, 1);
    assert_non_null(memmem(whole.log.p, whole.log.n, "abc|", 4));
    for (size_t at = 1; at < sizeof insert - 1; at++) {
        framing_client c = {.names = *state, .limits = &limits};
        c.in.own = c.result.log = c.result.reads = buf_init(BUF_NO_LIMIT);
        framing_feed(&c, insert, at);
        framing_feed(&c, insert + at, sizeof insert - 1 - at);
        framing_must_agree(&whole.log, &c.result.log, "split in two:");
        net_input_free(&c.in);
        framing_result_free(&c.result);
    }
    framing_result_free(&whole);
}

/* ---- random heads ---- */

#define ONE_OF(r, list) (list)[random_below((r), sizeof(list) / sizeof *(list))]

static void add_random_field(buf *b, random_source *r) {
    static const char *const usual[] = {"Origin",       "x",        "X-MS-Date", "Authorization", "Expect", "a-b",
                                        "Content-Type", "If-Match", "content"};
    static const char *const names[] = {
        "Host", "host", "Content-Length", "content-length", "Connection", "Transfer-Encoding", "Proxy-Connection", "Upgrade", "a_b"};
    static const char *const values[] = {"",     "0",      "2",           "h:81", "keep-alive", "close", "Close", "chunked", "100-continue",
                                         "null", "a b  c", "\xE2\x82\xAC"};
    static const char *const blanks[] = {"", "  ", "\t"}, *const ends[] = {" \r\n", "\n", "\r\n "};
    buf_add_slice(b, slice_str(random_below(r, 3) ? ONE_OF(r, usual) : ONE_OF(r, names)));
    buf_add_byte(b, ':');
    buf_add_slice(b, slice_str(random_below(r, 6) ? " " : ONE_OF(r, blanks)));
    buf_add_slice(b, slice_str(ONE_OF(r, values)));
    buf_add_slice(b, slice_str(random_below(r, 12) ? "\r\n" : ONE_OF(r, ends)));
}

static void add_random_request(buf *b, random_source *r) {
    static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "MERGE", "MOVE", "P"};
    static const char *const targets[] = {
        "/", "/a/b?c=d", "/%20\"{}", "*", "http://h/x", "/#", "/0123456789012345678901234567890123456789"};
    static const char *const versions[] = {" HTTP/1.0\r\n", " HTTP/1.1\n"};
    buf_add_slice(b, slice_str(ONE_OF(r, methods)));
    buf_add_byte(b, ' ');
    buf_add_slice(b, slice_str(ONE_OF(r, targets)));
    buf_add_slice(b, slice_str(random_below(r, 8) ? " HTTP/1.1\r\n" : ONE_OF(r, versions)));
    if (random_below(r, 8)) {
        buf_add_lit(b, HOST);
    }
    for (uint64_t n = random_below(r, 6); n; n--) {
        add_random_field(b, r);
    }
    buf_add_lit(b, END);
    if (random_below(r, 2)) {
        buf_add_lit(b, "2\r\nhi\r\n0\r\n\r\n");
    }
}

static void mutate(buf *b, random_source *r) {
    static const char bytes[] = "\r\n\t :;,\0\x01\x1F\x7F\x80\xFFHT/1.0?#%aZ@[`{-_'";
    size_t at = random_below(r, b->n);
    switch (random_below(r, 5)) {
    case 0:
        b->p[at] = bytes[random_below(r, sizeof bytes)];
        break;
    case 1:
        b->p[at] = (char)random_below(r, 256);
        break;
    case 2:
        memmove(b->p + at, b->p + at + 1, b->n - at - 1);
        b->n--;
        break;
    case 3:
        b->n = at + 1;
        break;
    default:
        buf_add_byte(b, b->p[at]);
        memmove(b->p + at + 1, b->p + at, b->n - at - 1);
    }
}

static void random_heads(void **state) {
    enum { MANY = 40000 };
    random_source r;
    random_seed(&r, 17);
    unsigned ordinary = 0, others = 0, refused = 0;
    for (unsigned i = 0; i < ROUNDS(MANY); i++) {
        buf b = buf_init(BUF_NO_LIMIT);
        add_random_request(&b, &r);
        if (random_below(&r, 3) == 0) {
            add_random_request(&b, &r);
        }
        for (uint64_t n = random_below(&r, 4) / 2; n && b.n > 1; n--) {
            mutate(&b, &r);
        }
        framing_result result = framing_compare(buf_view(&b), *state, random_below(&r, 2), random_u64(&r));
        ordinary += result.ordinary;
        others += result.requests - result.ordinary;
        refused += !result.requests;
        framing_result_free(&result);
        buf_free(&b);
    }
    print_message("requests: %u with ordinary heads, %u others; %u inputs without a request\n", ordinary, others, refused);
    assert_true(ordinary > ROUNDS(MANY) / 20 && others > ROUNDS(MANY) / 20 && refused > ROUNDS(MANY) / 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ordinary_heads_need_no_parser),
        cmocka_unit_test(other_heads_are_left_to_the_parser),
        cmocka_unit_test(limits_are_those_of_the_parser),
        cmocka_unit_test(too_many_known_fields),
        cmocka_unit_test(every_byte_at_every_place),
        cmocka_unit_test(every_split_in_two),
        cmocka_unit_test(random_heads),
    };
    return cmocka_run_group_tests(tests, make_names, free_names);
}
