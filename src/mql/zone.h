/* zone.h — time zones: names of the system's tz database ("America/New_York"), and offsets ("+02", "-0530", "+05:30").
 *
 * A zone is read once from the folder of the tz database and kept for the life of the process. Any thread. */
#pragma once

#include "base/slice.h"

typedef struct mql_zone mql_zone;

typedef struct mql_zone_ref {
    const mql_zone *rules; /* NULL: a fixed offset */
    int32_t offset_s;      /* east of UTC, if there are no rules */
} mql_zone_ref;

#define MQL_UTC ((mql_zone_ref){0})

/* False: there is no such zone. */
bool mql_zone_find(slice name, mql_zone_ref *zone_out);

int32_t mql_zone_offset(mql_zone_ref z, int64_t utc_ms); /* seconds east of UTC at that time */

/* At the ends of the range of 64 bits, where there is no local time, UTC. */
static inline int64_t mql_zone_local(mql_zone_ref z, int64_t utc_ms) {
    int64_t local;
    return __builtin_add_overflow(utc_ms, (int64_t)mql_zone_offset(z, utc_ms) * 1000, &local) ? utc_ms : local;
}
/* Of a time that occurs twice when clocks are set back, the first; a time that is skipped is moved forward by the gap. */
int64_t mql_zone_utc(mql_zone_ref z, int64_t local_ms);
static inline bool mql_zone_is_utc(mql_zone_ref z) {
    return !z.rules && z.offset_s == 0;
}
