#include "query/calendar.h"

/* ---- days ---- */

/* Days since 1970-01-01. Years begin in March here, so that the leap day is the last day of a year. */
static int64_t day_of(int year, int month, int day) {
    int64_t y = year - (month <= 2);
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t in_era = y - era * 400;
    int64_t in_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + in_era * 365 + in_era / 4 - in_era / 100 + in_year - 719468;
}

static void date_of(int64_t day, calendar_parts *p) {
    int64_t shifted = day + 719468;
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t in_era = shifted - era * 146097;
    int64_t year_in_era = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * year_in_era + year_in_era / 4 - year_in_era / 100);
    int64_t from_march = (5 * in_year + 2) / 153;
    p->day = (int)(in_year - (153 * from_march + 2) / 5 + 1);
    p->month = (int)(from_march < 10 ? from_march + 3 : from_march - 9);
    p->year = (int)(era * 400 + year_in_era + (p->month <= 2));
}

static int days_in(int year, int month) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

static int64_t floor_div(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* ---- parts ---- */

calendar_parts calendar_split(calendar_ticks t) {
    calendar_parts p;
    int64_t day = floor_div(t, CALENDAR_TICKS_PER_DAY);
    int64_t rest = t - day * CALENDAR_TICKS_PER_DAY;
    date_of(day, &p);
    p.ticks = (int)(rest % CALENDAR_TICKS_PER_SECOND);
    int second = (int)(rest / CALENDAR_TICKS_PER_SECOND);
    p.hour = second / 3600;
    p.minute = second / 60 % 60;
    p.second = second % 60;
    return p;
}

static bool in(int64_t value, int64_t least, int64_t most) {
    return value >= least && value <= most;
}

bool calendar_join(const calendar_parts *p, calendar_ticks *ticks_out) {
    if (!in(p->year, 1, 9999) || !in(p->month, 1, 12) || !in(p->day, 1, days_in(p->year, p->month)) || !in(p->hour, 0, 23) ||
        !in(p->minute, 0, 59) || !in(p->second, 0, 59) || !in(p->ticks, 0, CALENDAR_TICKS_PER_SECOND - 1)) {
        return false;
    }
    int64_t second = p->hour * 3600 + p->minute * 60 + p->second;
    *ticks_out = day_of(p->year, p->month, p->day) * CALENDAR_TICKS_PER_DAY + second * CALENDAR_TICKS_PER_SECOND + p->ticks;
    return true;
}

int calendar_weekday(calendar_ticks t) {
    int64_t day = floor_div(t, CALENDAR_TICKS_PER_DAY) + 4; /* 1970-01-01 was a Thursday */
    return (int)(day - floor_div(day, 7) * 7);
}

/* ---- text ---- */

/* Reads exactly n digits. */
static bool digits(slice *s, size_t n, int *value_out) {
    *value_out = 0;
    if (s->n < n) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (s->p[i] < '0' || s->p[i] > '9') {
            return false;
        }
        *value_out = *value_out * 10 + (s->p[i] - '0');
    }
    *s = slice_skip(*s, n);
    return true;
}

static bool skip(slice *s, char c) {
    if (s->n == 0 || s->p[0] != c) {
        return false;
    }
    *s = slice_skip(*s, 1);
    return true;
}

/* Reads one to seven decimals. */
static bool fraction(slice *s, int *ticks_out) {
    int n = 0, digit;
    *ticks_out = 0;
    while (n < 7 && digits(s, 1, &digit)) {
        *ticks_out = *ticks_out * 10 + digit;
        n++;
    }
    for (int i = n; i < 7; i++) {
        *ticks_out *= 10;
    }
    return n > 0;
}

bool calendar_parse(slice s, calendar_ticks *ticks_out) {
    calendar_parts p = {0};
    bool ok = digits(&s, 4, &p.year) && skip(&s, '-') && digits(&s, 2, &p.month) && skip(&s, '-') && digits(&s, 2, &p.day);
    if (ok && (skip(&s, 'T') || skip(&s, ' '))) {
        ok = digits(&s, 2, &p.hour) && skip(&s, ':') && digits(&s, 2, &p.minute) && skip(&s, ':') && digits(&s, 2, &p.second) &&
             (!skip(&s, '.') || fraction(&s, &p.ticks));
    }
    skip(&s, 'Z');
    return ok && s.n == 0 && calendar_join(&p, ticks_out);
}

static char *put(char *p, int value, int n) {
    for (int i = n - 1; i >= 0; i--) {
        p[i] = (char)('0' + value % 10);
        value /= 10;
    }
    return p + n;
}

void calendar_write(char text[CALENDAR_TEXT_BYTES], calendar_ticks t) {
    calendar_parts parts = calendar_split(t);
    memcpy(text, "0000-00-00T00:00:00.0000000Z", CALENDAR_TEXT_BYTES);
    put(text, parts.year, 4);
    put(text + 5, parts.month, 2);
    put(text + 8, parts.day, 2);
    put(text + 11, parts.hour, 2);
    put(text + 14, parts.minute, 2);
    put(text + 17, parts.second, 2);
    put(text + 20, parts.ticks, 7);
}

/* ---- units ---- */

bool calendar_unit_of(slice name, calendar_unit *unit_out) {
    static const struct {
        slice name;
        calendar_unit unit;
    } names[] = {
        {{"year", 4}, CALENDAR_YEAR},       {{"yyyy", 4}, CALENDAR_YEAR},
        {{"yy", 2}, CALENDAR_YEAR},         {{"month", 5}, CALENDAR_MONTH},
        {{"mm", 2}, CALENDAR_MONTH},        {{"m", 1}, CALENDAR_MONTH},
        {{"day", 3}, CALENDAR_DAY},         {{"dd", 2}, CALENDAR_DAY},
        {{"d", 1}, CALENDAR_DAY},           {{"hour", 4}, CALENDAR_HOUR},
        {{"hh", 2}, CALENDAR_HOUR},         {{"minute", 6}, CALENDAR_MINUTE},
        {{"mi", 2}, CALENDAR_MINUTE},       {{"n", 1}, CALENDAR_MINUTE},
        {{"second", 6}, CALENDAR_SECOND},   {{"ss", 2}, CALENDAR_SECOND},
        {{"s", 1}, CALENDAR_SECOND},        {{"millisecond", 11}, CALENDAR_MILLISECOND},
        {{"ms", 2}, CALENDAR_MILLISECOND},  {{"microsecond", 11}, CALENDAR_MICROSECOND},
        {{"mcs", 3}, CALENDAR_MICROSECOND}, {{"nanosecond", 10}, CALENDAR_NANOSECOND},
        {{"ns", 2}, CALENDAR_NANOSECOND},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (slice_eq_nocase(name, names[i].name)) {
            *unit_out = names[i].unit;
            return true;
        }
    }
    return false;
}

/* Ticks of the units of fixed length; a nanosecond is less than a tick. */
static const int64_t lengths[] = {
    [CALENDAR_DAY] = CALENDAR_TICKS_PER_DAY,
    [CALENDAR_HOUR] = 3600 * CALENDAR_TICKS_PER_SECOND,
    [CALENDAR_MINUTE] = 60 * CALENDAR_TICKS_PER_SECOND,
    [CALENDAR_SECOND] = CALENDAR_TICKS_PER_SECOND,
    [CALENDAR_MILLISECOND] = 10000,
    [CALENDAR_MICROSECOND] = 10,
    [CALENDAR_NANOSECOND] = 0,
};

static int64_t month_of(const calendar_parts *p) {
    return (int64_t)p->year * 12 + p->month - 1;
}

static bool add_months(calendar_ticks t, int64_t n, calendar_ticks *ticks_out) {
    const int64_t most = 12 * 10000;
    calendar_parts p = calendar_split(t);
    if (!in(n, -most, most)) {
        return false;
    }
    int64_t month = month_of(&p) + n;
    if (month < 12) {
        return false;
    }
    p.year = (int)(month / 12);
    p.month = (int)(month % 12) + 1;
    int last = p.year <= 9999 ? days_in(p.year, p.month) : 0;
    p.day = p.day < last ? p.day : last;
    return calendar_join(&p, ticks_out);
}

static bool add_ticks(calendar_ticks t, int64_t n, int64_t length, calendar_ticks *ticks_out) {
    int64_t ticks;
    return !__builtin_mul_overflow(n, length, &ticks) && !__builtin_add_overflow(t, ticks, ticks_out) &&
           in(*ticks_out, CALENDAR_MIN, CALENDAR_MAX);
}

bool calendar_add(calendar_ticks t, calendar_unit unit, int64_t n, calendar_ticks *ticks_out) {
    switch (unit) {
    case CALENDAR_YEAR:
        return in(n, -10000, 10000) && add_months(t, n * 12, ticks_out);
    case CALENDAR_MONTH:
        return add_months(t, n, ticks_out);
    case CALENDAR_NANOSECOND:
        return add_ticks(t, n / 100, 1, ticks_out);
    default:
        return add_ticks(t, n, lengths[unit], ticks_out);
    }
}

/* The number of units since 1970, or for years and months since the year 0. */
static int64_t index_of(calendar_unit unit, calendar_ticks t) {
    calendar_parts p;
    switch (unit) {
    case CALENDAR_YEAR:
        return calendar_split(t).year;
    case CALENDAR_MONTH:
        p = calendar_split(t);
        return month_of(&p);
    case CALENDAR_NANOSECOND:
        return t;
    default:
        return floor_div(t, lengths[unit]);
    }
}

int64_t calendar_boundaries(calendar_unit unit, calendar_ticks from, calendar_ticks to) {
    int64_t n = index_of(unit, to) - index_of(unit, from); /* both times are in range, so this does not overflow */
    return unit == CALENDAR_NANOSECOND ? (int64_t)((uint64_t)n * 100) : n;
}

/* Whole months between two times, rounded down. */
static int64_t months_since(calendar_ticks origin, calendar_ticks t) {
    calendar_parts a = calendar_split(origin), b = calendar_split(t);
    int64_t n = month_of(&b) - month_of(&a);
    calendar_ticks reached;
    return calendar_add(origin, CALENDAR_MONTH, n, &reached) && reached > t ? n - 1 : n;
}

bool calendar_bin(calendar_ticks t, calendar_unit unit, int64_t n, calendar_ticks origin, calendar_ticks *ticks_out) {
    int64_t length;
    if (unit == CALENDAR_YEAR || unit == CALENDAR_MONTH) {
        if (__builtin_mul_overflow(n, unit == CALENDAR_YEAR ? 12 : 1, &n)) {
            n = INT64_MAX;
        }
        int64_t months = months_since(origin, t), bin;
        return !__builtin_mul_overflow(floor_div(months, n), n, &bin) && calendar_add(origin, CALENDAR_MONTH, bin, ticks_out);
    }
    if (unit == CALENDAR_NANOSECOND) {
        length = n < 100 ? 1 : n / 100;
    } else if (__builtin_mul_overflow(n, lengths[unit], &length)) {
        length = INT64_MAX;
    }
    return add_ticks(origin, floor_div(t - origin, length), length, ticks_out);
}
