/* calendar.h — within query/: moments as the date functions see them. UTC, proleptic Gregorian, years 1 to 9999, steps of 100 ns ("ticks").
 *
 * Text is what IS_DATETIME's documentation describes: YYYY-MM-DD, then optionally a blank or T and hh:mm:ss with up to seven digits of a
 * second, then optionally Z. Written is always YYYY-MM-DDThh:mm:ss.fffffffZ. */
#pragma once

#include "base/slice.h"

typedef int64_t calendar_ticks; /* since 1970-01-01T00:00:00Z, before it negative */

#define CALENDAR_TICKS_PER_SECOND INT64_C(10000000)
#define CALENDAR_TICKS_PER_DAY (86400 * CALENDAR_TICKS_PER_SECOND)
#define CALENDAR_MIN (-INT64_C(719162) * CALENDAR_TICKS_PER_DAY)           /* 0001-01-01 */
#define CALENDAR_MAX (INT64_C(2932897) * CALENDAR_TICKS_PER_DAY - 1)       /* the last of 9999 */
#define CALENDAR_WINDOWS_EPOCH (-INT64_C(134774) * CALENDAR_TICKS_PER_DAY) /* 1601-01-01 */

enum { CALENDAR_TEXT_BYTES = 28 };

typedef struct calendar_parts {
    int year, month, day; /* month and day from 1 */
    int hour, minute, second;
    int ticks; /* of a second */
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

/* False: not such text, or no such moment. */
bool calendar_parse(slice text, calendar_ticks *ticks_out);
void calendar_write(char text[CALENDAR_TEXT_BYTES], calendar_ticks t); /* within CALENDAR_MIN and CALENDAR_MAX */

calendar_parts calendar_split(calendar_ticks t);
bool calendar_join(const calendar_parts *p, calendar_ticks *ticks_out); /* false: no such moment */
int calendar_weekday(calendar_ticks t);                                 /* 0: Sunday */

/* year yyyy yy, month mm m, day dd d, hour hh, minute mi n, second ss s, millisecond ms, microsecond mcs, nanosecond ns; any case. */
bool calendar_unit_of(slice name, calendar_unit *unit_out);

/* Some units later (or earlier); false: beyond the years there are. The day is cut to the month's last. */
bool calendar_add(calendar_ticks t, calendar_unit unit, int64_t n, calendar_ticks *ticks_out);

/* How many borders of a unit lie between two moments. */
int64_t calendar_borders(calendar_unit unit, calendar_ticks from, calendar_ticks to);

/* The beginning of the bin, `n` units wide, that a moment is in, bins being counted from `origin`; false: beyond the years there are. */
bool calendar_bin(calendar_ticks t, calendar_unit unit, int64_t n, calendar_ticks origin, calendar_ticks *ticks_out);
