#include "base/percent.h"

#include "base/hex.h"

bool percent_decode(slice raw, char *to, size_t *n_out) {
    char *at = to;
    *n_out = 0;
    while (raw.n) {
        const char *escape = memchr(raw.p, '%', raw.n);
        size_t plain = escape ? (size_t)(escape - raw.p) : raw.n;
        memcpy(at, raw.p, plain);
        at += plain;
        raw = slice_skip(raw, plain);
        if (raw.n) {
            int high = raw.n > 2 ? hex_digit(raw.p[1]) : -1;
            int low = raw.n > 2 ? hex_digit(raw.p[2]) : -1;
            if (high < 0 || low < 0) {
                return false;
            }
            *at++ = (char)(high << 4 | low);
            raw = slice_skip(raw, 3);
        }
    }
    *n_out = (size_t)(at - to);
    return true;
}
