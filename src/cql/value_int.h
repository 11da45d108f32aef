/* value_int.h — what the files of value.h share: numbers, times and durations as text. */
#pragma once

#include "cql/value.h"

/* ---- numbers (value_number.c) ---- */

void cql__write_double(buf *out, double number);       /* as Java's Double.toString: 1.0, 1.0E10, NaN, -Infinity */
void cql__write_float(buf *out, float number);         /* as Float.toString */
double cql__double_of_float(float number);             /* the double with the same shortest digits; back by a cast */
bool cql__read_double(slice text, double *number_out); /* the whole text; also NaN, Infinity, -Infinity */

/* ---- times (value_time.c), UTC ---- */

enum { CQL__DAY_MS = 86400000 };
#define CQL__DAY_NS INT64_C(86400000000000)

bool cql__read_timestamp(slice text, int64_t *ms_out); /* "2024-02-29", "2024-02-29T12:34:56.789+0100", …; a number of milliseconds */
bool cql__read_date(slice text, int64_t *days_out);    /* "2024-02-29" only; days since 1970 */
bool cql__read_time(slice text, int64_t *ns_out);      /* "12:34:56.789" only */
void cql__write_timestamp(buf *out, int64_t ms, char separator); /* "2024-02-29T12:34:56.789Z", with 'T' or ' ' */
void cql__write_date(buf *out, int64_t days);
void cql__write_time(buf *out, int64_t ns);
int64_t cql__add_months(int64_t days, int64_t months); /* to a date as days since 1970; the last day of a month if it has no such day */

/* ---- durations (value_duration.c) ---- */

typedef struct cql__duration { /* all of the same sign */
    int32_t months, days;
    int64_t ns;
} cql__duration;

bool cql__read_duration(slice text, cql__duration *duration_out); /* 1y2mo, -P1Y2M, P3W, P0001-02-03T04:05:06 */
void cql__write_duration(buf *out, const cql__duration *d);       /* "1y2mo3d4h5m6s7ms8us9ns" */
bool cql__duration_of(cql_value v, cql__duration *duration_out);
cql_value cql__duration_value(arena *a, const cql__duration *d);

/* ---- UUIDs (value_order.c) ---- */

void cql__uuid_write(buf *out, slice uuid); /* of 16 bytes */
bool cql__uuid_read(slice text, uint8_t uuid_out[16]);
