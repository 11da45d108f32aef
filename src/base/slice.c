#include "base/slice.h"

#include <strings.h>

enum { SHOWN_MAX = 200 };

slice slice_cut(slice s, size_t max) {
    size_t n = s.n;
    if (n > max) {
        for (n = max; n > 0 && (s.p[n] & 0xC0) == 0x80;) {
            n--;
        }
    }
    return slice_of(s.p, n);
}

int slice_shown(slice s) {
    return (int)slice_cut(s, SHOWN_MAX).n;
}

bool slice_eq_nocase(slice a, slice b) {
    return a.n == b.n && (a.n == 0 || strncasecmp(a.p, b.p, a.n) == 0);
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

slice slice_trim(slice s) {
    while (s.n && is_blank(s.p[0])) {
        s.p++, s.n--;
    }
    while (s.n && is_blank(s.p[s.n - 1])) {
        s.n--;
    }
    return s;
}

size_t slice_ascii(slice s) {
    size_t i = 0;
    for (uint64_t bytes; i + sizeof bytes <= s.n; i += sizeof bytes) {
        memcpy(&bytes, s.p + i, sizeof bytes);
        if (bytes & UINT64_C(0x8080808080808080)) {
            break;
        }
    }
    return i;
}

bool slice_to_u64(slice s, uint64_t *value_out) {
    uint64_t v = 0;
    *value_out = 0;
    if (s.n == 0) {
        return false;
    }
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || __builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, (uint64_t)(s.p[i] - '0'), &v)) {
            return false;
        }
    }
    *value_out = v;
    return true;
}

bool slice_to_i64(slice s, int64_t *value_out) {
    bool negative = s.n && s.p[0] == '-';
    uint64_t v;
    *value_out = 0;
    if (!slice_to_u64(negative ? slice_skip(s, 1) : s, &v)) {
        return false;
    }
    if (v > (uint64_t)INT64_MAX + negative) {
        return false;
    }
    *value_out = negative ? (int64_t)(~v + 1) : (int64_t)v;
    return true;
}

bool slice_take_be(slice *rest, size_t bytes, uint64_t *number_out) {
    *number_out = 0;
    if (rest->n < bytes) {
        return false;
    }
    for (size_t i = 0; i < bytes; i++) {
        *number_out = *number_out << 8 | (unsigned char)rest->p[i];
    }
    *rest = slice_skip(*rest, bytes);
    return true;
}
