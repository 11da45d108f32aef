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

static bool decode(buf *out, slice text, char last) {
    size_t before = out->n;
    if (text.n % 4) {
        return false;
    }
    for (size_t i = 0; i < text.n; i += 4) {
        int pad = 0;
        uint32_t v = 0;
        if (i + 4 == text.n && text.p[i + 3] == '=') {
            pad = text.p[i + 2] == '=' ? 2 : 1;
        }
        for (int j = 0; j < 4; j++) {
            int digit = j >= 4 - pad ? 0 : digit_of(text.p[i + j], last);
            if (digit < 0) {
                out->n = before;
                return false;
            }
            v = v << 6 | (uint32_t)digit;
        }
        if (v & (pad == 2 ? 0xFFFFu : pad == 1 ? 0xFFu : 0)) { /* unused bits before the padding must be zero */
            out->n = before;
            return false;
        }
        char bytes[3] = {(char)(v >> 16), (char)(v >> 8), (char)v};
        buf_add(out, bytes, (size_t)(3 - pad));
    }
    if (!buf_ok(out)) {
        out->n = before;
        return false;
    }
    return true;
}

bool base64_decode(buf *out, slice text) {
    return decode(out, text, '/');
}

bool base64_decode_rid(buf *out, slice text) {
    return decode(out, text, '-');
}
