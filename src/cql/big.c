/* big.c — see big.h. */
#include "cql/big.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

void cql__mpz_of_bytes(mpz_t number, slice bytes) {
    mpz_import(number, bytes.n, 1, 1, 1, 0, bytes.p);
    if (bytes.n && (bytes.p[0] & 0x80)) {
        mpz_t range;
        mpz_init(range);
        mpz_setbit(range, bytes.n * 8);
        mpz_sub(number, number, range);
        mpz_clear(range);
    }
}

/* The shortest two's complement: a positive number whose first bit is set gets a zero byte, and -128 is one byte. */
size_t cql__mpz_bytes(const mpz_t number, char *into) {
    mpz_t positive;
    size_t n, written = 0;
    mpz_init(positive);
    if (mpz_sgn(number) >= 0) {
        n = mpz_sizeinbase(number, 2) / 8 + 1;
        mpz_set(positive, number);
    } else {
        mpz_com(positive, number); /* -x - 1, whose bits say how many bytes x needs */
        n = mpz_sgn(positive) ? mpz_sizeinbase(positive, 2) / 8 + 1 : 1;
        mpz_set_ui(positive, 0);
        mpz_setbit(positive, n * 8);
        mpz_add(positive, positive, number);
    }
    memset(into, 0, n);
    size_t length = mpz_sgn(positive) ? (mpz_sizeinbase(positive, 2) + 7) / 8 : 0;
    mpz_export(into + n - length, &written, 1, 1, 1, 0, positive);
    mpz_clear(positive);
    return n;
}

cql_value cql__mpz_value(arena *a, const mpz_t number) {
    char *p = arena_alloc_aligned(a, mpz_sizeinbase(number, 2) / 8 + 2, 1);
    return cql_value_of(slice_of(p, cql__mpz_bytes(number, p)));
}

bool cql__mpz_of_text(mpz_t number, slice text) {
    char *digits;
    size_t sign = text.n && (text.p[0] == '-' || text.p[0] == '+');
    if (text.n == sign || text.n > CQL_DIGITS_MAX + 1) {
        return false;
    }
    for (size_t i = sign; i < text.n; i++) {
        if (text.p[i] < '0' || text.p[i] > '9') {
            return false;
        }
    }
    digits = mem_text(text.p + sign, text.n - sign);
    mpz_set_str(number, digits, 10);
    free(digits);
    if (text.p[0] == '-') {
        mpz_neg(number, number);
    }
    return true;
}

/* Copies the digits of "12.345" without the point; the number of digits after it, or -1 if there is something else in the text. */
static int64_t join_digits(slice text, char *into, size_t *n_out) {
    int64_t fraction = -1;
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '.' && fraction < 0) {
            fraction = 0;
        } else if (c >= '0' && c <= '9') {
            into[n++] = c;
            fraction += fraction >= 0;
        } else {
            return -1;
        }
    }
    *n_out = n;
    return fraction < 0 ? 0 : fraction;
}

static bool take_exponent(slice *text, int64_t *exponent_out) {
    *exponent_out = 0;
    for (size_t i = 0; i < text->n; i++) {
        if ((text->p[i] | 0x20) == 'e') {
            slice exponent = slice_skip(*text, i + 1);
            text->n = i;
            if (exponent.n && exponent.p[0] == '+') {
                exponent = slice_skip(exponent, 1);
                if (exponent.n && exponent.p[0] == '-') {
                    return false;
                }
            }
            return exponent.n <= 11 && slice_to_i64(exponent, exponent_out);
        }
    }
    return true;
}

bool cql__decimal_of_text(cql__decimal *number, slice text) {
    bool negative = text.n && text.p[0] == '-';
    int64_t exponent;
    size_t n = 0;
    slice rest = slice_skip(text, text.n && (text.p[0] == '-' || text.p[0] == '+'));
    if (!take_exponent(&rest, &exponent) || rest.n > CQL_DIGITS_MAX) {
        return false;
    }
    char *digits = malloc(rest.n + 1);
    if (!digits) {
        abort();
    }
    int64_t fraction = join_digits(rest, digits, &n);
    bool ok = fraction >= 0 && n > 0 && fraction - exponent <= INT32_MAX && fraction - exponent >= INT32_MIN;
    if (ok) {
        digits[n] = 0;
        mpz_set_str(number->unscaled, digits, 10);
        number->scale = fraction - exponent;
        if (negative) {
            mpz_neg(number->unscaled, number->unscaled);
        }
    }
    free(digits);
    return ok;
}

bool cql__decimal_of_value(cql__decimal *number, cql_value v) {
    slice rest = v.bytes;
    uint64_t scale;
    if (cql_value_is_null(v) || rest.n < 5 || rest.n > CQL__BIG_BYTES_MAX || !slice_take_be(&rest, 4, &scale)) {
        return false;
    }
    number->scale = (int32_t)(uint32_t)scale;
    cql__mpz_of_bytes(number->unscaled, rest);
    return true;
}

cql_value cql__decimal_value(arena *a, const cql__decimal *number) {
    char *p = arena_alloc_aligned(a, mpz_sizeinbase(number->unscaled, 2) / 8 + 6, 1);
    uint32_t scale = (uint32_t)(int32_t)number->scale;
    for (int i = 0; i < 4; i++) {
        p[i] = (char)(scale >> (24 - 8 * i));
    }
    return cql_value_of(slice_of(p, 4 + cql__mpz_bytes(number->unscaled, p + 4)));
}

void cql__mpz_write(buf *out, const mpz_t number) {
    char *digits = mpz_get_str(NULL, 10, number);
    buf_add_slice(out, slice_str(digits));
    free(digits);
}

static void write_plain(buf *out, slice digits, int64_t scale) {
    if ((int64_t)digits.n <= scale) {
        buf_add_lit(out, "0.");
        for (int64_t i = (int64_t)digits.n; i < scale; i++) {
            buf_add_byte(out, '0');
        }
        buf_add_slice(out, digits);
        return;
    }
    buf_add(out, digits.p, digits.n - (size_t)scale);
    if (scale) {
        buf_add_byte(out, '.');
        buf_add_slice(out, slice_skip(digits, digits.n - (size_t)scale));
    }
}

/* By the rules of java.math.BigDecimal.toString: plain if the scale is not negative and the first digit is at most six places behind the
 * point. */
void cql__decimal_write(buf *out, const cql__decimal *number) {
    char *text = mpz_get_str(NULL, 10, number->unscaled);
    slice digits = slice_str(text);
    if (digits.p[0] == '-') {
        buf_add_byte(out, '-');
        digits = slice_skip(digits, 1);
    }
    int64_t adjusted = (int64_t)digits.n - 1 - number->scale;
    if (number->scale >= 0 && adjusted >= -6) {
        write_plain(out, digits, number->scale);
    } else {
        buf_add_byte(out, digits.p[0]);
        if (digits.n > 1) {
            buf_add_byte(out, '.');
            buf_add_slice(out, slice_skip(digits, 1));
        }
        if (adjusted) {
            buf_addf(out, "E%+lld", (long long)adjusted);
        }
    }
    free(text);
}

/* The place of the first digit decides if it differs, so the numbers are only scaled alike if they are about as large. */
int cql__decimal_compare(const cql__decimal *x, const cql__decimal *y) {
    int sign = mpz_sgn(x->unscaled), other = mpz_sgn(y->unscaled);
    if (sign != other || sign == 0) {
        return (sign > other) - (sign < other);
    }
    int64_t x_place = (int64_t)mpz_sizeinbase(x->unscaled, 10) - x->scale, y_place = (int64_t)mpz_sizeinbase(y->unscaled, 10) - y->scale;
    if (x_place > y_place + 1 || y_place > x_place + 1) { /* GMP's size may be one too large */
        return x_place > y_place ? sign : -sign;
    }
    const cql__decimal *small = x->scale < y->scale ? x : y, *large = small == x ? y : x;
    mpz_t scaled;
    mpz_init(scaled);
    mpz_ui_pow_ui(scaled, 10, (unsigned long)(large->scale - small->scale)); /* about the difference of the digits' numbers */
    mpz_mul(scaled, scaled, small->unscaled);
    int c = mpz_cmp(scaled, large->unscaled);
    mpz_clear(scaled);
    return small == x ? c : -c;
}
