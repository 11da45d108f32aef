/* calendar.h — dates of the MongoDB language: milliseconds since 1970, proleptic Gregorian, any year that 64 bits reach.
 *
 * "Local" milliseconds are those of a clock on the wall: UTC plus the time zone's offset (zone.h). Any thread. */
#pragma once

#include "base/slice.h"

enum {
    MQL_MS_PER_SECOND = 1000,
    MQL_MS_PER_MINUTE = 60000,
    MQL_MS_PER_HOUR = 3600000,
    MQL_MS_PER_DAY = 86400000,
};

typedef struct mql_parts {
    int64_t year;
    int64_t month, day; /* from 1 */
    int64_t hour, minute, second, ms;
} mql_parts;

typedef struct mql_iso_parts {
    int64_t year;      /* of the week */
    int week, weekday; /* week from 1; Monday is weekday 1 */
} mql_iso_parts;

mql_parts mql_calendar_split(int64_t local_ms);
/* Parts outside of their usual range carry over: month 14 is February of the next year. False: out of the range of 64 bits. */
bool mql_calendar_join(const mql_parts *p, int64_t *local_ms_out);

mql_iso_parts mql_calendar_iso(int64_t local_ms);
/* The same from an ISO year, week and weekday: week 0 is the last of the year before. The time of day is that of `p`. */
bool mql_calendar_join_iso(int64_t year, int64_t week, int64_t weekday, const mql_parts *p, int64_t *local_ms_out);

int mql_calendar_weekday(int64_t local_ms); /* 1: Sunday */
int mql_calendar_yearday(int64_t local_ms); /* from 1 */
int mql_calendar_week(int64_t local_ms);    /* weeks begin on Sundays; days before the first Sunday are in week 0 */

int64_t mql_calendar_days(int64_t local_ms); /* whole days since 1970, rounded down */
int mql_calendar_month_days(int64_t year, int64_t month);
int64_t mql_calendar_day_number(int64_t year, int64_t month, int64_t day); /* days since 1970; month 1 to 12 */

/* ---- units ---- */

typedef enum mql_unit {
    MQL_MILLISECOND,
    MQL_SECOND,
    MQL_MINUTE,
    MQL_HOUR,
    MQL_DAY,
    MQL_WEEK,
    MQL_MONTH,
    MQL_QUARTER,
    MQL_YEAR,
} mql_unit;

bool mql_unit_find(slice name, mql_unit *unit_out); /* "year", "month", … */
int64_t mql_unit_ms(mql_unit unit);                 /* 0 for months and longer units, which vary */

/* "monday", "Mon", … in any case. 1: Monday, as ISO counts. */
bool mql_weekday_find(slice name, int *weekday_out);

extern const char *const mql_month_names[12];
