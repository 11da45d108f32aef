/* SCRAM: the exchanges published in the RFCs and MongoDB's specification, every key of a ring, and malformed or wrong messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "access_client.h"
#include "base/clock.h"

static arena memory;
static op o;

static int set_up(void **state) {
    (void)state;
    memory = arena_init();
    op_init(&o, &memory, 1800000000);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

/* A ring with one key and another text as its SCRAM password: the passwords of the published exchanges are not base64. */
static access_ring *ring_with(const char *password, const access_scram_setup *setup) {
    access_ring *ring = access_ring_new();
    access_scram_secrets *secrets = access_scram_secrets_new(setup);
    assert_true(access_ring_set(ring, ACCESS_KEY_SECONDARY, slice_str(key_two)));
    access_scram_secrets_add(secrets, ACCESS_KEY_SECONDARY, slice_str(password));
    access_ring_give_scram(ring, secrets);
    return ring;
}

static void set_salt(access_scram_setup *setup, const char *base64) {
    buf salt = {.p = (char *)setup->salt, .cap = sizeof setup->salt, .max = sizeof setup->salt};
    assert_true(base64_decode(&salt, slice_str(base64)));
    setup->salt_n = salt.n;
}

/* ---- published exchanges ---- */

static const struct {
    access_scram_kind kind;
    unsigned iterations;
    const char *salt, *ours, *client_first, *server_first, *client_final, *server_final;
} published[] = {
    /* RFC 5802, section 5 */
    {ACCESS_SCRAM_SHA_1, 4096, "QSXCR+Q6sek8bf92", "3rfcNHYJY1ZVvWVs7j", "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
     "r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096",
     "c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=", "v=rmF9pqV8S7suAoZWja4dJRkFsKQ="},
    /* RFC 7677, section 3 */
    {ACCESS_SCRAM_SHA_256, 4096, "W22ZaJ0SNY7soEsUEjb6gQ==", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", "n,,n=user,r=rOprNGfwEbeRWgbNEkqO",
     "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
     "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
     "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="},
    /* MongoDB's specification of authentication, SCRAM-SHA-1 */
    {ACCESS_SCRAM_SHA_1_MONGO, 10000, "rQ9ZY3MntBeuP3E1TDVC4w==", "Ho+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE",
     "n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
     "r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,s=rQ9ZY3MntBeuP3E1TDVC4w==,i=10000",
     "c=biws,r=fyko+d2lbbFgONRv9qkxdawLHo+Vgk7qvUOKUwuWLIWg4l/9SraGMHEE,p=MC2T8BvbmWRckDw8oWl5IVghwCY=", "v=UMWeI25JD1yNYZRMpZ4VHvhZ9e0="},
};

static void published_exchanges_come_out_as_printed(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        access_scram_setup setup = {.user = "user", .kinds = 1u << published[i].kind, .iterations = published[i].iterations};
        set_salt(&setup, published[i].salt);
        access_ring *ring = ring_with("pencil", &setup);
        access_scram s;
        access_reach reach;
        buf first = buf_init(ACCESS_SCRAM_REPLY_MAX), final = buf_init(ACCESS_SCRAM_REPLY_MAX);
        access_scram_begin(&s, published[i].kind);
        s.ours_n = strlen(published[i].ours);
        memcpy(s.ours, published[i].ours, s.ours_n);
        assert_int_equal(access_scram_step(&o, &s, ring, slice_str(published[i].client_first), &first, &reach), OK);
        assert_true(slice_eq(buf_view(&first), slice_str(published[i].server_first)));
        assert_int_equal(s.state, SCRAM_FINAL);
        assert_int_equal(reach.proof, ACCESS_NOBODY);
        assert_int_equal(access_scram_step(&o, &s, ring, slice_str(published[i].client_final), &final, &reach), OK);
        assert_true(slice_eq(buf_view(&final), slice_str(published[i].server_final)));
        assert_int_equal(s.state, SCRAM_DONE);
        assert_int_equal(reach.proof, ACCESS_BY_KEY);
        assert_int_equal(reach.key, ACCESS_KEY_SECONDARY);
        buf_free(&first);
        buf_free(&final);
        access_ring_free(ring);
    }
}

/* ---- keys of an account ---- */

static access_keys *open_keys(unsigned kinds) {
    char why[ACCESS_KEYS_WHY_BYTES] = "";
    access_keys *keys = access_keys_open(
        &(access_keys_options){.given = {key_one, key_two, key_reader}, .scram_user = "account,=1", .scram_kinds = kinds}, why);
    assert_non_null(keys);
    return keys;
}

enum { ALL_KINDS = (1 << ACCESS_SCRAM_COUNT) - 1 };

static void every_key_is_a_password_of_the_account(void **state) {
    (void)state;
    static const char *const passwords[] = {key_one, key_two, key_reader};
    access_keys *keys = open_keys(ALL_KINDS);
    const access_ring *ring = access_keys_ring(keys);
    access_reach reach;
    char why[ACCESS_KEYS_WHY_BYTES];
    access_keys *plain = access_keys_open(&(access_keys_options){.given = {key_one}, .scram_user = "plain", .scram_kinds = ALL_KINDS}, why);
    for (access_scram_kind kind = 0; kind < ACCESS_SCRAM_COUNT; kind++) {
        assert_int_equal(client_authenticate(&o, access_keys_ring(plain), kind, "plain", key_one, &reach), OK);
        for (access_key key = 0; kind != ACCESS_SCRAM_SHA_1_MONGO && key < 3; key++) { /* it hashes the unescaped name */
            assert_int_equal(client_authenticate(&o, ring, kind, "account=2C=3D1", passwords[key], &reach), OK);
            assert_int_equal(reach.key, key);
            assert_int_equal(reach.verbs, key == ACCESS_KEY_PRIMARY_READ_ONLY ? ACCESS_ALL_READS : ACCESS_ALL);
        }
        assert_int_equal(client_authenticate(&o, ring, kind, "account=2C=3D1", access_key_emulator, &reach), E_UNAUTHORIZED);
        assert_int_equal(client_authenticate(&o, ring, kind, "account", key_one, &reach), E_UNAUTHORIZED);
        assert_int_equal(client_authenticate(&o, ring, kind, "nobody", key_one, &reach), E_UNAUTHORIZED);
    }
    access_keys_close(plain);
    access_keys_close(keys);
}

static void only_kinds_that_are_offered_are_taken(void **state) {
    (void)state;
    access_keys *keys = open_keys(1 << ACCESS_SCRAM_SHA_256), *none = open_keys(0);
    access_reach reach;
    assert_int_equal(client_authenticate(&o, access_keys_ring(keys), ACCESS_SCRAM_SHA_256, "account=2C=3D1", key_one, &reach), OK);
    assert_int_equal(client_authenticate(&o, access_keys_ring(keys), ACCESS_SCRAM_SHA_1, "account=2C=3D1", key_one, &reach),
                     E_UNAUTHORIZED);
    assert_int_equal(client_authenticate(&o, access_keys_ring(none), ACCESS_SCRAM_SHA_256, "account=2C=3D1", key_one, &reach),
                     E_UNAUTHORIZED);
    assert_true(access_scram_offers(access_ring_scram(access_keys_ring(keys)), ACCESS_SCRAM_SHA_256));
    assert_false(access_scram_offers(access_ring_scram(access_keys_ring(keys)), ACCESS_SCRAM_SHA_1));
    assert_false(access_scram_offers(access_ring_scram(access_keys_ring(none)), ACCESS_SCRAM_SHA_256));
    access_keys_close(keys);
    access_keys_close(none);
}

static void any_name_if_the_setup_says_so(void **state) {
    (void)state;
    char why[ACCESS_KEYS_WHY_BYTES];
    access_reach reach;
    access_keys *keys = access_keys_open(
        &(access_keys_options){.given = {key_one}, .scram_user = "plain", .scram_any_user = true, .scram_kinds = ALL_KINDS}, why);
    const access_ring *ring = access_keys_ring(keys);
    const access_scram_secrets *secrets = access_ring_scram(ring);
    assert_int_equal(client_authenticate(&o, ring, ACCESS_SCRAM_SHA_256, "other", key_one, &reach), OK);
    assert_int_equal(client_authenticate(&o, ring, ACCESS_SCRAM_SHA_256, "other", key_two, &reach), E_UNAUTHORIZED);
    assert_int_equal(client_authenticate(&o, ring, ACCESS_SCRAM_SHA_1_MONGO, "plain", key_one, &reach), OK);
    assert_int_equal(client_authenticate(&o, ring, ACCESS_SCRAM_SHA_1_MONGO, "other", key_one, &reach), E_UNAUTHORIZED);
    assert_true(access_scram_offers_to(secrets, ACCESS_SCRAM_SHA_256, SLICE_LIT("other")));
    assert_true(access_scram_offers_to(secrets, ACCESS_SCRAM_SHA_1_MONGO, SLICE_LIT("plain")));
    assert_false(access_scram_offers_to(secrets, ACCESS_SCRAM_SHA_1_MONGO, SLICE_LIT("other")));
    access_keys_close(keys);
}

/* ---- wrong messages ---- */

static err first_step(const access_ring *ring, slice message, access_scram *s, buf *reply) {
    access_reach reach;
    buf_clear(reply);
    access_scram_begin(s, ACCESS_SCRAM_SHA_256);
    err code = access_scram_step(&o, s, ring, message, reply, &reach);
    assert_int_equal(s->state, code == OK ? SCRAM_FINAL : SCRAM_FAILED);
    assert_true(code == OK || reply->n == 0);
    return code;
}

static void first_messages(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",
        "n",
        "n,",
        "n,,",
        "n,,n=u",
        "n,,n=u,",
        "n,,n=u,r=",
        "n,,n=,r=x",
        "n,,r=x",
        "n,,r=x,n=u",
        "x,,n=u,r=x",
        "p=tls-unique,,n=u,r=x",
        "n,a=,n=u,r=x",
        "n,a=other,n=u,r=x",
        "n,b=u,n=u,r=x",
        "n,,m=x,n=u,r=x",
        "n,,n=u=,r=x",
        "n,,n=u=2,r=x",
        "n,,n=u=2c,r=x",
        "n,,n=u=41,r=x",
        "n,,n=\xFF,r=x",
        "n,,n=u,r=a b",
        "n,,n=u,r=\x7F",
        "n,,n=u,r=\xC3\xB1",
        "n,,n=u,r=x,m=1",
        "n,,n=u,r=x,=1",
        "n,,n=u,r=x,1=1",
        "n,,n=u,r=x,,",
        "n,,n=u,r=x,a",
        "n,,n=u,r=x,a=",
        "n,,n=u,r=x,x=1,Y=,z=1",
        " n,,n=u,r=x",
        "N,,n=u,r=x",
    };
    static const char *const good[] = {"n,,n=u,r=x", "y,,n=u,r=x", "n,a=u,n=u,r=x", "n,,n=u,r=x,x=1", "n,,n=\xC3\xB1=2C=3D,r=!~"};
    access_keys *keys = open_keys(ALL_KINDS);
    const access_ring *ring = access_keys_ring(keys);
    access_scram s;
    buf reply = buf_init(ACCESS_SCRAM_REPLY_MAX);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(first_step(ring, slice_str(bad[i]), &s, &reply), E_BAD_AUTHORIZATION);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(first_step(ring, slice_str(good[i]), &s, &reply), OK);
    }
    assert_int_equal(first_step(ring, SLICE_LIT("n,,n=u\0u,r=x"), &s, &reply), E_BAD_AUTHORIZATION);
    buf_free(&reply);
    access_keys_close(keys);
}

static void lengths_are_bounded(void **state) {
    (void)state;
    access_keys *keys = open_keys(ALL_KINDS);
    const access_ring *ring = access_keys_ring(keys);
    access_scram s;
    buf reply = buf_init(ACCESS_SCRAM_REPLY_MAX);
    char text[LIMIT_SASL_BYTES + 2];
    for (size_t n = ACCESS_SCRAM_NONCE_MAX - 1; n < ACCESS_SCRAM_NONCE_MAX + 2; n++) {
        memset(text, 'r', sizeof text);
        memcpy(text, "n,,n=u,r=", 9);
        assert_int_equal(first_step(ring, slice_of(text, 9 + n), &s, &reply), n <= ACCESS_SCRAM_NONCE_MAX ? OK : E_BAD_AUTHORIZATION);
    }
    for (size_t n = LIMIT_SASL_BYTES - 1; n < LIMIT_SASL_BYTES + 2; n++) {
        memset(text, 'u', sizeof text);
        memcpy(text, "n,,n=", 5);
        memcpy(text + n - 4, ",r=x", 4);
        assert_int_equal(first_step(ring, slice_of(text, n), &s, &reply), n <= LIMIT_SASL_BYTES ? OK : E_BAD_AUTHORIZATION);
        assert_true(s.text_n <= sizeof s.text);
    }
    buf_free(&reply);
    access_keys_close(keys);
}

/* Each case changes the right final message in one way. */
static slice broken_final(slice right, unsigned how) {
    char *text = arena_text(&memory, right);
    char *nonce = strstr(text, ",r="), *proof = strstr(text, ",p=");
    switch (how) {
    case 0: /* without a proof */
        return slice_of(text, (size_t)(proof - text));
    case 1: /* something after the proof */
        return arena_printf(&memory, "%s,x=1", text);
    case 2: /* a shorter proof */
        return arena_printf(&memory, "%.*s,p=AAAA", (int)(proof - text), text);
    case 3: /* a proof for another hash */
        return arena_printf(&memory, "%.*s,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=", (int)(proof - text), text);
    case 4: /* not base64 */
        return arena_printf(&memory, "%.*s,p=*", (int)(proof - text), text);
    case 5: /* another nonce */
        return arena_printf(&memory, "%.*s,r=x%s", (int)(nonce - text), text, nonce + 3);
    case 6: /* another header */
        return arena_printf(&memory, "c=eSws%s", nonce);
    case 7: /* a mandatory extension */
        return arena_printf(&memory, "%.*s,m=1%s", (int)(proof - text), text, proof);
    case 8: /* the wrong order */
        return arena_printf(&memory, "%.*s,c=biws%s", (int)(proof - nonce - 1), nonce + 1, proof);
    default:
        return SLICE_EMPTY;
    }
}

static void final_messages(void **state) {
    (void)state;
    enum { WAYS = 10 };
    access_keys *keys = open_keys(ALL_KINDS);
    const access_ring *ring = access_keys_ring(keys);
    slice bare = SLICE_LIT("n=account=2C=3D1,r=" CLIENT_NONCE), expected;
    buf reply = buf_init(ACCESS_SCRAM_REPLY_MAX), final = buf_init(ACCESS_SCRAM_REPLY_MAX);
    for (unsigned how = 0; how < WAYS; how++) {
        access_scram s;
        access_reach reach;
        assert_int_equal(first_step(ring, SLICE_LIT("n,,n=account=2C=3D1,r=" CLIENT_NONCE), &s, &reply), OK);
        slice right = client_final(&memory, ACCESS_SCRAM_SHA_256, NULL, key_one, bare, buf_view(&reply), "biws", &expected);
        assert_int_equal(access_scram_step(&o, &s, ring, broken_final(right, how), &final, &reach), E_BAD_AUTHORIZATION);
        assert_int_equal(reach.proof, ACCESS_NOBODY);
        assert_int_equal(access_scram_step(&o, &s, ring, right, &final, &reach), E_UNAUTHORIZED); /* no second try */
        assert_int_equal(final.n, 0);
    }
    buf_free(&reply);
    buf_free(&final);
    access_keys_close(keys);
}

static void a_proof_cannot_be_sent_again_or_changed(void **state) {
    (void)state;
    access_keys *keys = open_keys(ALL_KINDS);
    const access_ring *ring = access_keys_ring(keys);
    slice message = SLICE_LIT("n,,n=account=2C=3D1,r=" CLIENT_NONCE), bare = slice_skip(message, 3), expected;
    buf reply = buf_init(ACCESS_SCRAM_REPLY_MAX), final = buf_init(ACCESS_SCRAM_REPLY_MAX);
    access_scram s;
    access_reach reach;
    assert_int_equal(first_step(ring, message, &s, &reply), OK);
    slice right = client_final(&memory, ACCESS_SCRAM_SHA_256, NULL, key_one, bare, buf_view(&reply), "biws", &expected);
    access_scram begun = s;
    assert_int_equal(access_scram_step(&o, &s, ring, right, &final, &reach), OK);
    assert_int_equal(access_scram_step(&o, &s, ring, right, &final, &reach), E_UNAUTHORIZED); /* the exchange is over */
    assert_int_equal(first_step(ring, message, &s, &reply), OK);
    assert_int_equal(access_scram_step(&o, &s, ring, right, &final, &reach), E_BAD_AUTHORIZATION); /* another nonce */
    char *text = arena_text(&memory, right);
    char *proof = strstr(text, ",p=") + 3;
    for (unsigned i = 0; i < 43; i++) {
        char kept = proof[i];
        proof[i] = kept == 'A' ? 'E' : 'A'; /* stays canonical base64, even at the last position */
        s = begun;
        assert_int_equal(access_scram_step(&o, &s, ring, slice_of(text, right.n), &final, &reach), E_UNAUTHORIZED);
        proof[i] = kept;
    }
    s = begun;
    buf_clear(&final);
    assert_int_equal(access_scram_step(&o, &s, ring, slice_of(text, right.n), &final, &reach), OK);
    buf_free(&reply);
    buf_free(&final);
    access_keys_close(keys);
}

/* ---- unknown users ---- */

static slice cut_nonce(slice server_first) {
    const char *comma = memchr(server_first.p, ',', server_first.n);
    return slice_skip(server_first, (size_t)(comma - server_first.p));
}

static int64_t time_of_refusal(const access_ring *ring, const char *user) {
    int64_t least = INT64_MAX;
    buf reply = buf_init(ACCESS_SCRAM_REPLY_MAX), final = buf_init(ACCESS_SCRAM_REPLY_MAX);
    slice bare = arena_printf(&memory, "n=%s,r=" CLIENT_NONCE, user), expected;
    slice message = arena_printf(&memory, "n,,%.*s", (int)bare.n, bare.p);
    access_scram begun, s;
    access_reach reach;
    assert_int_equal(first_step(ring, message, &begun, &reply), OK);
    slice wrong = client_final(&memory, ACCESS_SCRAM_SHA_256, user, "no key of the account", bare, buf_view(&reply), "biws", &expected);
    for (int round = 0; round < 50; round++) {
        int64_t begin = clock_monotonic_us(&clock_system);
        for (int i = 0; i < 100; i++) {
            s = begun;
            assert_int_equal(access_scram_step(&o, &s, ring, wrong, &final, &reach), E_UNAUTHORIZED);
        }
        int64_t took = clock_monotonic_us(&clock_system) - begin;
        least = took < least ? took : least;
    }
    buf_free(&reply);
    buf_free(&final);
    return least;
}

static void unknown_users_take_the_same_way(void **state) {
    (void)state;
    access_keys *keys = open_keys(ALL_KINDS);
    const access_ring *ring = access_keys_ring(keys);
    buf known = buf_init(ACCESS_SCRAM_REPLY_MAX), unknown = buf_init(ACCESS_SCRAM_REPLY_MAX);
    access_scram s;
    assert_int_equal(first_step(ring, SLICE_LIT("n,,n=account=2C=3D1,r=x"), &s, &known), OK);
    assert_int_equal(first_step(ring, SLICE_LIT("n,,n=somebody,r=x"), &s, &unknown), OK);
    assert_int_equal(known.n, unknown.n);
    assert_false(slice_eq(buf_view(&known), buf_view(&unknown)));
    assert_true(slice_eq(cut_nonce(buf_view(&known)), cut_nonce(buf_view(&unknown)))); /* the same salt and iterations */
    int64_t a = time_of_refusal(ring, "account=2C=3D1"), b = time_of_refusal(ring, "somebody");
    print_message("a refusal takes %ld ns for the account, %ld ns for an unknown user\n", (long)a * 10, (long)b * 10);
    assert_true(a < 3 * b && b < 3 * a);
    buf_free(&known);
    buf_free(&unknown);
    access_keys_close(keys);
}

/* Derivation runs when a ring is made, also on a loop's timer (access_keys_tick), so it must be quick. */
static void secrets_of_a_key_take_milliseconds(void **state) {
    (void)state;
    static const char *const names[] = {"SHA-256", "SHA-1", "MongoDB's SHA-1"};
    for (access_scram_kind kind = 0; kind < ACCESS_SCRAM_COUNT; kind++) {
        access_scram_setup setup = {.user = "user", .kinds = 1u << kind, .salt_n = 16, .iterations = ACCESS_SCRAM_ITERATIONS};
        access_scram_secrets *secrets = access_scram_secrets_new(&setup);
        int64_t least = INT64_MAX;
        for (int i = 0; i < 10; i++) {
            int64_t begin = clock_monotonic_us(&clock_system);
            access_scram_secrets_add(secrets, ACCESS_KEY_PRIMARY, slice_str(access_key_emulator));
            int64_t took = clock_monotonic_us(&clock_system) - begin;
            least = took < least ? took : least;
        }
        print_message("secrets of a key for %s: %ld us\n", names[kind], (long)least);
        assert_true(least < 500000);
        access_scram_secrets_free(secrets);
    }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(published_exchanges_come_out_as_printed),
        TEST(every_key_is_a_password_of_the_account),
        TEST(only_kinds_that_are_offered_are_taken),
        TEST(any_name_if_the_setup_says_so),
        TEST(first_messages),
        TEST(lengths_are_bounded),
        TEST(final_messages),
        TEST(a_proof_cannot_be_sent_again_or_changed),
        TEST(unknown_users_take_the_same_way),
        TEST(secrets_of_a_key_take_milliseconds),
    };
    return cmocka_run_group_tests_name("access/scram", tests, NULL, NULL);
}
