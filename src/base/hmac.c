/* Measured on 86 bytes: 240 ns with SHA256_* and copied states, 430 to 590 ns with HMAC_* or EVP_MAC_* and a context per thread, 1050 ns
 * with EVP_MAC_CTX_dup. SHA256_* are deprecated in favour of the others, but they run the same code underneath, and their hash state is a
 * plain value that any thread may copy. */
#include "base/hmac.h"

#include <openssl/crypto.h>

static void start(SHA256_CTX *state, const unsigned char key[SHA256_CBLOCK], unsigned char mask) {
    unsigned char block[SHA256_CBLOCK];
    for (size_t i = 0; i < sizeof block; i++) {
        block[i] = key[i] ^ mask;
    }
    SHA256_Init(state);
    SHA256_Update(state, block, sizeof block);
    OPENSSL_cleanse(block, sizeof block);
}

void hmac_key_set(hmac_key *k, slice key) {
    unsigned char block[SHA256_CBLOCK] = {0};
    if (key.n > sizeof block) {
        SHA256((const unsigned char *)key.p, key.n, block);
    } else if (key.n) {
        memcpy(block, key.p, key.n);
    }
    start(&k->inner, block, 0x36);
    start(&k->outer, block, 0x5C);
    OPENSSL_cleanse(block, sizeof block);
}

void hmac_key_wipe(hmac_key *k) {
    OPENSSL_cleanse(k, sizeof *k);
}

void hmac_sign(const hmac_key *k, slice text, unsigned char mac_out[HMAC_BYTES]) {
    SHA256_CTX state = k->inner;
    SHA256_Update(&state, text.p, text.n);
    SHA256_Final(mac_out, &state);
    state = k->outer;
    SHA256_Update(&state, mac_out, HMAC_BYTES);
    SHA256_Final(mac_out, &state);
}

bool hmac_key_equal(const hmac_key *a, const hmac_key *b) {
    return CRYPTO_memcmp(a->inner.h, b->inner.h, sizeof a->inner.h) == 0;
}
