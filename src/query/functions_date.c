/* functions_date.c — dates and times are text, which calendar.h reads and writes. The current time is that of the query, the same in all
 * rows, so that GetCurrentDateTime and GetCurrentDateTimeStatic agree. */
#include "query/calendar.h"
#include "query/function_int.h"

static query_value text_of(query_context *c, calendar_ticks t) {
    char *text = arena_alloc_aligned(c->arena, CALENDAR_TEXT_BYTES, 1);
    if (t < CALENDAR_MIN || t > CALENDAR_MAX) {
        return value_undefined();
    }
    calendar_write(text, t);
    return value_string(slice_of(text, CALENDAR_TEXT_BYTES));
}

static bool moment(const query_value *v, calendar_ticks *ticks_out) {
    return v->type == TYPE_STRING && calendar_parse(v->bytes, ticks_out);
}

static bool unit(const query_value *v, calendar_unit *unit_out) {
    return v->type == TYPE_STRING && calendar_unit_of(v->bytes, unit_out);
}

/* ---- now ---- */

static calendar_ticks now(const query_context *c) {
    return c->now_ms * (CALENDAR_TICKS_PER_SECOND / 1000);
}

static query_value date_now_text(query_context *c, const query_value *args, size_t n) {
    (void)args;
    (void)n;
    return text_of(c, now(c));
}

static query_value date_now_ticks(query_context *c, const query_value *args, size_t n) {
    (void)args;
    (void)n;
    return value_integer(now(c));
}

static query_value date_now_timestamp(query_context *c, const query_value *args, size_t n) {
    (void)args;
    (void)n;
    return value_integer(c->now_ms);
}

/* ---- adding ---- */

static query_value add(query_context *c, calendar_ticks t, const query_value *part, const query_value *number, int sign) {
    calendar_unit u;
    int64_t count;
    if (!unit(part, &u) || !function_whole(number, &count) || count == INT64_MIN || !calendar_add(t, u, sign * count, &t)) {
        return value_undefined();
    }
    return text_of(c, t);
}

static query_value date_add(query_context *c, const query_value *args, size_t n) {
    calendar_ticks t;
    (void)n;
    return moment(&args[2], &t) ? add(c, t, &args[0], &args[1], 1) : value_undefined();
}

static query_value date_now(query_context *c, const query_value *args, size_t n) {
    return n == 0 ? text_of(c, now(c)) : n == 2 ? add(c, now(c), &args[0], &args[1], 1) : value_undefined();
}

static query_value date_ago(query_context *c, const query_value *args, size_t n) {
    (void)n;
    return add(c, now(c), &args[0], &args[1], -1);
}

static query_value date_bin(query_context *c, const query_value *args, size_t n) {
    calendar_ticks t, origin = 0;
    calendar_unit u;
    int64_t size = 1;
    if (!moment(&args[0], &t) || !unit(&args[1], &u) || (n > 2 && !function_whole(&args[2], &size)) || size <= 0 ||
        (n > 3 && (!moment(&args[3], &origin) || origin < CALENDAR_WINDOWS_EPOCH)) || !calendar_bin(t, u, size, origin, &t)) {
        return value_undefined();
    }
    return text_of(c, t);
}

static query_value date_diff(query_context *c, const query_value *args, size_t n) {
    calendar_unit u;
    calendar_ticks from, to;
    (void)c;
    (void)n;
    if (!unit(&args[0], &u) || !moment(&args[1], &from) || !moment(&args[2], &to)) {
        return value_undefined();
    }
    return value_integer(calendar_boundaries(u, from, to));
}

/* ---- parts ---- */

static query_value part_of(const calendar_parts *p, calendar_unit u) {
    const int parts[] = {[CALENDAR_YEAR] = p->year,
                         [CALENDAR_MONTH] = p->month,
                         [CALENDAR_DAY] = p->day,
                         [CALENDAR_HOUR] = p->hour,
                         [CALENDAR_MINUTE] = p->minute,
                         [CALENDAR_SECOND] = p->second,
                         [CALENDAR_MILLISECOND] = p->ticks / 10000,
                         [CALENDAR_MICROSECOND] = p->ticks / 10,
                         [CALENDAR_NANOSECOND] = p->ticks * 100};
    return value_integer(parts[u]);
}

static query_value date_part(query_context *c, const query_value *args, size_t n) {
    calendar_unit u;
    calendar_ticks t;
    (void)c;
    (void)n;
    if (!unit(&args[0], &u) || !moment(&args[1], &t)) {
        return value_undefined();
    }
    calendar_parts p = calendar_split(t);
    return part_of(&p, u);
}

static query_value named_part(const query_value *v, calendar_unit u) {
    calendar_ticks t;
    if (!moment(v, &t)) {
        return value_undefined();
    }
    calendar_parts p = calendar_split(t);
    return part_of(&p, u);
}

static query_value date_year(query_context *c, const query_value *args, size_t n) {
    (void)c;
    (void)n;
    return named_part(&args[0], CALENDAR_YEAR);
}

static query_value date_month(query_context *c, const query_value *args, size_t n) {
    (void)c;
    (void)n;
    return named_part(&args[0], CALENDAR_MONTH);
}

static query_value date_day(query_context *c, const query_value *args, size_t n) {
    (void)c;
    (void)n;
    return named_part(&args[0], CALENDAR_DAY);
}

static query_value date_from_parts(query_context *c, const query_value *args, size_t n) {
    int64_t given[7] = {0};
    calendar_ticks t;
    for (size_t i = 0; i < n; i++) {
        if (!function_whole(&args[i], &given[i]) || given[i] < 0 || given[i] > INT32_MAX) {
            return value_undefined();
        }
    }
    calendar_parts p = {(int)given[0], (int)given[1], (int)given[2], (int)given[3], (int)given[4], (int)given[5], (int)given[6]};
    return calendar_join(&p, &t) ? text_of(c, t) : value_undefined();
}

/* ---- ticks and timestamps ---- */

static query_value date_to_ticks(query_context *c, const query_value *args, size_t n) {
    calendar_ticks t;
    (void)c;
    (void)n;
    return moment(&args[0], &t) ? value_integer(t) : value_undefined();
}

static query_value date_to_timestamp(query_context *c, const query_value *args, size_t n) {
    calendar_ticks t;
    (void)c;
    (void)n;
    return moment(&args[0], &t) ? value_integer(t / 10000 - (t % 10000 < 0)) : value_undefined();
}

static query_value date_of_ticks(query_context *c, const query_value *args, size_t n) {
    int64_t t;
    (void)n;
    return function_whole(&args[0], &t) ? text_of(c, t) : value_undefined();
}

static query_value date_of_timestamp(query_context *c, const query_value *args, size_t n) {
    int64_t ms;
    (void)n;
    if (!function_whole(&args[0], &ms) || ms < CALENDAR_MIN / 10000 || ms > CALENDAR_MAX / 10000) {
        return value_undefined();
    }
    return text_of(c, ms * 10000);
}

/* ---- formats ---- */

static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};
static const char *const days[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};

static void add_number(buf *out, int value, size_t width) {
    buf_addf(out, "%0*d", (int)width, value);
}

/* d, dd: the number; ddd: the first three letters of the name; dddd: the name. */
static void add_named(buf *out, int value, const char *name, size_t count) {
    if (count <= 2) {
        add_number(out, value, count);
    } else {
        buf_add(out, name, count == 3 ? 3 : strlen(name));
    }
}

/* f: `count` decimals of the second; F: without trailing zeros. */
static void add_fraction(buf *out, int ticks, size_t count, bool zeros) {
    char digits[8];
    snprintf(digits, sizeof digits, "%07d", ticks);
    size_t n = count < 7 ? count : 7;
    while (!zeros && n && digits[n - 1] == '0') {
        n--;
    }
    buf_add(out, digits, n);
}

/* Writes what a run of one letter stands for; false: the letter has no meaning. */
static bool add_run(buf *out, const calendar_parts *p, int weekday, char letter, size_t count) {
    switch (letter) {
    case 'y':
        add_number(out, count <= 2 ? p->year % 100 : p->year, count);
        return true;
    case 'M':
        add_named(out, p->month, months[p->month - 1], count);
        return true;
    case 'd':
        add_named(out, p->day, days[weekday], count);
        return true;
    case 'H':
        add_number(out, p->hour, count);
        return true;
    case 'h':
        add_number(out, (p->hour + 11) % 12 + 1, count);
        return true;
    case 'm':
        add_number(out, p->minute, count);
        return true;
    case 's':
        add_number(out, p->second, count);
        return true;
    case 'f':
    case 'F':
        add_fraction(out, p->ticks, count, letter == 'f');
        return true;
    case 't':
        buf_add(out, p->hour < 12 ? "AM" : "PM", count == 1 ? 1 : 2);
        return true;
    default:
        return false;
    }
}

static void format(buf *out, calendar_ticks t, slice form) {
    enum { RUN_MAX = 16 };
    calendar_parts p = calendar_split(t);
    int weekday = calendar_weekday(t);
    for (size_t i = 0; i < form.n;) {
        char c = form.p[i];
        if (c == '\\' && i + 1 < form.n) {
            buf_add_byte(out, form.p[i + 1]);
            i += 2;
            continue;
        }
        size_t run = 1;
        while (i + run < form.n && form.p[i + run] == c && run < RUN_MAX) {
            run++;
        }
        if (!add_run(out, &p, weekday, c, run)) {
            buf_add(out, form.p + i, run);
        }
        i += run;
    }
}

static query_value date_format(query_context *c, const query_value *args, size_t n) {
    calendar_ticks t;
    (void)n;
    if (!moment(&args[0], &t) || args[1].type != TYPE_STRING) {
        return value_undefined();
    }
    buf out = buf_init_counted(VALUE_BYTES_MAX, c->arena->budget);
    format(&out, t, args[1].bytes);
    bool can = !function_too_large(c, buf_ok(&out) ? out.n : SIZE_MAX) && function_spend_bytes(c, out.n + args[1].bytes.n);
    query_value made = can ? value_string(arena_copy(c->arena, buf_view(&out))) : value_undefined();
    buf_free(&out);
    return made;
}

const query_function query_functions_date[] = {
    {"Ago", 2, 2, false, false, date_ago},
    {"DateTimeAdd", 3, 3, false, true, date_add},
    {"DateTimeBin", 2, 4, false, true, date_bin},
    {"DateTimeDiff", 3, 3, false, true, date_diff},
    {"DateTimeFormat", 2, 2, false, true, date_format},
    {"DateTimeFromParts", 3, 7, false, true, date_from_parts},
    {"DateTimePart", 2, 2, false, true, date_part},
    {"DateTimeToTicks", 1, 1, false, true, date_to_ticks},
    {"DateTimeToTimestamp", 1, 1, false, true, date_to_timestamp},
    {"DAY", 1, 1, false, true, date_day},
    {"GetCurrentDateTime", 0, 0, false, false, date_now_text},
    {"GetCurrentDateTimeStatic", 0, 0, false, false, date_now_text},
    {"GetCurrentTicks", 0, 0, false, false, date_now_ticks},
    {"GetCurrentTicksStatic", 0, 0, false, false, date_now_ticks},
    {"GetCurrentTimestamp", 0, 0, false, false, date_now_timestamp},
    {"GetCurrentTimestampStatic", 0, 0, false, false, date_now_timestamp},
    {"MONTH", 1, 1, false, true, date_month},
    {"Now", 0, 2, false, false, date_now},
    {"TicksToDateTime", 1, 1, false, true, date_of_ticks},
    {"TimestampToDateTime", 1, 1, false, true, date_of_timestamp},
    {"YEAR", 1, 1, false, true, date_year},
    {0},
};
