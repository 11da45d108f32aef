/* expression_date.c — parts of dates, and dates of parts. Sums and differences: expression_date_arithmetic.c; text:
 * expression_date_text.c. */
#include "mql/expression_date.h"

#include <inttypes.h>

/* ---- arguments ---- */

bool mql__as_moment(mql_value v, int64_t *ms_out) {
    *ms_out = 0;
    switch (v.type) {
    case BSON_TYPE_DATE_TIME:
        *ms_out = mql_as_date(v);
        return true;
    case BSON_TYPE_TIMESTAMP:
        *ms_out = (int64_t)((uint64_t)doc_load_i64(v.bytes.p) >> 32) * 1000;
        return true;
    case BSON_TYPE_OID: {
        const unsigned char *p = (const unsigned char *)v.bytes.p;
        *ms_out = (int64_t)((uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]) * 1000;
        return true;
    }
    default:
        return false;
    }
}

err mql__moment(const mql__call *c, mql_value v, int64_t *ms_out) {
    return mql__as_moment(v, ms_out) ? OK : mql__fail(c, 16006, "can't convert from BSON type %s to Date", mql_type_name(v.type));
}

static err find_zone(const mql__call *c, mql_value v, mql_zone_ref *zone_out) {
    slice name = mql_as_text(v);
    TRY(mql_pay(c->run, 20));
    return mql_zone_find(name, zone_out) ? OK
                                         : mql__fail(c, 40485, "unrecognized time zone identifier: \"%.*s\"", slice_shown(name), name.p);
}

err mql__zone(const mql__call *c, size_t which, mql_zone_ref *zone_out, bool *null_out) {
    *zone_out = MQL_UTC;
    *null_out = mql__given_null(c, which);
    if (!c->e->args[which] || *null_out) {
        return OK;
    }
    if (!mql_is_text(c->args[which])) {
        return mql__fail(c, 40517, "timezone must evaluate to a string, found %s", mql_type_name(c->args[which].type));
    }
    return find_zone(c, c->args[which], zone_out);
}

/* ---- parts: {$year: date} or {$year: {date: …, timezone: …}} ---- */

enum { DATE, ZONE };

static err parse_options(mql_scope *s, mql_expression *node, mql_value argument) {
    doc_walk w;
    doc_element e;
    doc_walk_init(&w, argument.bytes);
    while (doc_walk_next(&w, &e)) {
        bool date = slice_eq(e.key, SLICE_LIT("date"));
        if (!date && !slice_eq(e.key, SLICE_LIT("timezone"))) {
            return mql_fail(s->op, 40535, "unrecognized option to %s: \"%.*s\"", node->operator->name, slice_shown(e.key), e.key.p);
        }
        TRY(mql_expression_parse(s, mql_of(&e), &node->args[date ? DATE : ZONE]));
    }
    if (!node->args[DATE]) {
        return mql_fail(s->op, 40539, "missing 'date' argument to %s, provided: %s: %s", node->operator->name, node->operator->name,
                        mql__show(s->op->arena, argument));
    }
    return OK;
}

static bool begins_with_operator(mql_value document) {
    doc_walk w;
    doc_element e;
    return doc_walk_init(&w, document.bytes) && doc_walk_next(&w, &e) && e.key.n && e.key.p[0] == '$';
}

static err parse_part(mql_scope *s, mql_expression *node, mql_value argument) {
    node->n = 2;
    node->args = arena_array(s->op->arena, const mql_expression *, 2);
    if (argument.type == BSON_TYPE_DOCUMENT && !begins_with_operator(argument)) {
        return parse_options(s, node, argument);
    }
    if (argument.type == BSON_TYPE_ARRAY) {
        if (mql_length(argument) != 1) {
            return mql_fail(s->op, 40536, "%s accepts exactly one argument if given an array, but was given %zu", node->operator->name,
                            mql_length(argument));
        }
        argument = mql_element_at(argument, 0);
    }
    return mql_expression_parse(s, argument, &node->args[DATE]);
}

enum { YEAR, MONTH, DAY, HOUR, MINUTE, SECOND, MILLISECOND, YEARDAY, WEEKDAY, WEEK, ISO_WEEKDAY, ISO_WEEK, ISO_YEAR };

static int64_t part_of(int which, int64_t local) {
    mql_parts p = mql_calendar_split(local);
    mql_iso_parts iso = mql_calendar_iso(local);
    const int64_t parts[] = {
        [YEAR] = p.year,
        [MONTH] = p.month,
        [DAY] = p.day,
        [HOUR] = p.hour,
        [MINUTE] = p.minute,
        [SECOND] = p.second,
        [MILLISECOND] = p.ms,
        [YEARDAY] = mql_calendar_yearday(local),
        [WEEKDAY] = mql_calendar_weekday(local),
        [WEEK] = mql_calendar_week(local),
        [ISO_WEEKDAY] = iso.weekday,
        [ISO_WEEK] = iso.week,
        [ISO_YEAR] = iso.year,
    };
    return parts[which];
}

static err zone_of_part(const mql__call *c, mql_zone_ref *zone_out) {
    *zone_out = MQL_UTC;
    if (!c->e->args[ZONE]) {
        return OK;
    }
    if (!mql_is_text(c->args[ZONE])) {
        return mql__fail(c, 40533, "%s requires a string for the timezone argument, but was given a %s (%s)", mql__name(c),
                         mql_type_name(c->args[ZONE].type), mql__show(c->run->arena, c->args[ZONE]));
    }
    return find_zone(c, c->args[ZONE], zone_out);
}

static err part(const mql__call *c, mql_value *value_out) {
    mql_zone_ref zone;
    int64_t ms;
    int which = c->e->operator->variant;
    *value_out = mql_null();
    if (mql_is_nullish(c->args[DATE])) {
        return OK;
    }
    TRY(mql__moment(c, c->args[DATE], &ms));
    if (mql__given_null(c, ZONE)) {
        return OK;
    }
    TRY(zone_of_part(c, &zone));
    int64_t found = part_of(which, mql_zone_local(zone, ms));
    *value_out = which == ISO_YEAR ? mql_int64(c->run->arena, found) : mql_int32(c->run->arena, (int32_t)found);
    return OK;
}

/* ---- $dateToParts ---- */

enum { TO_DATE, TO_ZONE, TO_ISO };

static const mql__named to_parts_arguments = {MQL__SUPPORTS, 40524, 40520, {{"date", 40522}, {"timezone", 0}, {"iso8601", 0}}};

static err parts_document(mql_run *r, int64_t local, bool iso, mql_value *value_out) {
    static const struct {
        const char *name;
        int part;
    } members[2][7] = {
        {{"year", YEAR},
         {"month", MONTH},
         {"day", DAY},
         {"hour", HOUR},
         {"minute", MINUTE},
         {"second", SECOND},
         {"millisecond", MILLISECOND}},
        {{"isoWeekYear", ISO_YEAR},
         {"isoWeek", ISO_WEEK},
         {"isoDayOfWeek", ISO_WEEKDAY},
         {"hour", HOUR},
         {"minute", MINUTE},
         {"second", SECOND},
         {"millisecond", MILLISECOND}},
    };
    mql__maker m = mql__make(r);
    for (size_t i = 0; i < 7; i++) {
        mql__make_member(&m, slice_str(members[iso][i].name), mql_int32(r->arena, (int32_t)part_of(members[iso][i].part, local)));
    }
    return mql__made(r, &m, BSON_TYPE_DOCUMENT, OK, value_out);
}

static err to_parts(const mql__call *c, mql_value *value_out) {
    mql_zone_ref zone;
    bool null;
    int64_t ms;
    TRY(mql__zone(c, TO_ZONE, &zone, &null));
    *value_out = mql_null();
    if (null || mql__given_null(c, TO_ISO)) {
        return OK;
    }
    if (c->e->args[TO_ISO] && c->args[TO_ISO].type != BSON_TYPE_BOOL) {
        return mql__fail(c, 40521, "iso8601 must evaluate to a bool, found %s", mql_type_name(c->args[TO_ISO].type));
    }
    if (mql_is_nullish(c->args[TO_DATE])) {
        return OK;
    }
    TRY(mql__moment(c, c->args[TO_DATE], &ms));
    return parts_document(c->run, mql_zone_local(zone, ms), c->e->args[TO_ISO] && mql_as_bool(c->args[TO_ISO]), value_out);
}

/* ---- $dateFromParts ---- */

enum { F_YEAR, F_MONTH, F_DAY, F_HOUR, F_MINUTE, F_SECOND, F_MS, F_ISO_YEAR, F_ISO_WEEK, F_ISO_DAY, F_ZONE };

static const mql__named from_parts_arguments = {MQL__SUPPORTS,
                                                40519,
                                                40518,
                                                {{"year", 0},
                                                 {"month", 0},
                                                 {"day", 0},
                                                 {"hour", 0},
                                                 {"minute", 0},
                                                 {"second", 0},
                                                 {"millisecond", 0},
                                                 {"isoWeekYear", 0},
                                                 {"isoWeek", 0},
                                                 {"isoDayOfWeek", 0},
                                                 {"timezone", 0}}};

static err parse_from_parts(mql_scope *s, mql_expression *node, mql_value argument) {
    TRY(mql__parse_named(s, node, &from_parts_arguments, argument));
    bool iso_parts = node->args[F_ISO_WEEK] || node->args[F_ISO_DAY];
    if (!node->args[F_YEAR] && !node->args[F_ISO_YEAR]) {
        return mql_fail(s->op, 40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present");
    }
    if (node->args[F_YEAR] && (node->args[F_ISO_YEAR] || iso_parts)) {
        return mql_fail(s->op, 40489, "$dateFromParts does not allow mixing natural dates with ISO dates");
    }
    if (node->args[F_ISO_YEAR] && (node->args[F_MONTH] || node->args[F_DAY])) {
        return mql_fail(s->op, 40525, "$dateFromParts does not allow mixing ISO dates with natural dates");
    }
    return OK;
}

/* Years have their own range, seconds and milliseconds have none, all others are 16-bit integers. */
static err check_field(const mql__call *c, int which, int64_t n) {
    const char *name = from_parts_arguments.arguments[which].name;
    if (which == F_YEAR || which == F_ISO_YEAR) {
        return n >= 1 && n <= 9999 ? OK
                                   : mql__fail(c, which == F_YEAR ? 40523 : 31095,
                                               "'%s' must evaluate to an integer in the range 1 to 9999, found %" PRId64, name, n);
    }
    if (which == F_SECOND || which == F_MS || n == (int16_t)n) {
        return OK;
    }
    return mql__fail(c, 31034, "'%s' must evaluate to a value in the range [%d, %d]; value %" PRId64 " is not in range", name, INT16_MIN,
                     INT16_MAX, n);
}

static err take_fields(const mql__call *c, int64_t fields[static F_ZONE], bool *null_out) {
    *null_out = false;
    for (int i = 0; i < F_ZONE; i++) {
        fields[i] = i == F_MONTH || i == F_DAY || i == F_ISO_WEEK || i == F_ISO_DAY;
        if (!c->e->args[i]) {
            continue;
        }
        if (mql_is_nullish(c->args[i])) {
            *null_out = true;
            continue;
        }
        if (!mql_as_integer(c->args[i], &fields[i])) {
            return mql__fail(c, 40515, "'%s' must evaluate to an integer, found %s with value %s", from_parts_arguments.arguments[i].name,
                             mql_type_name(c->args[i].type), mql__show(c->run->arena, c->args[i]));
        }
        TRY(check_field(c, i, fields[i]));
    }
    return OK;
}

static err from_parts(const mql__call *c, mql_value *value_out) {
    int64_t f[F_ZONE], local;
    mql_zone_ref zone;
    bool null, zone_null;
    TRY(take_fields(c, f, &null));
    TRY(mql__zone(c, F_ZONE, &zone, &zone_null));
    if (null || zone_null) {
        *value_out = mql_null();
        return OK;
    }
    mql_parts p = {f[F_YEAR], f[F_MONTH], f[F_DAY], f[F_HOUR], f[F_MINUTE], f[F_SECOND], f[F_MS]};
    bool fits =
        c->e->args[F_YEAR] ? mql_calendar_join(&p, &local) : mql_calendar_join_iso(f[F_ISO_YEAR], f[F_ISO_WEEK], f[F_ISO_DAY], &p, &local);
    if (!fits) {
        return mql__fail(c, 15, "$dateFromParts: the date is out of range");
    }
    *value_out = mql_date(c->run->arena, mql_zone_utc(zone, local));
    return OK;
}

/* ---- timestamps ---- */

static err timestamp_part(const mql__call *c, mql_value *value_out) {
    bool seconds = c->e->operator->variant;
    if (c->args[0].type != BSON_TYPE_TIMESTAMP) {
        return mql__fail(c, seconds ? 5687301 : 5687302, " Argument to %s must be a timestamp, but is %s", mql__name(c),
                         mql_type_name(c->args[0].type));
    }
    uint64_t bits = (uint64_t)doc_load_i64(c->args[0].bytes.p);
    *value_out = mql_int64(c->run->arena, (int64_t)(seconds ? bits >> 32 : bits & 0xFFFFFFFF));
    return OK;
}

#define PART(name, which)                                                                                                                  \
    { name, .flags = MQL__SERVICE, .function = part, .parse = parse_part, .variant = which }

static const mql__operator rows[] = {
    PART("$year", YEAR),
    PART("$month", MONTH),
    PART("$dayOfMonth", DAY),
    PART("$hour", HOUR),
    PART("$minute", MINUTE),
    PART("$second", SECOND),
    PART("$millisecond", MILLISECOND),
    PART("$dayOfYear", YEARDAY),
    PART("$dayOfWeek", WEEKDAY),
    PART("$week", WEEK),
    PART("$isoDayOfWeek", ISO_WEEKDAY),
    PART("$isoWeek", ISO_WEEK),
    PART("$isoWeekYear", ISO_YEAR),
    {"$dateToParts", .flags = MQL__SERVICE, .function = to_parts, .named = &to_parts_arguments},
    {"$dateFromParts", .flags = MQL__SERVICE, .function = from_parts, .parse = parse_from_parts},
    {"$tsSecond", 1, 1, MQL__NULLS, .function = timestamp_part, .variant = true},
    {"$tsIncrement", 1, 1, MQL__NULLS, .function = timestamp_part, .variant = false},
};
const mql__operators mql__date_operators = MQL__OPERATORS(rows);
