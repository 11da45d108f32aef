#include "base/date.h"

#include <time.h>

enum { HTTP_TEXT = 29, ISO_DATE = 10, ISO_MINUTES = 16, FRACTION_DIGITS = 7 };

/* Three lower-case letters as a number. */
#define WORD(a, b, c) ((a) << 16 | (b) << 8 | (c))

static const int week_days[] = {WORD('s', 'u', 'n'), WORD('m', 'o', 'n'), WORD('t', 'u', 'e'), WORD('w', 'e', 'd'),
                                WORD('t', 'h', 'u'), WORD('f', 'r', 'i'), WORD('s', 'a', 't')};
static const int months[] = {WORD('j', 'a', 'n'), WORD('f', 'e', 'b'), WORD('m', 'a', 'r'), WORD('a', 'p', 'r'),
                             WORD('m', 'a', 'y'), WORD('j', 'u', 'n'), WORD('j', 'u', 'l'), WORD('a', 'u', 'g'),
                             WORD('s', 'e', 'p'), WORD('o', 'c', 't'), WORD('n', 'o', 'v'), WORD('d', 'e', 'c')};

static int lower(char c) {
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

static int index_of(const int *words, int count, const char *p) {
    int word = WORD(lower(p[0]) & 0xFF, lower(p[1]) & 0xFF, lower(p[2]) & 0xFF);
    for (int i = 0; i < count; i++) {
        if (words[i] == word) {
            return i;
        }
    }
    return -1;
}

static int digits(const char *p, int n) {
    int value = 0;
    for (int i = 0; i < n; i++) {
        if (p[i] < '0' || p[i] > '9') {
            return -1;
        }
        value = value * 10 + (p[i] - '0');
    }
    return value;
}

/* Days from 1970-01-01 to a Gregorian date. Years are counted from March, so that the leap day is the last day. */
static int64_t days_of(int year, int month, int day) {
    int y = month < 2 ? year - 1 : year;
    int m = (month + 10) % 12;
    return 365 * (int64_t)y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

static int month_days(int year, int month) {
    static const char counts[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return counts[month] + (month == 1 && leap);
}

/* The month counts from 0. −1 marks an invalid number. */
static bool seconds_of(const int date[3], const int time[3], int64_t *seconds_out) {
    int year = date[0], month = date[1], day = date[2];
    if (year < 1970 || month < 0 || month > 11 || day < 1 || day > month_days(year, month)) {
        return false;
    }
    if (time[0] < 0 || time[0] > 23 || time[1] < 0 || time[1] > 59 || time[2] < 0 || time[2] > 59) {
        return false;
    }
    *seconds_out = ((days_of(year, month, day) * 24 + time[0]) * 60 + time[1]) * 60 + time[2];
    return true;
}

static bool has_shape_of_date(const char *p) {
    return p[3] == ',' && p[4] == ' ' && p[7] == ' ' && p[11] == ' ' && p[16] == ' ' && p[19] == ':' && p[22] == ':' &&
           slice_eq_nocase(slice_of(p + 25, 4), SLICE_LIT(" GMT"));
}

bool date_parse_http(slice text, int64_t *seconds_out) {
    int64_t seconds = 0;
    *seconds_out = 0;
    if (text.n != HTTP_TEXT || !has_shape_of_date(text.p)) {
        return false;
    }
    const char *p = text.p;
    int date[3] = {digits(p + 12, 4), index_of(months, 12, p + 8), digits(p + 5, 2)};
    int time[3] = {digits(p + 17, 2), digits(p + 20, 2), digits(p + 23, 2)};
    if (!seconds_of(date, time, &seconds) || index_of(week_days, 7, p) != (seconds / 86400 + 4) % 7) {
        return false;
    }
    *seconds_out = seconds;
    return true;
}

/* Reads the part after the minutes: "Z", ":07Z", ":07.1234567Z". */
static bool read_end(slice text, int *second_out) {
    if (text.n >= 4 && text.p[0] == ':') {
        *second_out = digits(text.p + 1, 2);
        text = slice_skip(text, 3);
        if (text.n > 2 && text.n <= 2 + FRACTION_DIGITS && text.p[0] == '.' && digits(text.p + 1, (int)text.n - 2) >= 0) {
            text = slice_skip(text, text.n - 1);
        }
    }
    return slice_eq(text, SLICE_LIT("Z"));
}

bool date_parse_iso(slice text, int64_t *seconds_out) {
    const char *p = text.p;
    int time[3] = {0};
    *seconds_out = 0;
    if (text.n < ISO_DATE || p[4] != '-' || p[7] != '-') {
        return false;
    }
    int month = digits(p + 5, 2);
    int date[3] = {digits(p, 4), month - 1, digits(p + 8, 2)};
    if (text.n > ISO_DATE) {
        if (text.n <= ISO_MINUTES || p[10] != 'T' || p[13] != ':' || !read_end(slice_skip(text, ISO_MINUTES), &time[2])) {
            return false;
        }
        time[0] = digits(p + 11, 2);
        time[1] = digits(p + 14, 2);
    }
    return seconds_of(date, time, seconds_out);
}

const char *date_http(int64_t seconds, char room[DATE_TEXT_BYTES]) {
    struct tm parts;
    time_t t = (time_t)seconds;
    gmtime_r(&t, &parts);
    strftime(room, DATE_TEXT_BYTES, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    return room;
}
