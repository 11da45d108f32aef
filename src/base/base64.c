#include "base/base64.h"

#define DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+"

static const char alphabet[] = DIGITS "/", rid_alphabet[] = DIGITS "-";

static void encode(buf *out, slice bytes, const char digit[64]) {
    if (bytes.n == 0 || !buf_reserve(out, (bytes.n + 2) / 3 * 4)) {
        return;
    }
    const unsigned char *from = (const unsigned char *)bytes.p, *end = from + bytes.n;
    char *to = out->p + out->n;
    for (; end - from >= 3; from += 3, to += 4) {
        uint32_t v = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
        to[0] = digit[v >> 18];
        to[1] = digit[v >> 12 & 63];
        to[2] = digit[v >> 6 & 63];
        to[3] = digit[v & 63];
    }
    if (from < end) {
        bool two = end - from == 2;
        uint32_t v = (uint32_t)from[0] << 16 | (two ? (uint32_t)from[1] << 8 : 0);
        to[0] = digit[v >> 18];
        to[1] = digit[v >> 12 & 63];
        to[2] = two ? digit[v >> 6 & 63] : '=';
        to[3] = '=';
        to += 4;
    }
    out->n = (size_t)(to - out->p);
}

void base64_encode(buf *out, slice bytes) {
    encode(out, bytes, alphabet);
}

void base64_encode_rid(buf *out, slice bytes) {
    encode(out, bytes, rid_alphabet);
}

/* Value + 1 of each digit, 0 for other bytes; digit_of adds the last digit, '/' or '-'. */
static const uint8_t digits[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,  ['I'] = 9,  ['J'] = 10, ['K'] = 11,
    ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16, ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22,
    ['W'] = 23, ['X'] = 24, ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32, ['g'] = 33,
    ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40, ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44,
    ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48, ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55,
    ['3'] = 56, ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['+'] = 63,
};

static int digit_of(char c, char last) {
    return c == last ? 63 : digits[(unsigned char)c] - 1;
}

/* Four digits as 24 bits; negative: one of them is not a digit. */
static int32_t read_four(const char *p, char last) {
    int a = digit_of(p[0], last), b = digit_of(p[1], last), c = digit_of(p[2], last), d = digit_of(p[3], last);
    return (a | b | c | d) < 0 ? -1 : a << 18 | b << 12 | c << 6 | d;
}

static unsigned padding_of(slice text) {
    return text.p[text.n - 1] != '=' ? 0 : text.p[text.n - 2] == '=' ? 2 : 1;
}

/* The last four characters, of which `pad` are '='. Unused bits before the padding must be zero. */
static bool decode_padded(const char *p, unsigned pad, char last, char *to) {
    char four[4] = {p[0], p[1], pad == 2 ? 'A' : p[2], 'A'};
    int32_t v = read_four(four, last);
    if (v < 0 || v & (pad == 2 ? 0xFFFF : 0xFF)) {
        return false;
    }
    to[0] = (char)(v >> 16);
    if (pad == 1) {
        to[1] = (char)(v >> 8);
    }
    return true;
}

static bool decode(buf *out, slice text, char last) {
    if (text.n == 0 || text.n % 4) {
        return text.n == 0 && buf_ok(out);
    }
    unsigned pad = padding_of(text);
    size_t bytes = text.n / 4 * 3 - pad;
    if (!buf_reserve(out, bytes)) {
        return false;
    }
    char *to = out->p + out->n;
    const char *from = text.p, *end = text.p + text.n - (pad ? 4 : 0);
    for (; from < end; from += 4, to += 3) {
        int32_t v = read_four(from, last);
        if (v < 0) {
            return false;
        }
        to[0] = (char)(v >> 16);
        to[1] = (char)(v >> 8);
        to[2] = (char)v;
    }
    if (pad && !decode_padded(from, pad, last, to)) {
        return false;
    }
    out->n += bytes;
    return true;
}

bool base64_decode(buf *out, slice text) {
    return decode(out, text, '/');
}

bool base64_decode_rid(buf *out, slice text) {
    return decode(out, text, '-');
}
