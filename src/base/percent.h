/* percent.h — percent-encoding, RFC 3986 section 2.1. */
#pragma once

#include "base/slice.h"

/* Writes the decoded bytes, at most raw.n of them. '+' is not decoded. False: a '%' without two hex digits. */
bool percent_decode(slice raw, char *to, size_t *n_out);
