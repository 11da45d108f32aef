#include "client/json.h"

#include <math.h>

#include "base/hex.h"
#include "doc/number.h"

static bool blank(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static const char *skip_blank(const char *p, const char *end) {
    while (p < end && blank(*p)) {
        p++;
    }
    return p;
}

/* After the closing quote; NULL: there is none. */
static const char *skip_string(const char *p, const char *end) {
    for (p++; p < end; p++) {
        if (*p == '"') {
            return p + 1;
        }
        if (*p == '\\') {
            p++;
        }
    }
    return NULL;
}

/* After the value that begins at p; NULL: it does not end. Brackets are counted, not matched by kind. */
static const char *skip_value(const char *p, const char *end) {
    size_t depth = 0;
    do {
        p = skip_blank(p, end);
        if (p >= end) {
            return NULL;
        }
        switch (*p) {
        case '"':
            p = skip_string(p, end);
            if (!p) {
                return NULL;
            }
            break;
        case '{':
        case '[':
            depth++;
            p++;
            break;
        case '}':
        case ']':
            if (depth-- == 0) {
                return NULL;
            }
            p++;
            break;
        case ',':
        case ':':
            if (depth == 0) {
                return NULL;
            }
            p++;
            break;
        default:
            while (p < end && !blank(*p) && !strchr(",:{}[]\"", *p)) {
                p++;
            }
            if (p < end && *p == 0) {
                return NULL;
            }
        }
    } while (depth > 0);
    return p;
}

static slice trimmed(slice value) {
    const char *p = skip_blank(value.p, value.p + value.n), *end = value.p + value.n;
    while (end > p && blank(end[-1])) {
        end--;
    }
    return slice_of(p, (size_t)(end - p));
}

bool json_enter(slice value, json_walk *w) {
    *w = (json_walk){.broken = true};
    if (!value.n) {
        return false;
    }
    value = trimmed(value);
    *w = (json_walk){.at = value.p, .end = value.p + value.n};
    if (value.n < 2 || (*value.p != '{' && *value.p != '[')) {
        return false;
    }
    w->object = *value.p == '{';
    w->at++;
    return true;
}

static bool broken(json_walk *w) {
    w->broken = true;
    return false;
}

bool json_next(json_walk *w, slice *name_out, slice *value_out) {
    const char *p = skip_blank(w->at, w->end);
    if (w->broken || p >= w->end) {
        return broken(w);
    }
    if (*p == (w->object ? '}' : ']')) {
        return false;
    }
    if (w->begun) {
        if (*p != ',') {
            return broken(w);
        }
        p = skip_blank(p + 1, w->end);
    }
    w->begun = true;
    if (p >= w->end) {
        return broken(w);
    }
    if (w->object) {
        const char *name_end = *p == '"' ? skip_string(p, w->end) : NULL;
        if (!name_end) {
            return broken(w);
        }
        if (name_out) {
            *name_out = slice_of(p, (size_t)(name_end - p));
        }
        p = skip_blank(name_end, w->end);
        if (p >= w->end || *p != ':') {
            return broken(w);
        }
        p = skip_blank(p + 1, w->end);
    }
    const char *value_end = p < w->end ? skip_value(p, w->end) : NULL;
    if (!value_end || value_end == p) {
        return broken(w);
    }
    *value_out = slice_of(p, (size_t)(value_end - p));
    w->at = value_end;
    return true;
}

slice json_member(slice object, const char *name) {
    json_walk w;
    slice member, value;
    size_t n = strlen(name);
    if (!json_enter(object, &w) || !w.object) {
        return SLICE_EMPTY;
    }
    while (json_next(&w, &member, &value)) {
        if (member.n == n + 2 && memcmp(member.p + 1, name, n) == 0) {
            return value;
        }
    }
    return SLICE_EMPTY;
}

static bool hex4(const char *p, const char *end, unsigned *out) {
    *out = 0;
    for (int i = 0; i < 4; i++) {
        int digit = p + i < end ? hex_digit(p[i]) : -1;
        if (digit < 0) {
            return false;
        }
        *out = *out << 4 | (unsigned)digit;
    }
    return true;
}

static void add_utf8(buf *out, unsigned c) {
    if (c < 0x80) {
        buf_add_byte(out, (char)c);
    } else if (c < 0x800) {
        buf_add(out, (char[]){(char)(0xC0 | c >> 6), (char)(0x80 | (c & 63))}, 2);
    } else if (c < 0x10000) {
        buf_add(out, (char[]){(char)(0xE0 | c >> 12), (char)(0x80 | (c >> 6 & 63)), (char)(0x80 | (c & 63))}, 3);
    } else {
        buf_add(out, (char[]){(char)(0xF0 | c >> 18), (char)(0x80 | (c >> 12 & 63)), (char)(0x80 | (c >> 6 & 63)), (char)(0x80 | (c & 63))},
                4);
    }
}

/* The escape after a backslash at p[-1]; returns the position after it, NULL if it is none. */
static const char *unescape(const char *p, const char *end, buf *out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *simple = p < end && *p ? strchr(from, *p) : NULL;
    unsigned c, low;
    if (simple) {
        buf_add_byte(out, to[simple - from]);
        return p + 1;
    }
    if (p >= end || *p != 'u' || !hex4(p + 1, end, &c)) {
        return NULL;
    }
    p += 5;
    if (c >= 0xD800 && c < 0xDC00 && end - p >= 6 && p[0] == '\\' && p[1] == 'u' && hex4(p + 2, end, &low) && low >= 0xDC00 &&
        low < 0xE000) {
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
        p += 6;
    }
    add_utf8(out, c >= 0xD800 && c < 0xE000 ? 0xFFFD : c);
    return p;
}

bool json_text(slice value, buf *out) {
    size_t before = out->n;
    if (value.n < 2 || value.p[0] != '"' || value.p[value.n - 1] != '"') {
        return false;
    }
    const char *p = value.p + 1, *end = value.p + value.n - 1;
    while (p && p < end) {
        if (*p == '\\') {
            p = unescape(p + 1, end, out);
        } else {
            buf_add_byte(out, *p++);
        }
    }
    if (!p || !buf_ok(out)) {
        out->n = before;
        return false;
    }
    return true;
}

double json_number(slice value, double otherwise) {
    number_value number;
    const char *reason, *end = value.n ? number_read(value.p, value.p + value.n, &number, &reason) : NULL;
    if (!end || end != value.p + value.n) {
        return otherwise;
    }
    return number.integer ? (double)number.i : number.d;
}

int64_t json_whole(slice value, int64_t least, int64_t most, int64_t otherwise) {
    double number = json_number(value, NAN);
    return number >= (double)least && number <= (double)most ? (int64_t)number : otherwise;
}

bool json_true(slice value) {
    return slice_eq(value, SLICE_LIT("true"));
}

bool json_is_value(slice text) {
    if (!text.n) {
        return false;
    }
    const char *end = text.p + text.n, *p = skip_value(text.p, end);
    return p && skip_blank(p, end) == end;
}
