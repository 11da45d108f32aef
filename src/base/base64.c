#include "base/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void encode(buf *out, slice bytes, char last) {
    if (!buf_reserve(out, (bytes.n + 2) / 3 * 4)) {
        return;
    }
    for (size_t i = 0; i < bytes.n; i += 3) {
        size_t k = bytes.n - i < 3 ? bytes.n - i : 3;
        uint32_t v = (uint32_t)(unsigned char)bytes.p[i] << 16;
        v |= k > 1 ? (uint32_t)(unsigned char)bytes.p[i + 1] << 8 : 0;
        v |= k > 2 ? (uint32_t)(unsigned char)bytes.p[i + 2] : 0;
        char quad[4];
        for (int j = 0; j < 4; j++) {
            uint32_t digit = v >> (18 - 6 * j) & 63;
            quad[j] = digit == 63 ? last : alphabet[digit];
        }
        quad[2] = k > 1 ? quad[2] : '=';
        quad[3] = k > 2 ? quad[3] : '=';
        memcpy(out->p + out->n, quad, 4);
        out->n += 4;
    }
}

void base64_encode(buf *out, slice bytes) {
    encode(out, bytes, '/');
}

void base64_encode_rid(buf *out, slice bytes) {
    encode(out, bytes, '-');
}

/* Value + 1 of each digit, 0 for anything else; the last digit, '/' or '-', is the caller's. */
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
        if (v & (pad == 2 ? 0xFFFFu : pad == 1 ? 0xFFu : 0)) { /* bits under the padding must be clear */
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
