/* base64.h — RFC 4648 text, and the service's variant for resource ids ('-' in place of '/'). */
#pragma once

#include "base/buf.h"

void base64_encode(buf *out, slice bytes);
void base64_encode_rid(buf *out, slice bytes);

/* Strict: right alphabet, right padding, nothing else. False leaves `out` as it was. */
bool base64_decode(buf *out, slice text);
bool base64_decode_rid(buf *out, slice text);
