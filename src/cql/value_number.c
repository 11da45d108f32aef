/* value_number.c — floating-point numbers as text, in Java's form: at least one digit behind the point, and an exponent outside
 * [10^-3, 10^7). The digits are the fewest that read back as the same number. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "cql/value_int.h"
#include "doc/number.h"

/* Writes d.ddd × 10^exponent, from a text like "1.25e-07" or "12500". */
static void write_java(buf *out, const char *digits, int n, int exponent, bool negative) {
    buf_add_slice(out, negative ? SLICE_LIT("-") : SLICE_EMPTY);
    if (exponent >= -3 && exponent < 0) {
        buf_add_lit(out, "0.");
        for (int i = -1; i > exponent; i--) {
            buf_add_byte(out, '0');
        }
        buf_add(out, digits, (size_t)n);
        return;
    }
    int whole = exponent >= 0 && exponent < 7 ? exponent + 1 : 1;
    for (int i = 0; i < whole; i++) {
        buf_add_byte(out, i < n ? digits[i] : '0');
    }
    buf_add_byte(out, '.');
    if (n > whole) {
        buf_add(out, digits + whole, (size_t)(n - whole));
    } else {
        buf_add_byte(out, '0');
    }
    if (whole == 1 && exponent != 0) {
        buf_addf(out, "E%d", exponent);
    }
}

/* "1.25e-07": the digits without the point and trailing zeros, and the exponent. */
static int split(const char *text, char *digits, int *exponent_out) {
    int n = 0;
    const char *at = text;
    for (; *at && *at != 'e'; at++) {
        if (*at >= '0' && *at <= '9') {
            digits[n++] = *at;
        }
    }
    while (n > 1 && digits[n - 1] == '0') {
        n--;
    }
    *exponent_out = *at ? atoi(at + 1) : 0;
    return n;
}

static bool write_special(buf *out, double number) {
    if (isnan(number)) {
        buf_add_lit(out, "NaN");
    } else if (isinf(number)) {
        buf_add_slice(out, number < 0 ? SLICE_LIT("-Infinity") : SLICE_LIT("Infinity"));
    } else if (number == 0) {
        buf_add_slice(out, signbit(number) ? SLICE_LIT("-0.0") : SLICE_LIT("0.0"));
    } else {
        return false;
    }
    return true;
}

void cql__write_double(buf *out, double number) {
    char text[40], digits[40];
    int exponent;
    if (write_special(out, number)) {
        return;
    }
    for (int precision = 0; precision <= 16; precision++) {
        snprintf(text, sizeof text, "%.*e", precision, fabs(number));
        if (precision == 16 || strtod(text, NULL) == fabs(number)) {
            break;
        }
        precision += precision == 0 ? 13 : 0; /* most doubles need 15 digits or more; the zeros are dropped */
    }
    int n = split(text, digits, &exponent);
    write_java(out, digits, n, exponent, number < 0);
}

static void shortest_float(float number, char text[40]) {
    for (int precision = 0; precision <= 8; precision++) {
        snprintf(text, 40, "%.*e", precision, (double)fabsf(number));
        if (strtof(text, NULL) == fabsf(number)) {
            return;
        }
    }
}

void cql__write_float(buf *out, float number) {
    char text[40], digits[40];
    int exponent;
    if (write_special(out, (double)number)) {
        return;
    }
    shortest_float(number, text);
    int n = split(text, digits, &exponent);
    write_java(out, digits, n, exponent, number < 0);
}

double cql__double_of_float(float number) {
    char text[40];
    if (!isfinite(number) || number == 0) {
        return (double)number;
    }
    shortest_float(number, text);
    double d = strtod(text, NULL);
    return number < 0 ? -d : d;
}

bool cql__read_double(slice text, double *number_out) {
    static const struct {
        const char *word;
        double number;
    } words[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}, {"+Infinity", INFINITY}, {"-NaN", NAN}};
    char copy[400];
    char *end;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (slice_eq_nocase(text, slice_str(words[i].word))) {
            *number_out = words[i].number;
            return true;
        }
    }
    if (text.n == 0 || text.n >= sizeof copy) {
        return false;
    }
    memcpy(copy, text.p, text.n);
    copy[text.n] = 0;
    if (strspn(copy, "0123456789+-.eE") != text.n) { /* strtod also reads hexadecimal digits and names */
        return false;
    }
    *number_out = strtod(copy, &end);
    return end == copy + text.n && end != copy;
}
