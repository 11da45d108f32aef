/* stage_range.h — within mql/: values on a line, numbers or dates, for $densify and $setWindowFields. */
#pragma once

#include "mql/calendar.h"
#include "mql/number.h"

/* A step along the line: a number; or a number of units, for dates. */
typedef struct mql__step {
    mql_value by;
    bool dated;
    mql_unit unit;
} mql__step;

/* Reads "day", "month", …; 9 if there is no such unit. */
MUST_CHECK err mql__parse_unit(op *o, mql_value v, mql_unit *unit_out);
/* The value a step further; false if it is out of range, or of a type that does not fit the step. In the arena. */
bool mql__step_from(arena *a, mql_value v, const mql__step *step, mql_value *value_out);
/* Adds `n` units to a date, in UTC; a day beyond a month's end becomes the month's last day. */
bool mql__date_plus(int64_t ms, mql_unit unit, int64_t amount, int64_t *ms_out);
