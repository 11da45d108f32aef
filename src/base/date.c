#include "base/date.h"

#include <time.h>

enum { ISO_DATE = 10, ISO_MINUTES = 16, FRACTION_DIGITS = 7 };

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
    if (year < 0 || month < 0 || month > 11 || day < 1 || day > month_days(year, month)) {
        return false;
    }
    if (time[0] < 0 || time[0] > 23 || time[1] < 0 || time[1] > 59 || time[2] < 0 || time[2] > 59) {
        return false;
    }
    *seconds_out = ((days_of(year, month, day) * 24 + time[0]) * 60 + time[1]) * 60 + time[2];
    return true;
}

/* ---- header fields ---- */

static bool skip(slice *text, char wanted) {
    bool there = text->n && text->p[0] == wanted;
    *text = there ? slice_skip(*text, 1) : *text;
    return there;
}

/* `n` digits; −1: there are none. */
static int take_digits(slice *text, int n) {
    int value = text->n >= (size_t)n ? digits(text->p, n) : -1;
    *text = value >= 0 ? slice_skip(*text, (size_t)n) : *text;
    return value;
}

static int take_word(slice *text, const int *words, int count) {
    int i = text->n >= 3 ? index_of(words, count, text->p) : -1;
    *text = i >= 0 ? slice_skip(*text, 3) : *text;
    return i;
}

/* "27 Apr 2017 00:51:12 ", where the day may have one digit. Wrong numbers are left to seconds_of. */
static bool take_date(slice *text, int date[3], int time[3]) {
    int day = take_digits(text, 2);
    date[2] = day >= 0 ? day : take_digits(text, 1);
    bool good = skip(text, ' ');
    date[1] = take_word(text, months, 12);
    good = good && skip(text, ' ');
    date[0] = take_digits(text, 4);
    good = good && skip(text, ' ');
    time[0] = take_digits(text, 2);
    good = good && skip(text, ':');
    time[1] = take_digits(text, 2);
    good = good && skip(text, ':');
    time[2] = take_digits(text, 2);
    return good && skip(text, ' ');
}

/* How many seconds the zone is ahead of UTC. */
static bool read_zone(slice text, int *ahead_out) {
    static const char *const names[] = {"GMT", "UTC", "UT", "Z"};
    *ahead_out = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (slice_eq_nocase(text, slice_str(names[i]))) {
            return true;
        }
    }
    bool behind = skip(&text, '-');
    if (!behind && !skip(&text, '+')) {
        return false;
    }
    int hours = take_digits(&text, 2), minutes = take_digits(&text, 2);
    *ahead_out = (behind ? -1 : 1) * (hours * 60 + minutes) * 60;
    return text.n == 0 && hours >= 0 && hours < 24 && minutes >= 0 && minutes < 60;
}

static int week_day_of(int64_t seconds) {
    int64_t day = (seconds >= 0 ? seconds : seconds - 86399) / 86400;
    return (int)(((day + 4) % 7 + 7) % 7);
}

bool date_parse_http(slice text, int64_t *seconds_out) {
    int date[3], time[3], ahead;
    int64_t seconds = 0;
    *seconds_out = 0;
    int week_day = take_word(&text, week_days, 7);
    if (week_day >= 0 && !(skip(&text, ',') && skip(&text, ' '))) {
        return false;
    }
    if (!take_date(&text, date, time) || !read_zone(text, &ahead) || date[0] < 1 || !seconds_of(date, time, &seconds)) {
        return false;
    }
    *seconds_out = seconds - ahead;
    return week_day < 0 || week_day == week_day_of(seconds);
}

/* ---- ISO 8601 ---- */

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
    return date[0] >= 1970 && seconds_of(date, time, seconds_out);
}

const char *date_http(int64_t seconds, char room[DATE_TEXT_BYTES]) {
    struct tm parts;
    time_t t = (time_t)seconds;
    gmtime_r(&t, &parts);
    strftime(room, DATE_TEXT_BYTES, "%a, %d %b %Y %H:%M:%S GMT", &parts);
    return room;
}
