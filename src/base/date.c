#include "base/date.h"

#include <time.h>

enum { HTTP_TEXT = 29 };

/* Three letters in lower case as a number. */
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

/* Days since 1970-01-01 of a date of the Gregorian calendar: years counted from March, so that the leap day is the last. */
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

static bool has_shape_of_date(const char *p) {
    return p[3] == ',' && p[4] == ' ' && p[7] == ' ' && p[11] == ' ' && p[16] == ' ' && p[19] == ':' && p[22] == ':' &&
           slice_eq_nocase(slice_of(p + 25, 4), SLICE_LIT(" GMT"));
}

bool date_parse_http(slice text, int64_t *seconds_out) {
    *seconds_out = 0;
    if (text.n != HTTP_TEXT || !has_shape_of_date(text.p)) {
        return false;
    }
    const char *p = text.p;
    int week_day = index_of(week_days, 7, p);
    int day = digits(p + 5, 2);
    int month = index_of(months, 12, p + 8);
    int year = digits(p + 12, 4);
    int hour = digits(p + 17, 2);
    int minute = digits(p + 20, 2);
    int second = digits(p + 23, 2);
    if (year < 1970 || month < 0 || day < 1 || day > month_days(year, month)) {
        return false;
    }
    int64_t days = days_of(year, month, day);
    if (week_day != (days + 4) % 7 || hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59) {
        return false;
    }
    *seconds_out = ((days * 24 + hour) * 60 + minute) * 60 + second;
    return true;
}

const char *date_http(int64_t seconds, char room[40]) {
    struct tm parts;
    time_t t = (time_t)seconds;
    gmtime_r(&t, &parts);
    strftime(room, 40, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    return room;
}
