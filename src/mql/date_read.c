/* date_read.c — reads dates: by a format, or in one of the forms that people and programs write.
 *
 * Without a format these are accepted, with any number of blanks between date, time and zone:
 *
 *   date   2017-02-28  2017/02/28  20170228  2/28/2017  28.02.2017  28-02-2017  2017-W09-2  2017-059  28 Feb 2017  February 28, 2017
 *          Tue, 28 Feb 2017  @1488240000
 *   time   14:05  14:05:07  14:05:07.123  T14:05  140507 (after T)  2:05 PM  2pm
 *   zone   Z  UTC  GMT  +02  -0530  +05:30  GMT+2  EST, PDT and other abbreviations of North America and Europe */
#include "mql/date_text.h"

enum { UNSET = INT32_MIN };

typedef struct reader {
    slice text;
    size_t at;
    const char *reason;
    int64_t year, month, day, hour, minute, second, ms;
    int64_t iso_year, iso_week, iso_day, yearday;
    bool has_zone;
    int32_t offset_s;
    bool absolute; /* `ms` is the whole date */
} reader;

/* ---- characters ---- */

static char next(const reader *r) {
    return r->at < r->text.n ? r->text.p[r->at] : 0;
}

static char after(const reader *r, size_t n) {
    return r->at + n < r->text.n ? r->text.p[r->at + n] : 0;
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t digits_ahead(const reader *r) {
    size_t n = 0;
    while (is_digit(after(r, n))) {
        n++;
    }
    return n;
}

static bool fail(reader *r, const char *reason) {
    r->reason = r->reason ? r->reason : reason;
    return false;
}

static bool take(reader *r, char c) {
    bool is = c && next(r) == c;
    r->at += is;
    return is;
}

static bool number(reader *r, size_t least, size_t most, int64_t *number_out) {
    size_t n = 0;
    *number_out = 0;
    while (n < most && is_digit(next(r))) {
        *number_out = *number_out * 10 + (r->text.p[r->at++] - '0');
        n++;
    }
    return n >= least || fail(r, "Not enough digits were found");
}

static slice word(const reader *r) {
    size_t n = 0;
    while (is_letter(after(r, n))) {
        n++;
    }
    return slice_of(r->text.p + r->at, n);
}

static void skip_blanks(reader *r) {
    while (next(r) == ' ' || next(r) == '\t' || next(r) == ',') {
        r->at++;
    }
}

/* ---- parts that have names ---- */

static bool month_named(slice name, int64_t *month_out) {
    for (int i = 0; i < 12; i++) {
        slice full = slice_str(mql_month_names[i]);
        if (slice_eq_nocase(name, full) || slice_eq_nocase(name, slice_of(full.p, 3)) ||
            (i == 8 && slice_eq_nocase(name, SLICE_LIT("sept")))) {
            *month_out = i + 1;
            return true;
        }
    }
    return false;
}

static const struct {
    const char *name;
    int hours;
} zones[] = {{"Z", 0},    {"UTC", 0},  {"GMT", 0},  {"WET", 0}, {"EST", -5}, {"EDT", -4}, {"CST", -6}, {"CDT", -5}, {"MST", -7},
             {"MDT", -6}, {"PST", -8}, {"PDT", -7}, {"CET", 1}, {"CEST", 2}, {"EET", 2},  {"EEST", 3}, {"BST", 1},  {"WEST", 1}};

static bool zone_named(slice name, int32_t *offset_out) {
    for (size_t i = 0; i < sizeof zones / sizeof *zones; i++) {
        if (slice_eq_nocase(name, slice_str(zones[i].name))) {
            *offset_out = zones[i].hours * 3600;
            return true;
        }
    }
    return false;
}

/* +2, +02, -0530, +05:30 */
static bool offset(reader *r, int32_t *offset_out) {
    bool minus = next(r) == '-';
    int64_t hours, minutes = 0;
    if (!take(r, '+') && !take(r, '-')) {
        return fail(r, "The timezone could not be found in the database");
    }
    if (!number(r, 1, 2, &hours)) {
        return false;
    }
    if ((take(r, ':') || is_digit(next(r))) && !number(r, 2, 2, &minutes)) {
        return false;
    }
    *offset_out = (int32_t)(hours * 3600 + minutes * 60) * (minus ? -1 : 1);
    return true;
}

/* ---- by a format ---- */

static bool read_month_name(reader *r) {
    slice name = word(r);
    if (!month_named(name, &r->month)) {
        return fail(r, "A textual month could not be found");
    }
    r->at += name.n;
    return true;
}

static bool read_offset_minutes(reader *r) {
    int64_t minutes;
    bool minus = next(r) == '-';
    if (!take(r, '+') && !take(r, '-')) {
        return fail(r, "A timezone offset in minutes could not be found");
    }
    if (!number(r, 1, 4, &minutes)) {
        return false;
    }
    r->has_zone = true;
    r->offset_s = (int32_t)minutes * (minus ? -60 : 60);
    return true;
}

static bool read_offset(reader *r) {
    slice name = word(r);
    r->has_zone = true;
    if (name.n && zone_named(name, &r->offset_s)) {
        r->at += name.n;
        return true;
    }
    return offset(r, &r->offset_s);
}

static bool read_letter(reader *r, char letter) {
    switch (letter) {
    case 'Y':
        return number(r, 4, 4, &r->year);
    case 'm':
        return number(r, 1, 2, &r->month);
    case 'd':
        return number(r, 1, 2, &r->day);
    case 'H':
        return number(r, 1, 2, &r->hour);
    case 'M':
        return number(r, 2, 2, &r->minute);
    case 'S':
        return number(r, 2, 2, &r->second);
    case 'L':
        return number(r, 3, 3, &r->ms);
    case 'j':
        return number(r, 1, 3, &r->yearday);
    case 'G':
        return number(r, 4, 4, &r->iso_year);
    case 'V':
        return number(r, 1, 2, &r->iso_week);
    case 'u':
        return number(r, 1, 1, &r->iso_day);
    case 'b':
    case 'B':
        return read_month_name(r);
    case 'z':
        return read_offset(r);
    case 'Z':
        return read_offset_minutes(r);
    default:
        return take(r, letter) || fail(r, "The format separator does not match");
    }
}

static bool read_format(reader *r, slice format) {
    for (size_t i = 0; i < format.n; i++) {
        bool letter = format.p[i] == '%' && i + 1 < format.n;
        if (letter ? !read_letter(r, format.p[++i]) : !take(r, format.p[i])) {
            return fail(r, "The format separator does not match");
        }
    }
    return r->at == r->text.n || fail(r, "Trailing data");
}

/* ---- without a format ---- */

/* 14:05[:07[.123]] [am|pm], or 140507 after a T */
static bool read_fraction(reader *r) {
    int64_t scale = 100, digit;
    if ((next(r) != '.' && next(r) != ',') || !is_digit(after(r, 1))) {
        return true;
    }
    r->at++;
    r->ms = 0;
    while (is_digit(next(r)) && number(r, 1, 1, &digit)) {
        r->ms += digit * scale;
        scale /= 10;
    }
    return true;
}

static bool read_meridian(reader *r) {
    size_t before = r->at;
    skip_blanks(r);
    slice name = word(r);
    bool pm = slice_eq_nocase(name, SLICE_LIT("pm"));
    if (!pm && !slice_eq_nocase(name, SLICE_LIT("am"))) {
        r->at = before;
        return true;
    }
    r->at += 2;
    if (r->hour < 1 || r->hour > 12) {
        return fail(r, "The hour does not fit am or pm");
    }
    r->hour = r->hour % 12 + (pm ? 12 : 0);
    return true;
}

static bool read_time(reader *r) {
    size_t n = digits_ahead(r);
    r->minute = r->second = r->ms = 0;
    if (!number(r, 1, 2, &r->hour)) {
        return false;
    }
    if (n == 4 || n == 6) {
        return number(r, 2, 2, &r->minute) && (n == 4 || number(r, 2, 2, &r->second)) && read_fraction(r);
    }
    if (take(r, ':') && !number(r, 2, 2, &r->minute)) {
        return false;
    }
    if (take(r, ':') && (!number(r, 2, 2, &r->second) || !read_fraction(r))) {
        return false;
    }
    return read_meridian(r);
}

/* After four digits and a hyphen: 2017-02-28, 2017-059, 2017-W09[-2] */
static bool read_iso_rest(reader *r) {
    if (next(r) == 'W') {
        r->at++;
        r->iso_year = r->year;
        r->year = UNSET;
        r->iso_day = 1;
        return number(r, 2, 2, &r->iso_week) && (!take(r, '-') || number(r, 1, 1, &r->iso_day));
    }
    if (digits_ahead(r) == 3) {
        return number(r, 3, 3, &r->yearday);
    }
    slice name = word(r);
    if (name.n && month_named(name, &r->month)) {
        r->at += name.n;
    } else if (!number(r, 1, 2, &r->month)) {
        return false;
    }
    r->day = 1;
    return !take(r, '-') || number(r, 1, 2, &r->day);
}

/* Digits first: which form it is shows in how many there are and what follows. */
static bool read_numeric_date(reader *r) {
    size_t n = digits_ahead(r);
    char separator = after(r, n);
    if (n == 4 && separator == '-') {
        return number(r, 4, 4, &r->year) && take(r, '-') && read_iso_rest(r);
    }
    if (n == 4 && separator == '/') {
        return number(r, 4, 4, &r->year) && take(r, '/') && number(r, 1, 2, &r->month) && take(r, '/') && number(r, 1, 2, &r->day);
    }
    if (n == 8) {
        return number(r, 4, 4, &r->year) && number(r, 2, 2, &r->month) && number(r, 2, 2, &r->day);
    }
    if (n > 2 || n == 0) {
        return fail(r, "Unexpected character");
    }
    if (separator == '/') {
        return number(r, 1, 2, &r->month) && take(r, '/') && number(r, 1, 2, &r->day) && take(r, '/') && number(r, 4, 4, &r->year);
    }
    if (!number(r, 1, 2, &r->day)) {
        return false;
    }
    if ((separator == '.' || separator == '-') && is_digit(after(r, 1))) {
        return take(r, separator) && number(r, 1, 2, &r->month) && take(r, separator) && number(r, 4, 4, &r->year);
    }
    skip_blanks(r);
    take(r, '-');
    if (!read_month_name(r)) {
        return false;
    }
    skip_blanks(r);
    take(r, '-');
    return number(r, 4, 4, &r->year);
}

/* February 28th, 2017 */
static bool read_named_date(reader *r) {
    if (!read_month_name(r)) {
        return fail(r, "The timezone could not be found in the database");
    }
    take(r, '.');
    skip_blanks(r);
    if (!number(r, 1, 2, &r->day)) {
        return false;
    }
    slice suffix = word(r);
    if (suffix.n == 2 && (slice_eq_nocase(suffix, SLICE_LIT("st")) || slice_eq_nocase(suffix, SLICE_LIT("nd")) ||
                          slice_eq_nocase(suffix, SLICE_LIT("rd")) || slice_eq_nocase(suffix, SLICE_LIT("th")))) {
        r->at += 2;
    }
    skip_blanks(r);
    return number(r, 4, 4, &r->year);
}

static bool read_weekday(reader *r) {
    int weekday;
    slice name = word(r);
    if (name.n && mql_weekday_find(name, &weekday)) {
        r->at += name.n;
        take(r, '.');
        skip_blanks(r);
    }
    return true;
}

static bool read_epoch(reader *r) {
    int64_t seconds;
    r->at++;
    bool minus = take(r, '-');
    if (!number(r, 1, 15, &seconds)) {
        return false;
    }
    r->absolute = r->has_zone = true;
    r->ms = seconds * (minus ? -1000 : 1000);
    return true;
}

static bool read_zone_suffix(reader *r) {
    slice name = word(r);
    skip_blanks(r);
    if (name.n == 0 && next(r) != '+' && next(r) != '-') {
        return true;
    }
    r->has_zone = true;
    if (name.n) {
        if (!zone_named(name, &r->offset_s)) {
            return fail(r, "passing a time zone identifier as part of the string is not allowed");
        }
        r->at += name.n;
        bool more =
            (slice_eq_nocase(name, SLICE_LIT("GMT")) || slice_eq_nocase(name, SLICE_LIT("UTC"))) && (next(r) == '+' || next(r) == '-');
        return !more || offset(r, &r->offset_s);
    }
    return offset(r, &r->offset_s);
}

static bool read_free(reader *r) {
    skip_blanks(r);
    if (next(r) == '@') {
        return read_epoch(r) && (r->at == r->text.n || fail(r, "Unexpected character"));
    }
    read_weekday(r);
    if (!(is_digit(next(r)) ? read_numeric_date(r) : read_named_date(r))) {
        return false;
    }
    skip_blanks(r);
    if ((next(r) == 'T' || next(r) == 't') && is_digit(after(r, 1))) {
        r->at++;
    }
    if (is_digit(next(r)) && !read_time(r)) {
        return false;
    }
    skip_blanks(r);
    if (!read_zone_suffix(r)) {
        return false;
    }
    skip_blanks(r);
    return r->at == r->text.n || fail(r, "Unexpected character");
}

/* ---- what was read ---- */

static bool check_ranges(reader *r) {
    bool time = r->hour <= 24 && r->minute <= 59 && r->second <= 59;
    bool month = r->month == UNSET || (r->month >= 1 && r->month <= 12);
    bool day = r->day == UNSET || r->month == UNSET || !month || r->year == UNSET ||
               (r->day >= 1 && r->day <= mql_calendar_month_days(r->year, r->month));
    bool iso =
        (r->iso_week == UNSET || (r->iso_week >= 1 && r->iso_week <= 53)) && (r->iso_day == UNSET || (r->iso_day >= 1 && r->iso_day <= 7));
    bool of_year = r->yearday == UNSET || (r->yearday >= 1 && r->yearday <= 366);
    return (time && month && day && iso && of_year) || fail(r, "The parsed date was invalid");
}

static bool join(reader *r, int64_t *local_out) {
    mql_parts p = {r->year, r->month, r->day, r->hour, r->minute, r->second, r->ms};
    bool incomplete = false;
    if (r->iso_year != UNSET) {
        int64_t week = r->iso_week == UNSET ? 1 : r->iso_week, day = r->iso_day == UNSET ? 1 : r->iso_day;
        return mql_calendar_join_iso(r->iso_year, week, day, &p, local_out);
    }
    if (r->yearday != UNSET) {
        p.month = 1;
        p.day = r->yearday;
    } else {
        incomplete = r->month == UNSET || r->day == UNSET;
    }
    if (incomplete || r->year == UNSET) {
        return fail(r, "an incomplete date/time string has been found, with elements missing");
    }
    return mql_calendar_join(&p, local_out);
}

/* A date without a time means midnight; a time with missing parts is an error. */
static bool complete_time(reader *r) {
    if (r->hour == UNSET && r->minute == UNSET && r->second == UNSET) {
        r->hour = r->minute = r->second = 0;
    }
    r->ms = r->ms == UNSET ? 0 : r->ms;
    bool complete = r->hour != UNSET && r->minute != UNSET && r->second != UNSET;
    return complete || fail(r, "an incomplete date/time string has been found, with elements missing");
}

static bool finish(reader *r, mql_zone_ref zone, int64_t *ms_out) {
    int64_t local;
    if (r->has_zone && !mql_zone_is_utc(zone)) {
        return fail(r, "you cannot pass in a date/time string with time zone information together with a timezone argument");
    }
    if (r->absolute) {
        *ms_out = r->ms;
        return true;
    }
    if (!complete_time(r) || !check_ranges(r) || !join(r, &local)) {
        return fail(r, "The parsed date was invalid");
    }
    *ms_out = mql_zone_utc(r->has_zone ? (mql_zone_ref){NULL, r->offset_s} : zone, local);
    return true;
}

bool mql_date_parse(slice text, const slice *format, mql_zone_ref zone, mql_date_read *read_out) {
    reader r = {.text = text,
                .year = UNSET,
                .month = UNSET,
                .day = UNSET,
                .hour = UNSET,
                .minute = UNSET,
                .second = UNSET,
                .ms = UNSET,
                .iso_year = UNSET,
                .iso_week = UNSET,
                .iso_day = UNSET,
                .yearday = UNSET};
    *read_out = (mql_date_read){0};
    bool ok = (format ? read_format(&r, *format) : read_free(&r)) && finish(&r, zone, &read_out->ms);
    read_out->reason = r.reason;
    read_out->at = r.at;
    return ok;
}
