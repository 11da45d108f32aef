/* auth.h — master-key signatures: who may send this request.
 *
 * A client sends authorization: type=master&ver=1.0&sig=… (percent-encoded, or as it is), sig being the base64 of HMAC-SHA256 under its
 * key over
 *
 *     lower(verb) \n  lower(resource type) \n  resource link \n  lower(x-ms-date) \n  \n
 *
 * or, when there is only a Date field, with that on the fifth line instead of the fourth. The key ring holds the account's four keys as
 * hash states that have already taken in the key, so a check costs five or six SHA-256 blocks. The ring is filled at start and then only
 * read, by any thread. Nothing here is ever logged. */
#pragma once

#include "api/sql/route.h"
#include "base/op.h"

typedef enum sql_key { SQL_KEY_PRIMARY, SQL_KEY_SECONDARY, SQL_KEY_PRIMARY_READ_ONLY, SQL_KEY_SECONDARY_READ_ONLY, SQL_KEY_COUNT } sql_key;

static inline bool sql_key_is_read_only(sql_key key) {
    return key == SQL_KEY_PRIMARY_READ_ONLY || key == SQL_KEY_SECONDARY_READ_ONLY;
}

/* The emulator's well-known key, which is no secret. */
extern const char sql_key_emulator[];

typedef struct sql_key_ring sql_key_ring;

sql_key_ring *sql_key_ring_new(void);
bool sql_key_ring_set(sql_key_ring *ring, sql_key key, slice base64);             /* false: not base64, or empty */
bool sql_key_ring_find(const sql_key_ring *ring, slice base64, sql_key *key_out); /* in constant time; false: none of them */
void sql_key_ring_free(sql_key_ring *ring);                                       /* and wiped */

typedef struct sql_auth_request {
    slice verb; /* as sent: "GET" */
    const sql_route *route;
    slice authorization; /* fields as sent; p NULL if absent */
    slice x_ms_date;
    slice date;
} sql_auth_request;

/* Checks against op->now_s, 15 minutes either way. E_NO_AUTHORIZATION, E_BAD_AUTHORIZATION, E_UNAUTHORIZED with the service's sentence;
 * the last shows the text that should have been signed. Line breaks in it are line breaks: JSON escaping makes them the service's \n.
 * Signatures are compared in constant time. */
MUST_CHECK err sql_auth_check(op *o, const sql_key_ring *ring, const sql_auth_request *request, sql_key *key_out);

/* Makes the 44 characters of a signature: for our own clients and tools. False: no such key in the ring. */
bool sql_auth_sign(const sql_key_ring *ring, sql_key key, slice text, buf *out);

/* The text after sig= of a resource token (token.h). False: another type, or nothing that can be read; sql_auth_check says what is wrong.
 */
bool sql_auth_is_token(arena *a, slice authorization, slice *signature_out);

/* The key that resource tokens are signed with, made from the primary key: another primary key, other tokens. False: there is none. */
enum { SQL_TOKEN_KEY_BYTES = 32 };
bool sql_auth_token_key(const sql_key_ring *ring, unsigned char key_out[SQL_TOKEN_KEY_BYTES]);

/* HMAC-SHA256 under such a key. */
enum { SQL_MAC_BYTES = 32 };
void sql_auth_mac(const unsigned char key[SQL_TOKEN_KEY_BYTES], slice bytes, unsigned char mac_out[SQL_MAC_BYTES]);

/* "Thu, 27 Apr 2017 00:51:12 GMT": the text of a time, for sentences. */
const char *sql_date_text(int64_t seconds, char room[40]);

/* "Thu, 27 Apr 2017 00:51:12 GMT", in any case, and nothing else; seconds since 1970. */
bool sql_date_parse(slice text, int64_t *seconds_out);
