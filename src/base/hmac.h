/* hmac.h — HMAC-SHA256 under a key that signs many texts: the key is hashed once, as far as every text needs it.
 *
 * A key is a plain value: any thread may read or copy it. It is as secret as the bytes it was made of, so wipe it. */
#pragma once

#define OPENSSL_SUPPRESS_DEPRECATED /* see hmac.c */
#include <openssl/sha.h>

#include "base/slice.h"

enum { HMAC_BYTES = SHA256_DIGEST_LENGTH };

typedef struct hmac_key {
    SHA256_CTX inner; /* has absorbed key ^ 36… */
    SHA256_CTX outer; /* has absorbed key ^ 5C… */
} hmac_key;

void hmac_key_set(hmac_key *k, slice key); /* any length */
void hmac_key_wipe(hmac_key *k);
void hmac_sign(const hmac_key *k, slice text, unsigned char mac_out[HMAC_BYTES]);

/* In constant time: whether both sign alike. Keys may differ that do: HMAC ignores zero bytes at the end of a key, and replaces a long key
 * by its hash. */
bool hmac_key_equal(const hmac_key *a, const hmac_key *b);
