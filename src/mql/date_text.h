/* date_text.h — dates as text: formats with % as in MongoDB, ISO 8601, and the everyday forms that are accepted without a format. */
#pragma once

#include "base/buf.h"
#include "mql/calendar.h"
#include "mql/zone.h"

#define MQL_DATE_ISO SLICE_LIT("%Y-%m-%dT%H:%M:%S.%LZ")

/* Checks that a known letter follows each %. Otherwise returns MongoDB's code: 18535 (a % at the end) or 18536 (an unknown letter). */
int mql_date_check_format(slice format, bool for_reading, char *letter_out);

/* False: the year is not between 0 and 9999. */
bool mql_date_write(buf *out, slice format, int64_t ms, mql_zone_ref zone);

typedef struct mql_date_read {
    int64_t ms;         /* UTC */
    const char *reason; /* why the text is not a date */
    size_t at;          /* where in the text */
} mql_date_read;

/* Reads a whole text. `format` NULL: any of the forms that are accepted. If the text names a zone itself, `zone` must be UTC. */
bool mql_date_parse(slice text, const slice *format, mql_zone_ref zone, mql_date_read *read_out);
