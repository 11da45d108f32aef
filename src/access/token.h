/* token.h — resource tokens: what a user shows in place of a key.
 *
 *     type=resource&ver=1&sig={base64 of the MAC};{base64 of the payload};
 *
 * The payload, numbers big-endian, names a permission in one of its versions, and times:
 *
 *     offset  size
 *          0     1  1, the format
 *          1    16  rid of the permission
 *         17     8  its version
 *         25     8  made at, seconds since 1970
 *         33     8  good until, seconds since 1970
 *         41     8  random: no two tokens are the same
 *
 * What it grants is what that version of the permission says; there is nothing in it that a bearer could change, and once the permission is
 * changed or gone no permission has that version any more. The MAC is HMAC-SHA256 under a key derived from the account's primary key
 * (ring.h), compared in constant time before anything of the payload is looked at. Pure functions, any thread; nothing is ever logged. */
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

/* The part after sig= of a token as it was written. False: this is no token. */
bool access_token_cut(slice text, slice *signature_out);

/* Reads what follows sig=. E_BAD_AUTHORIZATION: not of this form; E_UNAUTHORIZED: not made with this key; E_FORBIDDEN with the service's
 * sentence: not at op->now_s (any more). */
MUST_CHECK err access_token_read(op *o, const unsigned char key[ACCESS_TOKEN_KEY_BYTES], slice signature, access_token *token_out);
