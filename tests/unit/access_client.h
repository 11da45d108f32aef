/* A SCRAM client and a key file for tests of src/access. Uses only OpenSSL, so that our code does not check itself. */
#pragma once

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "access/keys.h"
#include "base/base64.h"

#define CLIENT_NONCE "fyko+d2lbbFgONRv9qkxdawL"

/* Two full keys and a read-only one. */
static const char key_one[] = "Zmlyc3Qga2V5LCBsb25nIGVub3VnaCBub3QgdG8gYmUgZ3Vlc3NlZCBieSBhbnlib2R5";
static const char key_two[] = "c2Vjb25kIGtleSwgbG9uZyBlbm91Z2ggbm90IHRvIGJlIGd1ZXNzZWQgYnkgYW55Ym9keQ==";
static const char key_reader[] = "cmVhZGVyJ3Mga2V5LCBsb25nIGVub3VnaCBub3QgdG8gYmUgZ3Vlc3NlZCBieSBhbnlib2R5";

static inline slice client_text(arena *a, const buf *b) {
    return arena_copy(a, buf_view(b));
}

/* The password in the form that the kind uses. */
static inline slice client_password(arena *a, access_scram_kind kind, const char *user, const char *password) {
    if (kind != ACCESS_SCRAM_SHA_1_MONGO) {
        return slice_str(password);
    }
    unsigned char digest[16];
    slice text = arena_printf(a, "%s:mongo:%s", user, password);
    assert_int_equal(EVP_Digest(text.p, text.n, digest, NULL, EVP_md5(), NULL), 1);
    buf hex = buf_init(BUF_NO_LIMIT);
    for (unsigned i = 0; i < sizeof digest; i++) {
        buf_addf(&hex, "%02x", digest[i]);
    }
    slice made = client_text(a, &hex);
    buf_free(&hex);
    return made;
}

/* The client's final message in answer to the server's first one, and the signature that the server must return. */
static inline slice client_final(arena *a, access_scram_kind kind, const char *user, const char *password, slice bare, slice server_first,
                                 const char *header_base64, slice *server_final_out) {
    const EVP_MD *md = kind == ACCESS_SCRAM_SHA_256 ? EVP_sha256() : EVP_sha1();
    unsigned n = (unsigned)EVP_MD_get_size(md);
    unsigned char salt[64], salted[32], client_key[32], stored[32], signature[32], server_key[32];
    char *text = arena_text(a, server_first);
    char *s = strstr(text, ",s="), *i = strstr(text, ",i=");
    assert_true(slice_starts(server_first, SLICE_LIT("r=")) && s && i);
    buf decoded = {.p = (char *)salt, .cap = sizeof salt, .max = sizeof salt}, proof = buf_init(1000), final = buf_init(1000);
    assert_true(base64_decode(&decoded, slice_of(s + 3, (size_t)(i - s - 3))));
    slice pw = client_password(a, kind, user, password);
    assert_int_equal(PKCS5_PBKDF2_HMAC(pw.p, (int)pw.n, salt, (int)decoded.n, atoi(i + 3), md, (int)n, salted), 1);
    assert_non_null(HMAC(md, salted, (int)n, (const unsigned char *)"Client Key", 10, client_key, NULL));
    assert_non_null(HMAC(md, salted, (int)n, (const unsigned char *)"Server Key", 10, server_key, NULL));
    assert_int_equal(EVP_Digest(client_key, n, stored, NULL, md, NULL), 1);
    slice without = arena_printf(a, "c=%s,%.*s", header_base64, (int)(s - text), text);
    slice all = arena_printf(a, "%.*s,%s,%.*s", (int)bare.n, bare.p, text, (int)without.n, without.p);
    assert_non_null(HMAC(md, stored, (int)n, (const unsigned char *)all.p, all.n, signature, NULL));
    for (unsigned b = 0; b < n; b++) {
        client_key[b] ^= signature[b];
    }
    base64_encode(&proof, slice_of(client_key, n));
    slice message = arena_printf(a, "%.*s,p=%.*s", (int)without.n, without.p, (int)proof.n, proof.p);
    assert_non_null(HMAC(md, server_key, (int)n, (const unsigned char *)all.p, all.n, signature, NULL));
    buf_add_lit(&final, "v=");
    base64_encode(&final, slice_of(signature, n));
    *server_final_out = client_text(a, &final);
    buf_free(&proof);
    buf_free(&final);
    return message;
}

/* Runs a whole exchange. */
static inline err client_authenticate(op *o, const access_ring *ring, access_scram_kind kind, const char *user, const char *password,
                                      access_reach *reach_out) {
    access_scram s;
    buf first = buf_init(ACCESS_SCRAM_REPLY_MAX), final = buf_init(ACCESS_SCRAM_REPLY_MAX);
    slice expected = SLICE_EMPTY, bare = arena_printf(o->arena, "n=%s,r=" CLIENT_NONCE, user);
    slice message = arena_printf(o->arena, "n,,%.*s", (int)bare.n, bare.p);
    access_scram_begin(&s, kind);
    err code = access_scram_step(o, &s, ring, message, &first, reach_out);
    if (code == OK) {
        message = client_final(o->arena, kind, user, password, bare, buf_view(&first), "biws", &expected);
        code = access_scram_step(o, &s, ring, message, &final, reach_out);
    }
    if (code == OK) {
        assert_true(s.state == SCRAM_DONE && slice_eq(buf_view(&final), expected));
    } else {
        assert_true(s.state == SCRAM_FAILED && final.n == 0 && reach_out->proof == ACCESS_NOBODY);
    }
    buf_free(&first);
    buf_free(&final);
    return code;
}
