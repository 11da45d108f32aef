/* sign.h — master-key signatures for requests that we send: HMAC-SHA256 with the key already taken in, so one costs four or five blocks.
 *
 * A signer is made once and then only read, by any thread. */
#pragma once

#include <openssl/sha.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

enum { SIGN_BYTES_MAX = 132 /* 44 characters, each perhaps as %XX */, DATE_BYTES = 29 };

typedef struct signer {
    SHA256_CTX inner, outer;
} signer;

bool sign_init(signer *s, const char *key_base64); /* false: not base64, or too long for a key */

/* Writes the signature as base64, 44 characters and a terminator; returns 44. */
size_t sign_base64(const signer *s, const char *text, size_t n, char *out);

/* Writes the value of `sig` as it stands inside the authorization field, percent-encoded; returns its length. */
size_t sign_text(const signer *s, const char *text, size_t n, char *out);

/* "Thu, 27 Apr 2017 00:51:12 GMT" and its lower-case form, which is what is signed; DATE_BYTES each and no terminator. */
void sign_date(time_t now, char *date, char *lower);
