/* expression_date_text.c — $dateToString and $dateFromString. */
#include "mql/date_text.h"
#include "mql/expression_date.h"

static err check_format(const mql__call *c, mql_value format, int no_text, bool for_reading) {
    char letter;
    if (mql_is_nullish(format)) {
        return OK;
    }
    if (!mql_is_text(format)) {
        return mql__fail(c, no_text, "%s requires that 'format' be a string, found: %s with value %s", mql__name(c),
                         mql_type_name(format.type), mql__show(c->run->arena, format));
    }
    int code = mql_date_check_format(mql_as_text(format), for_reading, &letter);
    if (code == 18535) {
        return mql__fail(c, code, "Unmatched '%%' at end of format string");
    }
    return code ? mql__fail(c, code, "Invalid format character '%%%c' in format string", letter) : OK;
}

/* ---- $dateToString ---- */

enum { DATE, FORMAT, ZONE, ON_NULL };

static const mql__named to_arguments = {MQL__SUPPORTS, 18629, 18534, {{"date", 18628}, {"format", 0}, {"timezone", 0}, {"onNull", 0}}};

static err write_date(const mql__call *c, slice format, mql_zone_ref zone, mql_value *value_out) {
    int64_t ms;
    TRY(mql__moment(c, c->args[DATE], &ms));
    TRY(mql__check_room(c->run, format.n * 5));
    buf text = buf_init_counted(BUF_NO_LIMIT, c->run->arena->budget);
    err e = mql_date_write(&text, format, ms, zone)
                ? mql__text_result(c, buf_view(&text), value_out)
                : mql__fail(c, 18537, "Could not convert date to string: date component was outside the supported range of 0-9999");
    buf_free(&text);
    return e;
}

static err to_string(const mql__call *c, mql_value *value_out) {
    mql_zone_ref zone;
    bool null;
    TRY(check_format(c, c->args[FORMAT], 18533, false));
    TRY(mql__zone(c, ZONE, &zone, &null));
    *value_out = mql_null();
    if (mql_is_nullish(c->args[DATE])) {
        return c->e->args[ON_NULL] ? mql__argument(c, ON_NULL, value_out) : OK;
    }
    if (null || mql__given_null(c, FORMAT)) {
        return OK;
    }
    slice format = c->e->args[FORMAT] ? mql_as_text(c->args[FORMAT]) : MQL_DATE_ISO;
    return write_date(c, format, zone, value_out);
}

/* ---- $dateFromString ---- */

enum { TEXT, F_FORMAT, F_ZONE, F_ON_NULL, F_ON_ERROR };

static const mql__named from_arguments = {
    MQL__SUPPORTS, 40540, 40541, {{"dateString", 40542}, {"format", 0}, {"timezone", 0}, {"onNull", 0}, {"onError", 0}}};

static err fail_or(const mql__call *c, const mql_date_read *read, mql_value *value_out) {
    mql_value v = c->args[TEXT];
    if (c->e->args[F_ON_ERROR]) {
        return mql__argument(c, F_ON_ERROR, value_out);
    }
    if (!mql_is_text(v)) {
        return mql__fail(c, 241, "$dateFromString requires that 'dateString' be a string, found: %s with value %s", mql_type_name(v.type),
                         mql__show(c->run->arena, v));
    }
    slice text = mql_as_text(v);
    return mql__fail(c, 241, "Error parsing date string '%.*s'; %zu: %s '%.*s'", slice_shown(text), text.p, read->at,
                     read->reason ? read->reason : "", (int)(read->at < text.n), text.p + (read->at < text.n ? read->at : 0));
}

static err from_string(const mql__call *c, mql_value *value_out) {
    mql_zone_ref zone;
    mql_date_read read = {0};
    bool null;
    TRY(check_format(c, c->args[F_FORMAT], 40684, true));
    TRY(mql__zone(c, F_ZONE, &zone, &null));
    *value_out = mql_null();
    if (mql_is_nullish(c->args[TEXT])) {
        return c->e->args[F_ON_NULL] ? mql__argument(c, F_ON_NULL, value_out) : OK;
    }
    if (!mql_is_text(c->args[TEXT])) {
        return fail_or(c, &read, value_out);
    }
    if (null || mql__given_null(c, F_FORMAT)) {
        return OK;
    }
    slice format = c->e->args[F_FORMAT] ? mql_as_text(c->args[F_FORMAT]) : SLICE_EMPTY;
    TRY(mql_pay(c->run, 10 + (format.n + c->args[TEXT].bytes.n) / 8));
    if (!mql_date_parse(mql_as_text(c->args[TEXT]), c->e->args[F_FORMAT] ? &format : NULL, zone, &read)) {
        return fail_or(c, &read, value_out);
    }
    *value_out = mql_date(c->run->arena, read.ms);
    return OK;
}

static const mql__operator rows[] = {
    {"$dateToString", .flags = MQL__SERVICE, .function = to_string, .named = &to_arguments, .eager = ON_NULL},
    {"$dateFromString", .flags = MQL__SERVICE, .function = from_string, .named = &from_arguments, .eager = F_ON_NULL},
};
const mql__operators mql__date_text_operators = MQL__OPERATORS(rows);
