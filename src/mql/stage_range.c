/* stage_range.c — steps along numbers and dates. */
#include "mql/stage_range.h"

err mql__parse_unit(op *o, mql_value v, mql_unit *unit_out) {
    slice name = mql_is_text(v) ? mql_as_text(v) : SLICE_EMPTY;
    return mql_unit_find(name, unit_out) ? OK : mql_fail(o, 9, "unknown time unit value: %.*s", slice_shown(name), name.n ? name.p : "");
}

bool mql__date_plus(int64_t ms, mql_unit unit, int64_t amount, int64_t *ms_out) {
    int64_t length = mql_unit_ms(unit), change;
    if (length) {
        return !__builtin_mul_overflow(length, amount, &change) && !__builtin_add_overflow(ms, change, ms_out);
    }
    mql_parts p = mql_calendar_split(ms);
    int64_t months = unit == MQL_YEAR ? 12 : unit == MQL_QUARTER ? 3 : 1;
    if (amount > 1000000000 || amount < -1000000000) {
        return false;
    }
    int64_t month = p.month - 1 + amount * months, years = month / 12 - (month % 12 < 0);
    p.year += years;
    p.month = month - 12 * years + 1;
    int last = mql_calendar_month_days(p.year, p.month);
    p.day = p.day < last ? p.day : last;
    return mql_calendar_join(&p, ms_out);
}

bool mql__step_from(arena *a, mql_value v, const mql__step *step, mql_value *value_out) {
    int64_t amount, ms;
    if (!step->dated) {
        bool number = mql_is_number(v);
        *value_out = number ? mql_sum(a, v, step->by) : mql_missing();
        return number;
    }
    if (v.type != BSON_TYPE_DATE_TIME || !mql_as_integer(step->by, &amount) || !mql__date_plus(mql_as_date(v), step->unit, amount, &ms)) {
        *value_out = mql_missing();
        return false;
    }
    *value_out = mql_date(a, ms);
    return true;
}
