/* SASL messages. The first byte chooses: a PLAIN message; two SCRAM messages, separated by a line feed, of a client without a key; or the
 * first message of a SCRAM client with a key, whose second message is computed here, so that the end of an exchange is reached too.
 *
 * The client's side uses only OpenSSL. A client without the key, or with another name, is never admitted; one with both is. */
#include <assert.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "access/plain.h"
#include "access/scram.h"
#include "base/base64.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const char own_name[] = "user", password[] = "cHJpbWFyeQ==";
enum { ITERATIONS = 2, HASH = 32 };

static const access_ring *the_ring(void) {
    static access_ring *ring;
    if (!ring) {
        access_scram_setup setup = {
            .user = own_name, .kinds = 1 << ACCESS_SCRAM_SHA_256, .salt = "salt", .salt_n = 4, .iterations = ITERATIONS};
        access_scram_secrets *secrets = access_scram_secrets_new(&setup);
        ring = access_ring_new();
        bool set = access_ring_set(ring, ACCESS_KEY_PRIMARY, slice_str(password));
        assert(set);
        access_scram_secrets_add(secrets, ACCESS_KEY_PRIMARY, slice_str(password));
        access_ring_give_scram(ring, secrets);
    }
    return ring;
}

static void mac(const unsigned char key[HASH], slice text, unsigned char out[HASH]) {
    const unsigned char *made = HMAC(EVP_sha256(), key, HASH, (const unsigned char *)text.p, text.n, out, NULL);
    assert(made);
}

/* ---- PLAIN ---- */

static void check_plain(op *o, slice message) {
    access_plain plain;
    if (access_plain_read(o, message, &plain) != OK) {
        return;
    }
    assert(plain.identity.p == message.p && plain.user.p == message.p + plain.identity.n + 1);
    assert(plain.password.p == plain.user.p + plain.user.n + 1 && plain.password.p + plain.password.n == message.p + message.n);
    assert(!memchr(plain.user.p, 0, plain.user.n) && !memchr(plain.password.p, 0, plain.password.n) && plain.user.n && plain.password.n);
    access_reach reach;
    slice name;
    err code = access_plain_check(o, the_ring(), NULL, message, &name, &reach);
    bool right = slice_eq(plain.password, slice_str(password)) && (!plain.identity.n || slice_eq(plain.identity, plain.user));
    bool token = slice_starts(plain.password, SLICE_LIT("type=resource"));
    assert(token || (code == OK) == right);
}

/* ---- SCRAM ---- */

static void check_stranger(op *o, slice input) {
    const char *end = memchr(input.p, '\n', input.n);
    slice first = slice_of(input.p, end ? (size_t)(end - input.p) : input.n), second = slice_skip(input, first.n + 1);
    access_scram s;
    access_reach reach;
    buf reply = buf_init(ACCESS_SCRAM_REPLY_MAX);
    access_scram_begin(&s, ACCESS_SCRAM_SHA_256);
    err code = access_scram_step(o, &s, the_ring(), first, &reply, &reach);
    assert((code == OK) == (s.state == SCRAM_FINAL) && buf_ok(&reply) && reach.proof == ACCESS_NOBODY);
    code = access_scram_step(o, &s, the_ring(), second, &reply, &reach);
    assert(code != OK && s.state == SCRAM_FAILED && reach.proof == ACCESS_NOBODY);
    buf_free(&reply);
}

/* The header ends with the second comma. */
static slice header_of(slice message) {
    const char *first = memchr(message.p, ',', message.n);
    slice rest = slice_skip(message, (size_t)(first - message.p) + 1);
    const char *second = memchr(rest.p, ',', rest.n);
    return slice_of(message.p, (size_t)(second - message.p) + 1);
}

static slice finish(op *o, slice message, slice header, slice reply) {
    unsigned char salted[HASH], client_key[HASH], stored[HASH], signature[HASH];
    char room[64];
    buf binding = buf_init(BUF_NO_LIMIT), proof = {.p = room, .cap = sizeof room, .max = sizeof room};
    slice bare = slice_skip(message, header.n);
    const char *nonce_end = memchr(reply.p, ',', reply.n);
    int made = PKCS5_PBKDF2_HMAC(password, (int)strlen(password), (const unsigned char *)"salt", 4, ITERATIONS, EVP_sha256(), HASH, salted);
    assert(made == 1);
    mac(salted, SLICE_LIT("Client Key"), client_key);
    made = EVP_Digest(client_key, HASH, stored, NULL, EVP_sha256(), NULL);
    assert(made == 1);
    base64_encode(&binding, header);
    slice without = arena_printf(o->arena, "c=%.*s,%.*s", (int)binding.n, binding.p, (int)(nonce_end - reply.p), reply.p);
    slice all = arena_printf(o->arena, "%.*s,%.*s,%.*s", (int)bare.n, bare.p, (int)reply.n, reply.p, (int)without.n, without.p);
    mac(stored, all, signature);
    for (unsigned i = 0; i < HASH; i++) {
        client_key[i] ^= signature[i];
    }
    base64_encode(&proof, slice_of(client_key, HASH));
    buf_free(&binding);
    return arena_printf(o->arena, "%.*s,p=%.*s", (int)without.n, without.p, (int)proof.n, proof.p);
}

static void check_friend(op *o, slice message) {
    access_scram s;
    access_reach reach;
    buf reply = buf_init(ACCESS_SCRAM_REPLY_MAX), final = buf_init(ACCESS_SCRAM_REPLY_MAX);
    access_scram_begin(&s, ACCESS_SCRAM_SHA_256);
    if (access_scram_step(o, &s, the_ring(), message, &reply, &reach) == OK) {
        slice header = header_of(message);
        bool is_user = slice_starts(slice_skip(message, header.n), SLICE_LIT("n=user,"));
        slice second = finish(o, message, header, buf_view(&reply));
        err code = access_scram_step(o, &s, the_ring(), second, &final, &reach);
        bool fits = second.n <= LIMIT_SASL_BYTES;
        assert(code == (!fits ? E_BAD_AUTHORIZATION : is_user ? OK : E_UNAUTHORIZED));
        assert((reach.proof == ACCESS_BY_KEY) == (code == OK) && (final.n > 0) == (code == OK));
    }
    buf_free(&reply);
    buf_free(&final);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 2) {
        return 0;
    }
    arena a = arena_init();
    op o;
    op_init(&o, &a, 1800000000);
    slice rest = slice_of(data + 1, n - 1);
    switch (data[0] % 3) {
    case 0:
        check_plain(&o, rest);
        break;
    case 1:
        check_stranger(&o, rest);
        break;
    default:
        check_friend(&o, rest);
    }
    arena_free(&a);
    return 0;
}
