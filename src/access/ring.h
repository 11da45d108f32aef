/* ring.h — the account's keys at one moment, ready to check signatures and passwords.
 *
 * An account has up to four keys: two that may do everything and two read-only ones. The ring holds each key as hash states that have
 * already absorbed it, so a signature over a short text costs five or six SHA-256 blocks. A ring is filled once and then read-only, for any
 * thread. All comparisons with data from clients take constant time. Nothing here is ever logged. keys.h makes and replaces rings while
 * the server runs. */
#pragma once

#include "base/buf.h"

typedef enum access_key {
    ACCESS_KEY_PRIMARY,
    ACCESS_KEY_SECONDARY,
    ACCESS_KEY_PRIMARY_READ_ONLY,
    ACCESS_KEY_SECONDARY_READ_ONLY,
    ACCESS_KEY_COUNT
} access_key;

static inline bool access_key_is_read_only(access_key key) {
    return key == ACCESS_KEY_PRIMARY_READ_ONLY || key == ACCESS_KEY_SECONDARY_READ_ONLY;
}

/* The emulator's well-known key, which is public. */
extern const char access_key_emulator[];

typedef struct access_ring access_ring;

access_ring *access_ring_new(void);
bool access_ring_set(access_ring *ring, access_key key, slice base64); /* false: not base64, or empty */
void access_ring_free(access_ring *ring);                              /* wipes it */

/* Keys that are the same as in `before` keep their serial. Call once, before the ring is used; see access_ring_serial. */
void access_ring_follow(access_ring *ring, const access_ring *before);

/* A number that identifies this key's value: a new value gets a new number. 0: no such key. A reach remembers it to detect a changed key
 * (reach.h). */
uint64_t access_ring_serial(const access_ring *ring, access_key key);

/* SCRAM's secrets derived from the keys (scram.h), owned by the ring; NULL: SCRAM is not offered. */
typedef struct access_scram_secrets access_scram_secrets;
void access_ring_give_scram(access_ring *ring, access_scram_secrets *secrets);
const access_scram_secrets *access_ring_scram(const access_ring *ring);

/* ---- keys sent in clear: as a password or a bearer token ---- */

bool access_ring_find(const access_ring *ring, slice base64, access_key *key_out); /* in constant time; false: not one of the keys */

/* Like access_ring_find, but also matches keys that produce the same signatures: HMAC ignores zero bytes at the end of a key, and replaces
 * a long key by its hash. */
bool access_ring_signs_alike(const access_ring *ring, slice base64, access_key *key_out);

/* ---- signatures: HMAC-SHA256 under a key, over whatever text a protocol composes ---- */

enum { ACCESS_MAC_BYTES = 32 };

/* Decodes the 44 characters of a signature. False: malformed, so wrong for every text. */
bool access_signature_read(slice base64, unsigned char signature_out[ACCESS_MAC_BYTES]);

/* Finds the key that signed the text. False, and ACCESS_KEY_COUNT: none of them. */
bool access_ring_verify(const access_ring *ring, slice text, const unsigned char signature[ACCESS_MAC_BYTES], access_key *key_out);

/* Appends the 44 characters of a signature: for our own clients and tools. False: no such key in the ring. */
bool access_ring_sign(const access_ring *ring, access_key key, slice text, buf *out);

/* ---- keys derived from keys ---- */

/* The key that signs resource tokens (token.h), derived from the primary key: changing the primary key invalidates all tokens. False: there
 * is no primary key. */
enum { ACCESS_TOKEN_KEY_BYTES = 32 };
bool access_token_key(const access_ring *ring, unsigned char key_out[ACCESS_TOKEN_KEY_BYTES]);

/* HMAC-SHA256 with such a derived key. */
void access_mac(const unsigned char key[ACCESS_TOKEN_KEY_BYTES], slice bytes, unsigned char mac_out[ACCESS_MAC_BYTES]);
