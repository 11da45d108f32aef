/* Resource tokens: only tokens that were written are accepted, and only until they expire. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "access/token.h"
#include "base/clock.h"

enum { NOW = 1800000000 };

static access_ring *ring;
static unsigned char key[ACCESS_TOKEN_KEY_BYTES];
static arena a;
static op o;

static int set_up(void **state) {
    (void)state;
    ring = access_ring_new();
    a = arena_init();
    op_init(&o, &a, NOW);
    assert_true(access_ring_set(ring, ACCESS_KEY_PRIMARY, slice_str(access_key_emulator)));
    assert_true(access_token_key(ring, key));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    access_ring_free(ring);
    arena_free(&a);
    return 0;
}

static access_token example(void) {
    return (access_token){rid_permission(rid_user(rid_database(7), 200), 9), 12345, NOW, NOW + 3600};
}

static slice written(const access_token *t) {
    buf out = buf_init(BUF_NO_LIMIT);
    access_token_write(&out, key, t);
    slice text = arena_copy(&a, buf_view(&out));
    buf_free(&out);
    return text;
}

static slice signature_of(slice text) {
    slice signature;
    assert_true(access_token_cut(text, &signature));
    return signature;
}

static void are_read_as_written(void **state) {
    (void)state;
    access_token t = example(), again;
    slice text = written(&t);
    assert_true(text.n <= ACCESS_TOKEN_TEXT_MAX);
    assert_int_equal(access_token_read(&o, key, signature_of(text), &again), OK);
    assert_true(rid_equal(&t.permission, &again.permission));
    assert_int_equal(again.version, t.version);
    assert_int_equal(again.from_s, t.from_s);
    assert_int_equal(again.until_s, t.until_s);
    assert_false(slice_eq(text, written(&t))); /* every token is unique */
}

static void hold_while_their_time_lasts(void **state) {
    (void)state;
    static const struct {
        int64_t at;
        err code;
    } times[] = {{0, OK}, {3599, OK}, {3600, E_FORBIDDEN}, {86400, E_FORBIDDEN}, {-900, OK}, {-901, E_FORBIDDEN}, {INT32_MAX, E_FORBIDDEN}};
    access_token t = example(), again;
    slice signature = signature_of(written(&t));
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        o.now_s = NOW + times[i].at;
        o.detail_n = 0;
        assert_int_equal(access_token_read(&o, key, signature, &again), times[i].code);
        assert_int_equal(again.permission.n, times[i].code == OK ? 16 : 0);
        assert_int_equal(o.detail_n > 0, times[i].code != OK);
    }
}

/* Any flipped bit, in the signature or in the payload, makes the token invalid. */
static void bear_no_change(void **state) {
    (void)state;
    access_token t = example(), again;
    slice signature = signature_of(written(&t));
    char *text = arena_text(&a, signature);
    for (size_t i = 0; i < signature.n; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            text[i] = (char)(text[i] ^ (1 << bit));
            err code = access_token_read(&o, key, slice_of(text, signature.n), &again);
            assert_true(code == E_BAD_AUTHORIZATION || code == E_UNAUTHORIZED);
            assert_int_equal(again.permission.n, 0);
            text[i] = (char)(text[i] ^ (1 << bit));
        }
    }
    assert_int_equal(access_token_read(&o, key, slice_of(text, signature.n), &again), OK);
}

static void are_of_one_length(void **state) {
    (void)state;
    access_token t = example(), again;
    slice signature = signature_of(written(&t));
    for (size_t n = 0; n < signature.n - 1; n++) {
        assert_int_equal(access_token_read(&o, key, slice_of(signature.p, n), &again), E_BAD_AUTHORIZATION);
    }
    assert_int_equal(access_token_read(&o, key, slice_of(signature.p, signature.n - 1), &again),
                     OK); /* the last semicolon may be missing */
    slice longer = arena_printf(&a, "%.*s;", (int)signature.n, signature.p);
    assert_int_equal(access_token_read(&o, key, longer, &again), E_BAD_AUTHORIZATION);
}

/* Parts of two valid tokens do not make a third. */
static void cannot_be_put_together(void **state) {
    (void)state;
    access_token t = example(), other = example(), again;
    other.until_s += 86400;
    slice one = signature_of(written(&t)), two = signature_of(written(&other));
    slice mixed = arena_printf(&a, "%.44s%.*s", one.p, (int)two.n - 44, two.p + 44);
    assert_int_equal(access_token_read(&o, key, mixed, &again), E_UNAUTHORIZED);
}

static void end_with_the_primary_key(void **state) {
    (void)state;
    unsigned char another[ACCESS_TOKEN_KEY_BYTES];
    access_token t = example(), again;
    slice signature = signature_of(written(&t));
    assert_true(access_ring_set(ring, ACCESS_KEY_SECONDARY, SLICE_LIT("c2Vjb25kYXJ5")));
    assert_true(access_token_key(ring, another));
    assert_memory_equal(another, key, sizeof key);
    assert_true(access_ring_set(ring, ACCESS_KEY_PRIMARY, SLICE_LIT("YW5vdGhlcg==")));
    assert_true(access_token_key(ring, another));
    assert_int_equal(access_token_read(&o, another, signature, &again), E_UNAUTHORIZED);
    access_ring *empty = access_ring_new();
    assert_false(access_token_key(empty, another));
    access_ring_free(empty);
}

static void are_told_from_other_texts(void **state) {
    (void)state;
    static const char *const others[] = {"", "type=resource", "type=resource&ver=2&sig=x", "type=master&ver=1.0&sig=x",
                                         "ver=1&type=resource&sig=x"};
    slice signature;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(access_token_cut(slice_str(others[i]), &signature));
    }
    assert_true(access_token_cut(SLICE_LIT("type=resource&ver=1&sig=a;b"), &signature));
    assert_true(slice_eq(signature, SLICE_LIT("a;b")));
}

/* Signatures made with the account key are independent of the token key. */
static void have_a_key_of_their_own(void **state) {
    (void)state;
    buf out = buf_init(BUF_NO_LIMIT);
    assert_true(access_ring_sign(ring, ACCESS_KEY_PRIMARY, SLICE_LIT("get\ndbs\n\n\n\n"), &out));
    assert_int_not_equal(memcmp(out.p, key, sizeof key), 0);
    buf_free(&out);
}

/* Rejecting costs no more than accepting: one MAC. */
static void a_check_is_quick(void **state) {
    (void)state;
    enum { ROUNDS = 20000 };
    access_token t = example(), again;
    slice signature = signature_of(written(&t));
    int64_t begun = clock_monotonic_us(&clock_system);
    for (int i = 0; i < ROUNDS; i++) {
        assert_int_equal(access_token_read(&o, key, signature, &again), OK);
    }
    int64_t ns = (clock_monotonic_us(&clock_system) - begun) * 1000 / ROUNDS;
    print_message("checking a token: %ld ns\n", (long)ns);
    assert_true(ns < 1000000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(are_read_as_written, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hold_while_their_time_lasts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(bear_no_change, set_up, tear_down),
        cmocka_unit_test_setup_teardown(are_of_one_length, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cannot_be_put_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(end_with_the_primary_key, set_up, tear_down),
        cmocka_unit_test_setup_teardown(are_told_from_other_texts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(have_a_key_of_their_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_check_is_quick, set_up, tear_down),
    };
    return cmocka_run_group_tests_name("access/token", tests, NULL, NULL);
}
