/* SHA256_* are deprecated in favour of contexts on the heap, but their state is a plain value: a signature begins with a copy of it. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "client/sign.h"

#include <ctype.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/memory.h"

struct sign_key {
    SHA256_CTX inner, outer; /* have absorbed key ^ 36… and key ^ 5C… */
};

static void start_hash(SHA256_CTX *state, const unsigned char *key, unsigned char mask) {
    unsigned char block[SHA256_CBLOCK];
    for (size_t i = 0; i < sizeof block; i++) {
        block[i] = key[i] ^ mask;
    }
    SHA256_Init(state);
    SHA256_Update(state, block, sizeof block);
    OPENSSL_cleanse(block, sizeof block);
}

sign_key *client__sign_key_new(slice key) {
    sign_key *k = mem_zero(sizeof *k);
    unsigned char block[SHA256_CBLOCK] = {0};
    if (key.n > sizeof block) {
        SHA256((const unsigned char *)key.p, key.n, block);
    } else if (key.n) {
        memcpy(block, key.p, key.n);
    }
    start_hash(&k->inner, block, 0x36);
    start_hash(&k->outer, block, 0x5C);
    OPENSSL_cleanse(block, sizeof block);
    return k;
}

void client__sign_key_free(sign_key *k) {
    if (k) {
        OPENSSL_cleanse(k, sizeof *k);
        free(k);
    }
}

static void hash(const sign_key *k, slice text, unsigned char mac[SHA256_DIGEST_LENGTH]) {
    SHA256_CTX state = k->inner;
    SHA256_Update(&state, text.p, text.n);
    SHA256_Final(mac, &state);
    state = k->outer;
    SHA256_Update(&state, mac, SHA256_DIGEST_LENGTH);
    SHA256_Final(mac, &state);
}

void client__percent(buf *out, slice text) {
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if ((c < 0x80 && isalnum(c)) || c == '-' || c == '_' || c == '.' || c == '~') {
            buf_add_byte(out, (char)c);
        } else {
            char coded[3] = {'%', digits[c >> 4], digits[c & 15]};
            buf_add(out, coded, 3);
        }
    }
}

static void add_lower(buf *out, slice text) {
    for (size_t i = 0; i < text.n; i++) {
        buf_add_byte(out, (char)tolower((unsigned char)text.p[i]));
    }
    buf_add_byte(out, '\n');
}

void client__sign(const sign_key *k, const char *verb, const char *type, slice link, slice date, buf *out) {
    buf text = buf_init(64 * 1024), encoded = buf_init(256);
    unsigned char mac[SHA256_DIGEST_LENGTH];
    add_lower(&text, slice_str(verb));
    add_lower(&text, slice_str(type));
    buf_add_slice(&text, link);
    buf_add_byte(&text, '\n');
    add_lower(&text, date);
    buf_add_byte(&text, '\n');
    hash(k, buf_view(&text), mac);
    base64_encode(&encoded, slice_of(mac, sizeof mac));
    buf_add_lit(out, "type%3Dmaster%26ver%3D1.0%26sig%3D");
    client__percent(out, buf_view(&encoded));
    buf_free(&text);
    buf_free(&encoded);
}
