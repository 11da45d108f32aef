/* Every call, through the echo front end and a real socket: results, splits between pages, transactions, followers. Over a memory store and
 * over RocksDB; with TESELA_HOMES=2 on two stores. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "call_harness.h"

/* ---- results of each call ---- */

static void items_are_read_and_written(client *c) {
    reply r = ask(c, "{\"do\":\"read\"," IN ",\"at\":{\"pk\":\"p2\",\"id\":\"i07\"}}");
    assert_string_equal(values_of(&r, "v"), "7 ");
    assert_true(number_of(&r, "lsn") > 0);
    reply_free(&r);
    EXPECT(c, "E_NOT_FOUND", "{\"do\":\"read\"," IN ",\"at\":{\"pk\":\"p2\",\"id\":\"none\"}}");
    r = ask(c,
            "{\"do\":\"write\"," IN ",\"atomic\":true,\"ops\":["
            "{\"kind\":%d,\"item\":{\"id\":\"i07\",\"pk\":\"p2\"},\"edit\":%d,\"with\":{\"operations\":[{\"op\":\"incr\",\"path\":\"/v\","
            "\"value\":100}]}},{\"kind\":%d,\"item\":{\"id\":\"new\",\"pk\":\"p2\"},\"if\":%d}]}",
            ITEM_EDIT, ITEM_EDIT_PATCH, ITEM_CREATE, ITEM_CONDITION_ABSENT);
    assert_string_equal(code_of(&r), "OK");
    assert_int_equal(rows_of(&r), 2);
    assert_string_equal(values_of(&r, "v"), "107 ");
    reply_free(&r);
    EXPECT(c, "OK", "{\"do\":\"write\"," IN ",\"ops\":[{\"kind\":%d,\"item\":{\"id\":\"new\",\"pk\":\"p2\"}}]}", ITEM_DELETE);
    put(c, 7, 7);
}

/* Reads all pages of a verb; returns the property of every row, in order. */
static const char *all_pages(client *c, const char *verb, const char *name, void (*between)(world *w), world *w) {
    static char all[8192];
    char json[32768];
    size_t pages = 0;
    const char *from = "";
    all[0] = 0;
    for (bool more = true; more; pages++) {
        snprintf(json, sizeof json, "{%s,\"max\":7%s}", verb, from);
        reply r = ask(c, "%s", json);
        assert_string_equal(code_of(&r), "OK");
        assert_true(pages < 200);
        strcat(all, values_of(&r, name));
        from = next_of(&r);
        more = from[0] && (strstr(verb, "follow") == NULL || rows_of(&r));
        reply_free(&r);
        if (pages == 1 && between) {
            between(w);
        }
    }
    assert_true(pages > 2);
    return all;
}

static int compare_words(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Each item once, in any order. */
static void expect_all_ids(const char *ids) {
    char copy[8192], *words[2 * ITEMS], *rest = NULL;
    size_t n = 0;
    snprintf(copy, sizeof copy, "%s", ids);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        assert_true(n < 2 * ITEMS);
        words[n++] = word;
    }
    if (n != ITEMS) {
        fail_msg("%zu ids: %s", n, ids);
    }
    qsort(words, n, sizeof *words, compare_words);
    for (int i = 0; i < ITEMS; i++) {
        char id[16];
        snprintf(id, sizeof id, "i%02d", i);
        assert_string_equal(words[i], id);
    }
}

static void expect_sorted(const char *numbers, bool down) {
    long last = down ? ITEMS : -1, value, n = 0;
    for (char *end; (value = strtol(numbers, &end, 10)), end != numbers; numbers = end, n++) {
        assert_int_equal(value, down ? last - 1 : last + 1);
        last = value;
    }
    assert_int_equal(n, ITEMS);
}

static void pages_give_each_item_once(client *c, world *w, void (*between)(world *w)) {
    expect_all_ids(all_pages(c, "\"do\":\"feed\"," IN, "id", between, w));
    expect_all_ids(all_pages(c, "\"do\":\"rows\"," IN, "id", between, w));
    expect_all_ids(all_pages(c, "\"do\":\"find\"," IN, "id", between, w));
    expect_all_ids(all_pages(c, "\"do\":\"follow\"," IN, "id", between, w));
    expect_sorted(all_pages(c, "\"do\":\"find\"," IN ",\"order\":[{\"at\":[\"v\"]}]", "v", between, w), false);
    expect_sorted(all_pages(c, "\"do\":\"find\"," IN ",\"order\":[{\"at\":[\"v\"],\"down\":true}]", "v", between, w), true);
}

static void rows_come_in_key_order(client *c) {
    reply r = ask(c, "{\"do\":\"rows\"," IN ",\"of\":{\"pk\":\"p3\"},\"max\":3}");
    assert_string_equal(values_of(&r, "id"), "i03 i08 i13 ");
    reply_free(&r);
    r = ask(c, "{\"do\":\"rows\"," IN ",\"of\":{\"pk\":\"p3\"},\"max\":3,\"down\":true}");
    assert_string_equal(values_of(&r, "id"), "i38 i33 i28 ");
    reply_free(&r);
    make_container(c, "t", "{\"typed\":true,\"key\":[{\"path\":\"/n\"}],\"clustered\":true}", 400);
    for (int i = 10; i > 0; i--) {
        EXPECT(c, "OK", "{\"do\":\"write\"," DB "\"in\":\"t\",\"ops\":[{\"kind\":%d,\"item\":{\"pk\":1,\"n\":%d}}]}", ITEM_CREATE, i * 3);
    }
    r = ask(c, "{\"do\":\"rows\"," DB "\"in\":\"t\",\"of\":{\"pk\":1},\"ge\":[10],\"max\":4}");
    assert_string_equal(values_of(&r, "n"), "12 15 18 21 ");
    reply_free(&r);
}

static void conditions_find_items(client *c) {
    reply r = ask(c, "{\"do\":\"find\"," IN ",\"where\":{\"at\":[\"v\"],\"ge\":10,\"lt\":13},\"order\":[{\"at\":[\"v\"]}]}");
    assert_string_equal(values_of(&r, "v"), "10 11 12 ");
    reply_free(&r);
    r = ask(c, "{\"do\":\"find\"," IN ",\"of\":{\"pk\":\"p0\"},\"where\":{\"at\":[\"v\"],\"in\":[5,6,35]}}");
    assert_string_equal(values_of(&r, "v"), "5 35 ");
    reply_free(&r);
    r = ask(c, "{\"do\":\"query\"," IN ",\"text\":\"SELECT VALUE COUNT(1) FROM c WHERE c.v >= 20\"}");
    assert_string_equal(text_of(&r, "json"), "20");
    reply_free(&r);
}

static void changes_are_told(client *c) {
    reply r = ask(c, "{\"do\":\"changes\"," IN ",\"of\":{\"pk\":\"p4\"},\"max\":100}");
    assert_int_equal(rows_of(&r), ITEMS / PARTITIONS);
    int64_t after = number_of(&r, "after");
    reply_free(&r);
    r = ask(c, "{\"do\":\"changes\"," IN ",\"of\":{\"pk\":\"p4\"},\"after\":{\"$numberLong\":\"%ld\"}}", (long)after);
    assert_int_equal(rows_of(&r), 0);
    reply_free(&r);
    EXPECT(c, "E_RANGE_GONE", "{\"do\":\"changes\"," IN "}"); /* the call is for one range, and there are three */
}

static void scripts_run(world *w, client *c) {
    script_creation make = {
        .database = harness_name("d"),
        .container = harness_name("c"),
        .kind = ACCOUNT_PROCEDURE,
        .settings =
            harness_bson(&w->h, "{\"id\":\"hello\",\"body\":\"function (who) { getContext().getResponse().setBody('hello, ' + who); }\"}"),
    };
    assert_int_equal(harness_change(&w->h, &make, account_create_script), OK);
    account_script_give(make.script_out);
    reply r = ask(c, "{\"do\":\"run\"," IN ",\"of\":{\"pk\":\"p1\"},\"script\":\"hello\",\"with\":\"[\\\"echo\\\"]\"}");
    assert_string_equal(code_of(&r), "OK");
    assert_string_equal(text_of(&r, "json"), "\"hello, echo\"");
    reply_free(&r);
    EXPECT(c, "E_NOT_FOUND", "{\"do\":\"run\"," IN ",\"of\":{\"pk\":\"p1\"},\"script\":\"other\"}");
}

static void a_repeated_write_is_applied_once(client *c) {
    EXPECT(c, "E_NOT_FOUND", "{\"do\":\"receipt\"," IN ",\"key\":\"w1\"}");
    for (int i = 0; i < 2; i++) { /* a create that is repeated does not conflict with itself */
        EXPECT(c, "OK",
               "{\"do\":\"write\"," IN ",\"ops\":[{\"kind\":%d,\"item\":{\"id\":\"r\",\"pk\":\"p1\"},\"receipt\":\"w1\"}],\"atomic\":true}",
               ITEM_CREATE);
    }
    reply r = ask(c, "{\"do\":\"receipt\"," IN ",\"key\":\"w1\"}");
    assert_string_equal(code_of(&r), "OK");
    reply_free(&r);
    EXPECT(c, "OK", "{\"do\":\"write\"," IN ",\"ops\":[{\"kind\":%d,\"item\":{\"id\":\"r\",\"pk\":\"p1\"}}],\"atomic\":true}", ITEM_DELETE);
}

static void the_rest(client *c) {
    reply r = ask(c, "{\"do\":\"usage\"," IN "}");
    assert_int_equal(number_of(&r, "items"), ITEMS);
    assert_int_equal(number_of(&r, "partitions"), PARTITIONS);
    assert_int_equal(number_of(&r, "ranges"), 3);
    reply_free(&r);
    r = ask(c, "{\"do\":\"attach\"," IN ",\"at\":{\"pk\":\"p1\",\"id\":\"i01\"},\"item\":{\"id\":\"photo\",\"size\":3}}");
    assert_string_equal(code_of(&r), "OK");
    reply_free(&r);
    r = ask(c, "{\"do\":\"attachments\"," IN ",\"at\":{\"pk\":\"p1\",\"id\":\"i01\"}}");
    assert_string_equal(values_of(&r, "size"), "3 ");
    reply_free(&r);
    EXPECT(c, "E_OWNER_NOT_FOUND", "{\"do\":\"attachments\"," IN ",\"at\":{\"pk\":\"p1\",\"id\":\"none\"}}");
    r = ask(c, "{\"do\":\"work\",\"with\":{\"n\":5}}");
    assert_string_equal(values_of(&r, "n"), "5 ");
    reply_free(&r);
}

static void every_call_answers(bool rocks) {
    world w;
    world_open(&w, rocks, false);
    client c = client_open(&w);
    fill(&c);
    items_are_read_and_written(&c);
    pages_give_each_item_once(&c, &w, NULL);
    rows_come_in_key_order(&c);
    conditions_find_items(&c);
    changes_are_told(&c);
    a_repeated_write_is_applied_once(&c);
    the_rest(&c);
    scripts_run(&w, &c);
    leave(&c);
    world_close(&w);
}

static void splits_and_merges_between_pages(bool rocks) {
    world w;
    world_open(&w, rocks, false);
    client c = client_open(&w);
    fill(&c);
    pages_give_each_item_once(&c, &w, reshape);
    leave(&c);
    world_close(&w);
}

/* ---- transactions ---- */

static void write_within(client *c, int i, int v) {
    EXPECT(c, "OK", "{\"do\":\"within\"," IN ",\"op\":{\"kind\":%d,\"item\":{\"id\":\"i%02d\",\"pk\":\"p%d\",\"v\":%d}}}", ITEM_UPSERT, i,
           i % PARTITIONS, v);
}

static void expect_item(client *c, const char *verb, int i, const char *v) {
    reply r = ask(c, "{\"do\":\"%s\"," IN ",\"at\":{\"id\":\"i%02d\",\"pk\":\"p%d\"}}", verb, i, i % PARTITIONS);
    assert_string_equal(code_of(&r), "OK");
    assert_string_equal(values_of(&r, "v"), v);
    reply_free(&r);
}

static void a_transaction_is_seen_when_it_is_committed(bool rocks) {
    world w;
    world_open(&w, rocks, false);
    client c = client_open(&w), other = client_open(&w);
    fill(&c);
    EXPECT(&c, "E_BAD_REQUEST", "{\"do\":\"within\"," IN "}");
    EXPECT(&c, "OK", "{\"do\":\"begin\"}");
    EXPECT(&c, "E_BAD_REQUEST", "{\"do\":\"begin\"}");
    write_within(&c, 1, 100);
    write_within(&c, 6, 600);
    expect_item(&c, "within", 1, "100 ");
    expect_item(&other, "read", 1, "1 ");
    reply r = ask(&c, "{\"do\":\"within\"," IN ",\"of\":{\"pk\":\"p1\"},\"max\":3}");
    assert_string_equal(values_of(&r, "v"), "100 600 11 ");
    reply_free(&r);
    EXPECT(&c, "OK", "{\"do\":\"within\"," IN "}");
    EXPECT(&c, "OK", "{\"do\":\"end\"}");
    expect_item(&other, "read", 1, "100 ");
    expect_item(&other, "read", 6, "600 ");
    leave(&c);
    leave(&other);
    world_close(&w);
}

/* A conflicting commit fails with E_RETRY_WITH; a client that disconnects has written nothing; a server can stop with a transaction
 * open. */
static void transactions_that_come_to_nothing(bool rocks) {
    world w;
    world_open(&w, rocks, false);
    client c = client_open(&w), other = client_open(&w), left = client_open(&w);
    fill(&c);
    EXPECT(&c, "OK", "{\"do\":\"begin\"}");
    EXPECT(&left, "OK", "{\"do\":\"begin\"}");
    write_within(&c, 2, 200);
    write_within(&left, 3, 300);
    put(&other, 2, 222);
    EXPECT(&c, "E_RETRY_WITH", "{\"do\":\"within\"," IN "}");
    EXPECT(&c, "OK", "{\"do\":\"end\"}");
    leave(&left);
    expect_item(&other, "read", 2, "222 ");
    expect_item(&other, "read", 3, "3 ");
    EXPECT(&other, "OK", "{\"do\":\"begin\"}");
    write_within(&other, 4, 400);
    world_stop(&w);
    leave(&c);
    leave(&other);
    world_close(&w);
}

/* ---- following ---- */

static void followers_are_woken(bool rocks) {
    enum { FOLLOWERS = 20 };
    world w;
    world_open(&w, rocks, false);
    client writer = client_open(&w), followers[FOLLOWERS];
    fill(&writer);
    const char *from = position_now(&writer);
    for (size_t i = 0; i < FOLLOWERS; i++) {
        followers[i] = client_open(&w);
        begin_to_follow(&w, &followers[i], from, 60000, i + 1);
    }
    put(&writer, 3, 300);
    for (size_t i = 0; i < FOLLOWERS; i++) {
        expect_followed(&followers[i], "300 ");
        leave(&followers[i]);
    }
    assert_int_equal(waiting(&w), 0);
    leave(&writer);
    world_close(&w);
}

/* Spurious wakes and splits do not end a wait; a timeout does, and so does the deletion of the container. */
static void a_follower_waits_for_changes_only(bool rocks) {
    world w;
    world_open(&w, rocks, false);
    client c = client_open(&w), writer = client_open(&w);
    fill(&writer);
    const char *from = position_now(&c);
    int64_t before = now_ms();
    reply r = ask(&c, "{\"do\":\"follow\"," IN ",\"wait_ms\":120%s}", from);
    assert_string_equal(code_of(&r), "OK");
    assert_int_equal(rows_of(&r), 0);
    assert_true(now_ms() - before >= 120);
    from = next_of(&r);
    reply_free(&r);
    begin_to_follow(&w, &c, from, 60000, 1);
    EXPECT(&writer, "OK", "{\"do\":\"write\"," IN ",\"ops\":[{\"kind\":%d,\"item\":{\"id\":\"i39\",\"pk\":\"p4\"}}]}", ITEM_DELETE);
    split_all(&w);
    AWAIT(waiting(&w) == 1); /* waiting again */
    put(&writer, 39, 390);
    expect_followed(&c, "390 ");
    from = position_now(&c);
    begin_to_follow(&w, &c, from, 60000, 1);
    assert_int_equal(harness_delete_container(&w.h, "d", "c"), OK);
    r = next_reply(&c);
    assert_string_equal(code_of(&r), "E_OWNER_NOT_FOUND");
    reply_free(&r);
    leave(&c);
    leave(&writer);
    world_close(&w);
}

BOTH(every_call_answers)
BOTH(splits_and_merges_between_pages)
BOTH(a_transaction_is_seen_when_it_is_committed)
BOTH(transactions_that_come_to_nothing)
BOTH(followers_are_woken)
BOTH(a_follower_waits_for_changes_only)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_answers_test),
        cmocka_unit_test(splits_and_merges_between_pages_test),
        cmocka_unit_test(a_transaction_is_seen_when_it_is_committed_test),
        cmocka_unit_test(transactions_that_come_to_nothing_test),
        cmocka_unit_test(followers_are_woken_test),
        cmocka_unit_test(a_follower_waits_for_changes_only_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
