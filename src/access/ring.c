#include "access/ring.h"

#include <openssl/crypto.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "access/scram.h"
#include "base/base64.h"
#include "base/hmac.h"
#include "base/memory.h"

const char access_key_emulator[] = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

enum { KEY_BYTES_MAX = 256, SIGNATURE_TEXT = 44 };

typedef struct keyed_hash {
    bool present;
    uint64_t serial;                            /* identifies this value of the key */
    unsigned char digest[SHA256_DIGEST_LENGTH]; /* hash of the key itself: HMAC treats some different keys as equal */
    hmac_key signs;
} keyed_hash;

struct access_ring {
    keyed_hash keys[ACCESS_KEY_COUNT];
    access_scram_secrets *scram;
};

access_ring *access_ring_new(void) {
    return mem_zero(sizeof(access_ring));
}

void access_ring_free(access_ring *ring) {
    if (ring) {
        access_scram_secrets_free(ring->scram);
        OPENSSL_cleanse(ring, sizeof *ring);
        free(ring);
    }
}

static bool start_key(keyed_hash *hash, slice base64) {
    char room[KEY_BYTES_MAX];
    buf bytes = {.p = room, .cap = sizeof room, .max = sizeof room};
    bool good = base64_decode(&bytes, base64) && bytes.n > 0;
    if (good) {
        SHA256((const unsigned char *)room, bytes.n, hash->digest);
        hmac_key_set(&hash->signs, buf_view(&bytes));
        hash->present = true;
    }
    OPENSSL_cleanse(room, sizeof room);
    return good;
}

bool access_ring_set(access_ring *ring, access_key key, slice base64) {
    static atomic_uint_fast64_t serials;
    ring->keys[key].serial = atomic_fetch_add(&serials, 1) + 1;
    return start_key(&ring->keys[key], base64);
}

void access_ring_follow(access_ring *ring, const access_ring *before) {
    for (access_key key = ACCESS_KEY_PRIMARY; key < ACCESS_KEY_COUNT; key++) {
        keyed_hash *own = &ring->keys[key];
        const keyed_hash *old = &before->keys[key];
        if (own->present && old->present && CRYPTO_memcmp(own->digest, old->digest, sizeof own->digest) == 0) {
            own->serial = old->serial;
        }
    }
}

void access_ring_give_scram(access_ring *ring, access_scram_secrets *secrets) {
    ring->scram = secrets;
}

const access_scram_secrets *access_ring_scram(const access_ring *ring) {
    return ring->scram;
}

uint64_t access_ring_serial(const access_ring *ring, access_key key) {
    return ring->keys[key].present ? ring->keys[key].serial : 0;
}

/* Compares all keys even after a match, to take constant time. */
static bool find(const access_ring *ring, slice base64, bool alike, access_key *key_out) {
    keyed_hash given = {0};
    bool good = start_key(&given, base64);
    *key_out = ACCESS_KEY_COUNT;
    for (access_key key = ACCESS_KEY_COUNT; good && key-- > ACCESS_KEY_PRIMARY;) {
        const keyed_hash *own = &ring->keys[key];
        bool same = alike ? hmac_key_equal(&given.signs, &own->signs) : CRYPTO_memcmp(given.digest, own->digest, sizeof own->digest) == 0;
        *key_out = own->present && same ? key : *key_out;
    }
    OPENSSL_cleanse(&given, sizeof given);
    return *key_out != ACCESS_KEY_COUNT;
}

bool access_ring_find(const access_ring *ring, slice base64, access_key *key_out) {
    return find(ring, base64, false, key_out);
}

bool access_ring_signs_alike(const access_ring *ring, slice base64, access_key *key_out) {
    return find(ring, base64, true, key_out);
}

bool access_ring_sign(const access_ring *ring, access_key key, slice text, buf *out) {
    unsigned char digest[HMAC_BYTES];
    if (!ring->keys[key].present) {
        return false;
    }
    hmac_sign(&ring->keys[key].signs, text, digest);
    base64_encode(out, slice_of(digest, sizeof digest));
    return true;
}

/* ---- signatures ---- */

bool access_signature_read(slice base64, unsigned char signature_out[ACCESS_MAC_BYTES]) {
    buf bytes = {.p = (char *)signature_out, .cap = ACCESS_MAC_BYTES, .max = ACCESS_MAC_BYTES};
    return base64.n == SIGNATURE_TEXT && base64_decode(&bytes, base64) && bytes.n == ACCESS_MAC_BYTES;
}

bool access_ring_verify(const access_ring *ring, slice text, const unsigned char signature[ACCESS_MAC_BYTES], access_key *key_out) {
    *key_out = ACCESS_KEY_COUNT;
    for (access_key key = ACCESS_KEY_PRIMARY; key < ACCESS_KEY_COUNT; key++) {
        unsigned char expected[HMAC_BYTES];
        if (!ring->keys[key].present) {
            continue;
        }
        hmac_sign(&ring->keys[key].signs, text, expected);
        if (CRYPTO_memcmp(expected, signature, sizeof expected) == 0) {
            *key_out = key;
            return true;
        }
    }
    return false;
}

/* ---- keys derived from keys ---- */

bool access_token_key(const access_ring *ring, unsigned char key_out[ACCESS_TOKEN_KEY_BYTES]) {
    const keyed_hash *primary = &ring->keys[ACCESS_KEY_PRIMARY];
    if (primary->present) {
        /* domain separation: texts that clients sign contain line ends */
        hmac_sign(&primary->signs, SLICE_LIT("tesela: resource tokens, 1"), key_out);
    }
    return primary->present;
}

void access_mac(const unsigned char key[ACCESS_TOKEN_KEY_BYTES], slice bytes, unsigned char mac_out[ACCESS_MAC_BYTES]) {
    hmac_key k;
    hmac_key_set(&k, slice_of(key, ACCESS_TOKEN_KEY_BYTES));
    hmac_sign(&k, bytes, mac_out);
    hmac_key_wipe(&k);
}
