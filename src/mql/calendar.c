/* calendar.c — days, weeks and months. Day numbers follow Howard Hinnant's civil calendar algorithms: years begin in March, so that the
 * leap day is the last of its year. */
#include "mql/calendar.h"

#include <string.h>

const char *const mql_month_names[12] = {"January", "February", "March",     "April",   "May",      "June",
                                         "July",    "August",   "September", "October", "November", "December"};

/* ---- days ---- */

static int64_t floor_divide(int64_t n, int64_t by) {
    return n / by - (n % by < 0);
}

int64_t mql_calendar_days(int64_t local_ms) {
    return floor_divide(local_ms, MQL_MS_PER_DAY);
}

int64_t mql_calendar_day_number(int64_t year, int64_t month, int64_t day) {
    year -= month <= 2;
    int64_t era = floor_divide(year, 400), of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void civil_of(int64_t days, mql_parts *p) {
    days += 719468;
    int64_t era = floor_divide(days, 146097), of_era = days - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100), month = (5 * of_year + 2) / 153;
    p->day = of_year - (153 * month + 2) / 5 + 1;
    p->month = month < 10 ? month + 3 : month - 9;
    p->year = year + era * 400 + (p->month <= 2);
}

static bool is_leap(int64_t year) {
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

int mql_calendar_month_days(int64_t year, int64_t month) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year));
}

/* ---- parts ---- */

mql_parts mql_calendar_split(int64_t local_ms) {
    mql_parts p;
    int64_t ms = local_ms % MQL_MS_PER_DAY;
    ms += ms < 0 ? MQL_MS_PER_DAY : 0;
    civil_of(mql_calendar_days(local_ms), &p);
    p.hour = ms / MQL_MS_PER_HOUR;
    p.minute = ms / MQL_MS_PER_MINUTE % 60;
    p.second = ms / MQL_MS_PER_SECOND % 60;
    p.ms = ms % MQL_MS_PER_SECOND;
    return p;
}

static bool add_scaled(int64_t *total, int64_t n, int64_t by) {
    int64_t product;
    return !__builtin_mul_overflow(n, by, &product) && !__builtin_add_overflow(*total, product, total);
}

static bool add_time(int64_t *ms, const mql_parts *p) {
    return add_scaled(ms, p->hour, MQL_MS_PER_HOUR) && add_scaled(ms, p->minute, MQL_MS_PER_MINUTE) &&
           add_scaled(ms, p->second, MQL_MS_PER_SECOND) && add_scaled(ms, p->ms, 1);
}

enum { YEARS_MAX = 300000000 }; /* beyond what 64 bits of milliseconds reach */

bool mql_calendar_join(const mql_parts *p, int64_t *local_ms_out) {
    int64_t carry = floor_divide(p->month - 1, 12), year;
    *local_ms_out = 0;
    if (__builtin_add_overflow(p->year, carry, &year) || year > YEARS_MAX || year < -YEARS_MAX) {
        return false;
    }
    int64_t first = mql_calendar_day_number(year, p->month - carry * 12, 1);
    return add_scaled(local_ms_out, first - 1, MQL_MS_PER_DAY) && add_scaled(local_ms_out, p->day, MQL_MS_PER_DAY) &&
           add_time(local_ms_out, p);
}

/* ---- weeks ---- */

int mql_calendar_weekday(int64_t local_ms) {
    int64_t days = mql_calendar_days(local_ms) + 4; /* 1970 began on a Thursday */
    return (int)(days - floor_divide(days, 7) * 7) + 1;
}

static int iso_weekday(int64_t days) {
    days += 3;
    return (int)(days - floor_divide(days, 7) * 7) + 1;
}

int mql_calendar_yearday(int64_t local_ms) {
    mql_parts p = mql_calendar_split(local_ms);
    return (int)(mql_calendar_days(local_ms) - mql_calendar_day_number(p.year, 1, 1)) + 1;
}

int mql_calendar_week(int64_t local_ms) {
    return (mql_calendar_yearday(local_ms) + 7 - mql_calendar_weekday(local_ms)) / 7;
}

/* The Monday of week 1: the week that contains 4 January. */
static int64_t first_monday(int64_t year) {
    int64_t fourth = mql_calendar_day_number(year, 1, 4);
    return fourth - (iso_weekday(fourth) - 1);
}

mql_iso_parts mql_calendar_iso(int64_t local_ms) {
    int64_t days = mql_calendar_days(local_ms);
    int64_t year = mql_calendar_split(local_ms).year;
    if (days < first_monday(year)) {
        year--;
    } else if (days >= first_monday(year + 1)) {
        year++;
    }
    return (mql_iso_parts){year, (int)((days - first_monday(year)) / 7) + 1, iso_weekday(days)};
}

bool mql_calendar_join_iso(int64_t year, int64_t week, int64_t weekday, const mql_parts *p, int64_t *local_ms_out) {
    *local_ms_out = 0;
    if (year > YEARS_MAX || year < -YEARS_MAX) {
        return false;
    }
    return add_scaled(local_ms_out, first_monday(year) - 8, MQL_MS_PER_DAY) &&
           add_scaled(local_ms_out, week, 7 * (int64_t)MQL_MS_PER_DAY) && add_scaled(local_ms_out, weekday, MQL_MS_PER_DAY) &&
           add_time(local_ms_out, p);
}

/* ---- units ---- */

static const struct {
    const char *name;
    int64_t ms;
} units[] = {
    [MQL_MILLISECOND] = {"millisecond", 1},
    [MQL_SECOND] = {"second", MQL_MS_PER_SECOND},
    [MQL_MINUTE] = {"minute", MQL_MS_PER_MINUTE},
    [MQL_HOUR] = {"hour", MQL_MS_PER_HOUR},
    [MQL_DAY] = {"day", MQL_MS_PER_DAY},
    [MQL_WEEK] = {"week", 7 * (int64_t)MQL_MS_PER_DAY},
    [MQL_MONTH] = {"month", 0},
    [MQL_QUARTER] = {"quarter", 0},
    [MQL_YEAR] = {"year", 0},
};

bool mql_unit_find(slice name, mql_unit *unit_out) {
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (slice_eq(name, slice_str(units[i].name))) {
            *unit_out = (mql_unit)i;
            return true;
        }
    }
    return false;
}

int64_t mql_unit_ms(mql_unit unit) {
    return units[unit].ms;
}

bool mql_weekday_find(slice name, int *weekday_out) {
    static const char *const names[] = {"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"};
    for (int i = 0; i < 7; i++) {
        slice full = slice_str(names[i]);
        if (slice_eq_nocase(name, full) || slice_eq_nocase(name, slice_of(full.p, 3))) {
            *weekday_out = i + 1;
            return true;
        }
    }
    return false;
}
