/* token.h — resource tokens, which a user presents instead of a key.
 *
 *     type=resource&ver=1&sig={base64 of the MAC};{base64 of the payload};
 *
 * The payload (numbers big-endian) names one version of a permission, and times:
 *
 *     offset  size
 *          0     1  1, the format
 *          1    16  rid of the permission
 *         17     8  its version
 *         25     8  issued at, seconds since 1970
 *         33     8  expires at, seconds since 1970
 *         41     8  random: makes every token unique
 *
 * A token grants what that version of the permission says. Its bearer cannot change it, and once the permission is changed or deleted, no
 * permission has that version any more. The MAC is HMAC-SHA256 with a key derived from the account's primary key (ring.h), compared in
 * constant time before the payload is evaluated. Pure functions, any thread; nothing is ever logged. */
#pragma once

#include "access/ring.h"
#include "account/rid.h"
#include "base/op.h"

typedef struct access_token {
    rid permission;
    uint64_t version;
    int64_t from_s, until_s;
} access_token;

enum { ACCESS_TOKEN_TEXT_MAX = 160 };

/* Appends the whole text, from type= on. */
void access_token_write(buf *out, const unsigned char key[ACCESS_TOKEN_KEY_BYTES], const access_token *token);

/* The part of a token after sig=. False: not a token. */
bool access_token_cut(slice text, slice *signature_out);

/* Reads the part after sig=. E_BAD_AUTHORIZATION: malformed; E_UNAUTHORIZED: not made with this key; E_FORBIDDEN with the service's
 * sentence: not valid (any more) at op->now_s. */
MUST_CHECK err access_token_read(op *o, const unsigned char key[ACCESS_TOKEN_KEY_BYTES], slice signature, access_token *token_out);
