#include "api/table/edm.h"

#include <math.h>
#include <stdio.h>

#include "base/hex.h"
#include "doc/number.h"
#include "doc/path.h"

const char *const edm_names[EDM_TYPES] = {"Edm.String",  "Edm.Int32",    "Edm.Int64", "Edm.Double",
                                          "Edm.Boolean", "Edm.DateTime", "Edm.Guid",  "Edm.Binary"};

bool edm_type_parse(slice name, edm_type *type_out) {
    for (edm_type t = 0; t < EDM_TYPES; t++) {
        if (slice_eq(name, slice_str(edm_names[t]))) {
            *type_out = t;
            return true;
        }
    }
    return false;
}

/* ---- times ---- */

enum { YEAR_MIN = 1601, YEAR_MAX = 9999, FRACTION_DIGITS = 7 };
#define TICKS_PER_SECOND ((int64_t)10000000)
#define SECONDS_PER_DAY ((int64_t)86400)

/* Days from 1970-01-01 to a Gregorian date and back. Years are counted from March, so that the leap day is the last day; eras of 400 years
 * all have the same length. */
static int64_t days_of(int year, int month, int day) {
    int64_t y = month <= 2 ? year - 1 : year;
    int m = (month + 9) % 12;
    return 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 - 719468;
}

static void date_of(int64_t days, int *year, int *month, int *day) {
    enum { DAYS_PER_ERA = 146097 };
    int64_t z = days + 719468, era = z / DAYS_PER_ERA, in_era = z - era * DAYS_PER_ERA;
    int64_t y = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * y + y / 4 - y / 100), m = (5 * in_year + 2) / 153;
    *day = (int)(in_year - (153 * m + 2) / 5 + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = (int)(y + era * 400 + (*month <= 2));
}

static bool take_digits(slice *rest, size_t n, int *value_out) {
    int value = 0;
    if (rest->n < n) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (rest->p[i] < '0' || rest->p[i] > '9') {
            return false;
        }
        value = value * 10 + (rest->p[i] - '0');
    }
    *rest = slice_skip(*rest, n);
    *value_out = value;
    return true;
}

static bool take_char(slice *rest, char c) {
    bool there = rest->n && rest->p[0] == c;
    *rest = slice_skip(*rest, there);
    return there;
}

static bool take_fraction(slice *rest, int64_t *ticks) {
    int digits = 0, value = 0, digit;
    if (!take_char(rest, '.')) {
        return true;
    }
    for (; digits < FRACTION_DIGITS && take_digits(rest, 1, &digit); digits++) {
        value = value * 10 + digit;
    }
    bool any = digits > 0;
    for (; digits < FRACTION_DIGITS; digits++) {
        value *= 10;
    }
    *ticks += value;
    return any;
}

/* Nothing, "Z", or "+01:00". */
static bool take_zone(slice *rest, int64_t *seconds) {
    int hours, minutes;
    if (rest->n == 0 || take_char(rest, 'Z') || take_char(rest, 'z')) {
        return true;
    }
    int sign = take_char(rest, '-') ? 1 : take_char(rest, '+') ? -1 : 0;
    bool good =
        sign && take_digits(rest, 2, &hours) && take_char(rest, ':') && take_digits(rest, 2, &minutes) && hours < 15 && minutes < 60;
    *seconds += good ? sign * (hours * 3600 + minutes * 60) : 0;
    return good;
}

static bool take_date(slice *rest, int64_t *seconds) {
    int year, month, day, y, m, d;
    if (!take_digits(rest, 4, &year) || !take_char(rest, '-') || !take_digits(rest, 2, &month) || !take_char(rest, '-') ||
        !take_digits(rest, 2, &day) || year < YEAR_MIN || month < 1 || month > 12 || day < 1 || day > 31) {
        return false;
    }
    int64_t days = days_of(year, month, day);
    date_of(days, &y, &m, &d);
    *seconds += days * SECONDS_PER_DAY;
    return m == month && d == day; /* not February 30 */
}

static bool take_time(slice *rest, int64_t *seconds) {
    int hour, minute, second = 0;
    if (!take_digits(rest, 2, &hour) || !take_char(rest, ':') || !take_digits(rest, 2, &minute) ||
        (take_char(rest, ':') && !take_digits(rest, 2, &second)) || hour > 23 || minute > 59 || second > 59) {
        return false;
    }
    *seconds += hour * 3600 + minute * 60 + second;
    return true;
}

bool edm_time_in_range(int64_t ticks) {
    int64_t per_day = SECONDS_PER_DAY * TICKS_PER_SECOND;
    return ticks >= days_of(YEAR_MIN, 1, 1) * per_day && ticks < days_of(YEAR_MAX + 1, 1, 1) * per_day;
}

bool edm_time_parse(slice text, int64_t *ticks_out) {
    int64_t seconds = 0, ticks = 0;
    if (!take_date(&text, &seconds)) {
        return false;
    }
    if (text.n && !(take_char(&text, 'T') && take_time(&text, &seconds) && take_fraction(&text, &ticks) && take_zone(&text, &seconds))) {
        return false;
    }
    *ticks_out = seconds * TICKS_PER_SECOND + ticks;
    return text.n == 0 && edm_time_in_range(*ticks_out);
}

static int64_t floor_divide(int64_t a, int64_t b) {
    return a / b - (a % b < 0);
}

int64_t edm_ms_of(int64_t ticks, unsigned *rest_out) {
    int64_t ms = floor_divide(ticks, EDM_TICKS_PER_MS);
    *rest_out = (unsigned)(ticks - ms * EDM_TICKS_PER_MS);
    return ms;
}

static void put_two(char *p, int value) {
    p[0] = (char)('0' + value / 10);
    p[1] = (char)('0' + value % 10);
}

void edm_time_write(buf *out, int64_t ticks) {
    char text[] = "0000-00-00T00:00:00.0000000Z";
    int year, month, day;
    int64_t seconds = floor_divide(ticks, TICKS_PER_SECOND), days = floor_divide(seconds, SECONDS_PER_DAY);
    int in_day = (int)(seconds - days * SECONDS_PER_DAY), fraction = (int)(ticks - seconds * TICKS_PER_SECOND);
    date_of(days, &year, &month, &day);
    put_two(text, year / 100 % 100); /* of years with more digits, as SQL may have stored, the last four */
    put_two(text + 2, year % 100);
    put_two(text + 5, month);
    put_two(text + 8, day);
    put_two(text + 11, in_day / 3600);
    put_two(text + 14, in_day / 60 % 60);
    put_two(text + 17, in_day % 60);
    put_two(text + 20, fraction / 100000);
    put_two(text + 22, fraction / 1000 % 100);
    put_two(text + 24, fraction / 10 % 100);
    text[26] = (char)('0' + fraction % 10);
    buf_add(out, text, EDM_TIME_BYTES);
}

/* ---- guids and doubles ---- */

static bool is_dash(size_t i) {
    return i == 8 || i == 13 || i == 18 || i == 23;
}

bool edm_guid_parse(slice text, char bytes[static EDM_GUID_BYTES]) {
    size_t n = 0;
    if (text.n != EDM_GUID_TEXT) {
        return false;
    }
    for (size_t i = 0; i < text.n;) {
        if (is_dash(i)) {
            if (text.p[i++] != '-') {
                return false;
            }
            continue;
        }
        int high = hex_digit(text.p[i]), low = hex_digit(text.p[i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        bytes[n++] = (char)(high << 4 | low);
        i += 2;
    }
    return true;
}

void edm_guid_write(buf *out, slice bytes) {
    static const char digits[] = "0123456789abcdef";
    char text[EDM_GUID_TEXT], *p = text;
    for (size_t i = 0; i < EDM_GUID_BYTES; i++) {
        *p++ = digits[(unsigned char)bytes.p[i] >> 4];
        *p++ = digits[bytes.p[i] & 15];
        if (i == 3 || i == 5 || i == 7 || i == 9) {
            *p++ = '-';
        }
    }
    buf_add(out, text, sizeof text);
}

bool edm_double_parse(slice text, double *value_out) {
    number_value v;
    const char *reason;
    if (slice_eq(text, SLICE_LIT("NaN"))) {
        *value_out = NAN;
    } else if (slice_eq(text, SLICE_LIT("Infinity")) || slice_eq(text, SLICE_LIT("INF"))) {
        *value_out = INFINITY;
    } else if (slice_eq(text, SLICE_LIT("-Infinity")) || slice_eq(text, SLICE_LIT("-INF"))) {
        *value_out = -INFINITY;
    } else if (!text.n || number_read(text.p, text.p + text.n, &v, &reason) != text.p + text.n) {
        return false;
    } else {
        *value_out = v.integer ? (double)v.i : v.d;
    }
    return true;
}

void edm_double_write(buf *out, double value) {
    char text[NUMBER_TEXT_MAX];
    if (!isfinite(value)) {
        buf_addf(out, "\"%s\"", isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
        return;
    }
    if (value == 0 && signbit(value)) {
        buf_add_lit(out, "-0.0");
        return;
    }
    size_t n = number_write_double(text, value);
    buf_add(out, text, n);
    if (!memchr(text, '.', n) && !memchr(text, 'e', n)) { /* a whole number is still a double */
        buf_add_lit(out, ".0");
    }
}

/* ---- stored values ---- */

#define TICKS_SUFFIX "@ticks"

bool edm_is_ticks(slice name) {
    size_t n = sizeof TICKS_SUFFIX - 1;
    return name.n > n && memcmp(name.p + name.n - n, TICKS_SUFFIX, n) == 0;
}

slice edm_ticks_owner(slice ticks) {
    return slice_of(ticks.p, ticks.n - (sizeof TICKS_SUFFIX - 1));
}

static int64_t ticks_of(slice body, const doc_element *date) {
    enum { ROOM = 2048, SUFFIX = sizeof TICKS_SUFFIX - 1 };
    char name[ROOM];
    size_t n = date->key.n + SUFFIX;
    doc_element rest;
    if (n <= ROOM) {
        memcpy(name, date->key.p, date->key.n);
        memcpy(name + date->key.n, TICKS_SUFFIX, SUFFIX);
    }
    int64_t ms = doc_load_i64(date->value.p), most = INT64_MAX / EDM_TICKS_PER_MS;
    ms = ms > most ? most : ms < -most ? -most : ms;
    bool exact = n <= ROOM && doc_find_member(body, slice_of(name, n), &rest) && rest.type == BSON_TYPE_INT32;
    return ms * EDM_TICKS_PER_MS + (exact ? doc_load_i32(rest.value.p) % EDM_TICKS_PER_MS : 0);
}

static bool of_binary(const doc_element *e, edm_value *v) {
    enum { HEAD = 5, SUBTYPE_AT = 4 };
    v->type = e->value.p[SUBTYPE_AT] == BSON_SUBTYPE_UUID ? EDM_GUID : EDM_BINARY;
    v->text = slice_skip(e->value, HEAD);
    return v->type == EDM_BINARY || v->text.n == EDM_GUID_BYTES;
}

bool edm_of_element(slice body, const doc_element *e, edm_value *v) {
    *v = (edm_value){0};
    switch (e->type) {
    case BSON_TYPE_UTF8:
        v->type = EDM_STRING;
        v->text = doc_element_text(e);
        return true;
    case BSON_TYPE_INT32:
        v->type = EDM_INT32;
        v->number = doc_load_i32(e->value.p);
        return true;
    case BSON_TYPE_INT64:
        v->type = EDM_INT64;
        v->number = doc_load_i64(e->value.p);
        return true;
    case BSON_TYPE_DOUBLE:
        v->type = EDM_DOUBLE;
        v->real = doc_load_double(e->value.p);
        return true;
    case BSON_TYPE_BOOL:
        v->type = EDM_BOOLEAN;
        v->number = e->value.p[0] != 0;
        return true;
    case BSON_TYPE_DATE_TIME:
        v->type = EDM_DATE_TIME;
        v->number = ticks_of(body, e);
        return true;
    case BSON_TYPE_BINARY:
        return of_binary(e, v);
    default:
        return false;
    }
}

/* ---- order ---- */

static bool is_number(edm_type t) {
    return t == EDM_INT32 || t == EDM_INT64 || t == EDM_DOUBLE;
}

static int order_of(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

/* A whole number against a double, exactly. */
static int order_mixed(int64_t whole, double real) {
    if (real >= 9223372036854775808.0) {
        return -1;
    }
    if (real < -9223372036854775808.0) {
        return 1;
    }
    int64_t floor_of = (int64_t)floor(real);
    int c = order_of(whole, floor_of);
    return c == 0 && real > floor(real) ? -1 : c;
}

static bool compare_numbers(const edm_value *a, const edm_value *b, int *order_out) {
    bool a_real = a->type == EDM_DOUBLE, b_real = b->type == EDM_DOUBLE;
    if ((a_real && isnan(a->real)) || (b_real && isnan(b->real))) {
        return false;
    }
    *order_out = a_real && b_real ? (a->real > b->real) - (a->real < b->real)
                 : a_real         ? -order_mixed(b->number, a->real)
                 : b_real         ? order_mixed(a->number, b->real)
                                  : order_of(a->number, b->number);
    return true;
}

bool edm_compare(const edm_value *a, const edm_value *b, int *order_out) {
    if (is_number(a->type) && is_number(b->type)) {
        return compare_numbers(a, b, order_out);
    }
    if (a->type != b->type) {
        return false;
    }
    bool counted = a->type == EDM_BOOLEAN || a->type == EDM_DATE_TIME;
    *order_out = counted ? order_of(a->number, b->number) : slice_cmp(a->text, b->text);
    return true;
}
