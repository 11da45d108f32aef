/* expression_date.h — within mql/: what the operators on dates share. */
#pragma once

#include "mql/calendar.h"
#include "mql/expression_int.h"
#include "mql/zone.h"

/* A date, or the time in a timestamp or an ObjectId. */
bool mql__as_moment(mql_value v, int64_t *ms_out);
/* The same, with MongoDB's error. */
MUST_CHECK err mql__moment(const mql__call *c, mql_value v, int64_t *ms_out);

/* The time zone that an argument names; UTC if it was left out. `null_out`: it is null. */
MUST_CHECK err mql__zone(const mql__call *c, size_t which, mql_zone_ref *zone_out, bool *null_out);

/* Whether an argument was given and is null. */
static inline bool mql__given_null(const mql__call *c, size_t which) {
    return c->e->args[which] && mql_is_nullish(c->args[which]);
}
