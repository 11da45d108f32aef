/* sign.h — the authorization of a request: HMAC-SHA256 of verb, resource type, link and date by the account's key. Pure, any thread. */
#pragma once

#include "base/buf.h"

/* Appends the value of the field, percent-encoded: type=master&ver=1.0&sig=… `date` is x-ms-date as it is sent. */
void client__sign(slice key, const char *verb, const char *type, slice link, slice date, buf *out);

/* Appends the text percent-encoded: letters, digits and -_.~ stay. */
void client__percent(buf *out, slice text);
