/* date.h — parses and writes dates as protocols spell them, always in UTC, as seconds since 1970. Pure functions. */
#pragma once

#include "base/slice.h"

enum { DATE_TEXT_BYTES = 40 };

/* RFC 1123 as clients write it: "Thu, 27 Apr 2017 00:51:12 GMT" in any case. The day of the week may be missing but not wrong, the day may
 * have one digit, the zone may also be UTC, UT, Z or an offset like +0200. Before 1970 the seconds are negative. */
bool date_parse_http(slice text, int64_t *seconds_out);
const char *date_http(int64_t seconds, char room[DATE_TEXT_BYTES]);

/* ISO 8601: "2026-11-16", "2026-11-16T14:05Z", "2026-11-16T14:05:07Z". Up to seven fractional digits of a second are accepted and
 * dropped. */
bool date_parse_iso(slice text, int64_t *seconds_out);
