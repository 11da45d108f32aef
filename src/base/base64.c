#include "base/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void encode(buf *out, slice bytes, char last) {
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
        buf_add(out, quad, 4);
    }
}

void base64_encode(buf *out, slice bytes) {
    encode(out, bytes, '/');
}

void base64_encode_rid(buf *out, slice bytes) {
    encode(out, bytes, '-');
}

static int digit_of(char c, char last) {
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == last ? 63 : -1;
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
    return buf_ok(out);
}

bool base64_decode(buf *out, slice text) {
    return decode(out, text, '/');
}

bool base64_decode_rid(buf *out, slice text) {
    return decode(out, text, '-');
}
