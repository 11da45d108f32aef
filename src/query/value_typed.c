/* value_typed.c — values of non-JSON types from Extended JSON: {"$oid":"…"} in a query's text or parameters means an ObjectId.
 *
 * Only what doc/json_extended.c writes is accepted: the value made is converted back, and must equal the object. DBPointers and code with
 * scope are not supported. */
#include <inttypes.h>

#include "base/base64.h"
#include "doc/path.h"
#include "query/calendar.h"
#include "query/value.h"

typedef struct maker {
    arena *arena;
    doc_element first; /* the object's first member */
    buf value;
} maker;

static bool text_of(const doc_element *e, slice *text_out) {
    *text_out = e->type == BSON_TYPE_UTF8 ? doc_element_text(e) : SLICE_EMPTY;
    return e->type == BSON_TYPE_UTF8;
}

/* A member of the first member's document. */
static bool inner(const maker *m, const char *name, doc_element *e) {
    return m->first.type == BSON_TYPE_DOCUMENT && doc_find_member(m->first.value, slice_str(name), e);
}

static bool inner_text(const maker *m, const char *name, slice *text_out) {
    doc_element e;
    return inner(m, name, &e) && text_of(&e, text_out);
}

static bool inner_u32(const maker *m, const char *name, uint32_t *number_out) {
    doc_element e;
    int64_t number = -1;
    if (inner(m, name, &e) && (e.type == BSON_TYPE_INT32 || e.type == BSON_TYPE_INT64)) {
        number = e.type == BSON_TYPE_INT32 ? doc_load_i32(e.value.p) : doc_load_i64(e.value.p);
    }
    *number_out = (uint32_t)number;
    return number >= 0 && number <= UINT32_MAX;
}

static void add_i32(buf *out, int32_t number) {
    char bytes[4];
    doc_store_i32(bytes, number);
    buf_add(out, bytes, sizeof bytes);
}

static void add_i64(buf *out, int64_t number) {
    char bytes[8];
    doc_store_i64(bytes, number);
    buf_add(out, bytes, sizeof bytes);
}

static int digit(char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool add_hex(buf *out, slice text) {
    for (size_t i = 0; i + 1 < text.n; i += 2) {
        int high = digit(text.p[i]), low = digit(text.p[i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        buf_add_byte(out, (char)(high << 4 | low));
    }
    return text.n % 2 == 0;
}

/* ---- one function for each type ---- */

static bool make_oid(maker *m) {
    slice text;
    return text_of(&m->first, &text) && text.n == 24 && add_hex(&m->value, text);
}

static bool make_date(maker *m) {
    slice text;
    calendar_ticks ticks;
    int64_t ms;
    if (text_of(&m->first, &text)) {
        if (!calendar_parse(text, &ticks)) {
            return false;
        }
        ms = ticks / (CALENDAR_TICKS_PER_SECOND / 1000);
    } else if (!inner_text(m, "$numberLong", &text) || !slice_to_i64(text, &ms)) {
        return false;
    }
    add_i64(&m->value, ms);
    return true;
}

static bool make_decimal(maker *m) {
    slice text;
    bson_decimal128_t decimal;
    if (!text_of(&m->first, &text) || text.n >= BSON_DECIMAL128_STRING ||
        !bson_decimal128_from_string_w_len(text.p, (int)text.n, &decimal)) {
        return false;
    }
    add_i64(&m->value, (int64_t)decimal.low);
    add_i64(&m->value, (int64_t)decimal.high);
    return true;
}

static bool make_binary(maker *m) {
    slice text, subtype;
    if (!inner_text(m, "base64", &text) || !inner_text(m, "subType", &subtype) || subtype.n != 2) {
        return false;
    }
    add_i32(&m->value, 0);
    if (!add_hex(&m->value, subtype)) {
        return false;
    }
    bool deprecated = (unsigned char)m->value.p[4] == BSON_SUBTYPE_BINARY_DEPRECATED; /* has a second length */
    deprecated ? add_i32(&m->value, 0) : (void)0;
    size_t head = m->value.n;
    if (!base64_decode(&m->value, text)) {
        return false;
    }
    doc_store_i32(m->value.p, (int32_t)(m->value.n - 5));
    deprecated ? doc_store_i32(m->value.p + 5, (int32_t)(m->value.n - head)) : (void)0;
    return true;
}

static bool make_timestamp(maker *m) {
    uint32_t seconds, increment;
    if (!inner_u32(m, "t", &seconds) || !inner_u32(m, "i", &increment)) {
        return false;
    }
    add_i64(&m->value, (int64_t)((uint64_t)seconds << 32 | increment));
    return true;
}

static bool make_regex(maker *m) {
    slice pattern, options;
    if (!inner_text(m, "pattern", &pattern) || !inner_text(m, "options", &options) || memchr(pattern.p, 0, pattern.n) ||
        memchr(options.p, 0, options.n)) {
        return false;
    }
    buf_add_slice(&m->value, pattern);
    buf_add_byte(&m->value, 0);
    buf_add_slice(&m->value, options);
    buf_add_byte(&m->value, 0);
    return true;
}

static bool make_text(maker *m) {
    slice text;
    if (!text_of(&m->first, &text)) {
        return false;
    }
    buf_add_slice(&m->value, m->first.value);
    return true;
}

static bool make_nothing(maker *m) {
    (void)m;
    return true;
}

static const struct {
    slice name;
    bson_type_t type;
    bool (*make)(maker *m);
} makers[] = {
    {{"$oid", 4}, BSON_TYPE_OID, make_oid},
    {{"$date", 5}, BSON_TYPE_DATE_TIME, make_date},
    {{"$numberDecimal", 14}, BSON_TYPE_DECIMAL128, make_decimal},
    {{"$binary", 7}, BSON_TYPE_BINARY, make_binary},
    {{"$timestamp", 10}, BSON_TYPE_TIMESTAMP, make_timestamp},
    {{"$regularExpression", 18}, BSON_TYPE_REGEX, make_regex},
    {{"$code", 5}, BSON_TYPE_CODE, make_text},
    {{"$symbol", 7}, BSON_TYPE_SYMBOL, make_text},
    {{"$minKey", 7}, BSON_TYPE_MINKEY, make_nothing},
    {{"$maxKey", 7}, BSON_TYPE_MAXKEY, make_nothing},
};

/* ---- any object ---- */

static bool first_member(const query_value *v, doc_element *first_out) {
    doc_walk w;
    return v->type == TYPE_OBJECT && !v->extended && !v->item && doc_walk_init(&w, v->bytes) && doc_walk_next(&w, first_out);
}

bool value_may_be_typed(const query_value *v) {
    doc_element first;
    return first_member(v, &first) && first.key.n && first.key.p[0] == '$';
}

/* Takes the value that was made, if it converts back to the object. */
static bool made_of(maker *m, bson_type_t type, const query_value *object, query_value *typed_out) {
    *typed_out = (query_value){.type = TYPE_OBJECT, .extended = (uint8_t)type, .bytes = arena_copy(m->arena, buf_view(&m->value))};
    return value_equal(typed_out, object);
}

bool value_typed(arena *a, const query_value *v, query_value *typed_out) {
    maker m = {.arena = a, .value = buf_init(VALUE_BYTES_MAX)};
    bool made = false;
    if (v->type == TYPE_OBJECT && v->extended) {
        *typed_out = *v;
        return true;
    }
    if (!first_member(v, &m.first)) {
        return false;
    }
    for (size_t i = 0; i < sizeof makers / sizeof *makers && !made; i++) {
        made = slice_eq(m.first.key, makers[i].name) && makers[i].make(&m) && buf_ok(&m.value) && arena_fits(a, m.value.n) &&
               made_of(&m, makers[i].type, v, typed_out);
    }
    buf_free(&m.value);
    return made;
}
