/* ring.h — the account's keys at one moment, ready to check signatures and passwords.
 *
 * An account has up to four keys: two that may do everything and two that read. The ring holds each of them as hash states that have
 * already taken in the key, so a signature over a short text costs five or six SHA-256 blocks. It is filled once and then only read, by any
 * thread. Every comparison with what a client sent takes the same time whatever it is. Nothing here is ever logged. keys.h tells how rings
 * are made and replaced while the server runs. */
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

/* The emulator's well-known key, which is no secret. */
extern const char access_key_emulator[];

typedef struct access_ring access_ring;

access_ring *access_ring_new(void);
bool access_ring_set(access_ring *ring, access_key key, slice base64); /* false: not base64, or empty */
void access_ring_free(access_ring *ring);                              /* and wiped */

/* Keys that are the same in the ring before keep their serial. Once, before the ring is used; see access_ring_serial. */
void access_ring_follow(access_ring *ring, const access_ring *before);

/* A number that stands for this key's value: another value, another number. 0: no such key. It tells whoever authenticated earlier whether
 * the key is still the same (reach.h). */
uint64_t access_ring_serial(const access_ring *ring, access_key key);

/* What SCRAM knows of the keys (scram.h): owned by the ring; NULL: it is not offered. */
typedef struct access_scram_secrets access_scram_secrets;
void access_ring_give_scram(access_ring *ring, access_scram_secrets *secrets);
const access_scram_secrets *access_ring_scram(const access_ring *ring);

/* ---- a key as it is: a password, a bearer token ---- */

bool access_ring_find(const access_ring *ring, slice base64, access_key *key_out); /* in constant time; false: none of them */

/* ---- signatures: HMAC-SHA256 under a key, over whatever text a protocol composes ---- */

enum { ACCESS_MAC_BYTES = 32 };

/* The 44 characters of a signature as bytes. False: it has another form, and is wrong for every text. */
bool access_signature_read(slice base64, unsigned char signature_out[ACCESS_MAC_BYTES]);

/* Which key the text was signed with. False, and ACCESS_KEY_COUNT: none of them. */
bool access_ring_verify(const access_ring *ring, slice text, const unsigned char signature[ACCESS_MAC_BYTES], access_key *key_out);

/* Appends the 44 characters of a signature: for our own clients and tools. False: no such key in the ring. */
bool access_ring_sign(const access_ring *ring, access_key key, slice text, buf *out);

/* ---- keys derived from keys ---- */

/* The key that resource tokens are signed with (token.h), made from the primary key: another primary key, other tokens. False: there is
 * none. */
enum { ACCESS_TOKEN_KEY_BYTES = 32 };
bool access_token_key(const access_ring *ring, unsigned char key_out[ACCESS_TOKEN_KEY_BYTES]);

/* HMAC-SHA256 under such a key. */
void access_mac(const unsigned char key[ACCESS_TOKEN_KEY_BYTES], slice bytes, unsigned char mac_out[ACCESS_MAC_BYTES]);
