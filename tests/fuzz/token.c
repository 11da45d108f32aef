/* Resource tokens, as a client may send them. The first byte chooses: the input is an authorization field; or a payload that is signed
 * here, so that the code behind the signature check is reached too. The second byte is the time, in seconds from now.
 *
 * The signature is made by OpenSSL's HMAC, so ours is checked as well. A token that was not signed here is never read. A token that is read
 * is written and read back the same, and a permission is found only by its own rid and version. */
#include <openssl/hmac.h>

#include "access/token.h"
#include "account/users.h"
#include "base/base64.h"
#include "world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { NOW = 1800000000, PAYLOAD = 49 };

static const unsigned char key[ACCESS_TOKEN_KEY_BYTES] = "a key that the fuzzer has not ..";

/* One permission; inputs do not change it. */
static permission *the_permission(world *w) {
    static permission *p;
    if (!p) {
        rid container = {.n = 8};
        memcpy(container.bytes, w->c->rid, 8);
        user_creation made = {.database = harness_name("d"), .id = SLICE_LIT("u")};
        permission_creation granted = {.database = harness_name("d"),
                                       .user = harness_name("u"),
                                       .id = SLICE_LIT("p"),
                                       .grant = {.kind = RID_CONTAINER, .container = container}};
        assert_int_equal(harness_change(&w->h, &made, account_create_user), OK);
        assert_int_equal(harness_change(&w->h, &granted, account_create_permission), OK);
        user_give(made.user_out);
        p = granted.permission_out;
    }
    return p;
}

static void check_permission(world *w, const access_token *t) {
    const permission *own = the_permission(w);
    permission *found = account_permission_valid(w->h.account, &t->permission, t->version);
    assert_true((found == own) == (rid_equal(&t->permission, &own->rid) && t->version == own->version));
    assert_true(found == NULL || found == own);
    permission_give(found);
}

static void check_again(op *o, const access_token *t) {
    buf text = buf_init(BUF_NO_LIMIT);
    slice signature;
    access_token again;
    access_token_write(&text, key, t);
    assert_true(text.n <= ACCESS_TOKEN_TEXT_MAX && access_token_cut(buf_view(&text), &signature));
    assert_int_equal(access_token_read(o, key, signature, &again), OK);
    assert_true(rid_equal(&t->permission, &again.permission) && t->version == again.version);
    assert_true(t->from_s == again.from_s && t->until_s == again.until_s && o->now_s < t->until_s);
    buf_free(&text);
}

static slice sign(op *o, slice given) {
    unsigned char payload[PAYLOAD] = {0}, mac[32];
    unsigned mac_n = sizeof mac;
    buf text = buf_init(BUF_NO_LIMIT);
    memcpy(payload, given.p, given.n < PAYLOAD ? given.n : PAYLOAD);
    assert_non_null(HMAC(EVP_sha256(), key, sizeof key, payload, sizeof payload, mac, &mac_n));
    base64_encode(&text, slice_of(mac, mac_n));
    buf_add_byte(&text, ';');
    base64_encode(&text, slice_of(payload, sizeof payload));
    slice signature = arena_copy(o->arena, buf_view(&text));
    buf_free(&text);
    return signature;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    static world w;
    if (n < 2) {
        return 0;
    }
    if (!w.c) {
        world_open(&w, 0);
    }
    arena a = arena_init();
    op o;
    op_init(&o, &a, NOW + (int8_t)data[1] * 100);
    slice rest = slice_of(data + 2, n - 2), signature = SLICE_EMPTY;
    access_token t;
    bool ours = data[0] & 1;
    if (ours) {
        signature = sign(&o, rest);
    }
    if (ours || access_token_cut(rest, &signature)) {
        err code = access_token_read(&o, key, signature, &t);
        assert_true(code != OK || ours);
        assert_true(code == OK || t.permission.n == 0);
        if (code == OK) {
            check_again(&o, &t);
            check_permission(&w, &t);
        }
    }
    arena_free(&a);
    return 0;
}
