#include "doc/number.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doc/powers.h"

typedef unsigned __int128 u128;

/* ---- reading ---- */

/* The parts of a number's text. Its value is the digits, without the point, times 10^exponent. */
typedef struct decimal {
    const char *digits;     /* first digit; the point may be among them */
    const char *digits_end; /* after the last */
    int64_t exponent;
    bool negative;
} decimal;

enum {
    DIGITS_U64 = 19,    /* this many digits always fit 64 bits */
    DIGITS_EXACT = 800, /* a double, or the midpoint of two, has at most 767 digits; one more tells the side of the midpoint */
    EXPONENT_TOO_FAR = 100000000,
};

static inline bool is_digit(char c) {
    return (unsigned char)(c - '0') < 10;
}

static double from_bits(uint64_t bits) {
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* The upper 128 bits of w × 10^q, as exact as needed: the low half of the power is used only if the high half does not decide the
 * rounding. */
static u128 product(uint64_t w, int q) {
    const power *t = &powers[q - POWER_LOWEST];
    u128 first = (u128)w * t->high;
    if ((uint64_t)(first >> 64 & 0x1FF) == 0x1FF) {
        first += (uint64_t)((u128)w * t->low >> 64);
    }
    return first;
}

/* The bits of the double nearest to w × 10^q, infinity if that is too large; false if 128 bits cannot decide. */
static bool nearest(uint64_t w, int64_t q10, uint64_t *bits_out) {
    const uint64_t infinity = 0x7FFULL << 52;
    if (w == 0 || q10 < POWER_LOWEST || q10 > 308) {
        *bits_out = w == 0 || q10 < POWER_LOWEST ? 0 : infinity;
        return true;
    }
    int q = (int)q10;
    int zeros = __builtin_clzll(w);
    u128 full = product(w << zeros, q);
    uint64_t upper = (uint64_t)(full >> 64);
    uint64_t lower = (uint64_t)full;
    if (lower == UINT64_MAX && (q < -27 || q > 55)) {
        return false;
    }
    int top = (int)(upper >> 63);
    uint64_t m = upper >> (top + 9); /* 54 bits: the mantissa and one for rounding */
    int exponent = (int)(((int64_t)q * 217706) >> 16) + 63 + top - zeros + 1023;
    if (exponent <= 0) { /* subnormal, or 0 */
        if (1 - exponent >= 64) {
            *bits_out = 0;
            return true;
        }
        m >>= 1 - exponent;
        m += m & 1;
        *bits_out = m >> 1; /* a carry into bit 52 correctly gives the smallest normal number */
        return true;
    }
    if (lower <= 1 && q >= -4 && q <= 23 && (m & 3) == 1 && m << (top + 9) == upper) {
        m &= ~1ULL; /* exactly halfway: round to even */
    }
    m += m & 1;
    m >>= 1;
    if (m >= 1ULL << 53) {
        m = 1ULL << 52;
        exponent++;
    }
    *bits_out = exponent >= 0x7FF ? infinity : ((uint64_t)exponent << 52) | (m & ((1ULL << 52) - 1));
    return true;
}

/* Calls strtod on a copy of bounded size and without a decimal point, so that the locale does not matter. */
static uint64_t nearest_by_strtod(const decimal *d) {
    char copy[DIGITS_EXACT + 32];
    size_t n = 0;
    int64_t dropped = 0;
    bool sticky = false;
    for (const char *p = d->digits; p < d->digits_end; p++) {
        if (*p == '.' || (n == 0 && *p == '0')) {
            continue;
        }
        if (n < DIGITS_EXACT) {
            copy[n++] = *p;
        } else {
            dropped++;
            sticky |= *p != '0';
        }
    }
    if (sticky) {
        copy[n++] = '1';
        dropped--;
    }
    snprintf(copy + n, sizeof copy - n, "e%lld", (long long)(d->exponent + dropped));
    double value = strtod(copy, NULL);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* For more digits than 64 bits hold. The first 19 digits, and these plus one, bound the number; mostly both bounds have the same nearest
 * double. */
static uint64_t nearest_to_many(const decimal *d) {
    uint64_t w = 0;
    int kept = 0;
    int64_t dropped = 0;
    for (const char *p = d->digits; p < d->digits_end; p++) {
        if (*p == '.' || (kept == 0 && *p == '0')) {
            continue;
        }
        if (kept < DIGITS_U64) {
            w = w * 10 + (uint64_t)(*p - '0');
            kept++;
        } else {
            dropped++;
        }
    }
    uint64_t low, high;
    if (nearest(w, d->exponent + dropped, &low) && nearest(w + 1, d->exponent + dropped, &high) && low == high) {
        return low;
    }
    return nearest_by_strtod(d);
}

static size_t significant_digits(const decimal *d) {
    const char *p = d->digits;
    size_t n = (size_t)(d->digits_end - p);
    while (n && (*p == '0' || *p == '.')) {
        p++;
        n--;
    }
    return n - (memchr(p, '.', n) != NULL);
}

static double decimal_value(const decimal *d, uint64_t w, size_t digits) {
    static const double exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (digits > DIGITS_U64) {
        digits = significant_digits(d);
    }
    double value;
    if (digits <= DIGITS_U64 && w < 1ULL << 53 && d->exponent >= -22 && d->exponent <= 22) {
        /* both operands are exact, so the single division or multiplication rounds correctly */
        value = d->exponent < 0 ? (double)w / exact[-d->exponent] : (double)w * exact[d->exponent];
    } else {
        uint64_t bits;
        if (digits > DIGITS_U64) {
            bits = nearest_to_many(d);
        } else if (!nearest(w, d->exponent, &bits)) {
            bits = nearest_by_strtod(d);
        }
        value = from_bits(bits);
    }
    return d->negative ? -value : value;
}

static const char *read_exponent(const char *p, const char *end, int64_t *exponent_out) {
    bool negative = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) {
        p++;
    }
    if (p == end || !is_digit(*p)) {
        return NULL;
    }
    int64_t e = 0;
    for (; p < end && is_digit(*p); p++) {
        if (e < EXPONENT_TOO_FAR) {
            e = e * 10 + (*p - '0');
        }
    }
    *exponent_out = negative ? -e : e;
    return p;
}

static const char *bad(const char **reason_out, const char *reason) {
    *reason_out = reason;
    return NULL;
}

const char *number_read(const char *p, const char *end, number_value *value_out, const char **reason_out) {
    decimal d = {.negative = p < end && *p == '-'};
    p += d.negative;
    d.digits = p;
    uint64_t w = 0; /* wraps if there are more than 19 digits, and is not used then */
    while (p < end && is_digit(*p)) {
        w = w * 10 + (uint64_t)(*p++ - '0');
    }
    size_t digits = (size_t)(p - d.digits);
    if (digits == 0 || (*d.digits == '0' && digits > 1)) {
        return bad(reason_out, digits == 0 ? "a digit is expected" : "a number has a leading zero");
    }
    bool fraction = p < end && *p == '.';
    bool exponent = p < end && (*p | 0x20) == 'e';
    if (!fraction && !exponent && digits <= DIGITS_U64 && w <= (uint64_t)INT64_MAX + d.negative && !(d.negative && w == 0)) {
        value_out->integer = true;
        value_out->i = (int64_t)(d.negative ? ~w + 1 : w);
        return p;
    }
    if (fraction) {
        const char *point = p++;
        while (p < end && is_digit(*p)) {
            w = w * 10 + (uint64_t)(*p++ - '0');
        }
        if (p == point + 1) {
            return bad(reason_out, "a digit is expected after the point");
        }
        d.exponent = point + 1 - p;
        digits += (size_t)(p - point - 1);
        exponent = p < end && (*p | 0x20) == 'e';
    }
    d.digits_end = p;
    if (exponent) {
        int64_t e;
        p = read_exponent(p + 1, end, &e);
        if (!p) {
            return bad(reason_out, "a digit is expected in the exponent");
        }
        d.exponent += e;
    }
    value_out->integer = false;
    value_out->d = decimal_value(&d, w, digits);
    return isfinite(value_out->d) ? p : bad(reason_out, "a number is too large");
}

/* ---- writing ---- */

static const char pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960616"
    "263646566676869707172737475767778798081828384858687888990919293949596979899";

static void write_eight(char *into, uint32_t value) {
    uint32_t high = value / 10000;
    uint32_t low = value % 10000;
    memcpy(into, pairs + 2 * (high / 100), 2);
    memcpy(into + 2, pairs + 2 * (high % 100), 2);
    memcpy(into + 4, pairs + 2 * (low / 100), 2);
    memcpy(into + 6, pairs + 2 * (low % 100), 2);
}

/* Writes decimal digits without leading zeros; returns how many. */
static size_t write_digits(char *into, uint64_t value) {
    char digits[24];
    size_t at = sizeof digits;
    while (value >= 100000000) {
        at -= 8;
        write_eight(digits + at, (uint32_t)(value % 100000000));
        value /= 100000000;
    }
    uint32_t rest = (uint32_t)value;
    while (rest >= 100) {
        at -= 2;
        memcpy(digits + at, pairs + 2 * (rest % 100), 2);
        rest /= 100;
    }
    if (rest >= 10) {
        at -= 2;
        memcpy(digits + at, pairs + 2 * rest, 2);
    } else {
        digits[--at] = (char)('0' + rest);
    }
    memcpy(into, digits + at, sizeof digits - at);
    return sizeof digits - at;
}

size_t number_write_integer(char *into, int64_t value) {
    if (value >= 0) {
        return write_digits(into, (uint64_t)value);
    }
    *into = '-';
    return 1 + write_digits(into + 1, ~(uint64_t)value + 1);
}

/* g × cp / 2^128, with the lowest bit set if the quotient was truncated ("round to odd"). */
static uint64_t scaled(u128 g, uint64_t cp) {
    u128 low = (u128)(uint64_t)g * cp;
    u128 high = (u128)(uint64_t)(g >> 64) * cp + (uint64_t)(low >> 64);
    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* The shortest decimal, digits × 10^exponent, that reads as this double; if there are several, the nearest. */
static uint64_t shortest(uint64_t bits, int *exponent_out) {
    const uint64_t hidden = 1ULL << 52;
    uint64_t fraction = bits & (hidden - 1);
    int biased = (int)(bits >> 52 & 0x7FF);
    uint64_t c = biased ? hidden | fraction : fraction;
    int q = (biased ? biased : 1) - 1075;
    bool narrow = fraction == 0 && biased > 1; /* the double below is only half as far away as the one above */
    int64_t log10 = (int64_t)q * 661971961083LL - (narrow ? 274743187321LL : 0);
    int k = (int)(log10 >> 41);
    int h = q + (int)((int64_t)-k * 913124641741LL >> 38) + 1;
    const power *t = &powers[-k - POWER_LOWEST];
    u128 g = ((u128)t->high << 64 | t->low) + (-k > 55); /* the table truncates powers above 10^55; this rounds them up */
    uint64_t middle = scaled(g, c << 2 << h);
    uint64_t low = scaled(g, ((c << 2) - (narrow ? 1 : 2)) << h) + (c & 1); /* the interval's ends read as this double only if it is even */
    uint64_t high = scaled(g, ((c << 2) + 2) << h) - (c & 1);
    uint64_t s = middle >> 2;
    *exponent_out = k;
    uint64_t tens = s / 10 * 10; /* candidates with one digit less: tens and tens + 10 */
    bool below = low <= tens << 2;
    bool above = (tens + 10) << 2 <= high;
    if (s >= 10 && below != above) {
        return below ? tens : tens + 10;
    }
    below = low <= s << 2;
    above = (s + 1) << 2 <= high;
    if (below != above) {
        return below ? s : s + 1;
    }
    uint64_t half = (s << 2) + 2;
    return middle < half || (middle == half && s % 2 == 0) ? s : s + 1;
}

/* ECMAScript's Number::toString, from its step 6: writes the n `digits` with the decimal point after the first `point` digits. */
static size_t lay_out(char *into, const char *digits, int n, int point) {
    char *p = into;
    if (point > 21 || point <= -6) {
        *p++ = digits[0];
        if (n > 1) {
            *p++ = '.';
            memcpy(p, digits + 1, (size_t)n - 1);
            p += n - 1;
        }
        *p++ = 'e';
        *p++ = point > 0 ? '+' : '-';
        return (size_t)(p - into) + write_digits(p, (uint64_t)(point > 0 ? point - 1 : 1 - point));
    }
    if (point <= 0) {
        memcpy(p, "0.00000", 7);
        p += 2 - point;
        memcpy(p, digits, (size_t)n);
        return (size_t)(p + n - into);
    }
    if (n <= point) {
        memcpy(p, digits, (size_t)n);
        memset(p + n, '0', (size_t)(point - n));
        return (size_t)point;
    }
    memcpy(p, digits, (size_t)point);
    p[point] = '.';
    memcpy(p + point + 1, digits + point, (size_t)(n - point));
    return (size_t)n + 1;
}

/* Removes trailing zeros; returns how many. */
static int strip_zeros(uint64_t *digits) {
    uint64_t s = *digits;
    int n = 0;
    for (; s % 100000000 == 0; n += 8) {
        s /= 100000000;
    }
    if (s % 10000 == 0) {
        s /= 10000;
        n += 4;
    }
    if (s % 100 == 0) {
        s /= 100;
        n += 2;
    }
    if (s % 10 == 0) {
        s /= 10;
        n += 1;
    }
    *digits = s;
    return n;
}

/* Fast path for numbers with few decimals, such as prices and positions. If this double is an integer of at most 15 digits divided by 10^6,
 * then that quotient without trailing zeros is its shortest text, since no two decimals of up to 15 digits read as the same double. */
static bool few_decimals(double value, uint64_t *digits_out, int *exponent_out) {
    double millionths = value * 1e6;
    if (millionths >= 1e15) {
        return false;
    }
    uint64_t whole = (uint64_t)(millionths + 0.5);
    if ((double)whole / 1e6 != value) {
        return false;
    }
    *exponent_out = strip_zeros(&whole) - 6;
    *digits_out = whole;
    return true;
}

size_t number_write_double(char *into, double value) {
    assert(isfinite(value));
    const double exact = 9007199254740992.0;
    if (value > -exact && value < exact && value == (double)(int64_t)value) {
        return number_write_integer(into, (int64_t)value);
    }
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    size_t sign = bits >> 63;
    if (sign) {
        *into = '-';
    }
    int exponent;
    uint64_t s;
    if (!few_decimals(fabs(value), &s, &exponent)) {
        s = shortest(bits & ~(1ULL << 63), &exponent);
        exponent += strip_zeros(&s);
    }
    char digits[20];
    int n = (int)write_digits(digits, s);
    return sign + lay_out(into + sign, digits, n, n + exponent);
}
