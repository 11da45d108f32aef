/* sign.h — the authorization of a request: HMAC-SHA256 of verb, resource type, link and date by the account's key. Any thread. */
#pragma once

#include "base/buf.h"

/* A key, hashed as far as every signature needs it. */
typedef struct sign_key sign_key;

sign_key *client__sign_key_new(slice key);
void client__sign_key_free(sign_key *k); /* NULL is allowed */

/* Appends the value of the field, percent-encoded: type=master&ver=1.0&sig=… `date` is x-ms-date as it is sent. */
void client__sign(const sign_key *k, const char *verb, const char *type, slice link, slice date, buf *out);

/* Appends the text percent-encoded: letters, digits and -_.~ stay. */
void client__percent(buf *out, slice text);
