/* Resolvers: where keys go, skew of the ring, state, and items of a database through them. */
#include "harness.h"

#include <math.h>
#include <unistd.h>

static void create(const char *name) {
    tesela_container_close(container_new(name, 0));
}

/* The names that a resolver gives, with commas between; the caller frees them. */
static char *names_of(tesela_resolver *r, const char *key, bool create_one) {
    tesela_texts *names = tesela_texts_new();
    char *all = calloc(1, 4096);
    ok(create_one ? tesela_resolver_for_create(r, key, names, &error) : tesela_resolver_for_read(r, key, names, &error));
    for (size_t i = 0; i < tesela_texts_count(names); i++) {
        sprintf(all + strlen(all), "%s%s", i ? "," : "", tesela_texts_get(names, i));
    }
    assert_null(tesela_texts_get(names, tesela_texts_count(names)));
    tesela_texts_free(names);
    return all;
}

static void expect(tesela_resolver *r, const char *key, bool create_one, const char *wanted) {
    char *names = names_of(r, key, create_one);
    assert_string_equal(names, wanted);
    free(names);
}

static void expect_key(tesela_resolver *r, const char *item, const char *wanted) {
    tesela_texts *key = tesela_texts_new();
    ok(tesela_resolver_partition_key(r, item, key, &error));
    assert_string_equal(tesela_texts_get(key, 0), wanted);
    tesela_texts_free(key);
}

/* Its state, saved and loaded, is the same state. */
static void expect_state(tesela_resolver *r, const tesela_load_options *options) {
    char *state, *again;
    tesela_resolver *loaded;
    ok(tesela_resolver_save(r, &state, &error));
    assert_non_null(strstr(state, "\"version\":1"));
    ok(tesela_resolver_load(state, options, &loaded, &error));
    ok(tesela_resolver_save(loaded, &again, &error));
    assert_string_equal(state, again);
    tesela_resolver_free(loaded);
    tesela_text_free(state);
    tesela_text_free(again);
}

enum { KEYS = 20000, CONTAINERS = 10 };

/* The most loaded container's keys over the mean; and the standard deviation over the mean. */
static double skew(unsigned virtual_nodes, double *deviation_out) {
    const char *names[CONTAINERS];
    char texts[CONTAINERS][16];
    unsigned counts[CONTAINERS] = {0}, most = 0;
    double squares = 0, mean = (double)KEYS / CONTAINERS;
    tesela_resolver *r;
    for (int i = 0; i < CONTAINERS; i++) {
        snprintf(texts[i], sizeof texts[i], "users%d", i);
        names[i] = texts[i];
    }
    ok(tesela_hash_resolver_new("/user", names, CONTAINERS, &(tesela_hash_options){.virtual_nodes = virtual_nodes}, &r, &error));
    for (int i = 0; i < KEYS; i++) {
        char key[32];
        snprintf(key, sizeof key, "\"user-%d\"", i);
        char *name = names_of(r, key, true);
        counts[atoi(name + 5)]++;
        free(name);
    }
    for (int i = 0; i < CONTAINERS; i++) {
        most = counts[i] > most ? counts[i] : most;
        squares += (counts[i] - mean) * (counts[i] - mean);
    }
    tesela_resolver_free(r);
    *deviation_out = sqrt(squares / CONTAINERS) / mean;
    return most / mean;
}

/* docs/client.md has this table. */
static void ring_skew(void **state) {
    (void)state;
    unsigned nodes[] = {4, 16, 64, 256};
    double limits[] = {3, 1.7, 1.4, 1.2};
    for (int i = 0; i < 4; i++) {
        double deviation, most = skew(nodes[i], &deviation);
        print_message("%u virtual nodes: fullest %.2f, deviation %.2f\n", nodes[i], most, deviation);
        assert_true(most < limits[i]);
    }
}

/* Only keys that go to the new container move. Returns their number, in parts of a fifth of all, which an even ring moves. */
static double moved_by(unsigned virtual_nodes) {
    const char *names[] = {"a", "b", "c", "d", "e"};
    tesela_hash_options options = {.virtual_nodes = virtual_nodes};
    tesela_resolver *four, *five;
    unsigned moved = 0;
    ok(tesela_hash_resolver_new("/user", names, 4, &options, &four, &error));
    ok(tesela_hash_resolver_new("/user", names, 5, &options, &five, &error));
    for (int i = 0; i < KEYS; i++) {
        char key[32];
        snprintf(key, sizeof key, "%d", i);
        char *before = names_of(four, key, true), *after = names_of(five, key, true);
        if (strcmp(before, after) != 0) {
            assert_string_equal(after, "e");
            moved++;
        }
        free(before);
        free(after);
    }
    expect_state(five, NULL);
    tesela_resolver_free(four);
    tesela_resolver_free(five);
    return moved / (KEYS / 5.0);
}

/* docs/client.md has this table too. With few virtual nodes the new container gets more or less than its even part. */
static void ring_grows(void **state) {
    (void)state;
    unsigned nodes[] = {4, 16, 64, 256};
    double limits[] = {3, 1.2, 1.2, 1.2}; /* of the default, 16, too */
    for (int i = 0; i < 4; i++) {
        double moved = moved_by(nodes[i]);
        print_message("%u virtual nodes: moved %.3f of a fifth\n", nodes[i], moved);
        assert_true(moved <= limits[i]);
    }
}

static size_t first_letter(void *context, const void *bytes, size_t length, unsigned char *hash_out) {
    (void)context;
    memset(hash_out, 0, 8);
    memcpy(hash_out, bytes, length < 8 ? length : 8);
    return 8;
}

static void own_hash(void **state) {
    (void)state;
    const char *names[] = {"m", "z"};
    tesela_hash_options options = {.virtual_nodes = 1, .hash = first_letter, .hash_name = "letters"};
    tesela_resolver *r, *loaded;
    char *saved;
    ok(tesela_hash_resolver_new("/user", names, 2, &options, &r, &error));
    expect(r, "true", true, "z"); /* "t" is after "m/0" */
    ok(tesela_resolver_save(r, &saved, &error));
    fails(tesela_resolver_load(saved, NULL, &loaded, &error), TESELA_BAD_ARGUMENT);
    tesela_text_free(saved);
    expect_state(r, &(tesela_load_options){.hash = &options});
    tesela_resolver_free(r);
    fails(tesela_hash_resolver_new("/user", names, 0, NULL, &r, &error), TESELA_BAD_ARGUMENT);
    fails(tesela_hash_resolver_new("user", names, 2, NULL, &r, &error), TESELA_BAD_ARGUMENT);
    names[1] = "m";
    fails(tesela_hash_resolver_new("/user", names, 2, NULL, &r, &error), TESELA_BAD_ARGUMENT);
}

static void ranges(void **state) {
    (void)state;
    tesela_key_range list[] = {{"\"2015-04-15\"", "\"2015-04-30\"", "late"}, {"\"2015-04-01\"", "\"2015-04-14\"", "early"}};
    tesela_resolver *r;
    ok(tesela_range_resolver_new("/event/time", list, 2, &r, &error));
    expect_key(r, "{\"id\":\"1\",\"event\":{\"time\":\"2015-04-03\"}}", "\"2015-04-03\"");
    expect(r, "\"2015-04-03\"", true, "early");
    expect(r, "{\"min\":\"2015-04-10\",\"max\":\"2015-04-20\"}", false, "early,late");
    expect(r, "{\"min\":\"2015-04-16\",\"max\":\"2015-04-20\"}", false, "late");
    expect(r, NULL, false, "early,late");
    tesela_texts *names = tesela_texts_new();
    fails(tesela_resolver_for_create(r, "\"2016\"", names, &error), TESELA_BAD_ARGUMENT);
    fails(tesela_resolver_for_create(r, "nonsense", names, &error), TESELA_BAD_ARGUMENT);
    tesela_texts_free(names);
    expect_state(r, NULL);
    tesela_resolver_free(r);
    tesela_key_range overlap[] = {{"1", "5", "a"}, {"5", "9", "b"}}, backwards[] = {{"5", "1", "a"}}, mixed[] = {{"5", "\"x\"", "a"}};
    fails(tesela_range_resolver_new("/n", overlap, 2, &r, &error), TESELA_BAD_ARGUMENT);
    fails(tesela_range_resolver_new("/n", backwards, 1, &r, &error), TESELA_BAD_ARGUMENT);
    fails(tesela_range_resolver_new("/n", mixed, 1, &r, &error), TESELA_BAD_ARGUMENT);
}

static tesela_resolver *regions(void) {
    tesela_key_range values[] = {{"\"NO\"", NULL, "north"}, {"\"SE\"", NULL, "north"}, {"\"ES\"", NULL, "south"}};
    tesela_resolver *r;
    ok(tesela_lookup_resolver_new("/region", values, 3, NULL, &r, &error));
    return r;
}

static void lookup(void **state) {
    (void)state;
    tesela_resolver *r = regions(), *rest;
    expect(r, "\"SE\"", true, "north");
    expect(r, NULL, false, "south,north");
    tesela_texts *names = tesela_texts_new();
    fails(tesela_resolver_for_create(r, "\"FR\"", names, &error), TESELA_BAD_ARGUMENT);
    tesela_texts_free(names);
    tesela_resolver_free(r);
    tesela_key_range one = {"7", NULL, "seven"};
    ok(tesela_lookup_resolver_new("/n", &one, 1, "others", &rest, &error));
    expect(rest, "7.0", true, "seven");
    expect(rest, "8", true, "others");
    expect_state(rest, NULL);
    tesela_resolver_free(rest);
}

static void chains(void **state) {
    (void)state;
    const char *north[] = {"north0", "north1"}, *south[] = {"south0"};
    tesela_link links[2] = {{"north", NULL}, {"south", NULL}};
    tesela_resolver *r;
    ok(tesela_hash_resolver_new("/user", north, 2, NULL, (tesela_resolver **)&links[0].resolver, &error));
    ok(tesela_hash_resolver_new("/user", south, 1, NULL, (tesela_resolver **)&links[1].resolver, &error));
    ok(tesela_chained_resolver_new(regions(), links, 2, &r, &error));
    expect_key(r, "{\"region\":\"ES\",\"user\":\"@Ana\"}", "[\"ES\",\"@Ana\"]");
    expect(r, "[\"ES\",\"@Ana\"]", true, "south0");
    expect(r, "[\"NO\"]", false, "north0,north1");
    expect(r, NULL, false, "south0,north0,north1");
    expect_state(r, NULL);
    tesela_resolver_free(r);
}

static void malformed_states(void **state) {
    (void)state;
    const char *states[] = {
        "",
        "{",
        "[]",
        "{\"version\":2,\"kind\":\"hash\"}",
        "{\"version\":1}",
        "{\"version\":1,\"kind\":\"other\"}",
        "{\"version\":1,\"kind\":\"hash\",\"keyPath\":\"/a\",\"containers\":[],\"virtualNodes\":16,\"hash\":\"md5\"}",
        "{\"version\":1,\"kind\":\"hash\",\"keyPath\":\"/a\",\"containers\":[\"x\"],\"virtualNodes\":1e9,\"hash\":\"md5\"}",
        "{\"version\":1,\"kind\":\"hash\",\"keyPath\":\"a\",\"containers\":[\"x\"],\"virtualNodes\":4,\"hash\":\"md5\"}",
        "{\"version\":1,\"kind\":\"range\",\"keyPath\":\"/a\",\"ranges\":[{\"min\":2,\"max\":1,\"container\":\"x\"}]}",
        "{\"version\":1,\"kind\":\"range\",\"keyPath\":\"/a\",\"ranges\":[{\"min\":2}]}",
        "{\"version\":1,\"kind\":\"lookup\",\"keyPath\":\"/a\"}",
        "{\"version\":1,\"kind\":\"spillover\",\"count\":0,\"items\":1,\"bytes\":1,\"checkEvery\":1}",
        "{\"version\":1,\"kind\":\"managed\",\"database\":\"d\",\"count\":1,\"template\":{}}",
        "{\"version\":1,\"kind\":\"chained\",\"first\":{\"version\":1},\"links\":{}}"};
    for (size_t i = 0; i < sizeof states / sizeof *states; i++) {
        tesela_resolver *r;
        fails(tesela_resolver_load(states[i], &(tesela_load_options){.client = client}, &r, &error), TESELA_BAD_ARGUMENT);
        assert_null(r);
    }
}

static void shared_states(void **state) {
    (void)state;
    tesela_resolver *r = regions(), *loaded;
    tesela_container *k;
    ok(tesela_container_create(client, "d", "{\"id\":\"states\",\"partitionKey\":{\"paths\":[\"/id\"],\"kind\":\"Hash\",\"version\":2}}",
                               NULL, NULL, &error));
    ok(tesela_container_open(client, "d", "states", &k, &error));
    ok(tesela_resolver_save_item(r, k, "regions", &error));
    ok(tesela_resolver_load_item(k, "regions", NULL, &loaded, &error));
    expect(loaded, "\"ES\"", true, "south");
    tesela_resolver_free(loaded);
    fails(tesela_resolver_load_item(k, "nothing", NULL, &loaded, &error), TESELA_NOT_FOUND);
    char path[160];
    snprintf(path, sizeof path, "%s", server_file("resolver.json"));
    ok(tesela_resolver_save_file(r, path, &error));
    ok(tesela_resolver_load_file(path, NULL, &loaded, &error));
    expect(loaded, "\"NO\"", true, "north");
    tesela_resolver_free(loaded);
    fails(tesela_resolver_load_file("/no/such/file", NULL, &loaded, &error), TESELA_UNAVAILABLE);
    fails(tesela_resolver_save_file(r, "/no/such/file", &error), TESELA_UNAVAILABLE);
    tesela_resolver_free(r);
    tesela_container_close(k);
}

/* ---- a database through its resolver ---- */

static size_t count_rows(const char *key, const char *query) {
    tesela_cursor *cursor;
    size_t n;
    ok(tesela_database_query(client, "d", key, query, NULL, NULL, &cursor, &error));
    free(rows_of(cursor, &n));
    return n;
}

static void through_a_ring(void **state) {
    (void)state;
    const char *names[] = {"users0", "users1", "users2"};
    tesela_resolver *r;
    fails(tesela_database_create_item(client, "d", "{}", NULL, NULL, &error), TESELA_BAD_ARGUMENT);
    for (int i = 0; i < 3; i++) {
        create(names[i]);
    }
    ok(tesela_hash_resolver_new("/pk", names, 3, NULL, &r, &error));
    tesela_client_set_resolver(client, "d", r);
    for (int i = 0; i < 30; i++) {
        char item[96];
        snprintf(item, sizeof item, "{\"id\":\"J%d\",\"pk\":\"@John%d\",\"status\":%d}", i, i, i % 3);
        ok(tesela_database_create_item(client, "d", item, NULL, NULL, &error));
    }
    tesela_key john = tesela_key_string("@John3");
    tesela_response *response;
    ok(tesela_database_read_item(client, "d", "\"@John3\"", "J3", &john, NULL, &response, &error));
    assert_non_null(strstr(tesela_response_body(response, NULL), "@John3"));
    tesela_response_free(response);
    ok(tesela_database_read_item(client, "d", NULL, "J3", &john, NULL, NULL, &error));
    assert_int_equal(count_rows("\"@John3\"", "SELECT * FROM c WHERE c.pk = '@John3'"), 1);
    assert_int_equal(count_rows(NULL, "SELECT * FROM c WHERE c.status = 1"), 10);
    ok(tesela_database_upsert_item(client, "d", "{\"id\":\"J3\",\"pk\":\"@John3\",\"status\":1}", NULL, NULL, &error));
    ok(tesela_database_replace_item(client, "d", "J4", "{\"id\":\"J4\",\"pk\":\"@John4\",\"status\":0}", NULL, NULL, &error));
    assert_int_equal(count_rows(NULL, "SELECT * FROM c WHERE c.status = 1"), 10);
    ok(tesela_database_delete_item(client, "d", "\"@John3\"", "J3", &john, NULL, NULL, &error));
    fails(tesela_database_read_item(client, "d", "\"@John3\"", "J3", &john, NULL, NULL, &error), TESELA_NOT_FOUND);
    tesela_client_set_resolver(client, "d", NULL);
    tesela_resolver_free(r);
}

static const char *script_ids[] = {"hello"}, *script_bodies[] = {"function () { getContext().getResponse().setBody('hi'); }"};
static const tesela_template made = {.name = "made-#",
                                     .definition =
                                         "{\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2},\"defaultTtl\":1000}",
                                     .throughput = {.manual = 500},
                                     .script_ids = script_ids,
                                     .script_bodies = script_bodies,
                                     .scripts_count = 1};

static void managed(void **state) {
    (void)state;
    tesela_resolver *r;
    tesela_container *k;
    tesela_response *response;
    tesela_key key = tesela_key_string("x");
    ok(tesela_managed_resolver_new(client, "d", "/pk", &made, 2, NULL, &r, &error));
    expect(r, NULL, false, "made-0,made-1");
    ok(tesela_container_open(client, "d", "made-1", &k, &error));
    ok(tesela_script_run(k, "hello", &key, NULL, &response, &error));
    assert_string_equal(tesela_response_body(response, NULL), "\"hi\"");
    tesela_response_free(response);
    tesela_container_close(k);
    expect_state(r, &(tesela_load_options){.client = client});
    tesela_resolver_free(r);
    tesela_template bad = made;
    bad.name = "nothing";
    fails(tesela_managed_resolver_new(client, "d", "/pk", &bad, 2, NULL, &r, &error), TESELA_BAD_ARGUMENT);
}

static void spillover(void **state) {
    (void)state;
    tesela_template from = made;
    from.name = "spill-#";
    tesela_resolver *r, *other;
    ok(tesela_spillover_resolver_new(client, "d", &from, &(tesela_spillover_options){.items = 10, .check_every = 5}, &r, &error));
    ok(tesela_spillover_resolver_new(client, "d", &from, NULL, &other, &error));
    tesela_client_set_resolver(client, "d", r);
    for (int i = 0; i < 32; i++) {
        char item[64];
        snprintf(item, sizeof item, "{\"id\":\"%d\",\"pk\":%d}", i, i);
        ok(tesela_database_create_item(client, "d", item, NULL, NULL, &error));
    }
    expect(r, NULL, false, "spill-0,spill-1,spill-2,spill-3");
    expect(other, NULL, false, "spill-0,spill-1,spill-2,spill-3");
    assert_int_equal(count_rows(NULL, "SELECT * FROM c"), 32);
    expect_state(r, &(tesela_load_options){.client = client});
    tesela_client_set_resolver(client, "d", NULL);
    tesela_resolver_free(r);
    tesela_resolver_free(other);
}

/* A resolver of the application's own: even and odd numbers. */
static tesela_status parity_key(void *context, const char *item, tesela_texts *key, tesela_error *e) {
    const char *at = strstr(item, "\"pk\":");
    (void)context;
    (void)e;
    tesela_texts_add(key, at && atoi(at + 5) % 2 ? "1" : "0");
    return TESELA_OK;
}

static tesela_status parity_create(void *context, const char *key, tesela_texts *names, tesela_error *e) {
    (void)e;
    tesela_texts_add(names, ((const char **)context)[atoi(key)]);
    return TESELA_OK;
}

static tesela_status parity_read(void *context, const char *key, tesela_texts *names, tesela_error *e) {
    for (int i = 0; !key && i < 2; i++) {
        tesela_texts_add(names, ((const char **)context)[i]);
    }
    return key ? parity_create(context, key, names, e) : TESELA_OK;
}

static void own_resolver(void **state) {
    (void)state;
    static const char *names[] = {"even", "odd"};
    tesela_resolver *r;
    char *text;
    tesela_resolver_functions functions = {
        .partition_key = parity_key, .resolve_for_create = parity_create, .resolve_for_read = parity_read};
    create("even");
    create("odd");
    ok(tesela_resolver_new(&functions, names, &r, &error));
    tesela_client_set_resolver(client, "d", r);
    for (int i = 0; i < 9; i++) {
        char item[64];
        snprintf(item, sizeof item, "{\"id\":\"%d\",\"pk\":%d}", i, i);
        ok(tesela_database_create_item(client, "d", item, NULL, NULL, &error));
    }
    assert_int_equal(count_rows("0", "SELECT * FROM c"), 5);
    assert_int_equal(count_rows(NULL, "SELECT * FROM c"), 9);
    fails(tesela_resolver_save(r, &text, &error), TESELA_BAD_ARGUMENT);
    functions.partition_key = NULL;
    tesela_client_set_resolver(client, "d", NULL);
    tesela_resolver_free(r);
    fails(tesela_resolver_new(&functions, NULL, &r, &error), TESELA_BAD_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_skew),      cmocka_unit_test(ring_grows), cmocka_unit_test(own_hash),         cmocka_unit_test(ranges),
        cmocka_unit_test(lookup),         cmocka_unit_test(chains),     cmocka_unit_test(malformed_states), cmocka_unit_test(shared_states),
        cmocka_unit_test(through_a_ring), cmocka_unit_test(managed),    cmocka_unit_test(spillover),        cmocka_unit_test(own_resolver),
    };
    server_start("--throttling", "off", NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    server_stop();
    return failed;
}
