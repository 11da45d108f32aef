/* calendar.h — within query/: dates and times of the date functions. UTC, proleptic Gregorian, years 1 to 9999, in ticks of 100 ns.
 *
 * Accepted text is what IS_DATETIME's documentation describes: YYYY-MM-DD, then optionally a blank or T and hh:mm:ss with up to seven
 * decimals, then optionally Z. The output is always YYYY-MM-DDThh:mm:ss.fffffffZ. */
#pragma once

#include "base/slice.h"

typedef int64_t calendar_ticks; /* since 1970-01-01T00:00:00Z; negative before */

#define CALENDAR_TICKS_PER_SECOND INT64_C(10000000)
#define CALENDAR_TICKS_PER_DAY (86400 * CALENDAR_TICKS_PER_SECOND)
#define CALENDAR_MIN (-INT64_C(719162) * CALENDAR_TICKS_PER_DAY)           /* 0001-01-01 */
#define CALENDAR_MAX (INT64_C(2932897) * CALENDAR_TICKS_PER_DAY - 1)       /* last tick of 9999 */
#define CALENDAR_WINDOWS_EPOCH (-INT64_C(134774) * CALENDAR_TICKS_PER_DAY) /* 1601-01-01 */

enum { CALENDAR_TEXT_BYTES = 28 };

typedef struct calendar_parts {
    int year, month, day; /* month and day from 1 */
    int hour, minute, second;
    int ticks; /* below a second */
} calendar_parts;

typedef enum calendar_unit {
    CALENDAR_YEAR,
    CALENDAR_MONTH,
    CALENDAR_DAY,
    CALENDAR_HOUR,
    CALENDAR_MINUTE,
    CALENDAR_SECOND,
    CALENDAR_MILLISECOND,
    CALENDAR_MICROSECOND,
    CALENDAR_NANOSECOND,
} calendar_unit;

/* False: not of this format, or no valid date. */
bool calendar_parse(slice text, calendar_ticks *ticks_out);
void calendar_write(char text[CALENDAR_TEXT_BYTES], calendar_ticks t); /* t from CALENDAR_MIN to CALENDAR_MAX */

calendar_parts calendar_split(calendar_ticks t);
bool calendar_join(const calendar_parts *p, calendar_ticks *ticks_out); /* false: not a valid date */
int calendar_weekday(calendar_ticks t);                                 /* 0: Sunday */

/* The unit with this name: year yyyy yy, month mm m, day dd d, hour hh, minute mi n, second ss s, millisecond ms, microsecond mcs,
 * nanosecond ns. Case-insensitive. */
bool calendar_unit_of(slice name, calendar_unit *unit_out);

/* Adds n units, which may be negative. A day beyond the month's end becomes the month's last day. False: the year is out of range. */
bool calendar_add(calendar_ticks t, calendar_unit unit, int64_t n, calendar_ticks *ticks_out);

/* The number of unit boundaries between two times. */
int64_t calendar_boundaries(calendar_unit unit, calendar_ticks from, calendar_ticks to);

/* The start of the bin that contains `t`; bins are `n` units wide, and counted from `origin`. False: the year is out of range. */
bool calendar_bin(calendar_ticks t, calendar_unit unit, int64_t n, calendar_ticks origin, calendar_ticks *ticks_out);
