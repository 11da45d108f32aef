/* literal.c — tokens of script text: blanks, words, numbers, strings, dates; positions in messages. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gremlin/text_int.h"
#include "text/text.h"

/* ---- positions ---- */

err gremlin__located(reader *r, size_t at, err e) {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at && i < r->text.n; i++) {
        bool newline = r->text.p[i] == '\n';
        line += newline;
        column = newline ? 1 : column + 1;
    }
    char said[sizeof r->op->detail];
    size_t n = r->op->detail_n;
    memcpy(said, r->op->detail, n);
    return op_fail(r->op, e, "%.*s (line %zu, column %zu)", (int)n, said, line, column);
}

err gremlin__refuse(reader *r, size_t at, const char *format, ...) {
    char said[600];
    va_list args;
    va_start(args, format);
    vsnprintf(said, sizeof said, format, args);
    va_end(args);
    (void)op_fail(r->op, E_BAD_QUERY, "Gremlin Query Compilation Error: %s", said);
    return gremlin__located(r, at, E_BAD_QUERY);
}

/* ---- tokens ---- */

static bool starts(const reader *r, slice what) {
    return slice_starts(slice_skip(r->text, r->at), what);
}

/* False: there is none. */
static bool skip_comment(reader *r) {
    if (starts(r, SLICE_LIT("//"))) {
        while (r->at < r->text.n && r->text.p[r->at] != '\n') {
            r->at++;
        }
        return true;
    }
    if (!starts(r, SLICE_LIT("/*"))) {
        return false;
    }
    size_t end = text_find(slice_skip(r->text, r->at + 2), SLICE_LIT("*/"));
    r->at = end == SIZE_MAX ? r->text.n : r->at + 2 + end + 2;
    return true;
}

void gremlin__skip(reader *r) {
    while (r->at < r->text.n) {
        char c = r->text.p[r->at];
        if ((unsigned char)c > ' ' && c != '/') {
            return;
        }
        if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f') {
            r->at++;
        } else if (c != '/' || !skip_comment(r)) {
            return;
        }
    }
}

char gremlin__peek(reader *r) {
    gremlin__skip(r);
    return r->at < r->text.n ? r->text.p[r->at] : 0;
}

bool gremlin__eat(reader *r, char c) {
    gremlin__skip(r);
    if (r->at >= r->text.n || r->text.p[r->at] != c) {
        return false;
    }
    r->at++;
    return true;
}

err gremlin__expect(reader *r, char c) {
    if (gremlin__eat(r, c)) {
        return OK;
    }
    gremlin__skip(r);
    slice rest = slice_skip(r->text, r->at);
    rest.n = rest.n > 20 ? 20 : rest.n;
    return rest.n ? gremlin__refuse(r, r->at, "Expected '%c' at '%.*s'.", c, slice_shown(rest), rest.p)
                  : gremlin__refuse(r, r->at, "Expected '%c' at the end of the script.", c);
}

static bool is_word_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

slice gremlin__word(reader *r) {
    if (!is_word_start(gremlin__peek(r))) {
        return SLICE_EMPTY;
    }
    size_t from = r->at;
    while (r->at < r->text.n && (is_word_start(r->text.p[r->at]) || is_digit(r->text.p[r->at]))) {
        r->at++;
    }
    return slice_of(r->text.p + from, r->at - from);
}

/* ---- numbers ---- */

static bool is_suffix(char c) {
    return c != 0 && strchr("bBsSiIlLnNgGfFdDmM", c) != NULL;
}

static err read_whole(reader *r, size_t from, gremlin_bigint number, char suffix, gremlin_value *value_out) {
    static const struct {
        const char *suffixes;
        gremlin_type type;
        int64_t least, most;
    } kinds[] = {{"bB", GREMLIN_BYTE, INT8_MIN, INT8_MAX},
                 {"sS", GREMLIN_SHORT, INT16_MIN, INT16_MAX},
                 {"iI", GREMLIN_INT, INT32_MIN, INT32_MAX},
                 {"lL", GREMLIN_LONG, INT64_MIN, INT64_MAX}};
    for (size_t i = 0; suffix && i < sizeof kinds / sizeof *kinds; i++) {
        if (strchr(kinds[i].suffixes, suffix)) {
            *value_out = gremlin_whole(kinds[i].type, (int64_t)number);
            return number >= kinds[i].least && number <= kinds[i].most ? OK : gremlin__refuse(r, from, "The number does not fit its type.");
        }
    }
    if (suffix || number > INT64_MAX || number < INT64_MIN) {
        *value_out = gremlin_big(r->arena, number);
    } else {
        *value_out = gremlin_whole(number >= INT32_MIN && number <= INT32_MAX ? GREMLIN_INT : GREMLIN_LONG, (int64_t)number);
    }
    return OK;
}

static err read_fraction(reader *r, size_t from, slice digits, char suffix, gremlin_value *value_out) {
    gremlin_wide bits;
    char room[400];
    if (digits.n >= sizeof room) {
        return gremlin__refuse(r, from, "The number has too many digits.");
    }
    memcpy(room, digits.p, digits.n);
    room[digits.n] = 0;
    if (suffix == 'm' || suffix == 'M') {
        if (!gremlin_decimal_read(digits, &bits)) {
            return gremlin__refuse(r, from, "The number does not fit a decimal of 34 digits.");
        }
        *value_out = gremlin_decimal(r->arena, bits);
        return OK;
    }
    double d = strtod(room, NULL);
    *value_out = suffix == 'f' || suffix == 'F' ? gremlin_float((float)d) : gremlin_double(d);
    return OK;
}

static int digit_of(char c) {
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

static err read_based(reader *r, size_t from, bool negative, int base, gremlin_value *value_out) {
    gremlin_bigint number = 0;
    size_t digits = 0;
    for (; r->at < r->text.n && digit_of(r->text.p[r->at]) < base; r->at++, digits++) {
        if (__builtin_mul_overflow(number, (gremlin_bigint)base, &number)) {
            return gremlin__refuse(r, from, "The number is too large.");
        }
        number += digit_of(r->text.p[r->at]);
    }
    if (!digits) {
        return gremlin__refuse(r, from, "Expected digits.");
    }
    char suffix = r->at < r->text.n && is_suffix(r->text.p[r->at]) ? r->text.p[r->at++] : 0;
    return read_whole(r, from, negative ? -number : number, suffix, value_out);
}

static void skip_digits(reader *r) {
    while (r->at < r->text.n && is_digit(r->text.p[r->at])) {
        r->at++;
    }
}

static bool skip_exponent(reader *r) {
    size_t at = r->at;
    if (at >= r->text.n || (r->text.p[at] != 'e' && r->text.p[at] != 'E')) {
        return false;
    }
    at++;
    at += at < r->text.n && (r->text.p[at] == '+' || r->text.p[at] == '-');
    if (at >= r->text.n || !is_digit(r->text.p[at])) {
        return false;
    }
    r->at = at;
    skip_digits(r);
    return true;
}

static err read_number(reader *r, size_t from, bool negative, gremlin_value *value_out) {
    if (starts(r, SLICE_LIT("0x")) || starts(r, SLICE_LIT("0X"))) {
        r->at += 2;
        return read_based(r, from, negative, 16, value_out);
    }
    size_t first = r->at;
    skip_digits(r);
    bool fraction = false;
    if (r->at + 1 < r->text.n && r->text.p[r->at] == '.' && is_digit(r->text.p[r->at + 1])) {
        fraction = true;
        r->at++;
        skip_digits(r);
    }
    fraction |= skip_exponent(r);
    slice digits = slice_of(r->text.p + first, r->at - first);
    char suffix = r->at < r->text.n && is_suffix(r->text.p[r->at]) ? r->text.p[r->at++] : 0;
    fraction |= suffix && strchr("fFdDmM", suffix) != NULL;
    if (fraction) {
        slice signed_digits = negative ? arena_printf(r->arena, "-%.*s", (int)digits.n, digits.p) : digits;
        return read_fraction(r, from, signed_digits, suffix, value_out);
    }
    if (digits.n > 1 && digits.p[0] == '0') {
        r->at = first + 1;
        return read_based(r, from, negative, 8, value_out);
    }
    gremlin_bigint number;
    if (!gremlin_big_read(digits, &number)) {
        return gremlin__refuse(r, from, "The number is too large.");
    }
    return read_whole(r, from, negative ? -number : number, suffix, value_out);
}

/* ---- strings ---- */

static bool read_unicode(reader *r, uint32_t *character_out) {
    uint32_t c = 0;
    while (r->at < r->text.n && r->text.p[r->at] == 'u') { /* \uuuu0041 is valid too */
        r->at++;
    }
    for (int i = 0; i < 4; i++, r->at++) {
        if (r->at >= r->text.n || digit_of(r->text.p[r->at]) > 15) {
            return false;
        }
        c = c * 16 + (uint32_t)digit_of(r->text.p[r->at]);
    }
    *character_out = c;
    return true;
}

static bool is_high(uint32_t c) {
    return c >= 0xD800 && c < 0xDC00;
}

/* After "\u": one character, or two surrogates that make one. */
static bool add_unicode(reader *r, buf *out) {
    uint32_t c, low;
    char room[4];
    if (!read_unicode(r, &c)) {
        return false;
    }
    if (is_high(c) && starts(r, SLICE_LIT("\\u"))) {
        size_t before = r->at;
        r->at++;
        if (!read_unicode(r, &low)) {
            return false;
        }
        if (low >= 0xDC00 && low < 0xE000) {
            c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        } else {
            r->at = before;
        }
    }
    c = c >= 0xD800 && c < 0xE000 ? 0xFFFD : c;
    buf_add(out, room, text_encode(room, c));
    return true;
}

static bool add_octal(reader *r, buf *out) {
    unsigned c = 0;
    char room[4];
    for (int i = 0; i < 3 && r->at < r->text.n && r->text.p[r->at] >= '0' && r->text.p[r->at] <= '7' && c < 32; i++, r->at++) {
        c = c * 8 + (unsigned)(r->text.p[r->at] - '0');
    }
    buf_add(out, room, text_encode(room, c));
    return true;
}

static bool add_escaped(reader *r, buf *out) {
    static const char from[] = "btnfr\"'\\$", to[] = "\b\t\n\f\r\"'\\$";
    if (r->at >= r->text.n) {
        return false;
    }
    char c = r->text.p[r->at];
    const char *known = c ? strchr(from, c) : NULL;
    if (known) {
        buf_add_byte(out, to[known - from]);
        r->at++;
        return true;
    }
    if (c == '\n') { /* a continued line */
        r->at++;
        return true;
    }
    return c == 'u' ? add_unicode(r, out) : c >= '0' && c <= '7' ? add_octal(r, out) : false;
}

/* A string that has no escape sequences is a part of the script. */
static bool take_plain(reader *r, char quote, gremlin_value *value_out) {
    slice rest = slice_skip(r->text, r->at);
    const char *end = rest.n ? memchr(rest.p, quote, rest.n) : NULL;
    if (!end || memchr(rest.p, '\\', (size_t)(end - rest.p))) {
        return false;
    }
    *value_out = gremlin_string(slice_of(rest.p, (size_t)(end - rest.p)));
    r->at += value_out->n + 1;
    return true;
}

static err read_string(reader *r, char quote, gremlin_value *value_out) {
    size_t from = r->at - 1;
    if (take_plain(r, quote, value_out)) {
        return OK;
    }
    buf out = buf_init_counted(r->text.n + 16, r->op->budget);
    err e = OK;
    for (;;) {
        if (r->at >= r->text.n) {
            e = gremlin__refuse(r, from, "The string is not closed.");
            break;
        }
        char c = r->text.p[r->at++];
        if (c == quote) {
            break;
        }
        if (c != '\\') {
            buf_add_byte(&out, c);
        } else if (!add_escaped(r, &out)) {
            e = gremlin__refuse(r, r->at - 1, "Unknown escape sequence.");
            break;
        }
    }
    if (e == OK) {
        *value_out = gremlin_string(arena_copy(r->arena, buf_view(&out)));
    }
    buf_free(&out);
    return e;
}

/* ---- all literals that do not begin with a letter ---- */

err gremlin__read_literal(reader *r, gremlin_value *value_out, bool *found_out) {
    char c = gremlin__peek(r);
    size_t from = r->at;
    *found_out = true;
    if (c == '\'' || c == '"') {
        r->at++;
        return read_string(r, c, value_out);
    }
    bool negative = c == '-';
    if (negative || c == '+') {
        r->at++;
        c = gremlin__peek(r);
        if (starts(r, SLICE_LIT("Infinity"))) {
            r->at += 8;
            *value_out = gremlin_double(negative ? -(double)INFINITY : (double)INFINITY);
            return OK;
        }
        if (!is_digit(c)) {
            return gremlin__refuse(r, from, "Expected a number.");
        }
    }
    if (is_digit(c)) {
        return read_number(r, from, negative, value_out);
    }
    *found_out = false;
    return OK;
}

/* ---- dates ---- */

typedef struct digits {
    slice rest;
    bool ok;
} digits;

static int64_t take(digits *d, size_t n) {
    int64_t number = 0;
    if (d->rest.n < n) {
        d->ok = false;
        return 0;
    }
    for (size_t i = 0; i < n; i++) {
        d->ok &= is_digit(d->rest.p[i]);
        number = number * 10 + (d->rest.p[i] - '0');
    }
    d->rest = slice_skip(d->rest, n);
    return number;
}

static bool take_char(digits *d, char c) {
    if (d->rest.n == 0 || d->rest.p[0] != c) {
        return false;
    }
    d->rest = slice_skip(d->rest, 1);
    return true;
}

/* Days since 1970 in the proleptic Gregorian calendar. */
static int64_t days_of(int64_t year, int64_t month, int64_t day) {
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400, of_era = year - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static int64_t take_millis(digits *d) {
    int64_t ms = 0;
    int n = 0;
    for (; d->rest.n && is_digit(d->rest.p[0]); n++) {
        int64_t digit = take(d, 1);
        ms = n < 3 ? ms * 10 + digit : ms;
    }
    for (; n < 3; n++) {
        ms *= 10;
    }
    return ms;
}

static int64_t take_offset_ms(digits *d) {
    if (d->rest.n == 0 || take_char(d, 'Z')) {
        return 0;
    }
    bool west = d->rest.p[0] == '-';
    d->ok &= take_char(d, '+') || take_char(d, '-');
    int64_t hours = take(d, 2), minutes = 0;
    if (d->rest.n) {
        (void)take_char(d, ':');
        minutes = take(d, 2);
    }
    int64_t ms = (hours * 60 + minutes) * 60000;
    return west ? -ms : ms;
}

err gremlin__read_date(arena *a, slice text, gremlin_value *date_out) {
    (void)a;
    digits d = {text, true};
    bool before = take_char(&d, '-');
    int64_t year = take(&d, 4), hour = 0, minute = 0, second = 0, ms = 0;
    d.ok &= take_char(&d, '-');
    int64_t month = take(&d, 2), day = 1;
    if (take_char(&d, '-')) {
        day = take(&d, 2);
    }
    if (take_char(&d, 'T') || take_char(&d, ' ')) {
        hour = take(&d, 2);
        d.ok &= take_char(&d, ':');
        minute = take(&d, 2);
        second = take_char(&d, ':') ? take(&d, 2) : 0;
        ms = take_char(&d, '.') ? take_millis(&d) : 0;
    }
    int64_t offset = d.ok ? take_offset_ms(&d) : 0;
    if (!d.ok || d.rest.n || month < 1 || month > 12 || day < 1 || day > 31 || hour > 24 || minute > 59 || second > 60) {
        return E_BAD_QUERY;
    }
    int64_t seconds = days_of(before ? -year : year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    *date_out = gremlin_whole(GREMLIN_DATE, seconds * 1000 + ms - offset);
    return OK;
}
