/* scram.h — SCRAM (RFC 5802, RFC 7677), the server's side: the client shows that it knows a key without sending it.
 *
 *     client  n,,n=user,r=nonce                      →
 *             ←   r=nonce+ours,s=salt,i=iterations        server
 *     client  c=biws,r=nonce+ours,p=proof            →
 *             ←   v=signature                             server
 *
 * The user is the account, or any name if the setup says so; its password is any of the account's keys. A key's secrets (StoredKey,
 * ServerKey) are derived when the ring is made, which takes some milliseconds for each key and kind, never during a request. All keys share
 * one salt, random for each start of the server, so a proof can be tried with each of them: two microseconds a key. An unknown user gets
 * the same salt and goes through the same steps, and fails only at the end. Channel binding is not offered.
 *
 * Keys are random, so iterations add no protection; their number is the minimum that clients accept. A key's text is base64, which SASLprep
 * does not change. */
#pragma once

#include "access/reach.h"
#include "base/limits.h"

typedef enum access_scram_kind {
    ACCESS_SCRAM_SHA_256,
    ACCESS_SCRAM_SHA_1,
    ACCESS_SCRAM_SHA_1_MONGO, /* MongoDB's SCRAM-SHA-1: the password is the hexadecimal MD5 of user:mongo:password */
    ACCESS_SCRAM_COUNT
} access_scram_kind;

/* ---- secrets of a ring ---- */

enum { ACCESS_SCRAM_HASH_MAX = 32, ACCESS_SCRAM_SALT_MAX = 32, ACCESS_SCRAM_ITERATIONS = 4096 };

typedef struct access_scram_setup {
    const char *user; /* the account's name; NULL: no SCRAM */
    bool any_user;    /* other names are accepted too, by the kinds whose secrets do not depend on the name */
    unsigned kinds;   /* kinds to offer: bits 1 << access_scram_kind */
    unsigned char salt[ACCESS_SCRAM_SALT_MAX];
    size_t salt_n; /* a kind with a short hash uses the first ones of these bytes */
    unsigned iterations;
} access_scram_setup;

access_scram_secrets *access_scram_secrets_new(const access_scram_setup *setup); /* the user's name must outlive it */
void access_scram_secrets_add(access_scram_secrets *s, access_key key, slice password);
void access_scram_secrets_copy(access_scram_secrets *s, const access_scram_secrets *from, access_key key); /* both have the same setup */
void access_scram_secrets_free(access_scram_secrets *s);                                                   /* overwrites the secrets */

/* Whether this kind is offered to clients; `s` may be NULL. */
bool access_scram_offers(const access_scram_secrets *s, access_scram_kind kind);
bool access_scram_offers_to(const access_scram_secrets *s, access_scram_kind kind, slice user); /* whether it is offered to this user */

/* ---- one exchange ---- */

enum { ACCESS_SCRAM_NONCE_MAX = 256, ACCESS_SCRAM_NONCE_OURS = 32, ACCESS_SCRAM_REPLY_MAX = 512 };

typedef enum access_scram_state { SCRAM_FIRST, SCRAM_FINAL, SCRAM_DONE, SCRAM_FAILED } access_scram_state;

/* The state of one exchange; fixed size, contains no secrets. */
typedef struct access_scram {
    access_scram_kind kind;
    access_scram_state state;
    bool known;                         /* the user is the account */
    char ours[ACCESS_SCRAM_NONCE_OURS]; /* the server's part of the nonce */
    size_t ours_n;
    char text[LIMIT_SASL_BYTES + ACCESS_SCRAM_REPLY_MAX]; /* the client's first message, a comma, the server's first */
    size_t text_n;
    size_t header_n;          /* bytes of text that are the client's GS2 header */
    size_t nonce_at, nonce_n; /* client's and server's part together, in text */
} access_scram;

void access_scram_begin(access_scram *s, access_scram_kind kind);

/* Processes the client's next message and appends the answer to `reply`, at most ACCESS_SCRAM_REPLY_MAX bytes. OK and SCRAM_DONE:
 * authenticated, the reach is filled; send the answer. OK and SCRAM_FINAL: send the answer and continue. An error ends the exchange:
 * E_BAD_AUTHORIZATION: malformed message; E_UNAUTHORIZED: the user or the key is wrong, or the kind is not offered. Each step may use a
 * newer ring; the key must be in the last one. */
MUST_CHECK err access_scram_step(op *o, access_scram *s, const access_ring *ring, slice message, buf *reply, access_reach *reach_out);
