/* base64.h — base64 (RFC 4648), and the service's variant for resource ids ('-' in place of '/'). */
#pragma once

#include "base/buf.h"

void base64_encode(buf *out, slice bytes);
void base64_encode_rid(buf *out, slice bytes);

/* Strict: only the alphabet, and correct padding. On false, `out` is unchanged. */
bool base64_decode(buf *out, slice text);
bool base64_decode_rid(buf *out, slice text);
