/* value_time.c — timestamps, dates and times as text. The calendar is the proleptic Gregorian one, as Java's is. */
#include "cql/value_int.h"

/* ---- calendar ---- */

/* Days since 1970 of a date, by the days in eras of 400 years; years may be negative. */
static int64_t days_of(int64_t year, unsigned month, unsigned day) {
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    unsigned of_era = (unsigned)(year - era * 400);
    unsigned of_year = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void date_of(int64_t days, int64_t *year_out, unsigned *month_out, unsigned *day_out) {
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    unsigned of_era = (unsigned)(days - era * 146097);
    unsigned year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    unsigned of_year = of_era - (365 * year + year / 4 - year / 100);
    unsigned month = (5 * of_year + 2) / 153;
    *day_out = of_year - (153 * month + 2) / 5 + 1;
    *month_out = month < 10 ? month + 3 : month - 9;
    *year_out = (int64_t)year + era * 400 + (*month_out <= 2);
}

static unsigned month_length(int64_t year, unsigned month) {
    static const unsigned char lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return lengths[month - 1] + (month == 2 && leap ? 1u : 0u);
}

static bool is_day(int64_t year, unsigned month, unsigned day) {
    return month >= 1 && month <= 12 && day >= 1 && day <= month_length(year, month);
}

int64_t cql__add_months(int64_t days, int64_t months) {
    int64_t year;
    unsigned month, day;
    date_of(days, &year, &month, &day);
    int64_t total = year * 12 + (month - 1) + months;
    year = total / 12 - (total % 12 < 0);
    month = (unsigned)(total - year * 12) + 1;
    unsigned last = month_length(year, month);
    return days_of(year, month, day < last ? day : last);
}

/* ---- reading ---- */

static bool take_number(slice *rest, size_t least, size_t most, unsigned *number_out) {
    size_t n = 0;
    *number_out = 0;
    while (n < most && n < rest->n && rest->p[n] >= '0' && rest->p[n] <= '9') {
        *number_out = *number_out * 10 + (unsigned)(rest->p[n++] - '0');
    }
    *rest = slice_skip(*rest, n);
    return n >= least;
}

static bool take_char(slice *rest, char c) {
    bool found = rest->n && rest->p[0] == c;
    *rest = slice_skip(*rest, found);
    return found;
}

static bool take_date(slice *rest, int64_t *days_out) {
    bool negative = take_char(rest, '-');
    unsigned year, month, day;
    if (!negative) {
        take_char(rest, '+');
    }
    if (!take_number(rest, 4, 9, &year) || !take_char(rest, '-') || !take_number(rest, 1, 2, &month) || !take_char(rest, '-') ||
        !take_number(rest, 1, 2, &day)) {
        return false;
    }
    int64_t signed_year = negative ? -(int64_t)year : (int64_t)year;
    *days_out = days_of(signed_year, month ? month : 1, day);
    return is_day(signed_year, month, day);
}

/* Up to nine digits, as nanoseconds. */
static bool take_fraction(slice *rest, int64_t *ns_out) {
    unsigned fraction;
    size_t before = rest->n;
    if (!take_number(rest, 1, 9, &fraction)) {
        return false;
    }
    int64_t ns = fraction;
    for (size_t digits = before - rest->n; digits < 9; digits++) {
        ns *= 10;
    }
    *ns_out += ns;
    return true;
}

/* hh:mm[:ss[.fffffffff]] as nanoseconds of the day. */
static bool take_time(slice *rest, bool seconds_needed, int64_t *ns_out) {
    unsigned hour, minute, second = 0;
    if (!take_number(rest, 1, 2, &hour) || !take_char(rest, ':') || !take_number(rest, 1, 2, &minute)) {
        return false;
    }
    bool seconds = take_char(rest, ':');
    if ((seconds && !take_number(rest, 1, 2, &second)) || (seconds_needed && !seconds) || hour > 23 || minute > 59 || second > 59) {
        return false;
    }
    *ns_out = (int64_t)(hour * 3600 + minute * 60 + second) * 1000000000;
    return !seconds || !take_char(rest, '.') || take_fraction(rest, ns_out);
}

/* Z, UTC, GMT, +01, +0100, +01:00: minutes east. */
static bool take_zone(slice *rest, int *minutes_out) {
    unsigned hours, minutes = 0;
    *minutes_out = 0;
    if (rest->n == 0 || slice_eq_nocase(*rest, SLICE_LIT("Z")) || slice_eq_nocase(*rest, SLICE_LIT("UTC")) ||
        slice_eq_nocase(*rest, SLICE_LIT("GMT"))) {
        *rest = slice_skip(*rest, rest->n);
        return true;
    }
    bool west = take_char(rest, '-');
    if ((!west && !take_char(rest, '+')) || !take_number(rest, 2, 2, &hours)) {
        return false;
    }
    take_char(rest, ':');
    if (rest->n && !take_number(rest, 2, 2, &minutes)) {
        return false;
    }
    *minutes_out = (int)(hours * 60 + minutes) * (west ? -1 : 1);
    return hours <= 18 && minutes < 60;
}

bool cql__read_timestamp(slice text, int64_t *ms_out) {
    int64_t days, ns = 0;
    int zone = 0;
    slice rest = text;
    if (slice_to_i64(text, ms_out)) {
        return true;
    }
    if (!take_date(&rest, &days)) {
        return false;
    }
    if (rest.n && (rest.p[0] == 'T' || rest.p[0] == ' ') && rest.n > 1 && rest.p[1] >= '0' && rest.p[1] <= '9') {
        rest = slice_skip(rest, 1);
        if (!take_time(&rest, false, &ns)) {
            return false;
        }
    }
    rest = slice_trim(rest);
    if (!take_zone(&rest, &zone) || rest.n) {
        return false;
    }
    int64_t of_day = ns / 1000000 - (int64_t)zone * 60000;
    if (days < 0) { /* towards zero first: the smallest timestamp lies within the earliest day */
        days++;
        of_day -= CQL__DAY_MS;
    }
    return !__builtin_mul_overflow(days, (int64_t)CQL__DAY_MS, ms_out) && !__builtin_add_overflow(*ms_out, of_day, ms_out);
}

bool cql__read_date(slice text, int64_t *days_out) {
    return take_date(&text, days_out) && text.n == 0;
}

bool cql__read_time(slice text, int64_t *ns_out) {
    return take_time(&text, true, ns_out) && text.n == 0;
}

/* ---- writing ---- */

static void write_year(buf *out, int64_t year) {
    if (year < 0) {
        buf_addf(out, "-%04lld", (long long)-year);
    } else {
        buf_addf(out, year > 9999 ? "+%lld" : "%04lld", (long long)year);
    }
}

void cql__write_date(buf *out, int64_t days) {
    int64_t year;
    unsigned month, day;
    date_of(days, &year, &month, &day);
    write_year(out, year);
    buf_addf(out, "-%02u-%02u", month, day);
}

static int64_t floor_divide(int64_t number, int64_t by) {
    return number / by - (number % by < 0);
}

void cql__write_timestamp(buf *out, int64_t ms, char separator) {
    int64_t days = floor_divide(ms, CQL__DAY_MS);
    unsigned of_day = (unsigned)(ms - days * CQL__DAY_MS);
    cql__write_date(out, days);
    buf_addf(out, "%c%02u:%02u:%02u.%03uZ", separator, of_day / 3600000, of_day / 60000 % 60, of_day / 1000 % 60, of_day % 1000);
}

void cql__write_time(buf *out, int64_t ns) {
    uint64_t seconds = (uint64_t)ns / 1000000000 % 86400;
    buf_addf(out, "%02u:%02u:%02u.%09u", (unsigned)(seconds / 3600), (unsigned)(seconds / 60 % 60), (unsigned)(seconds % 60),
             (unsigned)((uint64_t)ns % 1000000000));
}
