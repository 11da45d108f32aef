/* expression_date_arithmetic.c — $dateAdd, $dateSubtract, $dateDiff, $dateTrunc. Days and longer units are those of the time zone's
 * calendar: a day may have 23 or 25 hours. Shorter units are fixed numbers of milliseconds. */
#include <inttypes.h>

#include "mql/expression_date.h"

/* ---- arguments ---- */

static err take_unit(const mql__call *c, mql_value v, mql_unit *unit_out) {
    if (!mql_is_text(v)) {
        return mql__fail(c, 5439013, "%s requires 'unit' to be a string, but got %s", mql__name(c), mql_type_name(v.type));
    }
    slice name = mql_as_text(v);
    return mql_unit_find(name, unit_out)
               ? OK
               : mql__fail(c, 9, "%s parameter 'unit' value parsing failed :: caused by :: unknown time unit value: %.*s", mql__name(c),
                           slice_shown(name), name.p);
}

static err take_week_start(const mql__call *c, mql_value v, int *weekday_out) {
    if (!mql_is_text(v)) {
        return mql__fail(c, 5439015, "%s requires 'startOfWeek' to be a string, but got %s", mql__name(c), mql_type_name(v.type));
    }
    slice name = mql_as_text(v);
    return mql_weekday_find(name, weekday_out)
               ? OK
               : mql__fail(c, 5439016, "%s parameter 'startOfWeek' value cannot be recognized as a day of a week: %.*s", mql__name(c),
                           slice_shown(name), name.p);
}

/* ---- adding ---- */

static int64_t floor_divide(int64_t n, int64_t by) {
    return n / by - (n % by < 0);
}

static int64_t months_of(mql_unit unit) {
    return unit == MQL_YEAR ? 12 : unit == MQL_QUARTER ? 3 : 1;
}

enum { MONTHS_MAX = 2000000000 };

/* A day beyond the month's end becomes the month's last day. */
static bool add_months(int64_t local, int64_t months, int64_t *local_out) {
    mql_parts p = mql_calendar_split(local);
    if (months > MONTHS_MAX || months < -MONTHS_MAX) {
        return false;
    }
    int64_t month = p.month - 1 + months, carry = floor_divide(month, 12);
    p.year += carry;
    p.month = month - carry * 12 + 1;
    int last = mql_calendar_month_days(p.year, p.month);
    p.day = p.day < last ? p.day : last;
    return mql_calendar_join(&p, local_out);
}

static bool add_units(int64_t ms, mql_unit unit, int64_t amount, mql_zone_ref zone, int64_t *ms_out) {
    int64_t length = mql_unit_ms(unit), change, local;
    if (unit < MQL_DAY) {
        return !__builtin_mul_overflow(length, amount, &change) && !__builtin_add_overflow(ms, change, ms_out);
    }
    bool fits;
    if (length) {
        fits = !__builtin_mul_overflow(length, amount, &change) && !__builtin_add_overflow(mql_zone_local(zone, ms), change, &local);
    } else {
        fits = !__builtin_mul_overflow(months_of(unit), amount, &change) && add_months(mql_zone_local(zone, ms), change, &local);
    }
    *ms_out = fits ? mql_zone_utc(zone, local) : 0;
    return fits;
}

enum { ADD_DATE, ADD_UNIT, ADD_AMOUNT, ADD_ZONE };

static const mql__named add_arguments = {
    MQL__SUPPORTS, 5166400, 5166401, {{"startDate", 5166402}, {"unit", 5166402}, {"amount", 5166402}, {"timezone", 0}}};

/* $dateAdd and $dateSubtract have error texts of their own. */
static err parse_add(mql_scope *s, mql_expression *node, mql_value argument) {
    const char *name = node->operator->name;
    if (argument.type != BSON_TYPE_DOCUMENT) {
        return mql_fail(s->op, 5166400, "%s expects an object as its argument", name);
    }
    bool complete = true;
    for (size_t i = ADD_DATE; i <= ADD_AMOUNT; i++) {
        complete &= !mql_is_missing(mql_member(argument, slice_str(add_arguments.arguments[i].name)));
    }
    if (!complete) {
        return mql_fail(s->op, 5166402, "%s requires startDate, unit, and amount to be present", name);
    }
    return mql__parse_named(s, node, &add_arguments, argument);
}

static err add(const mql__call *c, mql_value *value_out) {
    mql_unit unit;
    mql_zone_ref zone;
    bool null;
    int64_t ms, amount, sum;
    *value_out = mql_null();
    if (mql_is_nullish(c->args[ADD_DATE]) || mql_is_nullish(c->args[ADD_UNIT]) || mql_is_nullish(c->args[ADD_AMOUNT])) {
        return OK;
    }
    TRY(take_unit(c, c->args[ADD_UNIT], &unit));
    TRY(mql__zone(c, ADD_ZONE, &zone, &null));
    if (null) {
        return OK;
    }
    if (!mql__as_moment(c->args[ADD_DATE], &ms)) {
        return mql__fail(c, 5166403, "%s requires startDate to be convertible to a date", mql__name(c));
    }
    if (!mql_as_integer(c->args[ADD_AMOUNT], &amount)) {
        return mql__fail(c, 5166405, "%s expects integer amount of time units", mql__name(c));
    }
    bool subtract = c->e->operator->variant;
    if ((subtract && amount == INT64_MIN) || !add_units(ms, unit, subtract ? -amount : amount, zone, &sum)) {
        return mql__fail(c, 5166406, "dateAdd overflowed");
    }
    *value_out = mql_date(c->run->arena, sum);
    return OK;
}

/* ---- differences: how many boundaries of the unit lie between ---- */

static int64_t week_number(int64_t days, int week_start) {
    return floor_divide(days + 3 - (week_start - 1), 7); /* 1970 began on a Thursday */
}

static int64_t unit_number(int64_t local, mql_unit unit, int week_start) {
    mql_parts p = mql_calendar_split(local);
    switch (unit) {
    case MQL_YEAR:
        return p.year;
    case MQL_QUARTER:
        return p.year * 4 + (p.month - 1) / 3;
    case MQL_MONTH:
        return p.year * 12 + p.month - 1;
    case MQL_WEEK:
        return week_number(mql_calendar_days(local), week_start);
    default:
        return floor_divide(local, mql_unit_ms(unit));
    }
}

static int64_t difference(int64_t from, int64_t to, mql_unit unit, mql_zone_ref zone, int week_start) {
    int64_t local_from = mql_zone_local(zone, from), local_to = mql_zone_local(zone, to);
    int64_t crossed = unit_number(local_to, unit, week_start) - unit_number(local_from, unit, week_start);
    if (unit < MQL_DAY) { /* short units count elapsed time, whatever the clock was set by */
        int64_t set_ms = ((int64_t)mql_zone_offset(zone, from) - mql_zone_offset(zone, to)) * 1000;
        crossed += set_ms / mql_unit_ms(unit);
    }
    return crossed;
}

enum { DIFF_FROM, DIFF_TO, DIFF_UNIT, DIFF_ZONE, DIFF_WEEK };

static const mql__named diff_arguments = {
    MQL__SUPPORTS,
    5166301,
    5166302,
    {{"startDate", 5166303}, {"endDate", 5166304}, {"unit", 5166305}, {"timezone", 0}, {"startOfWeek", 0}}};

static err diff_moment(const mql__call *c, size_t which, const char *name, int64_t *ms_out) {
    return mql__as_moment(c->args[which], ms_out)
               ? OK
               : mql__fail(c, 5166307, "$dateDiff requires '%s' to be a date, but got %s", name, mql_type_name(c->args[which].type));
}

static err subtract_dates(const mql__call *c, mql_unit unit, mql_zone_ref zone, int week_start, mql_value *value_out) {
    int64_t from, to, ms;
    TRY(diff_moment(c, DIFF_FROM, "startDate", &from));
    TRY(diff_moment(c, DIFF_TO, "endDate", &to));
    if (__builtin_sub_overflow(to, from, &ms) && unit == MQL_MILLISECOND) {
        return mql__fail(c, 5166308, "dateDiff overflowed");
    }
    *value_out = mql_int64(c->run->arena, unit == MQL_MILLISECOND ? ms : difference(from, to, unit, zone, week_start));
    return OK;
}

static err diff(const mql__call *c, mql_value *value_out) {
    mql_unit unit;
    mql_zone_ref zone;
    int week_start = 7;
    bool null;
    *value_out = mql_null();
    if (mql_is_nullish(c->args[DIFF_FROM]) || mql_is_nullish(c->args[DIFF_TO]) || mql_is_nullish(c->args[DIFF_UNIT])) {
        return OK;
    }
    TRY(take_unit(c, c->args[DIFF_UNIT], &unit));
    if (unit == MQL_WEEK && mql__given_null(c, DIFF_WEEK)) {
        return OK;
    }
    if (unit == MQL_WEEK && c->e->args[DIFF_WEEK]) {
        TRY(take_week_start(c, c->args[DIFF_WEEK], &week_start));
    }
    TRY(mql__zone(c, DIFF_ZONE, &zone, &null));
    return null ? OK : subtract_dates(c, unit, zone, week_start, value_out);
}

/* ---- truncation: bins are counted from 2000-01-01 in the time zone, weeks from the first that begins then or later ---- */

#define REFERENCE_MS INT64_C(946684800000) /* 2000-01-01, a Saturday */

enum { TRUNC_DATE, TRUNC_UNIT, TRUNC_BIN, TRUNC_ZONE, TRUNC_WEEK };
#define BIN_MAX INT64_C(100000000000)

static const mql__named trunc_arguments = {
    MQL__SUPPORTS, 5439007, 5439008, {{"date", 5439009}, {"unit", 5439010}, {"binSize", 0}, {"timezone", 0}, {"startOfWeek", 0}}};

static int64_t reference_of(mql_unit unit, int week_start) {
    return REFERENCE_MS + (unit == MQL_WEEK ? (week_start - 6 + 7) % 7 * (int64_t)MQL_MS_PER_DAY : 0);
}

static int64_t remainder_of(int64_t n, int64_t by) {
    int64_t r = n % by;
    return r < 0 ? r + by : r;
}

static bool truncate_fixed(int64_t ms, int64_t reference, int64_t length, int64_t bin, int64_t *ms_out) {
    int64_t size, shifted;
    return !__builtin_mul_overflow(bin, length, &size) && !__builtin_sub_overflow(ms, reference, &shifted) &&
           !__builtin_sub_overflow(ms, remainder_of(shifted, size), ms_out);
}

static bool truncate_calendar(int64_t ms, mql_unit unit, int64_t bin, mql_zone_ref zone, int week_start, int64_t *ms_out) {
    int64_t reference = reference_of(unit, week_start);
    int64_t distance = unit_number(mql_zone_local(zone, ms), unit, week_start) - unit_number(reference, unit, week_start);
    return add_units(mql_zone_utc(zone, reference), unit, distance - remainder_of(distance, bin), zone, ms_out);
}

static err truncate_date(const mql__call *c, mql_unit unit, int64_t bin, mql_zone_ref zone, int week_start, mql_value *value_out) {
    int64_t ms, truncated;
    if (!mql__as_moment(c->args[TRUNC_DATE], &ms)) {
        return mql__fail(c, 5439012, "$dateTrunc requires 'date' to be a date, but got %s", mql_type_name(c->args[TRUNC_DATE].type));
    }
    if (unit >= MQL_DAY && bin > BIN_MAX) {
        return mql__fail(c, 5439006, "dateTrunc unsupported binSize value");
    }
    bool fits = unit < MQL_DAY ? truncate_fixed(ms, mql_zone_utc(zone, REFERENCE_MS), mql_unit_ms(unit), bin, &truncated)
                               : truncate_calendar(ms, unit, bin, zone, week_start, &truncated);
    if (!fits) {
        return mql__fail(c, 5439004, "dateTrunc overflowed");
    }
    *value_out = mql_date(c->run->arena, truncated);
    return OK;
}

static err take_bin(const mql__call *c, int64_t *bin_out) {
    mql_value v = c->args[TRUNC_BIN];
    *bin_out = 1;
    if (!c->e->args[TRUNC_BIN]) {
        return OK;
    }
    if (!mql_as_integer(v, bin_out)) {
        return mql__fail(c, 5439017, "$dateTrunc requires 'binSize' to be a 64-bit integer, but got value '%s' of type %s",
                         mql__show(c->run->arena, v), mql_type_name(v.type));
    }
    return *bin_out > 0 ? OK
                        : mql__fail(c, 5439018, "$dateTrunc requires 'binSize' to be greater than 0, but got value %" PRId64, *bin_out);
}

static err trunc_(const mql__call *c, mql_value *value_out) {
    mql_unit unit;
    mql_zone_ref zone;
    int week_start = 7;
    int64_t bin;
    bool null;
    *value_out = mql_null();
    if (mql_is_nullish(c->args[TRUNC_DATE]) || mql__given_null(c, TRUNC_BIN) || mql_is_nullish(c->args[TRUNC_UNIT])) {
        return OK;
    }
    TRY(take_bin(c, &bin));
    TRY(take_unit(c, c->args[TRUNC_UNIT], &unit));
    if (unit == MQL_WEEK && mql__given_null(c, TRUNC_WEEK)) {
        return OK;
    }
    if (unit == MQL_WEEK && c->e->args[TRUNC_WEEK]) {
        TRY(take_week_start(c, c->args[TRUNC_WEEK], &week_start));
    }
    TRY(mql__zone(c, TRUNC_ZONE, &zone, &null));
    return null ? OK : truncate_date(c, unit, bin, zone, week_start, value_out);
}

static const mql__operator rows[] = {
    {"$dateAdd", .flags = 0, .function = add, .parse = parse_add, .variant = false},
    {"$dateSubtract", .flags = 0, .function = add, .parse = parse_add, .variant = true},
    {"$dateDiff", .flags = 0, .function = diff, .named = &diff_arguments},
    {"$dateTrunc", .flags = 0, .function = trunc_, .named = &trunc_arguments},
};
const mql__operators mql__date_arithmetic_operators = MQL__OPERATORS(rows);
