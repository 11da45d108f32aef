/* json_read.c — JSON text to BSON, in one pass.
 *
 * Every read function takes a position in the text and returns the position after what it read. On failure it stores the reason and the
 * position in the reader and returns NULL. BSON is written while the text is read: a document's length is filled in at its end, and an
 * element's type byte after its value.
 *
 * Duplicate keys are rare, so reading only detects them, and one more pass removes them at the end. In an object of up to SMALL_OBJECT
 * keys, a 256-bit set (`seen`) tells whether a key may have occurred before; only then are the object's elements compared. A larger object
 * is checked with a hash table at its end. */
#include <assert.h>

#include "base/hex.h"
#include "base/limits.h"
#include "doc/duplicates.h"
#include "doc/json.h"
#include "doc/number.h"
#include "doc/scan.h"
#include "doc/walk.h"

enum { SMALL_OBJECT = 32 };

#define TOO_LARGE "the document is too large"

typedef struct reader {
    const char *end; /* end of the text */
    buf *out;
    const json_options *options;
    unsigned depth;
    unsigned depth_max;
    bool duplicates;
    const char *stopped; /* where reading failed, and why */
    const char *reason;
} reader;

static const char *read_value(reader *r, const char *p, char *type_out);

static const char *fail(reader *r, const char *at, const char *reason) {
    r->stopped = at;
    r->reason = reason;
    return NULL;
}

/* The next byte, or 0 at the end (no JSON token begins with a zero byte). */
static inline char peek(const reader *r, const char *p) {
    return p < r->end ? *p : 0;
}

static inline const char *skip_blanks(const reader *r, const char *p) {
    while (p < r->end && (unsigned char)*p <= ' ' && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
        p++;
    }
    return p;
}

/* ---- strings ---- */

/* The length of the UTF-8 sequence at `text`, whose first byte is above 0x7F; 0 if it is invalid (RFC 3629: shortest form, no surrogates,
 * nothing above U+10FFFF). */
static size_t utf8_sequence(const char *text, const char *end) {
    const unsigned char *p = (const unsigned char *)text;
    size_t room = (size_t)(end - text);
    unsigned char c = p[0];
    if (c < 0xC2 || c > 0xF4) {
        return 0;
    }
    size_t n = c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    if (room < n) {
        return 0;
    }
    unsigned char low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    unsigned char high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    if (p[1] < low || p[1] > high || (n > 2 && (p[2] & 0xC0) != 0x80) || (n > 3 && (p[3] & 0xC0) != 0x80)) {
        return 0;
    }
    return n;
}

/* Skips characters that are copied as they are; returns the position of the closing quote or of a backslash. */
static const char *skip_plain(reader *r, const char *p) {
    for (;;) {
        p = scan_special(p, r->end);
        if (p == r->end) {
            return fail(r, p, "a string has no end");
        }
        if (*p == '"' || *p == '\\') {
            return p;
        }
        if ((unsigned char)*p < 0x20) {
            return fail(r, p, "a control character in a string must be escaped");
        }
        do {
            size_t n = utf8_sequence(p, r->end);
            if (n == 0) {
                return fail(r, p, "a string is not valid UTF-8");
            }
            p += n;
        } while (p < r->end && (signed char)*p < 0);
    }
}

static bool hex4(const reader *r, const char *p, uint32_t *code_out) {
    if (r->end - p < 4) {
        return false;
    }
    uint32_t code = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(p[i]);
        if (digit < 0) {
            return false;
        }
        code = code << 4 | (uint32_t)digit;
    }
    *code_out = code;
    return true;
}

static void add_code_point(buf *out, uint32_t c, bool is_key) {
    char utf8[4];
    size_t n;
    if (c == 0 && is_key) {
        memcpy(utf8, "\xC0\x80", n = 2); /* a BSON key ends at its zero byte */
    } else if (c < 0x80) {
        utf8[0] = (char)c;
        n = 1;
    } else if (c < 0x800) {
        utf8[0] = (char)(0xC0 | c >> 6);
        utf8[1] = (char)(0x80 | (c & 0x3F));
        n = 2;
    } else if (c < 0x10000) {
        utf8[0] = (char)(0xE0 | c >> 12);
        utf8[1] = (char)(0x80 | (c >> 6 & 0x3F));
        utf8[2] = (char)(0x80 | (c & 0x3F));
        n = 3;
    } else {
        utf8[0] = (char)(0xF0 | c >> 18);
        utf8[1] = (char)(0x80 | (c >> 12 & 0x3F));
        utf8[2] = (char)(0x80 | (c >> 6 & 0x3F));
        utf8[3] = (char)(0x80 | (c & 0x3F));
        n = 4;
    }
    buf_add(out, utf8, n);
}

/* `p` is after "\u". A surrogate pair of two escapes becomes one character; a lone surrogate becomes U+FFFD, as on the service. */
static const char *read_unicode_escape(reader *r, const char *p, bool is_key) {
    uint32_t code, second;
    if (!hex4(r, p, &code)) {
        return fail(r, p, "four hexadecimal digits are expected after \\u");
    }
    p += 4;
    if (code >= 0xD800 && code < 0xE000) {
        bool pair = code < 0xDC00 && peek(r, p) == '\\' && peek(r, p + 1) == 'u' && hex4(r, p + 2, &second) && second >> 10 == 0xDC00 >> 10;
        if (pair) {
            code = 0x10000 + ((code - 0xD800) << 10) + (second - 0xDC00);
            p += 6;
        } else {
            code = 0xFFFD;
        }
    }
    add_code_point(r->out, code, is_key);
    return p;
}

/* `p` is at the backslash. */
static const char *read_escape(reader *r, const char *p, bool is_key) {
    static const char meaning[256] = {
        ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'};
    char c = peek(r, ++p);
    if (c == 'u') {
        return read_unicode_escape(r, p + 1, is_key);
    }
    if (meaning[(unsigned char)c] == 0) {
        return fail(r, p, "unknown escape in a string");
    }
    buf_add_byte(r->out, meaning[(unsigned char)c]);
    return p + 1;
}

/* Fast path for ASCII without escapes while the buffer has room for whole steps. Copies up to the first special byte or until a step does
 * not fit. */
static inline const char *copy_plain(reader *r, const char *p) {
    buf *out = r->out;
    size_t n = out->n;
#ifdef __SSE2__
    for (; r->end - p >= SCAN_STEP && out->cap - n > SCAN_STEP; p += SCAN_STEP, n += SCAN_STEP) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        _mm_storeu_si128((__m128i *)(void *)(out->p + n), v);
        unsigned mask = scan_mask_special(p);
        if (mask) {
            p += SCAN_FIRST(mask);
            n += SCAN_FIRST(mask);
            break;
        }
    }
#endif
    out->n = n;
    return p;
}

/* `p` is after the opening quote. Appends the string's bytes and a zero byte. */
static const char *read_text(reader *r, const char *p, bool is_key) {
    if (!buf_reserve(r->out, 1)) {
        return fail(r, p, TOO_LARGE);
    }
    p = copy_plain(r, p);
    if (peek(r, p) == '"' && r->out->n < r->out->cap) {
        r->out->p[r->out->n++] = 0;
        return p + 1;
    }
    for (;;) {
        const char *run = p;
        p = skip_plain(r, p);
        if (!p) {
            return NULL;
        }
        size_t n = (size_t)(p - run);
        if (!buf_reserve(r->out, n + 1)) {
            return fail(r, p, TOO_LARGE);
        }
        memcpy(r->out->p + r->out->n, run, n);
        r->out->n += n;
        if (*p == '"') {
            r->out->p[r->out->n++] = 0;
            return p + 1;
        }
        p = read_escape(r, p, is_key);
        if (!p) {
            return NULL;
        }
    }
}

/* ---- containers ---- */

static const char *enter(reader *r, const char *p, size_t *start_out) {
    if (++r->depth > r->depth_max) {
        return fail(r, p, "the document is nested too deeply");
    }
    *start_out = r->out->n;
    buf_add(r->out, "\0\0\0", 4);
    return buf_ok(r->out) ? p + 1 : fail(r, p, TOO_LARGE);
}

static const char *leave(reader *r, const char *p, size_t start) {
    r->depth--;
    buf_add_byte(r->out, 0);
    size_t n = r->out->n - start;
    if (!buf_ok(r->out) || n > INT32_MAX) {
        r->out->overflow = true;
        return fail(r, p, TOO_LARGE);
    }
    doc_store_i32(r->out->p + start, (int32_t)n);
    return p + 1;
}

/* Whether the unfinished object at `start` has an element with this key before the one at `element`. */
static bool is_known(const reader *r, size_t start, size_t element, slice key) {
    doc_walk w = {.at = r->out->p + start + 4, .end = r->out->p + element};
    doc_element e;
    while (doc_walk_next(&w, &e)) {
        if (slice_eq(e.key, key)) {
            return true;
        }
    }
    return false;
}

typedef struct object {
    size_t start;
    size_t keys;
    uint64_t seen[4];
} object;

static void note_key(reader *r, object *o, size_t element, slice key) {
    if (r->duplicates || ++o->keys > SMALL_OBJECT) {
        return;
    }
    const unsigned char *k = (const unsigned char *)key.p;
    uint32_t traits = (uint32_t)key.n << 24 ^ (uint32_t)k[0] << 16 ^ (uint32_t)k[key.n / 2] << 8;
    traits ^= key.n ? k[key.n - 1] : 0;
    unsigned bit = traits * 0x9E3779B1u >> 24;
    uint64_t *word = &o->seen[bit >> 6];
    uint64_t flag = 1ULL << (bit & 63);
    if (*word & flag && is_known(r, o->start, element, key)) {
        r->duplicates = true;
    }
    *word |= flag;
}

static bool is_dropped(const reader *r, slice key) {
    if (r->depth != 1 || !r->options) {
        return false;
    }
    for (size_t i = 0; i < r->options->drop_n; i++) {
        if (slice_eq(r->options->drop[i], key)) {
            return true;
        }
    }
    return false;
}

/* Reads from the quote before the key to the end of the value. */
static const char *read_member(reader *r, const char *p, object *o) {
    size_t element = r->out->n;
    buf_add_byte(r->out, 0);
    p = read_text(r, p + 1, true);
    if (!p) {
        return NULL;
    }
    size_t key_n = r->out->n - element - 2;
    p = skip_blanks(r, p);
    if (peek(r, p) != ':') {
        return fail(r, p, "a colon is expected after a key");
    }
    char type;
    p = read_value(r, skip_blanks(r, p + 1), &type);
    if (!p) {
        return NULL;
    }
    slice key = slice_of(r->out->p + element + 1, key_n);
    if (is_dropped(r, key)) {
        r->out->n = element;
        return p;
    }
    r->out->p[element] = type;
    note_key(r, o, element, key);
    return p;
}

static const char *read_object(reader *r, const char *p) {
    object o = {0};
    p = enter(r, p, &o.start);
    if (!p) {
        return NULL;
    }
    p = skip_blanks(r, p);
    if (peek(r, p) != '}') {
        for (;;) {
            if (peek(r, p) != '"') {
                return fail(r, p, "a key in quotes is expected");
            }
            p = read_member(r, p, &o);
            if (!p) {
                return NULL;
            }
            p = skip_blanks(r, p);
            if (peek(r, p) != ',') {
                break;
            }
            p = skip_blanks(r, p + 1);
        }
        if (peek(r, p) != '}') {
            return fail(r, p, "a comma or the end of the object is expected");
        }
    }
    p = leave(r, p, o.start);
    if (p && !r->duplicates && o.keys > SMALL_OBJECT) {
        r->duplicates = doc__has_duplicates(slice_of(r->out->p + o.start, r->out->n - o.start));
    }
    return p;
}

/* The key of a BSON array element ("0", "1", …) as decimal digits, incremented in place. */
typedef struct index_key {
    char digits[12];
    unsigned n; /* bytes in use at the end of `digits`, with the zero byte */
} index_key;

static const index_key first_index = {.digits = "          0", .n = 2};

static void count_up(index_key *k) {
    char *p = k->digits + sizeof k->digits - 2;
    while (*p == '9') {
        *p-- = '0';
    }
    if (*p == ' ') {
        *p = '0';
        k->n++;
    }
    ++*p;
}

static const char *read_array(reader *r, const char *p) {
    size_t start;
    p = enter(r, p, &start);
    if (!p) {
        return NULL;
    }
    p = skip_blanks(r, p);
    if (peek(r, p) != ']') {
        for (index_key key = first_index;; count_up(&key)) {
            size_t element = r->out->n;
            if (!buf_reserve(r->out, 1 + key.n)) {
                return fail(r, p, TOO_LARGE);
            }
            memcpy(r->out->p + element + 1, key.digits + sizeof key.digits - key.n, key.n);
            r->out->n += 1 + key.n;
            char type;
            p = read_value(r, p, &type);
            if (!p) {
                return NULL;
            }
            r->out->p[element] = type;
            p = skip_blanks(r, p);
            if (peek(r, p) != ',') {
                break;
            }
            p = skip_blanks(r, p + 1);
        }
        if (peek(r, p) != ']') {
            return fail(r, p, "a comma or the end of the array is expected");
        }
    }
    return leave(r, p, start);
}

/* ---- values ---- */

static const char *read_string(reader *r, const char *p) {
    size_t start = r->out->n;
    buf_add(r->out, "\0\0\0", 4);
    p = read_text(r, p + 1, false);
    if (p) {
        size_t n = r->out->n - start - 4;
        if (n > INT32_MAX) {
            r->out->overflow = true;
            return fail(r, p, TOO_LARGE);
        }
        doc_store_i32(r->out->p + start, (int32_t)n);
    }
    return p;
}

static const char *read_number(reader *r, const char *p, char *type_out) {
    number_value value;
    const char *reason;
    const char *after = number_read(p, r->end, &value, &reason);
    if (!after) {
        return fail(r, p, reason);
    }
    char bytes[8];
    size_t n = 8;
    if (value.integer && value.i >= INT32_MIN && value.i <= INT32_MAX) {
        *type_out = BSON_TYPE_INT32;
        doc_store_i32(bytes, (int32_t)value.i);
        n = 4;
    } else {
        *type_out = value.integer ? BSON_TYPE_INT64 : BSON_TYPE_DOUBLE;
        int64_t bits;
        memcpy(&bits, value.integer ? (const void *)&value.i : &value.d, sizeof bits);
        doc_store_i64(bytes, bits);
    }
    buf_add(r->out, bytes, n);
    return after;
}

static const char *read_word(reader *r, const char *p, slice word) {
    if (!slice_starts(slice_of(p, (size_t)(r->end - p)), word)) {
        return fail(r, p, "a value is expected");
    }
    return p + word.n;
}

static const char *read_value(reader *r, const char *p, char *type_out) {
    switch (peek(r, p)) {
    case '"':
        *type_out = BSON_TYPE_UTF8;
        return read_string(r, p);
    case '{':
        *type_out = BSON_TYPE_DOCUMENT;
        return read_object(r, p);
    case '[':
        *type_out = BSON_TYPE_ARRAY;
        return read_array(r, p);
    case 't':
        *type_out = BSON_TYPE_BOOL;
        buf_add_byte(r->out, 1);
        return read_word(r, p, SLICE_LIT("true"));
    case 'f':
        *type_out = BSON_TYPE_BOOL;
        buf_add_byte(r->out, 0);
        return read_word(r, p, SLICE_LIT("false"));
    case 'n':
        *type_out = BSON_TYPE_NULL;
        return read_word(r, p, SLICE_LIT("null"));
    case '-':
    case '0' ... '9':
        return read_number(r, p, type_out);
    default:
        return fail(r, p, "a value is expected");
    }
}

static const char *read_document(reader *r, const char *p, json_root *root_out) {
    p = skip_blanks(r, p);
    char c = peek(r, p);
    if (c != '{' && c != '[') {
        return fail(r, p, "an object or an array is expected");
    }
    *root_out = c == '{' ? JSON_OBJECT : JSON_ARRAY;
    p = c == '{' ? read_object(r, p) : read_array(r, p);
    if (p && skip_blanks(r, p) != r->end) {
        return fail(r, skip_blanks(r, p), "there is text after the document");
    }
    return p;
}

static void drop_duplicates(buf *out, size_t start, bool is_array) {
    slice document = slice_of(out->p + start, out->n - start);
    buf clean = buf_init(document.n);
    doc__drop_duplicates(document, is_array, &clean);
    assert(buf_ok(&clean));
    memcpy(out->p + start, clean.p, clean.n);
    out->n = start + clean.n;
    buf_free(&clean);
}

err json_to_bson(slice text, const json_options *options, buf *out, json_root *root_out, json_error *why) {
    if (text.n == 0) {
        text = SLICE_LIT(""); /* text.p may be NULL, and offsets are computed from it */
    }
    reader r = {.end = text.p + text.n,
                .out = out,
                .options = options,
                .depth_max = options && options->depth_max ? options->depth_max : LIMIT_JSON_DEPTH};
    size_t start = out->n;
    json_root root = JSON_OBJECT;
    size_t likely = text.n + text.n / 8 + 64;
    if (likely <= out->max - start) {
        buf_reserve(out, likely);
    }
    bool was_full = out->overflow;
    if (was_full || !read_document(&r, text.p, &root)) {
        bool full = out->overflow;
        out->n = start;
        out->overflow = was_full;
        if (why) {
            *why = (json_error){.offset = r.stopped ? (size_t)(r.stopped - text.p) : 0, .reason = full ? TOO_LARGE : r.reason};
        }
        return full ? E_TOO_LARGE : E_BAD_JSON;
    }
    if (r.duplicates) {
        drop_duplicates(out, start, root == JSON_ARRAY);
    }
    if (root_out) {
        *root_out = root;
    }
    return OK;
}
