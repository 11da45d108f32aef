/* Reaches: what keys, tokens and permissions allow, in which containers and under which partition keys; and what ends them: a changed key,
 * a deleted or replaced permission, expiry. Over a memory store and over RocksDB. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "access/plain.h"
#include "access/sas.h"
#include "access/token.h"
#include "access_client.h"
#include "item_harness.h"

#define ONE_KEY "\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"
#define TWO_KEYS "\"partitionKey\":{\"paths\":[\"/a\",\"/b\"],\"kind\":\"MultiHash\",\"version\":2}"
#define USER "account"

static harness h;
static container *c, *deep;
static access_keys *keys;
static char *folder, file[4200];

static void write_keys(void) {
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    fprintf(f, "%s\n%s\n%s\n", key_one, key_two, key_reader);
    fclose(f);
    assert_int_equal(chmod(file, 0600), 0);
}

static void open_world(store *s) {
    char why[ACCESS_KEYS_WHY_BYTES] = "";
    harness_open_on(&h, s);
    assert_int_equal(harness_create_database(&h, "d", (throughput_setting){0}), OK);
    assert_int_equal(harness_create_container(&h, "d", "{\"id\":\"c\"," ONE_KEY "}", 400, &c), OK);
    assert_int_equal(harness_create_container(&h, "d", "{\"id\":\"deep\"," TWO_KEYS "}", 400, &deep), OK);
    snprintf(file, sizeof file, "%s/keys", folder);
    write_keys();
    access_keys_options options = {
        .file = file, .scram_user = USER, .scram_kinds = 1 << ACCESS_SCRAM_SHA_256 | 1 << ACCESS_SCRAM_SHA_1_MONGO};
    keys = access_keys_open(&options, why);
    assert_non_null(keys);
}

static int on_memory(void **state) {
    (void)state;
    folder = make_folder();
    open_world(store_open_memory());
    return 0;
}

static int on_rocks(void **state) {
    (void)state;
    char data[4200];
    folder = make_folder();
    snprintf(data, sizeof data, "%s/data", folder);
    assert_int_equal(mkdir(data, 0700), 0);
    open_world(open_rocks(data));
    return 0;
}

static int close_world(void **state) {
    (void)state;
    access_keys_close(keys);
    container_give(c);
    container_give(deep);
    harness_close(&h);
    remove_folder(folder);
    free(folder);
    return 0;
}

/* ---- permissions and their tokens ---- */

static grant grant_of(const container *of, permission_mode mode) {
    grant g = {.mode = mode, .word = SLICE_LIT("All"), .kind = RID_CONTAINER, .container = {.n = 8}, .link = SLICE_LIT("dbs/d/colls/c")};
    memcpy(g.container.bytes, of->rid, 8);
    return g;
}

static pkey key_of(const char *json) {
    pkey key;
    assert_int_equal(pkey_parse(harness_op(&h), slice_str(json), &key), OK);
    return key;
}

/* Creates a user with this one permission, and returns a token for it. */
static slice token_for(const char *id, grant g) {
    user_creation u = {.database = harness_name("d"), .id = slice_str(id)};
    permission_creation p = {.database = harness_name("d"), .user = harness_name(id), .id = slice_str(id), .grant = g};
    assert_int_equal(harness_change(&h, &u, account_create_user), OK);
    assert_int_equal(harness_change(&h, &p, account_create_permission), OK);
    user_give(u.user_out);
    unsigned char key[ACCESS_TOKEN_KEY_BYTES];
    assert_true(access_token_key(access_keys_ring(keys), key));
    access_token t = {p.permission_out->rid, p.permission_out->version, harness_now_s(&h), harness_now_s(&h) + 3600};
    buf text = buf_init(ACCESS_TOKEN_TEXT_MAX);
    access_token_write(&text, key, &t);
    slice made = arena_copy(&h.arena, buf_view(&text));
    buf_free(&text);
    permission_give(p.permission_out);
    return made;
}

static access_reach reach_of(slice password) {
    access_reach r;
    assert_int_equal(access_reach_of_password(harness_op(&h), access_keys_ring(keys), h.account, password, &r), OK);
    return r;
}

static err holds(const access_reach *r) {
    return access_reach_holds(harness_op(&h), r, access_keys_ring(keys), h.account);
}

/* ---- what is allowed ---- */

static void keys_reach_everything(void **state) {
    (void)state;
    access_reach all = reach_of(slice_str(key_two)), reader = reach_of(slice_str(key_reader)), nobody = {0};
    pkey key = key_of("[\"x\"]");
    assert_true(access_allows(&all, ACCESS_ALL, NULL, NULL) && access_allows(&all, ACCESS_ALL, c, NULL) &&
                access_allows(&all, ACCESS_ALL, c, &key));
    assert_true(access_allows(&reader, ACCESS_READ | ACCESS_LIST | ACCESS_DESCRIBE, NULL, NULL) &&
                access_allows(&reader, ACCESS_READ, c, &key));
    for (unsigned verb = 1; verb < ACCESS_ALL; verb <<= 1) {
        assert_int_equal(access_allows(&reader, verb, c, NULL), (verb & ACCESS_ALL_READS) != 0);
        assert_false(access_allows(&nobody, verb, c, NULL));
    }
    assert_false(access_allows(&nobody, 0, NULL, NULL));
    assert_int_equal(holds(&nobody), E_UNAUTHORIZED);
}

static void a_token_reaches_its_container(void **state) {
    (void)state;
    access_reach all = reach_of(token_for("all", grant_of(c, PERMISSION_ALL))),
                 read = reach_of(token_for("read", grant_of(c, PERMISSION_READ)));
    pkey key = key_of("[\"x\"]");
    assert_int_equal(all.proof, ACCESS_BY_TOKEN);
    assert_true(access_allows(&all, ACCESS_READ | ACCESS_WRITE | ACCESS_RUN, c, NULL) && access_allows(&all, ACCESS_WRITE, c, &key));
    assert_true(access_allows(&read, ACCESS_READ, c, NULL) && access_allows(&read, ACCESS_READ, c, &key));
    for (unsigned verb = 1; verb < ACCESS_ALL; verb <<= 1) {
        bool of_items = verb & (ACCESS_READ | ACCESS_WRITE | ACCESS_RUN);
        assert_int_equal(access_allows(&all, verb, c, NULL), of_items);
        assert_int_equal(access_allows(&read, verb, c, NULL), verb == ACCESS_READ);
        assert_false(access_allows(&all, verb, deep, NULL) || access_allows(&all, verb, NULL, NULL) ||
                     access_allows(&read, verb, deep, &key));
    }
    assert_int_equal(holds(&all), OK);
    access_reach_end(&all);
    access_reach_end(&read);
    access_reach_end(&read); /* a second call is harmless */
}

static void a_token_for_a_key_reaches_what_is_below_it(void **state) {
    (void)state;
    grant one = grant_of(c, PERMISSION_ALL), prefix = grant_of(deep, PERMISSION_ALL);
    one.key = key_of("[\"x\"]");
    prefix.key = key_of("[\"x\"]");
    access_reach narrow = reach_of(token_for("narrow", one)), above = reach_of(token_for("above", prefix));
    pkey x = key_of("[\"x\"]"), y = key_of("[\"y\"]"), number = key_of("[1]"), xy = key_of("[\"x\",\"y\"]"), yx = key_of("[\"y\",\"x\"]");
    assert_true(access_allows(&narrow, ACCESS_WRITE, c, &x));
    assert_false(access_allows(&narrow, ACCESS_READ, c, &y) || access_allows(&narrow, ACCESS_READ, c, &number) ||
                 access_allows(&narrow, ACCESS_READ, c, NULL) || access_allows(&narrow, ACCESS_READ, deep, &x));
    assert_true(access_allows(&above, ACCESS_READ, deep, &x) && access_allows(&above, ACCESS_WRITE, deep, &xy));
    assert_false(access_allows(&above, ACCESS_READ, deep, &yx) || access_allows(&above, ACCESS_READ, deep, NULL));
    pkey empty = {0};
    assert_false(access_allows(&above, ACCESS_READ, deep, &empty));
    access_reach_end(&narrow);
    access_reach_end(&above);
}

/* Permissions for items exist only in the SQL API; other APIs check containers and keys. */
static void a_token_for_an_item_reaches_no_container(void **state) {
    (void)state;
    grant g = grant_of(c, PERMISSION_ALL);
    g.kind = RID_DOCUMENT;
    g.number = 1;
    g.key = key_of("[\"x\"]");
    access_reach r = reach_of(token_for("item", g));
    pkey x = key_of("[\"x\"]");
    assert_true(access_is_for(r.permission, c) && !access_is_for(r.permission, deep));
    assert_false(access_allows(&r, ACCESS_READ, c, &x) || access_allows(&r, ACCESS_READ, c, NULL));
    access_reach_end(&r);
}

/* ---- what ends a reach ---- */

static err replace_permission(const char *id) {
    permission_replacement p = {.database = harness_name("d"),
                                .user = harness_name(id),
                                .permission = harness_name(id),
                                .id = slice_str(id),
                                .grant = grant_of(c, PERMISSION_READ)};
    err code = harness_change(&h, &p, account_replace_permission);
    permission_give(p.permission_out);
    return code;
}

static void permissions_end_what_they_opened(void **state) {
    (void)state;
    slice text = token_for("p", grant_of(c, PERMISSION_ALL)), signature;
    access_reach r = reach_of(text), again;
    h.plan.write_in = 1; /* a change that fails to be written ends nothing */
    assert_int_equal(replace_permission("p"), E_STORE_IO);
    assert_int_equal(holds(&r), OK);
    assert_int_equal(replace_permission("p"), OK);
    assert_int_equal(holds(&r), E_FORBIDDEN);
    assert_true(access_token_cut(text, &signature));
    assert_int_equal(access_reach_of_token(harness_op(&h), access_keys_ring(keys), h.account, signature, &again), E_FORBIDDEN);
    assert_int_equal(again.proof, ACCESS_NOBODY);
    access_reach_end(&r);

    r = reach_of(token_for("q", grant_of(c, PERMISSION_ALL)));
    user_deletion gone = {.database = harness_name("d"), .user = harness_name("q")};
    assert_int_equal(harness_change(&h, &gone, account_delete_user), OK);
    assert_int_equal(holds(&r), E_FORBIDDEN);
    access_reach_end(&r);
}

static void tokens_end_with_their_time(void **state) {
    (void)state;
    access_reach r = reach_of(token_for("t", grant_of(c, PERMISSION_ALL))), key = reach_of(slice_str(key_one));
    clock_manual_advance(&h.clock, 3599 * 1000);
    assert_int_equal(holds(&r), OK);
    clock_manual_advance(&h.clock, 1000);
    assert_int_equal(holds(&r), E_FORBIDDEN);
    clock_manual_advance(&h.clock, (int64_t)1000 * 24 * 3600 * 1000);
    assert_int_equal(holds(&key), OK);
    access_reach_end(&r);
}

/* ---- another key ---- */

typedef enum way { BY_SIGNATURE, BY_PLAIN, BY_SCRAM, BY_SCRAM_MONGO, BY_SAS, WAYS } way;

static err prove_by_sas(op *o, const access_ring *ring, const char *key, access_reach *r) {
    static const uint8_t address[16];
    access_ring *own = access_ring_new();
    buf signature = buf_init(100);
    assert_true(access_ring_set(own, ACCESS_KEY_PRIMARY, slice_str(key)));
    assert_true(access_ring_sign(own, ACCESS_KEY_PRIMARY, SLICE_LIT(USER "\nr\nt\no\n\n2100-01-01\n\n\n2019-02-02\n"), &signature));
    slice query = arena_printf(o->arena, "sv=2019-02-02&ss=t&srt=o&sp=r&se=2100-01-01&sig=%.*s", (int)signature.n, signature.p);
    access_sas_request request = {.query = query, .account = SLICE_LIT(USER), .address = address};
    access_ring_free(own);
    buf_free(&signature);
    return access_sas_check(o, ring, &request, r);
}

static err prove_by_signature(const access_ring *ring, const char *key, access_reach *r) {
    access_ring *own = access_ring_new();
    buf signature = buf_init(100);
    assert_true(access_ring_set(own, ACCESS_KEY_PRIMARY, slice_str(key)));
    assert_true(access_ring_sign(own, ACCESS_KEY_PRIMARY, SLICE_LIT("text"), &signature));
    err code = access_reach_of_signature(ring, SLICE_LIT("text"), buf_view(&signature), r);
    access_ring_free(own);
    buf_free(&signature);
    return code;
}

static err prove(way w, const char *key, access_reach *r) {
    const access_ring *ring = access_keys_ring(keys);
    op *o = harness_op(&h);
    slice user, message = arena_printf(o->arena, "%c" USER "%c%s", 0, 0, key);
    switch (w) {
    case BY_SIGNATURE:
        return prove_by_signature(ring, key, r);
    case BY_PLAIN:
        return access_plain_check(o, ring, h.account, message, &user, r);
    case BY_SCRAM:
        return client_authenticate(o, ring, ACCESS_SCRAM_SHA_256, USER, key, r);
    case BY_SCRAM_MONGO:
        return client_authenticate(o, ring, ACCESS_SCRAM_SHA_1_MONGO, USER, key, r);
    default:
        return prove_by_sas(o, ring, key, r);
    }
}

static void another_key_ends_what_was_proven_with_the_old(void **state) {
    (void)state;
    char why[ACCESS_KEYS_WHY_BYTES] = "", text[ACCESS_KEY_TEXT_BYTES];
    access_reach by_first[WAYS], by_second[WAYS], by_reader, now;
    access_reach token = reach_of(token_for("p", grant_of(c, PERMISSION_ALL)));
    for (way w = 0; w < WAYS; w++) {
        assert_int_equal(prove(w, key_one, &by_first[w]), OK);
        assert_int_equal(prove(w, key_two, &by_second[w]), OK);
        assert_true(by_first[w].key == ACCESS_KEY_PRIMARY && by_second[w].key == ACCESS_KEY_SECONDARY);
    }
    assert_int_equal(prove(BY_SCRAM, key_reader, &by_reader), OK);

    assert_true(access_keys_reload(keys, why)); /* the same keys: nothing ends */
    assert_true(access_keys_regenerate(keys, ACCESS_KEY_SECONDARY, why));
    for (way w = 0; w < WAYS; w++) {
        assert_int_equal(holds(&by_first[w]), OK);
        assert_int_equal(holds(&by_second[w]), E_UNAUTHORIZED);
        assert_int_equal(prove(w, key_one, &now), OK); /* the unchanged key still works */
        assert_int_equal(prove(w, key_two, &now), E_UNAUTHORIZED);
    }
    assert_int_equal(holds(&token), OK);
    assert_true(access_keys_text(keys, ACCESS_KEY_SECONDARY, text));
    assert_int_equal(prove(BY_SCRAM, text, &now), OK);
    assert_int_equal(holds(&now), OK);

    assert_true(access_keys_regenerate(keys, ACCESS_KEY_PRIMARY, why));
    assert_int_equal(holds(&token), E_UNAUTHORIZED); /* its key is derived from the primary key */
    assert_int_equal(holds(&by_first[BY_SCRAM]), E_UNAUTHORIZED);
    assert_int_equal(holds(&by_reader), OK);
    write_keys(); /* even if the old keys come back, clients must authenticate again */
    assert_true(access_keys_reload(keys, why));
    assert_int_equal(holds(&by_first[BY_PLAIN]), E_UNAUTHORIZED);
    assert_int_equal(prove(BY_PLAIN, key_one, &now), OK);
    assert_int_equal(holds(&by_reader), OK);
    access_reach_end(&token);
}

/* The key changes between the two messages of an exchange: the ring of the second message counts. */
static void a_key_that_changes_during_an_exchange_is_refused(void **state) {
    (void)state;
    char why[ACCESS_KEYS_WHY_BYTES] = "";
    static const char *const passwords[] = {key_one, key_two};
    for (unsigned i = 0; i < 2; i++) {
        op *o = harness_op(&h);
        access_scram s;
        access_reach r;
        slice bare = SLICE_LIT("n=" USER ",r=x"), expected;
        buf first = buf_init(ACCESS_SCRAM_REPLY_MAX), final = buf_init(ACCESS_SCRAM_REPLY_MAX);
        access_scram_begin(&s, ACCESS_SCRAM_SHA_256);
        assert_int_equal(access_scram_step(o, &s, access_keys_ring(keys), SLICE_LIT("n,,n=" USER ",r=x"), &first, &r), OK);
        slice message = client_final(o->arena, s.kind, USER, passwords[i], bare, buf_view(&first), "biws", &expected);
        assert_true(access_keys_regenerate(keys, ACCESS_KEY_PRIMARY, why));
        err code = access_scram_step(o, &s, access_keys_ring(keys), message, &final, &r);
        assert_int_equal(code, i == 0 ? E_UNAUTHORIZED : OK);
        buf_free(&first);
        buf_free(&final);
    }
}

#define BOTH(name)                                                                                                                         \
    cmocka_unit_test_setup_teardown(name, on_memory, close_world), cmocka_unit_test_setup_teardown(name, on_rocks, close_world)

int main(void) {
    const struct CMUnitTest tests[] = {
        BOTH(keys_reach_everything),
        BOTH(a_token_reaches_its_container),
        BOTH(a_token_for_a_key_reaches_what_is_below_it),
        BOTH(a_token_for_an_item_reaches_no_container),
        BOTH(permissions_end_what_they_opened),
        BOTH(tokens_end_with_their_time),
        BOTH(another_key_ends_what_was_proven_with_the_old),
        BOTH(a_key_that_changes_during_an_exchange_is_refused),
    };
    return cmocka_run_group_tests_name("access/reach", tests, NULL, NULL);
}
