/* JSON text to Cosmos binary JSON: one pass over the text. The length of an array or object comes before its members, so room for
 * the longest prefix is left, and a short container is moved when its end is reached. */
#include "base/hex.h"
#include "doc/json_binary_int.h"
#include "doc/json_int.h"
#include "doc/number.h"
#include "doc/scan.h"

enum {
    DEPTH_MAX = JSON_WRITE_DEPTH + 8, /* documents inside the object of a feed */
    PREFIX_BYTES = 5,                 /* a marker and a length of four bytes */
    SHORT_PREFIX_BYTES = 2,
};

typedef struct writer {
    const char *p, *end;
    buf *out;
    buf text; /* the last string, unescaped */
} writer;

static void add_little(buf *out, uint64_t value, size_t n) {
    char bytes[8];
    for (size_t i = 0; i < n; i++) {
        bytes[i] = (char)(value >> (8 * i));
    }
    buf_add(out, bytes, n);
}

static void add_marked(buf *out, unsigned marker, uint64_t value, size_t n) {
    buf_add_byte(out, (char)marker);
    add_little(out, value, n);
}

/* ---- strings ---- */

static int hex4(const char *p) {
    int value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(p[i]);
        value = digit < 0 || value < 0 ? -1 : value * 16 + digit;
    }
    return value;
}

static void add_utf8(buf *out, unsigned c) {
    if (c < 0x80) {
        buf_add_byte(out, (char)c);
        return;
    }
    if (c < 0x800) {
        buf_add_byte(out, (char)(0xC0 | c >> 6));
    } else if (c < 0x10000) {
        buf_add_byte(out, (char)(0xE0 | c >> 12));
        buf_add_byte(out, (char)(0x80 | (c >> 6 & 0x3F)));
    } else {
        buf_add_byte(out, (char)(0xF0 | c >> 18));
        buf_add_byte(out, (char)(0x80 | (c >> 12 & 0x3F)));
        buf_add_byte(out, (char)(0x80 | (c >> 6 & 0x3F)));
    }
    buf_add_byte(out, (char)(0x80 | (c & 0x3F)));
}

/* Called after "\u". A lone surrogate becomes U+FFFD. */
static bool unescape_unicode(writer *w) {
    int c = w->end - w->p >= 4 ? hex4(w->p) : -1;
    if (c < 0) {
        return false;
    }
    w->p += 4;
    if (c >= 0xD800 && c < 0xDC00 && w->end - w->p >= 6 && w->p[0] == '\\' && w->p[1] == 'u') {
        int low = hex4(w->p + 2);
        if (low >= 0xDC00 && low < 0xE000) {
            w->p += 6;
            add_utf8(&w->text, 0x10000 + (((unsigned)c & 0x3FF) << 10 | ((unsigned)low & 0x3FF)));
            return true;
        }
    }
    add_utf8(&w->text, c >= 0xD800 && c < 0xE000 ? 0xFFFD : (unsigned)c);
    return true;
}

static bool unescape(writer *w) { /* called after the backslash */
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    const char *letter = w->p < w->end && *w->p ? strchr(letters, *w->p) : NULL;
    if (letter) {
        buf_add_byte(&w->text, values[letter - letters]);
        w->p++;
        return true;
    }
    if (w->p == w->end || *w->p != 'u') {
        return false;
    }
    w->p++;
    return unescape_unicode(w);
}

/* Reads the string that begins at w->p, after its quote. The result points into the text, or into w->text if there are escapes. */
static bool read_string(writer *w, slice *text_out) {
    const char *begin = w->p;
    buf_clear(&w->text);
    for (;;) {
        const char *stop = scan_escape(w->p, w->end);
        if (stop == w->end || (*stop != '"' && *stop != '\\')) {
            return false;
        }
        if (*stop == '"' && w->text.n == 0) {
            *text_out = slice_of(begin, (size_t)(stop - begin));
            w->p = stop + 1;
            return true;
        }
        buf_add(&w->text, w->p, (size_t)(stop - w->p));
        w->p = stop + 1;
        if (*stop == '"') {
            *text_out = buf_view(&w->text);
            return true;
        }
        if (!unescape(w)) {
            return false;
        }
    }
}

static bool add_system_string(buf *out, slice text) {
    for (unsigned i = 0; text.n <= sizeof "FeatureCollection" && i < BINARY_SYSTEM_STRINGS; i++) {
        if (slice_eq(text, slice_str(json__system_strings[i]))) {
            buf_add_byte(out, (char)(BINARY_SYSTEM_STRING + i));
            return true;
        }
    }
    return false;
}

/* 16 bytes, the first digit of each in its low half. False: the text is not a lower-case GUID. */
static bool guid_of(const char *p, uint8_t into[static BINARY_GUID_BYTES]) {
    unsigned digits = 0;
    for (size_t i = 0; i < BINARY_GUID_TEXT; i++) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (p[i] != '-') {
                return false;
            }
            continue;
        }
        int digit = p[i] >= 'A' && p[i] <= 'F' ? -1 : hex_digit(p[i]);
        if (digit < 0) {
            return false;
        }
        into[digits / 2] = (uint8_t)(digits % 2 ? into[digits / 2] | digit << 4 : digit);
        digits++;
    }
    return true;
}

static bool add_guid(buf *out, slice text) {
    uint8_t bytes[BINARY_GUID_BYTES];
    bool quoted = text.n == BINARY_GUID_TEXT + 2 && text.p[0] == '"' && text.p[text.n - 1] == '"';
    if ((text.n != BINARY_GUID_TEXT && !quoted) || !guid_of(text.p + quoted, bytes)) {
        return false;
    }
    buf_add_byte(out, (char)(quoted ? BINARY_GUID_QUOTED : BINARY_GUID_LOWER));
    buf_add(out, bytes, sizeof bytes);
    return true;
}

static void add_string(buf *out, slice text) {
    if (add_system_string(out, text) || add_guid(out, text)) {
        return;
    }
    if (text.n < BINARY_STRING_END - BINARY_STRING) {
        buf_add_byte(out, (char)(BINARY_STRING + text.n));
    } else if (text.n <= UINT8_MAX) {
        add_marked(out, BINARY_STRING_1, text.n, 1);
    } else if (text.n <= UINT16_MAX) {
        add_marked(out, BINARY_STRING_2, text.n, 2);
    } else {
        add_marked(out, BINARY_STRING_4, text.n, 4);
    }
    buf_add_slice(out, text);
}

static bool write_string(writer *w) {
    slice text;
    w->p++;
    bool good = read_string(w, &text);
    if (good) {
        add_string(w->out, text);
    }
    return good;
}

/* ---- numbers and words ---- */

static void add_integer(buf *out, int64_t value) {
    if (value >= 0 && value < BINARY_SYSTEM_STRING) {
        buf_add_byte(out, (char)value);
    } else if (value >= 0 && value <= UINT8_MAX) {
        add_marked(out, BINARY_U8, (uint64_t)value, 1);
    } else if (value >= INT16_MIN && value <= INT16_MAX) {
        add_marked(out, BINARY_I16, (uint64_t)value, 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        add_marked(out, BINARY_I32, (uint64_t)value, 4);
    } else {
        add_marked(out, BINARY_I64, (uint64_t)value, 8);
    }
}

static bool write_number(writer *w) {
    number_value value;
    const char *reason, *after = number_read(w->p, w->end, &value, &reason);
    if (!after) {
        return false;
    }
    w->p = after;
    if (value.integer) {
        add_integer(w->out, value.i);
    } else {
        uint64_t bits;
        memcpy(&bits, &value.d, sizeof bits);
        add_marked(w->out, BINARY_DOUBLE, bits, 8);
    }
    return true;
}

static bool write_word(writer *w, slice word, unsigned marker) {
    if (!slice_starts(slice_of(w->p, (size_t)(w->end - w->p)), word)) {
        return false;
    }
    w->p += word.n;
    buf_add_byte(w->out, (char)marker);
    return true;
}

/* ---- arrays and objects ---- */

static bool write_value(writer *w, unsigned depth);

static void skip_blanks(writer *w) {
    while (w->p < w->end && (*w->p == ' ' || *w->p == '\t' || *w->p == '\n' || *w->p == '\r')) {
        w->p++;
    }
}

static bool next_is(writer *w, char c) { /* skips it */
    skip_blanks(w);
    bool is = w->p < w->end && *w->p == c;
    w->p += is;
    return is;
}

static bool write_members(writer *w, char close, unsigned depth) {
    for (bool first = true; !next_is(w, close); first = false) {
        if (!first && !next_is(w, ',')) {
            return false;
        }
        skip_blanks(w);
        if (close == '}' && !(w->p < w->end && *w->p == '"' && write_string(w) && next_is(w, ':'))) {
            return false;
        }
        if (!write_value(w, depth + 1)) {
            return false;
        }
    }
    return true;
}

/* Sets the prefix of the container at `at`, whose members are written after PREFIX_BYTES of room. */
static void set_prefix(buf *out, size_t at, unsigned marker) {
    size_t n = out->n - at - PREFIX_BYTES;
    char *p = out->p + at;
    if (n == 0) {
        p[0] = (char)(marker + BINARY_EMPTY);
        out->n = at + 1;
    } else if (n <= UINT8_MAX) {
        p[0] = (char)(marker + BINARY_L1);
        p[1] = (char)n;
        memmove(p + SHORT_PREFIX_BYTES, p + PREFIX_BYTES, n);
        out->n -= PREFIX_BYTES - SHORT_PREFIX_BYTES;
    } else {
        p[0] = (char)(marker + BINARY_L4);
        for (unsigned i = 0; i < 4; i++) {
            p[1 + i] = (char)(n >> (8 * i));
        }
    }
}

static bool write_container(writer *w, unsigned depth) {
    bool is_object = *w->p++ == '{';
    size_t at = w->out->n;
    add_marked(w->out, 0, 0, PREFIX_BYTES - 1);
    if (depth >= DEPTH_MAX || !write_members(w, is_object ? '}' : ']', depth)) {
        return false;
    }
    if (buf_ok(w->out)) {
        set_prefix(w->out, at, is_object ? BINARY_OBJECT : BINARY_ARRAY);
    }
    return true;
}

static bool write_value(writer *w, unsigned depth) {
    skip_blanks(w);
    switch (w->p < w->end ? *w->p : 0) {
    case '{':
    case '[':
        return write_container(w, depth);
    case '"':
        return write_string(w);
    case 't':
        return write_word(w, SLICE_LIT("true"), BINARY_TRUE);
    case 'f':
        return write_word(w, SLICE_LIT("false"), BINARY_FALSE);
    case 'n':
        return write_word(w, SLICE_LIT("null"), BINARY_NULL);
    default:
        return write_number(w);
    }
}

bool json_binary_from_text(slice text, buf *out) {
    size_t before = out->n;
    writer w = {.p = text.p, .end = text.p + text.n, .out = out, .text = buf_init(BUF_NO_LIMIT)};
    buf_add_byte(out, (char)JSON_BINARY_FORMAT);
    bool good = write_value(&w, 0);
    skip_blanks(&w);
    good = good && w.p == w.end;
    buf_free(&w.text);
    if (!good) {
        out->n = before;
        out->overflow = false;
    }
    return good;
}
