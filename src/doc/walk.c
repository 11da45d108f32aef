#include "doc/walk.h"

#include <endian.h>

#include "doc/scan.h"

int32_t doc_load_i32(const char *p) {
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return (int32_t)le32toh(value);
}

int64_t doc_load_i64(const char *p) {
    uint64_t value;
    memcpy(&value, p, sizeof value);
    return (int64_t)le64toh(value);
}

double doc_load_double(const char *p) {
    int64_t bits = doc_load_i64(p);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

void doc_store_i32(char *p, int32_t value) {
    uint32_t bits = htole32((uint32_t)value);
    memcpy(p, &bits, sizeof bits);
}

void doc_store_i64(char *p, int64_t value) {
    uint64_t bits = htole64((uint64_t)value);
    memcpy(p, &bits, sizeof bits);
}

/* How the size of a value is found, by its BSON type. */
typedef enum shape { SHAPE_NONE, SHAPE_FIXED, SHAPE_TEXT, SHAPE_CONTAINER, SHAPE_BINARY, SHAPE_REGEX, SHAPE_POINTER, SHAPE_SCOPE } shape;

static const struct {
    uint8_t shape;
    uint8_t bytes;
} shapes[256] = {
    [BSON_TYPE_DOUBLE] = {SHAPE_FIXED, 8},      [BSON_TYPE_UTF8] = {SHAPE_TEXT, 0},       [BSON_TYPE_DOCUMENT] = {SHAPE_CONTAINER, 0},
    [BSON_TYPE_ARRAY] = {SHAPE_CONTAINER, 0},   [BSON_TYPE_BINARY] = {SHAPE_BINARY, 0},   [BSON_TYPE_UNDEFINED] = {SHAPE_FIXED, 0},
    [BSON_TYPE_OID] = {SHAPE_FIXED, 12},        [BSON_TYPE_BOOL] = {SHAPE_FIXED, 1},      [BSON_TYPE_DATE_TIME] = {SHAPE_FIXED, 8},
    [BSON_TYPE_NULL] = {SHAPE_FIXED, 0},        [BSON_TYPE_REGEX] = {SHAPE_REGEX, 0},     [BSON_TYPE_DBPOINTER] = {SHAPE_POINTER, 12},
    [BSON_TYPE_CODE] = {SHAPE_TEXT, 0},         [BSON_TYPE_SYMBOL] = {SHAPE_TEXT, 0},     [BSON_TYPE_CODEWSCOPE] = {SHAPE_SCOPE, 0},
    [BSON_TYPE_INT32] = {SHAPE_FIXED, 4},       [BSON_TYPE_TIMESTAMP] = {SHAPE_FIXED, 8}, [BSON_TYPE_INT64] = {SHAPE_FIXED, 8},
    [BSON_TYPE_DECIMAL128] = {SHAPE_FIXED, 16}, [BSON_TYPE_MAXKEY] = {SHAPE_FIXED, 0},    [BSON_TYPE_MINKEY] = {SHAPE_FIXED, 0},
};

/* The size of a value with a length prefix: the prefix's number plus `overhead`; 0 if that exceeds `room` or the number is below
 * `least`. */
static size_t prefixed(const char *p, size_t room, size_t overhead, int32_t least) {
    if (room < 4) {
        return 0;
    }
    int32_t n = doc_load_i32(p);
    return n >= least && (size_t)n <= room && (size_t)n + overhead <= room ? (size_t)n + overhead : 0;
}

static inline size_t text_size(const char *p, size_t room) {
    if (room < 5) {
        return 0;
    }
    uint32_t n = (uint32_t)doc_load_i32(p);
    return n - 1 < room - 4 && p[4 + n - 1] == 0 ? 4 + (size_t)n : 0; /* checks 0 < n <= room - 4 by one comparison */
}

static size_t regex_size(const char *p, size_t room) {
    const char *pattern_end = memchr(p, 0, room);
    if (!pattern_end) {
        return 0;
    }
    size_t pattern = (size_t)(pattern_end - p) + 1;
    const char *options_end = memchr(p + pattern, 0, room - pattern);
    return options_end ? (size_t)(options_end - p) + 1 : 0;
}

static size_t variable_size(shape kind, size_t extra, const char *p, size_t room) {
    size_t n = 0;
    switch (kind) {
    case SHAPE_CONTAINER:
        n = prefixed(p, room, 0, 5);
        return n && p[n - 1] == 0 ? n : 0;
    case SHAPE_BINARY:
        return prefixed(p, room, 5, 0);
    case SHAPE_REGEX:
        return regex_size(p, room);
    case SHAPE_POINTER:
        n = text_size(p, room);
        return n && room - n >= extra ? n + extra : 0;
    case SHAPE_SCOPE:
        return prefixed(p, room, 0, 4 + 5 + 5);
    default:
        return 0;
    }
}

bool doc_walk_init(doc_walk *w, slice bson) {
    size_t n = bson.n < 5 ? 0 : prefixed(bson.p, bson.n, 0, 5);
    if (n == 0 || bson.p[n - 1] != 0) {
        *w = (doc_walk){.corrupt = true};
        return false;
    }
    *w = (doc_walk){.at = bson.p + 4, .end = bson.p + n - 1};
    return true;
}

static bool stop(doc_walk *w) {
    w->corrupt = true;
    w->at = w->end;
    return false;
}

static inline bool step(doc_walk *w, doc_element *e) {
    if (w->at == w->end) {
        return false;
    }
    uint8_t type = (uint8_t)*w->at;
    const char *key = w->at + 1;
    const char *key_end = scan_zero(key, w->end); /* the document's closing zero byte cannot end a key */
    if (key_end == w->end) {
        return stop(w);
    }
    const char *value = key_end + 1;
    size_t room = (size_t)(w->end - value);
    size_t n = shapes[type].bytes;
    if (shapes[type].shape == SHAPE_FIXED) {
        if (n > room) {
            return stop(w);
        }
    } else {
        n = shapes[type].shape == SHAPE_TEXT ? text_size(value, room) : variable_size((shape)shapes[type].shape, n, value, room);
        if (n == 0) {
            return stop(w);
        }
    }
    e->type = (bson_type_t)type;
    e->key = slice_of(key, (size_t)(key_end - key));
    e->value = slice_of(value, n);
    w->at = value + n;
    return true;
}

bool doc_walk_next(doc_walk *w, doc_element *e) {
    return step(w, e);
}

bool doc_find_member_counted(slice bson, slice key, doc_element *e, uint64_t *passed) {
    doc_walk w;
    if (!doc_walk_init(&w, bson)) {
        return false;
    }
    for (; step(&w, e); ++*passed) {
        if (e->key.n == key.n && (key.n == 0 || (*e->key.p == *key.p && memcmp(e->key.p, key.p, key.n) == 0))) {
            return true;
        }
    }
    return false;
}

bool doc_is_well_formed(slice bson, unsigned depth_max) {
    doc_walk w;
    doc_element e;
    bool good = doc_walk_init(&w, bson) && (size_t)doc_load_i32(bson.p) == bson.n;
    while (good && doc_walk_next(&w, &e)) {
        good = !doc_is_container(e.type) || (depth_max > 0 && doc_is_well_formed(e.value, depth_max - 1));
    }
    return good && !w.corrupt;
}

/* Most texts are ASCII, which eight bytes at a time show. */
static inline bool is_ascii(slice text) {
    const char *p = text.p;
    size_t n = text.n;
    uint64_t bits = 0, word;
    for (; n > sizeof word; p += sizeof word, n -= sizeof word) {
        memcpy(&word, p, sizeof word);
        bits |= word;
    }
    if (text.n >= sizeof word) { /* the last eight, some of them for the second time */
        memcpy(&word, text.p + text.n - sizeof word, sizeof word);
        return !((bits | word) & 0x8080808080808080u);
    }
    for (size_t i = 0; i < n; i++) {
        bits |= (unsigned char)p[i];
    }
    return !(bits & 0x80);
}

static bool is_utf8(slice text) {
    return is_ascii(text) || bson_utf8_validate(text.p, text.n, true);
}

/* int32 length · a text · a document, the scope. The walk has checked the outer length only. */
static bool is_scoped_code_utf8(slice value) {
    uint32_t n = (uint32_t)doc_load_i32(value.p + 4);
    return n >= 1 && n <= value.n - 8 - 5 && is_utf8(slice_of(value.p + 8, n - 1));
}

/* A regular expression is two strings that end with a zero byte. */
static bool is_value_utf8(const doc_element *e) {
    switch (e->type) {
    case BSON_TYPE_UTF8:
    case BSON_TYPE_CODE:
    case BSON_TYPE_SYMBOL:
        return is_utf8(doc_element_text(e));
    case BSON_TYPE_REGEX:
        return is_utf8(e->value);
    case BSON_TYPE_DBPOINTER:
        return is_utf8(slice_of(e->value.p + 4, (size_t)doc_load_i32(e->value.p) - 1));
    case BSON_TYPE_CODEWSCOPE:
        return is_scoped_code_utf8(e->value);
    default:
        return true;
    }
}

static bool is_sound(const doc_element *e, unsigned depth_max) {
    return is_utf8(e->key) && (doc_is_container(e->type) ? depth_max > 0 && doc_is_sound(e->value, depth_max - 1) : is_value_utf8(e));
}

bool doc_is_sound(slice bson, unsigned depth_max) {
    size_t unused;
    return doc_is_sound_listed(bson, depth_max, NULL, 0, &unused);
}

bool doc_is_sound_listed(slice bson, unsigned depth_max, doc_element *list, size_t room, size_t *n_out) {
    doc_walk w;
    doc_element e;
    size_t n = 0;
    bool good = doc_walk_init(&w, bson) && (size_t)doc_load_i32(bson.p) == bson.n;
    for (; good && step(&w, &e); n++) {
        good = is_sound(&e, depth_max);
        if (n < room) {
            list[n] = e;
        }
    }
    *n_out = n;
    return good && !w.corrupt;
}
