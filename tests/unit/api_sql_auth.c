/* Signatures: requests as the official JavaScript SDK (4.10) sends them, the documented example, and everything that must be rejected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "api/sql/auth.h"
#include "base/date.h"

static arena memory;
static op o;
static access_ring *ring;

static const char *const keys[ACCESS_KEY_COUNT] = {
    access_key_emulator,
    "dsZQi3KtZmCv1ljt3VNWNm7sQUF1y5rJfC6kv5JiwvW0EndXdDku/dkKBp8/ufDToSxLzR4y+O/0H/t4bQtVNw==",
    "cmVhZGVyIG9uZQ==",
    "cmVhZGVyIHR3bw==",
};

static int setup(void **state) {
    (void)state;
    memory = arena_init();
    op_init(&o, &memory, 0);
    ring = access_ring_new();
    for (access_key key = 0; key < ACCESS_KEY_COUNT; key++) {
        assert_true(access_ring_set(ring, key, slice_str(keys[key])));
    }
    return 0;
}

static int teardown(void **state) {
    (void)state;
    access_ring_free(ring);
    arena_free(&memory);
    return 0;
}

static slice or_none(const char *s) {
    return s ? slice_str(s) : SLICE_EMPTY;
}

static err check(const char *verb, const char *path, const char *x_ms_date, const char *date, slice authorization, access_key *key_out) {
    sql_route route;
    assert_int_equal(sql_route_parse(&memory, slice_str(path), &route), OK);
    sql_auth_request request = {.verb = slice_str(verb), .route = &route, .x_ms_date = or_none(x_ms_date), .date = or_none(date)};
    o.detail_n = 0;
    return sql_auth_check(&o, ring, &request, authorization, key_out);
}

static void expect_detail(const char *part) {
    o.detail[o.detail_n] = 0;
    assert_non_null(strstr(o.detail, part));
}

/* ---- requests of the SDK ---- */

static const char sdk_date[] = "Sun, 15 Nov 2026 09:23:45 GMT";
static const int64_t sdk_now = 1794734625;

static const struct {
    const char *verb;
    const char *path;
    const char *authorization;
} sdk_requests[] = {
    {"GET", "", "type%3Dmaster%26ver%3D1.0%26sig%3DsnUR%2Ba6DtYnuK4hiOvv2iX5TLTSrGfmeQzR98uukUJk%3D"},
    {"POST", "/dbs", "type%3Dmaster%26ver%3D1.0%26sig%3D6CdvziWy2frBtNcqv5m%2FWAs6PTmYI243jRgyfyA0g2A%3D"},
    {"GET", "/dbs", "type%3Dmaster%26ver%3D1.0%26sig%3Dh%2BC8EXG4u96Z78BEA7IypTlMk4YagbOD%2BjqZhIrB4oo%3D"},
    {"GET", "/dbs/db%201", "type%3Dmaster%26ver%3D1.0%26sig%3DxJ0Y1dATCPpw%2BOQEvn0XSpzM5GY6qDz4pt9jEU2GKUM%3D"},
    {"GET", "/dbs/DJB7AA==", "type%3Dmaster%26ver%3D1.0%26sig%3DTMoed5ZvnfCEzK4rEdubessuPiRepohn6nvasv8c5P0%3D"},
    {"POST", "/dbs/db%201/colls", "type%3Dmaster%26ver%3D1.0%26sig%3Dz9iVWqCng7AhZOs6Dd2W9zUrgvNoGtaPA0zjRyOjmLo%3D"},
    {"GET", "/dbs/Db/colls/Col%20%C3%B1", "type%3Dmaster%26ver%3D1.0%26sig%3DhH9RVqIOYc8wkwASHFk0%2FB1LENK%2B1XiJnbRMiOgBD0U%3D"},
    {"POST", "/dbs/Db/colls/Col%20%C3%B1/docs", "type%3Dmaster%26ver%3D1.0%26sig%3Dkt9qBUhk6xDYnHR7kVC63r1CLEE1g664U4Tz7LPOgNM%3D"},
    {"GET", "/dbs/Db/colls/Col%20%C3%B1/docs/%C3%8Dtem%201+2%25=&%E6%97%A5%E6%9C%AC",
     "type%3Dmaster%26ver%3D1.0%26sig%3DW%2FwrV6XuOobJ3%2Fvk2Ponuo34Q83%2Fd6sLq5LDIB6znT0%3D"},
    {"PUT", "/dbs/Db/colls/Col%20%C3%B1/docs/a%20b",
     "type%3Dmaster%26ver%3D1.0%26sig%3Dvu0Qij5Ygbtcq%2FCZW%2FVR1Z%2B1PwSBfzhrpjK%2BAez51G4%3D"},
    {"PATCH", "/dbs/Db/colls/Col%20%C3%B1/docs/i",
     "type%3Dmaster%26ver%3D1.0%26sig%3DVXylilc0ua%2B47c2nXIo%2F7F1xhybVv5rV%2FcrdehqEeRQ%3D"},
    {"DELETE", "/dbs/Db/colls/Col%20%C3%B1/docs/I", "type%3Dmaster%26ver%3D1.0%26sig%3DMSIqYbilg6F7jyoZ2WG3M4WJJQLgNqawQzsu9fJE3HM%3D"},
    {"GET", "/dbs/Db/colls/Col%20%C3%B1/pkranges", "type%3Dmaster%26ver%3D1.0%26sig%3DwDl9OcnW0ngokvWVTUcKhyCXsWAevCvd3NpXXb618Bk%3D"},
    {"POST", "/dbs/Db/colls/Col%20%C3%B1/sprocs/S%20p",
     "type%3Dmaster%26ver%3D1.0%26sig%3D76%2BNBEP6bIdCOY99BZ8MTmmhRi%2FaFyEM8sUJVmzomVQ%3D"},
    {"GET", "/dbs/Db/colls/Col%20%C3%B1/triggers/t",
     "type%3Dmaster%26ver%3D1.0%26sig%3DvbSYvxUBwUzq%2B23mtNjKXMZhuA%2Fh%2BGeeLyEEidahbeU%3D"},
    {"GET", "/dbs/Db/colls/Col%20%C3%B1/udfs", "type%3Dmaster%26ver%3D1.0%26sig%3DJgIYeNMhR19WcmZqVaG7L0PRABQILRTuU1J7Mrd6ZfU%3D"},
    {"DELETE", "/dbs/Db/colls/Col%20%C3%B1/conflicts/x",
     "type%3Dmaster%26ver%3D1.0%26sig%3Dp23SYajNq5h76O45K3g1P8CdeohxAITYJzeanwpI9aI%3D"},
    {"GET", "/dbs/Db/users/U", "type%3Dmaster%26ver%3D1.0%26sig%3D176tjRF6dLW%2Bcd0TNkPg%2Fgnn3E7yKSqHE4%2FbuLrVhEM%3D"},
    {"GET", "/dbs/Db/users/U/permissions/P", "type%3Dmaster%26ver%3D1.0%26sig%3Dt3vVIVvzWn3z%2B7x8A2rJjA8aSUu7PMmrBAtgDl%2BliCA%3D"},
    {"GET", "/dbs/Db/users/U/permissions", "type%3Dmaster%26ver%3D1.0%26sig%3Dw9UVvBytecJxtB8qYKipmE84v3bjY1E8AppSwHmk5z8%3D"},
    {"GET", "/offers", "type%3Dmaster%26ver%3D1.0%26sig%3DsaPTPjQbce5sA2fxyRy%2FKZwxTS3RmcJ3LK39RmeXGp0%3D"},
    {"GET", "/offers/uT2L", "type%3Dmaster%26ver%3D1.0%26sig%3DT%2BLWTlrTPfEy7wFC7Dw45lKBoqar13KEyk8T%2FGxOBW4%3D"},
    {"POST", "/dbs/Db/colls/Col%20%C3%B1/operations/partitionkeydelete",
     "type%3Dmaster%26ver%3D1.0%26sig%3DnrjORCG1N0eGD4dVOhwrpMHjwqooevUMhAAcNiJnXvI%3D"},
    {"GET", "/dbs/DJB7AA==/colls/DJB7AI1lZHo=/docs/DJB7AI1lZHoBAAAAAAAAAA==",
     "type%3Dmaster%26ver%3D1.0%26sig%3DrpFGuohd%2BFpTw17pVXTEJLaIfuO8Sd5mirDCYhBme2o%3D"},
};

static void the_sdks_own_signatures_are_accepted(void **state) {
    (void)state;
    o.now_s = sdk_now;
    for (size_t i = 0; i < sizeof sdk_requests / sizeof sdk_requests[0]; i++) {
        access_key key = ACCESS_KEY_COUNT;
        err code = check(sdk_requests[i].verb, sdk_requests[i].path, sdk_date, NULL, slice_str(sdk_requests[i].authorization), &key);
        if (code != OK) {
            print_message("%s %s\n", sdk_requests[i].verb, sdk_requests[i].path);
        }
        assert_int_equal(code, OK);
        assert_int_equal(key, ACCESS_KEY_PRIMARY);
    }
}

static void none_of_them_serves_another_request(void **state) {
    (void)state;
    o.now_s = sdk_now;
    size_t n = sizeof sdk_requests / sizeof sdk_requests[0];
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            access_key key = ACCESS_KEY_COUNT;
            err code = check(sdk_requests[i].verb, sdk_requests[i].path, sdk_date, NULL, slice_str(sdk_requests[j].authorization), &key);
            bool same = strcmp(sdk_requests[i].authorization, sdk_requests[j].authorization) == 0;
            assert_int_equal(code, same ? OK : E_UNAUTHORIZED);
        }
    }
}

/* ---- the documented example ---- */

static const char example_date[] = "Thu, 27 Apr 2017 00:51:12 GMT";
static const int64_t example_now = 1493254272;
static const char example_token[] = "type%3dmaster%26ver%3d1.0%26sig%3dc09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu%2bc%2bc%3d";

static void the_documented_example_is_accepted(void **state) {
    (void)state;
    access_key key = ACCESS_KEY_COUNT;
    o.now_s = example_now;
    assert_int_equal(check("GET", "/dbs/ToDoList", example_date, NULL, slice_str(example_token), &key), OK);
    assert_int_equal(key, ACCESS_KEY_SECONDARY);
    assert_int_equal(check("get", "dbs/ToDoList/", "thu, 27 apr 2017 00:51:12 gmt", "ignored", slice_str(example_token), &key), OK);
    slice plain = SLICE_LIT("type=master&ver=1.0&sig=c09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu+c+c=");
    assert_int_equal(check("GET", "/dbs/ToDoList", example_date, NULL, plain, &key), OK);
    slice twice = SLICE_LIT("TYPE=Master&Ver=1.0&Sig=c09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu+c+c=,Basic x");
    assert_int_equal(check("GET", "/dbs/ToDoList", example_date, NULL, twice, &key), OK);
}

static slice token_for(access_key key, const char *text) {
    buf out = buf_init(BUF_NO_LIMIT);
    buf_add_lit(&out, "type=master&ver=1.0&sig=");
    assert_true(access_ring_sign(ring, key, slice_str(text), &out));
    slice token = arena_copy(&memory, buf_view(&out));
    buf_free(&out);
    return token;
}

static void the_matching_key_is_told(void **state) {
    (void)state;
    o.now_s = example_now;
    for (access_key k = 0; k < ACCESS_KEY_COUNT; k++) {
        access_key key = ACCESS_KEY_COUNT;
        slice token = token_for(k, "get\ndbs\ndbs/ToDoList\nthu, 27 apr 2017 00:51:12 gmt\n\n");
        assert_int_equal(check("GET", "/dbs/ToDoList", example_date, NULL, token, &key), OK);
        assert_int_equal(key, k);
        assert_int_equal(access_key_is_read_only(key), k >= ACCESS_KEY_PRIMARY_READ_ONLY);
    }
}

static void a_date_field_alone_goes_to_the_fifth_line(void **state) {
    (void)state;
    access_key key = ACCESS_KEY_COUNT;
    o.now_s = example_now;
    slice token = token_for(ACCESS_KEY_PRIMARY, "get\ndbs\ndbs/ToDoList\n\nthu, 27 apr 2017 00:51:12 gmt\n");
    assert_int_equal(check("GET", "/dbs/ToDoList", NULL, example_date, token, &key), OK);
    assert_int_equal(check("GET", "/dbs/ToDoList", "", example_date, token, &key), OK);
    assert_int_equal(check("GET", "/dbs/ToDoList", example_date, example_date, token, &key), E_UNAUTHORIZED);
}

static void ids_may_be_signed_in_lower_case(void **state) {
    (void)state;
    static const struct {
        const char *path;
        const char *text;
    } cases[] = {
        {"/dbs/DJB7AA==", "get\ndbs\ndjb7aa==\nthu, 27 apr 2017 00:51:12 gmt\n\n"},
        {"/dbs/DJB7AA==/colls", "get\ncolls\ndjb7aa==\nthu, 27 apr 2017 00:51:12 gmt\n\n"},
        {"/dbs/DJB7AA==/colls/DJB7AI1lZHo=/docs", "get\ndocs\ndjb7ai1lzho=\nthu, 27 apr 2017 00:51:12 gmt\n\n"},
        {"/dbs/DJB7AA==/colls/DJB7AI1lZHo=/docs/DJB7AI1lZHoBAAAAAAAAAA==",
         "get\ndocs\ndjb7ai1lzhobaaaaaaaaaa==\nthu, 27 apr 2017 00:51:12 gmt\n\n"},
        {"/offers/uT2L", "get\noffers\nut2l\nthu, 27 apr 2017 00:51:12 gmt\n\n"},
    };
    o.now_s = example_now;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        access_key key = ACCESS_KEY_COUNT;
        assert_int_equal(check("GET", cases[i].path, example_date, NULL, token_for(ACCESS_KEY_PRIMARY, cases[i].text), &key), OK);
    }
    access_key key = ACCESS_KEY_COUNT;
    slice token = token_for(ACCESS_KEY_PRIMARY, "get\ndbs\ndbs/todolist\nthu, 27 apr 2017 00:51:12 gmt\n\n");
    assert_int_equal(check("GET", "/dbs/ToDoList", example_date, NULL, token, &key), E_UNAUTHORIZED); /* names keep their case */
}

/* ---- rejections ---- */

static void a_wrong_signature_is_shown_what_should_have_been_signed(void **state) {
    (void)state;
    access_key key = ACCESS_KEY_PRIMARY;
    o.now_s = example_now;
    slice token = token_for(ACCESS_KEY_PRIMARY, "something else");
    assert_int_equal(check("GET", "/dbs/d%20d/colls/C/docs", example_date, NULL, token, &key), E_UNAUTHORIZED);
    assert_int_equal(key, ACCESS_KEY_COUNT);
    expect_detail(
        "The input authorization token can't serve the request. The wrong key is being used or the expected payload is not built "
        "as per the protocol. For more info: https://aka.ms/cosmosdb-tsg-unauthorized. Server used the following payload to sign: "
        "'get\ndocs\ndbs/d d/colls/C\nthu, 27 apr 2017 00:51:12 gmt\n\n'");
}

static void signatures_of_no_shape_are_wrong_signatures(void **state) {
    (void)state;
    static const char *const signatures[] = {"x",
                                             "c09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu+c+c",
                                             "c09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu+c+d=",
                                             "c09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu c c=",
                                             "AAAA",
                                             "c09PEVJrgp2uQRkr934kFbTqhByc7TVr3OHyqlu+c+c=AAAA"};
    o.now_s = example_now;
    for (size_t i = 0; i < sizeof signatures / sizeof signatures[0]; i++) {
        access_key key = ACCESS_KEY_COUNT;
        slice token = arena_printf(&memory, "type=master&ver=1.0&sig=%s", signatures[i]);
        assert_int_equal(check("GET", "/dbs/ToDoList", example_date, NULL, token, &key), E_UNAUTHORIZED);
        expect_detail("Server used the following payload");
    }
}

static void a_long_link_is_cut_between_characters(void **state) {
    (void)state;
    char path[2000] = "/dbs/";
    access_key key = ACCESS_KEY_COUNT;
    for (int i = 0; i < 300; i++) {
        strcat(path, "\xE6\x97\xA5");
    }
    o.now_s = example_now;
    assert_int_equal(check("GET", path, example_date, NULL, token_for(ACCESS_KEY_PRIMARY, "x"), &key), E_UNAUTHORIZED);
    assert_true(o.detail_n < sizeof o.detail - 1);
    assert_memory_equal(o.detail + o.detail_n - 4, "\xE6\x97\xA5'", 4);
}

static void a_missing_token(void **state) {
    (void)state;
    access_key key = ACCESS_KEY_COUNT;
    assert_int_equal(check("GET", "/dbs", example_date, NULL, SLICE_EMPTY, &key), E_NO_AUTHORIZATION);
    assert_int_equal(check("GET", "/dbs", example_date, NULL, SLICE_LIT(""), &key), E_NO_AUTHORIZATION);
}

static void tokens_of_bad_format(void **state) {
    (void)state;
    static const char *const tokens[] = {
        "x",
        "Bearer abc",
        "type=master",
        "type=master&ver=1.0",
        "type=master&ver=1.0&",
        "type=master&ver=1.0&sig=",
        "type=master&ver=&sig=x",
        "type=&ver=1.0&sig=x",
        "type=master&sig=x&ver=1.0",
        "type=master&ver=2.0&sig=x",
        "typ=master&ver=1.0&sig=x",
        "type%3Dmaster%26ver%3D1.0%26sig%3",
        "type%3Dmaster%26ver%3D1.0%26sig%3Dx%",
        "type%3Dmaster%26ver%3D1.0%26sig%3Dx%G0",
        "&&",
        "%",
    };
    o.now_s = example_now;
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        access_key key = ACCESS_KEY_COUNT;
        assert_int_equal(check("GET", "/dbs/ToDoList", example_date, NULL, slice_str(tokens[i]), &key), E_BAD_AUTHORIZATION);
    }
    static char huge[20000];
    access_key key = ACCESS_KEY_COUNT;
    memset(huge, 'a', sizeof huge);
    assert_int_equal(check("GET", "/dbs/ToDoList", example_date, NULL, slice_of(huge, sizeof huge), &key), E_BAD_AUTHORIZATION);
}

static void other_kinds_of_tokens_are_named(void **state) {
    (void)state;
    static const char *const types[] = {"resource", "aad", "sas"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        access_key key = ACCESS_KEY_COUNT;
        slice token = arena_printf(&memory, "type=%s&ver=1.0&sig=abc;def", types[i]);
        assert_int_equal(check("GET", "/dbs", example_date, NULL, token, &key), E_UNAUTHORIZED);
        expect_detail(types[i]);
        expect_detail("not accepted here");
    }
    access_key key = ACCESS_KEY_COUNT;
    assert_int_equal(check("GET", "/dbs", example_date, NULL, SLICE_LIT("type=system&ver=1.0&sig=abc;def"), &key), E_BAD_AUTHORIZATION);
}

static void resource_tokens_are_told_from_other_authorizations(void **state) {
    (void)state;
    static const char *const others[] = {"",
                                         "type=master&ver=1.0&sig=x",
                                         "type=resource",
                                         "type=resource&ver=2.0&sig=x",
                                         "type=resource&ver=1",
                                         "ver=1&type=resource&sig=x",
                                         "type=resources&ver=1&sig=x",
                                         "type=resource&ver=1&sig=",
                                         "%"};
    sql_authorization authorization;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        err code = sql_auth_read(&o, slice_str(others[i]), &authorization);
        assert_int_equal(code == OK, i == 1);
        assert_false(authorization.is_token);
    }
    assert_int_equal(sql_auth_read(&o, SLICE_LIT("type%3Dresource%26ver%3D1.0%26sig%3Da%3Bb"), &authorization), OK);
    assert_true(authorization.is_token && slice_eq(authorization.signature, SLICE_LIT("a;b")));
}

static void tokens_live_for_fifteen_minutes(void **state) {
    (void)state;
    static const struct {
        int64_t seconds;
        err code;
    } cases[] = {{0, OK}, {899, OK}, {900, OK}, {901, E_UNAUTHORIZED}, {-900, OK}, {-901, E_UNAUTHORIZED}, {86400, E_UNAUTHORIZED}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        access_key key = ACCESS_KEY_COUNT;
        o.now_s = example_now + cases[i].seconds;
        assert_int_equal(check("GET", "/dbs/ToDoList", example_date, NULL, slice_str(example_token), &key), cases[i].code);
    }
    expect_detail(
        "The authorization token is not valid at the current time. Please create another token and retry (token start time: Thu, 27 Apr "
        "2017 00:51:12 GMT, token expiry time: Thu, 27 Apr 2017 01:06:12 GMT, current server time: Fri, 28 Apr 2017 00:51:12 GMT).");
}

static void dates_are_required_and_read_strictly(void **state) {
    (void)state;
    static const char *const bad[] = {
        "Thu, 27 Apr 2017 00:51:12",     "Thu, 27 Apr 2017 00:51:12 PDT", "Thu, 27 Apr 2017 0:51:12 GMT",  "Fri, 27 Apr 2017 00:51:12 GMT",
        "Thu, 31 Apr 2017 00:51:12 GMT", "Thu, 00 Apr 2017 00:51:12 GMT", "Thu, 27 Foo 2017 00:51:12 GMT", "Thu, 27 Apr 2017 24:51:12 GMT",
        "Thu, 27 Apr 2017 00:60:12 GMT", "Thu, 27 Apr 2017 00:51:60 GMT", "Thu, 27 Apr 1917 00:51:12 GMT", "Thu, 27 Apr 2017 00:51:12 GMT ",
        "2017-04-27T00:51:12.0000000Z.", "Thu; 27 Apr 2017 00:51:12 GMT", "Thu, -7 Apr 2017 00:51:12 GMT", "x"};
    access_key key = ACCESS_KEY_COUNT;
    o.now_s = example_now;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(check("GET", "/dbs/ToDoList", bad[i], NULL, slice_str(example_token), &key), E_UNAUTHORIZED);
        expect_detail("The input date header is invalid format. Please pass in RFC 1123 style date format.");
    }
    assert_int_equal(check("GET", "/dbs/ToDoList", NULL, NULL, slice_str(example_token), &key), E_UNAUTHORIZED);
    expect_detail("Authorization token mandates Date headers.");
}

static void every_day_is_read_as_the_calendar_has_it(void **state) {
    (void)state;
    for (int64_t day = 0; day < 60000; day += 13) {
        char text[40];
        struct tm parts;
        time_t t = (time_t)(day * 86400 + day % 86400);
        int64_t seconds = 0;
        gmtime_r(&t, &parts);
        strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &parts);
        assert_true(date_parse_http(slice_str(text), &seconds));
        assert_int_equal(seconds, t);
    }
    int64_t seconds = 0;
    assert_true(date_parse_http(SLICE_LIT("Thu, 29 Feb 2024 23:59:59 GMT"), &seconds));
    assert_true(date_parse_http(SLICE_LIT("Tue, 29 Feb 2000 23:59:59 GMT"), &seconds));
    assert_false(date_parse_http(SLICE_LIT("Wed, 29 Feb 2023 23:59:59 GMT"), &seconds));
    assert_false(date_parse_http(SLICE_LIT("Mon, 29 Feb 2100 23:59:59 GMT"), &seconds));
}

static void keys_must_be_base64(void **state) {
    (void)state;
    access_ring *empty = access_ring_new();
    char *long_key = arena_zero(&memory, 500);
    memset(long_key, 'A', 400);
    assert_false(access_ring_set(empty, ACCESS_KEY_PRIMARY, SLICE_LIT("")));
    assert_false(access_ring_set(empty, ACCESS_KEY_PRIMARY, SLICE_LIT("not base64!")));
    assert_false(access_ring_set(empty, ACCESS_KEY_PRIMARY, slice_str(long_key)));
    buf out = buf_init(BUF_NO_LIMIT);
    assert_false(access_ring_sign(empty, ACCESS_KEY_PRIMARY, SLICE_LIT("x"), &out));
    access_ring_free(empty);
    access_ring_free(NULL);
    buf_free(&out);
}

static void a_key_itself_is_found_in_the_ring(void **state) {
    (void)state;
    access_key found;
    for (access_key key = 0; key < ACCESS_KEY_COUNT; key++) {
        assert_true(access_ring_find(ring, slice_str(keys[key]), &found));
        assert_int_equal(found, key);
    }
    static const char *const others[] = {"", "not base64!", "cmVhZGVyIG9uZ", "cmVhZGVyIG9uZT==", "cmVhZGVyIHR3bwE=", "AAAA", "cmVhZGVy"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(access_ring_find(ring, slice_str(others[i]), &found));
        assert_int_equal(found, ACCESS_KEY_COUNT);
    }
    access_ring *empty = access_ring_new();
    assert_false(access_ring_find(empty, slice_str(keys[0]), &found));
    assert_false(access_ring_find(empty, SLICE_LIT("AA=="), &found));
    access_ring_free(empty);
}

/* RFC 4231, test case 6: a key longer than a block is hashed first. */
static void long_keys_are_hashed_first(void **state) {
    (void)state;
    buf text = buf_init(BUF_NO_LIMIT);
    buf out = buf_init(BUF_NO_LIMIT);
    for (int i = 0; i < 43; i++) {
        buf_add_lit(&text, "qqqq"); /* AA AA AA */
    }
    buf_add_lit(&text, "qqo="); /* 131 bytes in all */
    assert_true(access_ring_set(ring, ACCESS_KEY_PRIMARY, buf_view(&text)));
    assert_true(access_ring_sign(ring, ACCESS_KEY_PRIMARY, SLICE_LIT("Test Using Larger Than Block-Size Key - Hash Key First"), &out));
    assert_true(slice_eq(buf_view(&out), SLICE_LIT("YOQxWR7gtn8Niiaqy/W3f44LxiE3KMUUBUYEDw7jf1Q=")));
    buf_free(&text);
    buf_free(&out);
}

/* Prints a figure; does not assert the speed, since sanitizers run it too. */
static void a_check_is_quick(void **state) {
    (void)state;
    enum { ROUNDS = 20000 };
    struct timespec from;
    struct timespec to;
    access_key key = ACCESS_KEY_COUNT;
    slice token = slice_str(sdk_requests[0].authorization);
    const char *path = sdk_requests[0].path;
    const char *verb = sdk_requests[0].verb;
    for (size_t i = 0; i < sizeof sdk_requests / sizeof sdk_requests[0]; i++) {
        if (strstr(sdk_requests[i].path, "/docs/a%20b")) {
            token = slice_str(sdk_requests[i].authorization);
            path = sdk_requests[i].path;
            verb = sdk_requests[i].verb;
        }
    }
    o.now_s = sdk_now;
    sql_route route;
    sql_auth_request request = {.verb = slice_str(verb), .route = &route, .x_ms_date = slice_str(sdk_date)};
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < ROUNDS; i++) {
        arena_reset(&memory);
        assert_int_equal(sql_route_parse(&memory, slice_str(path), &route), OK);
        assert_int_equal(sql_auth_check(&o, ring, &request, token, &key), OK);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    double ns = ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / ROUNDS;
    print_message("routing and checking a request: %.0f ns\n", ns);
    assert_true(ns < 100000);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(the_sdks_own_signatures_are_accepted),
        TEST(none_of_them_serves_another_request),
        TEST(the_documented_example_is_accepted),
        TEST(the_matching_key_is_told),
        TEST(a_date_field_alone_goes_to_the_fifth_line),
        TEST(ids_may_be_signed_in_lower_case),
        TEST(a_wrong_signature_is_shown_what_should_have_been_signed),
        TEST(signatures_of_no_shape_are_wrong_signatures),
        TEST(a_long_link_is_cut_between_characters),
        TEST(a_missing_token),
        TEST(tokens_of_bad_format),
        TEST(other_kinds_of_tokens_are_named),
        TEST(resource_tokens_are_told_from_other_authorizations),
        TEST(tokens_live_for_fifteen_minutes),
        TEST(dates_are_required_and_read_strictly),
        TEST(every_day_is_read_as_the_calendar_has_it),
        TEST(keys_must_be_base64),
        TEST(a_key_itself_is_found_in_the_ring),
        TEST(long_keys_are_hashed_first),
        TEST(a_check_is_quick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
