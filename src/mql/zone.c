/* zone.c — reads the files of the tz database (RFC 8536, version 2 or later) and the rule for the time after their last transition.
 *
 * A file has a header and data with 32-bit times, then the same again with 64-bit times, then a POSIX TZ string between newlines:
 *
 *   header  44 bytes: "TZif", version, 15 unused, then six big-endian counts: isutc, isstd, leap, times, types, letters
 *   data    times × 8 bytes of transitions, times × 1 of type numbers, types × 6 of (offset in seconds, is DST, index of name), letters, …
 */
#include "mql/zone.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "mql/calendar.h"

#define FOLDER "/usr/share/zoneinfo/"

enum { FILE_BYTES_MAX = 64 * 1024, HEADER_BYTES = 44, ZONES_MAX = 1024, NAME_BYTES_MAX = 64 };

/* The day and time of year when clocks change, "M3.2.0/2", "J60" or "59". */
typedef struct change {
    char kind; /* 'M', 'J' (29 February is never counted) or '0' */
    int month, week, day;
    int32_t time_s;
} change;

typedef struct posix_rule {
    bool given, has_summer;
    int32_t standard_s, summer_s; /* east of UTC */
    change to_summer, to_standard;
} posix_rule;

struct mql_zone {
    char name[NAME_BYTES_MAX];
    size_t n;
    int64_t *times;   /* transitions, seconds */
    int32_t *offsets; /* after each transition */
    int32_t first;    /* before the first */
    posix_rule after; /* the last transition */
};

/* ---- the POSIX TZ string ---- */

static bool take(const char **p, char c) {
    bool is = **p == c;
    *p += is;
    return is;
}

static bool take_number(const char **p, int *number_out) {
    const char *start = *p;
    *number_out = 0;
    while (**p >= '0' && **p <= '9' && *p - start < 4) {
        *number_out = *number_out * 10 + (*(*p)++ - '0');
    }
    return *p > start;
}

/* "EST" or "<+0330>" */
static bool take_name(const char **p) {
    const char *start = *p;
    if (take(p, '<')) {
        while (**p && **p != '>') {
            ++*p;
        }
        return take(p, '>');
    }
    while ((**p >= 'A' && **p <= 'Z') || (**p >= 'a' && **p <= 'z')) {
        ++*p;
    }
    return *p > start;
}

/* [+-]h[:m[:s]] */
static bool take_time(const char **p, int32_t *seconds_out) {
    int h, m = 0, s = 0;
    bool minus = take(p, '-');
    if (!minus) {
        take(p, '+');
    }
    if (!take_number(p, &h) || (take(p, ':') && (!take_number(p, &m) || (take(p, ':') && !take_number(p, &s))))) {
        return false;
    }
    *seconds_out = (h * 3600 + m * 60 + s) * (minus ? -1 : 1);
    return true;
}

static bool take_change(const char **p, change *c) {
    *c = (change){.kind = '0', .time_s = 7200};
    if (take(p, 'M')) {
        c->kind = 'M';
        if (!take_number(p, &c->month) || !take(p, '.') || !take_number(p, &c->week) || !take(p, '.') || !take_number(p, &c->day) ||
            c->month < 1 || c->month > 12 || c->week < 1 || c->week > 5 || c->day > 6) {
            return false;
        }
    } else {
        c->kind = take(p, 'J') ? 'J' : '0';
        if (!take_number(p, &c->day) || c->day > 365) {
            return false;
        }
    }
    return !take(p, '/') || take_time(p, &c->time_s);
}

static bool read_rule(const char *p, posix_rule *r) {
    if (!take_name(&p) || !take_time(&p, &r->standard_s)) {
        return false;
    }
    r->given = true;
    r->standard_s = -r->standard_s;
    r->summer_s = r->standard_s + 3600;
    if (!*p) {
        return true;
    }
    r->has_summer = true;
    if (!take_name(&p)) {
        return false;
    }
    if (*p && *p != ',') {
        if (!take_time(&p, &r->summer_s)) {
            return false;
        }
        r->summer_s = -r->summer_s;
    }
    return take(&p, ',') && take_change(&p, &r->to_summer) && take(&p, ',') && take_change(&p, &r->to_standard) && !*p;
}

/* The change in a year, in local seconds since 1970 by the clock before the change. */
static int64_t change_in(const change *c, int64_t year) {
    int64_t day;
    if (c->kind == 'M') {
        int64_t first = mql_calendar_day_number(year, c->month, 1);
        int weekday = (int)(((first + 4) % 7 + 7) % 7); /* 0: Sunday; 1970 began on a Thursday */
        day = first + (c->day - weekday + 7) % 7 + (c->week - 1) * 7;
        if (day >= first + mql_calendar_month_days(year, c->month)) {
            day -= 7;
        }
    } else {
        bool leap = mql_calendar_month_days(year, 2) == 29;
        day = mql_calendar_day_number(year, 1, 1) + c->day - (c->kind == 'J' && !(leap && c->day > 59));
    }
    return day * 86400 + c->time_s;
}

static int32_t rule_offset(const posix_rule *r, int64_t s) {
    if (!r->has_summer) {
        return r->standard_s;
    }
    int64_t year = mql_calendar_split(s / 86400 * MQL_MS_PER_DAY).year; /* no zone changes its clocks at the turn of the year */
    int64_t summer = change_in(&r->to_summer, year) - r->standard_s, standard = change_in(&r->to_standard, year) - r->summer_s;
    bool in_summer = summer < standard ? s >= summer && s < standard : s >= summer || s < standard;
    return in_summer ? r->summer_s : r->standard_s;
}

/* ---- the file ---- */

static int64_t load(const unsigned char *p, size_t bytes) {
    uint64_t v = p[0] & 0x80 ? ~UINT64_C(0) : 0;
    for (size_t i = 0; i < bytes; i++) {
        v = v << 8 | p[i];
    }
    return (int64_t)v;
}

typedef struct counts {
    size_t isutc, isstd, leap, times, types, letters;
} counts;

static bool read_header(slice file, counts *c) {
    const unsigned char *p = (const unsigned char *)file.p;
    if (file.n < HEADER_BYTES || memcmp(p, "TZif", 4) != 0 || p[4] < '2') {
        return false;
    }
    size_t *fields[] = {&c->isutc, &c->isstd, &c->leap, &c->times, &c->types, &c->letters};
    for (size_t i = 0; i < 6; i++) {
        *fields[i] = (size_t)load(p + 20 + 4 * i, 4) & 0xFFFFFFFF;
        if (*fields[i] > FILE_BYTES_MAX) {
            return false;
        }
    }
    return true;
}

static size_t data_bytes(const counts *c, size_t time_bytes) {
    return c->times * (time_bytes + 1) + c->types * 6 + c->letters + c->leap * (time_bytes + 4) + c->isstd + c->isutc;
}

static bool read_data(const unsigned char *p, const counts *c, mql_zone *z) {
    const unsigned char *numbers = p + c->times * 8, *types = numbers + c->times;
    z->n = c->times;
    z->times = mem_alloc((c->times + 1) * sizeof *z->times);
    z->offsets = mem_alloc((c->times + 1) * sizeof *z->offsets);
    z->first = (int32_t)load(types, 4);
    for (size_t i = 0; i < c->times; i++) {
        if (numbers[i] >= c->types) {
            return false;
        }
        z->times[i] = load(p + i * 8, 8);
        z->offsets[i] = (int32_t)load(types + numbers[i] * 6u, 4);
    }
    return true;
}

static void read_footer(slice footer, mql_zone *z) {
    char text[128];
    const char *end = footer.n > 1 && footer.p[0] == '\n' ? memchr(footer.p + 1, '\n', footer.n - 1) : NULL;
    if (end && (size_t)(end - footer.p) < sizeof text) {
        memcpy(text, footer.p + 1, (size_t)(end - footer.p) - 1);
        text[end - footer.p - 1] = 0;
        posix_rule rule = {0};
        z->after = read_rule(text, &rule) ? rule : (posix_rule){0};
    }
}

static bool read_zone(slice file, mql_zone *z) {
    counts c;
    if (!read_header(file, &c)) {
        return false;
    }
    file = slice_skip(file, HEADER_BYTES + data_bytes(&c, 4));
    if (!read_header(file, &c) || c.types == 0 || file.n - HEADER_BYTES < data_bytes(&c, 8)) {
        return false;
    }
    if (!read_data((const unsigned char *)file.p + HEADER_BYTES, &c, z)) {
        return false;
    }
    read_footer(slice_skip(file, HEADER_BYTES + data_bytes(&c, 8)), z);
    return true;
}

/* ---- the zones that were read ---- */

static struct {
    pthread_mutex_t lock;
    mql_zone *zones[ZONES_MAX];
    size_t n;
} known = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Names have letters, digits, _, + and -, in parts between slashes: never a path out of the folder. */
static bool is_name(slice name) {
    bool part_begins = true;
    if (name.n == 0 || name.n >= NAME_BYTES_MAX) {
        return false;
    }
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && (part_begins || !((c >= '0' && c <= '9') || c == '_' || c == '+' || c == '-' || c == '/'))) {
            return false;
        }
        part_begins = c == '/';
    }
    return !part_begins;
}

static mql_zone *open_zone(slice name) {
    char path[sizeof FOLDER + NAME_BYTES_MAX], bytes[FILE_BYTES_MAX];
    snprintf(path, sizeof path, FOLDER "%.*s", (int)name.n, name.p);
    FILE *file = fopen(path, "rb");
    if (!file) {
        return NULL;
    }
    size_t n = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    mql_zone *z = mem_zero(sizeof *z);
    memcpy(z->name, name.p, name.n);
    if (!read_zone(slice_of(bytes, n), z)) {
        free(z->times);
        free(z->offsets);
        free(z);
        return NULL;
    }
    return z;
}

static const mql_zone *known_zone(slice name) {
    for (size_t i = 0; i < known.n; i++) {
        if (slice_eq(name, slice_str(known.zones[i]->name))) {
            return known.zones[i];
        }
    }
    mql_zone *z = known.n < ZONES_MAX ? open_zone(name) : NULL;
    if (z) {
        known.zones[known.n++] = z;
    }
    return z;
}

/* ---- offsets ---- */

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* ±hh, ±hhmm, ±hh:mm */
static bool read_offset(slice text, int32_t *seconds_out) {
    if ((text.n != 3 && text.n != 5 && text.n != 6) || (text.p[0] != '+' && text.p[0] != '-')) {
        return false;
    }
    int digits[4] = {0}, n = 0;
    for (size_t i = 1; i < text.n; i++) {
        if (text.n == 6 && i == 3 && text.p[i] == ':') {
            continue;
        }
        if (!is_digit(text.p[i]) || n == 4) {
            return false;
        }
        digits[n++] = text.p[i] - '0';
    }
    int32_t seconds = (digits[0] * 10 + digits[1]) * 3600 + (digits[2] * 10 + digits[3]) * 60;
    *seconds_out = text.p[0] == '-' ? -seconds : seconds;
    return true;
}

bool mql_zone_find(slice name, mql_zone_ref *zone_out) {
    *zone_out = MQL_UTC;
    if (slice_eq(name, SLICE_LIT("UTC")) || slice_eq(name, SLICE_LIT("GMT")) || read_offset(name, &zone_out->offset_s)) {
        return true;
    }
    if (!is_name(name)) {
        return false;
    }
    pthread_mutex_lock(&known.lock);
    zone_out->rules = known_zone(name);
    pthread_mutex_unlock(&known.lock);
    return zone_out->rules;
}

int32_t mql_zone_offset(mql_zone_ref z, int64_t utc_ms) {
    if (!z.rules) {
        return z.offset_s;
    }
    const mql_zone *r = z.rules;
    int64_t s = utc_ms / 1000 - (utc_ms % 1000 < 0);
    if (r->n == 0 || s < r->times[0]) {
        return r->n == 0 && r->after.given ? rule_offset(&r->after, s) : r->first;
    }
    if (s >= r->times[r->n - 1] && r->after.given) {
        return rule_offset(&r->after, s);
    }
    size_t low = 0, high = r->n;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        *(s >= r->times[middle] ? &low : &high) = middle;
    }
    return r->offsets[low];
}

/* Saturates. */
static int64_t minus(int64_t ms, int64_t by) {
    int64_t difference;
    return __builtin_sub_overflow(ms, by, &difference) ? (by > 0 ? INT64_MIN : INT64_MAX) : difference;
}

int64_t mql_zone_utc(mql_zone_ref z, int64_t local_ms) {
    if (!z.rules) {
        return minus(local_ms, (int64_t)z.offset_s * 1000);
    }
    int64_t before = minus(local_ms, (int64_t)mql_zone_offset(z, minus(local_ms, MQL_MS_PER_DAY)) * 1000);
    int64_t after = minus(local_ms, (int64_t)mql_zone_offset(z, minus(local_ms, -MQL_MS_PER_DAY)) * 1000);
    return mql_zone_local(z, before) == local_ms || mql_zone_local(z, after) != local_ms ? before : after;
}
