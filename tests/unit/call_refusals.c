/* Calls that do not get their result, through the echo front end and a real socket: disconnects, server shutdown, throttling, faults,
 * authentication, bad input. Over a memory store and over RocksDB; with TESELA_HOMES=2 on two stores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "call_harness.h"
#include "rounds.h"

/* ---- clients that leave, a server that stops ---- */

static void a_client_that_leaves_is_not_waited_for(bool rocks) {
    enum { FOLLOWERS = 8 };
    world w;
    world_open(&w, rocks, false);
    client writer = client_open(&w), c = client_open(&w);
    fill(&writer);
    const char *from = position_now(&writer);
    for (size_t i = 0; i < FOLLOWERS; i++) { /* on one connection */
        begin_to_follow(&w, &c, from, 60000, i + 1);
    }
    leave(&c);
    AWAIT(waiting(&w) == 0);
    put(&writer, 1, 100);
    c = client_open(&w);
    uint32_t id;
    assert_int_equal(faults_add(w.faults, &(fault){.range = -1, .percent = 100, .delay_ms = 100}, &id), OK);
    for (size_t i = 0; i < READS + WRITES; i++) {
        send_json(&c, request(i, ""));
    }
    AWAIT(faults_hits(w.faults) >= READS + WRITES);
    leave(&c);
    AWAIT(net_server_stats(w.server).requests == 0);
    assert_true(faults_remove(w.faults, id));
    expect_request(&writer, 0, "", "OK");
    leave(&writer);
    world_close(&w);
}

static void a_server_that_stops_answers_what_is_in_flight(bool rocks) {
    enum { FOLLOWERS = 5 };
    world w;
    world_open(&w, rocks, false);
    client follows = client_open(&w), delayed = client_open(&w);
    fill(&follows);
    const char *from = position_now(&follows);
    for (size_t i = 0; i < FOLLOWERS; i++) {
        begin_to_follow(&w, &follows, from, 60000, i + 1);
    }
    uint32_t id;
    assert_int_equal(faults_add(w.faults, &(fault){.range = -1, .percent = 100, .delay_ms = 60000}, &id), OK);
    for (size_t i = 0; i < READS + WRITES; i++) {
        send_json(&delayed, request(i, ""));
    }
    AWAIT(faults_hits(w.faults) >= READS + WRITES);
    int64_t before = now_ms();
    world_stop(&w);
    assert_true(now_ms() - before < 20000);
    for (size_t i = 0; i < FOLLOWERS; i++) {
        expect_followed(&follows, "");
    }
    for (size_t i = 0; i < READS + WRITES; i++) {
        reply r = next_reply(&delayed);
        assert_true(strcmp(code_of(&r), "OK") == 0 || strcmp(code_of(&r), "E_UNAVAILABLE") == 0);
        reply_free(&r);
    }
    reply r = next_reply(&delayed);
    assert_true(r.ended);
    leave(&follows);
    leave(&delayed);
    world_close(&w);
}

/* ---- rejections ---- */

/* The call was throttled, or, of a write that is not atomic, its operation was. */
static bool is_throttled(const reply *r) {
    static const char code[] = "E_THROTTLED";
    return memmem(r->document.p, r->document.n, code, sizeof code) != NULL;
}

static void a_spent_share_is_told(bool rocks) {
    world w;
    world_open(&w, rocks, true);
    client c = client_open(&w);
    make_container(&c, "c", NULL, 400);
    put(&c, 1, 1);
    bool throttled = false;
    for (int i = 0; i < 2000 && !throttled; i++) { /* the clock stands still */
        reply r = ask_request(&c, 0, "");
        throttled = strcmp(code_of(&r), "E_THROTTLED") == 0;
        reply_free(&r);
    }
    assert_true(throttled);
    for (size_t i = 0; i < READS + WRITES; i++) {
        reply r = ask_request(&c, i, "");
        if (!is_throttled(&r)) {
            fail_msg("%s: %s", code_of(&r), request(i, ""));
        }
        assert_true(number_of(&r, "retry_ms") > 0);
        reply_free(&r);
    }
    EXPECT(&c, "OK", "{\"do\":\"usage\"," IN "}"); /* no charge */
    leave(&c);
    world_close(&w);
}

static void faults_hit_every_call(bool rocks) {
    world w;
    world_open(&w, rocks, false);
    client c = client_open(&w);
    fill(&c);
    uint32_t id;
    for (size_t i = 0; i < READS + WRITES; i++) {
        fault once = {.range = -1, .percent = 100, .count = 1, .code = E_UNAVAILABLE, .retry_after_ms = 7};
        once.operation = i < READS ? FAULT_READ : FAULT_WRITE;
        assert_int_equal(faults_add(w.faults, &once, &id), OK);
        reply r = ask_request(&c, i, "");
        assert_string_equal(code_of(&r), "E_UNAVAILABLE");
        assert_int_equal(number_of(&r, "retry_ms"), 7);
        reply_free(&r);
        expect_request(&c, i, "", "OK");
        fault late = {.range = -1, .percent = 100, .count = 1, .delay_ms = 30};
        assert_int_equal(faults_add(w.faults, &late, &id), OK);
        int64_t before = now_ms();
        expect_request(&c, i, "", "OK");
        assert_true(now_ms() - before >= 30);
    }
    assert_int_equal(faults_hits(w.faults), 2 * (READS + WRITES));
    assert_int_equal(faults_add(w.faults, &(fault){.range = -1, .percent = 100, .count = 2, .code = E_UNAVAILABLE}, &id), OK);
    EXPECT(&c, "E_UNAVAILABLE", "{\"do\":\"usage\"," IN "}");
    EXPECT(&c, "E_UNAVAILABLE", "{\"do\":\"changes\"," IN ",\"of\":{\"pk\":\"p2\"}}");
    EXPECT(&c, "OK", "{\"do\":\"usage\"," IN "}");
    leave(&c);
    world_close(&w);
}

static void what_was_seen_is_checked(bool rocks) {
    world w;
    world_open(&w, rocks, false);
    client c = client_open(&w);
    make_container(&c, "c", NULL, 400);
    put(&c, 1, 1);
    for (size_t i = 0; i < READS; i++) {
        expect_request(&c, i, ",\"range\":0,\"lsn\":1", "OK");
        expect_request(&c, i, ",\"range\":0,\"lsn\":1000000", "E_SESSION_NOT_AVAILABLE");
    }
    EXPECT(&c, "E_SESSION_NOT_AVAILABLE", "{\"do\":\"usage\"," IN ",\"range\":0,\"lsn\":1000000}");
    uint32_t id;
    fault late = {.range = -1, .percent = 100, .count = 1, .delay_ms = 5}; /* only a delay */
    assert_int_equal(faults_add(w.faults, &late, &id), OK);
    expect_request(&c, 0, ",\"range\":0,\"lsn\":1000000", "E_SESSION_NOT_AVAILABLE");
    leave(&c);
    world_close(&w);
}

/* ---- authentication and malformed requests ---- */

static void keys_are_asked_for(bool rocks) {
    world w;
    world_open(&w, rocks, false);
    client c = connect_only(&w);
    EXPECT(&c, "E_UNAUTHORIZED", "{\"do\":\"usage\"," IN "}");
    leave(&c);
    c = connect_only(&w);
    reply r = authenticate(&c, "d3Jvbmc=");
    assert_string_equal(code_of(&r), "E_UNAUTHORIZED");
    reply_free(&r);
    r = next_reply(&c);
    assert_true(r.ended);
    assert_int_equal(access_attempts_total(w.attempts, ATTEMPT_WRONG), 1);
    leave(&c);
    client owner = client_open(&w);
    fill(&owner);
    c = client_with(&w, READ_KEY);
    expect_request(&c, 0, "", "OK");
    for (size_t i = READS; i < READS + WRITES; i++) {
        expect_request(&c, i, "", "E_FORBIDDEN");
    }
    leave(&c);
    leave(&owner);
    world_close(&w);
}

static void wrong_requests_are_refused(bool rocks) {
    static const char *const wrong[] = {
        "{}",
        "{\"do\":\"dance\"}",
        "{\"do\":5}",
        "{\"do\":\"read\"," IN "}",
        "{\"do\":\"read\"," DB "\"at\":{\"pk\":\"p\",\"id\":\"i\"}}",
        "{\"do\":\"read\"," IN ",\"at\":{\"pk\":[1],\"id\":\"i\"}}",
        "{\"do\":\"read\"," IN ",\"at\":{\"pk\":\"p\"}}",
        "{\"do\":\"write\"," IN "}",
        "{\"do\":\"write\"," IN ",\"ops\":[5]}",
        "{\"do\":\"write\"," IN ",\"ops\":[{\"kind\":77,\"item\":{\"pk\":\"p\",\"id\":\"i\"}}]}",
        "{\"do\":\"write\"," IN ",\"ops\":[{\"kind\":0,\"item\":{\"pk\":\"p\",\"id\":5}}]}",
        "{\"do\":\"write\"," IN ",\"atomic\":true,\"ops\":[{\"kind\":4,\"item\":{\"pk\":\"p\",\"id\":\"i\"},\"edit\":63}]}",
        "{\"do\":\"write\"," IN ",\"atomic\":true,\"ops\":[{\"kind\":0,\"item\":{\"pk\":\"p\",\"id\":\"i\"},\"if\":63}]}",
        "{\"do\":\"find\"," IN ",\"where\":{\"at\":5}}",
        "{\"do\":\"find\"," IN ",\"order\":[{\"at\":[null]}]}",
        "{\"do\":\"find\"," IN ",\"where\":{\"filter\":55}}",
        "{\"do\":\"usage\"}",
        "{\"do\":\"feed\"}",
    };
    static const char *const pages[] = {"feed", "rows", "find", "follow"};
    world w;
    world_open(&w, rocks, false);
    client c = client_open(&w);
    fill(&c);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        reply r = ask(&c, "%s", wrong[i]);
        if (strcmp(code_of(&r), "E_BAD_REQUEST") != 0) {
            fail_msg("%s: %s", code_of(&r), wrong[i]);
        }
        reply_free(&r);
    }
    EXPECT(&c, "E_NOT_FOUND", "{\"do\":\"usage\"," DB "\"in\":\"none\"}");
    EXPECT(&c, "E_BAD_QUERY", "{\"do\":\"query\"," IN ",\"text\":\"SELEC\"}");
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        EXPECT(&c, "E_BAD_CONTINUATION", "{\"do\":\"%s\"," IN ",\"from\":{\"$binary\":{\"base64\":\"AAECAwQ=\",\"subType\":\"00\"}}}",
               pages[i]);
    }
    leave(&c);
    world_close(&w);
}

/* Requests of each verb with some bytes changed: each is answered, and the server keeps running. */
static void changed_bytes_do_no_harm(bool rocks) {
    world w;
    random_source dice;
    world_open(&w, rocks, false);
    client c = client_open(&w);
    fill(&c);
    random_seed(&dice, 20261118);
    for (int round = 0; round < ROUNDS(1200); round++) {
        const char *json = request((size_t)round % (READS + WRITES), "");
        bson_t *document = bson_new_from_json((const uint8_t *)json, -1, NULL);
        assert_non_null(document);
        char *bytes = arena_alloc(&w.h.arena, document->len);
        memcpy(bytes, bson_get_data(document), document->len);
        for (uint64_t n = 1 + random_below(&dice, 3); n; n--) {
            bytes[random_below(&dice, document->len)] = (char)random_below(&dice, 256);
        }
        assert_true(send_document(&c, bytes, document->len));
        bson_destroy(document);
        reply r = next_reply(&c);
        assert_false(r.ended);
        assert_int_equal(r.stream, c.stream);
        reply_free(&r);
    }
    assert_true(send_bytes(&c, "\4\0\0\0\1\0\0\0", 8)); /* shorter than its header */
    reply r = next_reply(&c);
    assert_string_equal(code_of(&r), "E_BAD_REQUEST");
    reply_free(&r);
    r = next_reply(&c);
    assert_true(r.ended);
    leave(&c);
    c = client_open(&w);
    expect_request(&c, 7, "", "OK");
    leave(&c);
    world_close(&w);
}

BOTH(a_client_that_leaves_is_not_waited_for)
BOTH(a_server_that_stops_answers_what_is_in_flight)
BOTH(a_spent_share_is_told)
BOTH(faults_hit_every_call)
BOTH(what_was_seen_is_checked)
BOTH(keys_are_asked_for)
BOTH(wrong_requests_are_refused)
BOTH(changed_bytes_do_no_harm)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_that_leaves_is_not_waited_for_test),
        cmocka_unit_test(a_server_that_stops_answers_what_is_in_flight_test),
        cmocka_unit_test(a_spent_share_is_told_test),
        cmocka_unit_test(faults_hit_every_call_test),
        cmocka_unit_test(what_was_seen_is_checked_test),
        cmocka_unit_test(keys_are_asked_for_test),
        cmocka_unit_test(wrong_requests_are_refused_test),
        cmocka_unit_test(changed_bytes_do_no_harm_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
