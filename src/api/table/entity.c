/* Entities: keys, names, limits, and JSON to BSON. */
#include "api/table/entity.h"

#include "base/base64.h"
#include "doc/json.h"
#include "doc/path.h"

#define TYPE_SUFFIX "@odata.type"

static const slice partition_name = {"PartitionKey", 12}, row_name = {"RowKey", 6}, timestamp_name = {"Timestamp", 9};

slice entity_text(slice body, slice name) {
    doc_element e;
    return doc_find_member(body, name, &e) && e.type == BSON_TYPE_UTF8 ? doc_element_text(&e) : SLICE_EMPTY;
}

enum { WORD = sizeof(uint64_t), STRIDE = 8 * WORD };
#define TOPS 0x8080808080808080u

static uint64_t top_bits(const char *p) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word & TOPS;
}

static bool stride_is_ascii(const char *p) {
    uint64_t w[STRIDE / WORD];
    memcpy(w, p, sizeof w);
    return ((w[0] | w[1] | w[2] | w[3] | w[4] | w[5] | w[6] | w[7]) & TOPS) == 0;
}

/* How many of the next bytes are counted at once, since they are ASCII. */
static size_t plain_bytes(const char *p, size_t left) {
    return left >= STRIDE && stride_is_ascii(p) ? STRIDE : left >= WORD && top_bits(p) == 0 ? WORD : 0;
}

size_t entity_units(slice text) {
    size_t n = 0;
    for (size_t i = 0, plain; i < text.n; i += plain) {
        plain = plain_bytes(text.p + i, text.n - i);
        n += plain;
        if (plain == 0) {
            unsigned char c = (unsigned char)text.p[i];
            n += (c & 0xC0) != 0x80; /* not in the middle of a character */
            n += c >= 0xF0;          /* a surrogate pair */
            plain = 1;
        }
    }
    return n;
}

/* ---- keys and names ---- */

table_error entity_check_key(slice key) {
    if (entity_units(key) > ENTITY_KEY_MAX) {
        return TABLE_KEY_TOO_LARGE;
    }
    for (size_t i = 0; i < key.n; i++) {
        unsigned char c = (unsigned char)key.p[i];
        bool control = c < 0x20 || c == 0x7F || (c == 0xC2 && i + 1 < key.n && (unsigned char)key.p[i + 1] < 0xA0);
        if (control || c == '/' || c == '\\' || c == '#' || c == '?') {
            return TABLE_OUT_OF_RANGE;
        }
    }
    return TABLE_FINE;
}

/* An identifier of C#: letters, digits and underscores, not beginning with a digit. All of Unicode beyond ASCII counts as letters. */
table_error entity_check_name(slice name) {
    for (size_t i = 0; i < name.n; i++) {
        unsigned char c = (unsigned char)name.p[i];
        bool letter = (unsigned)((c | 0x20) - 'a') < 26u || c == '_' || (c >= 0x80 && c != 0xC0);
        if (!letter && !(i && c >= '0' && c <= '9')) {
            return TABLE_NAME_INVALID;
        }
    }
    return name.n == 0 ? TABLE_NAME_INVALID : entity_units(name) > ENTITY_NAME_MAX ? TABLE_NAME_TOO_LONG : TABLE_FINE;
}

/* ---- one property ---- */

typedef struct reader {
    op *op;
    slice source; /* BSON of the JSON text */
    bson_t *to;
    size_t properties;
} reader;

static slice joined(arena *a, slice name, slice suffix) {
    char *text = arena_alloc_aligned(a, name.n + suffix.n, 1);
    memcpy(text, name.p, name.n);
    memcpy(text + name.n, suffix.p, suffix.n);
    return slice_of(text, name.n + suffix.n);
}

static bool append_ticks(reader *r, slice name, int64_t ticks) {
    unsigned rest;
    int64_t ms = edm_ms_of(ticks, &rest);
    if (!bson_append_date_time(r->to, name.p, (int)name.n, ms)) {
        return false;
    }
    if (rest == 0) {
        return true;
    }
    slice beside = joined(r->op->arena, name, SLICE_LIT("@ticks"));
    return bson_append_int32(r->to, beside.p, (int)beside.n, (int32_t)rest);
}

static table_error read_binary(reader *r, slice name, slice text) {
    buf bytes = buf_init(ENTITY_LARGE_BYTES_MAX);
    table_error error = TABLE_FINE;
    if (!base64_decode(&bytes, text)) {
        error = TABLE_INVALID_INPUT;
    } else if (!bson_append_binary(r->to, name.p, (int)name.n, BSON_SUBTYPE_BINARY, (const uint8_t *)(bytes.n ? bytes.p : ""),
                                   (uint32_t)bytes.n)) {
        error = TABLE_ENTITY_TOO_LARGE;
    }
    buf_free(&bytes);
    return error;
}

static table_error read_string(reader *r, slice name, slice text) {
    return bson_append_utf8(r->to, name.p, (int)name.n, text.p, (int)text.n) ? TABLE_FINE : TABLE_ENTITY_TOO_LARGE;
}

/* A value that JSON writes as a string, whose annotation names its type. */
static table_error read_text_as(reader *r, slice name, slice text, edm_type type) {
    const char *key = name.p;
    int key_n = (int)name.n;
    char guid[EDM_GUID_BYTES];
    int64_t whole;
    double real;
    bool good = true;
    switch (type) {
    case EDM_STRING:
        return read_string(r, name, text);
    case EDM_BINARY:
        return read_binary(r, name, text);
    case EDM_INT32:
        good = slice_to_i64(text, &whole) && whole == (int32_t)whole && bson_append_int32(r->to, key, key_n, (int32_t)whole);
        break;
    case EDM_INT64:
        good = slice_to_i64(text, &whole) && bson_append_int64(r->to, key, key_n, whole);
        break;
    case EDM_DOUBLE:
        good = edm_double_parse(text, &real) && bson_append_double(r->to, key, key_n, real);
        break;
    case EDM_BOOLEAN:
        whole = slice_eq(text, SLICE_LIT("true"));
        good = (whole || slice_eq(text, SLICE_LIT("false"))) && bson_append_bool(r->to, key, key_n, whole);
        break;
    case EDM_DATE_TIME:
        if (!edm_time_parse(text, &whole)) {
            return TABLE_OUT_OF_RANGE;
        }
        good = append_ticks(r, name, whole);
        break;
    default:
        good =
            edm_guid_parse(text, guid) && bson_append_binary(r->to, key, key_n, BSON_SUBTYPE_UUID, (const uint8_t *)guid, EDM_GUID_BYTES);
    }
    return good ? TABLE_FINE : TABLE_INVALID_INPUT;
}

static table_error read_number_as(reader *r, slice name, const doc_element *e, edm_type type) {
    bool real = e->type == BSON_TYPE_DOUBLE;
    int64_t whole = e->type == BSON_TYPE_INT32 ? doc_load_i32(e->value.p) : real ? 0 : doc_load_i64(e->value.p);
    double value = real ? doc_load_double(e->value.p) : (double)whole;
    bool good = false;
    if (type == EDM_DOUBLE) {
        good = bson_append_double(r->to, name.p, (int)name.n, value);
    } else if (type == EDM_INT32 && !real && whole == (int32_t)whole) {
        good = bson_append_int32(r->to, name.p, (int)name.n, (int32_t)whole);
    } else if (type == EDM_INT64 && !real) {
        good = bson_append_int64(r->to, name.p, (int)name.n, whole);
    }
    return good ? TABLE_FINE : TABLE_INVALID_INPUT;
}

/* The type of a value without an annotation. A whole number that is no Int32 is a Double. */
static edm_type plain_type(const doc_element *e) {
    return e->type == BSON_TYPE_INT32  ? EDM_INT32
           : e->type == BSON_TYPE_UTF8 ? EDM_STRING
           : e->type == BSON_TYPE_BOOL ? EDM_BOOLEAN
                                       : EDM_DOUBLE;
}

/* The annotation usually lies next to the property: before it in what we write. */
static table_error find_type(const reader *r, const doc_element *before, const doc_element *e, edm_type *type_out) {
    doc_element annotation = *before;
    slice suffix = SLICE_LIT(TYPE_SUFFIX);
    *type_out = plain_type(e);
    bool beside =
        before->key.n == e->key.n + suffix.n && slice_starts(before->key, e->key) && slice_eq(slice_skip(before->key, e->key.n), suffix);
    if (!beside) {
        slice name = joined(r->op->arena, e->key, suffix);
        if (!doc_find_member(r->source, name, &annotation)) {
            return TABLE_FINE;
        }
    }
    return annotation.type == BSON_TYPE_UTF8 && edm_type_parse(doc_element_text(&annotation), type_out) ? TABLE_FINE : TABLE_INVALID_INPUT;
}

static table_error read_value(reader *r, const doc_element *e, edm_type type) {
    switch (e->type) {
    case BSON_TYPE_UTF8:
        return read_text_as(r, e->key, doc_element_text(e), type);
    case BSON_TYPE_BOOL:
        if (type != EDM_BOOLEAN) {
            return TABLE_INVALID_INPUT;
        }
        return bson_append_bool(r->to, e->key.p, (int)e->key.n, e->value.p[0]) ? TABLE_FINE : TABLE_ENTITY_TOO_LARGE;
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
    case BSON_TYPE_DOUBLE:
        return read_number_as(r, e->key, e, type);
    default: /* an object or an array */
        return TABLE_INVALID_INPUT;
    }
}

/* ---- the whole entity ---- */

bool entity_is_system(slice name) {
    return slice_eq(name, partition_name) || slice_eq(name, row_name) || slice_eq(name, timestamp_name);
}

static bool is_annotation(slice name) {
    return slice_starts(name, SLICE_LIT("odata.")) || (name.n && memchr(name.p, '@', name.n));
}

static table_error read_properties(reader *r) {
    doc_walk w;
    doc_element e, before = {0};
    for (doc_walk_init(&w, r->source); doc_walk_next(&w, &e); before = e) {
        edm_type type;
        if (entity_is_system(e.key) || is_annotation(e.key)) {
            continue;
        }
        TABLE_TRY(entity_check_name(e.key));
        if (e.type == BSON_TYPE_NULL) { /* a null means that the property is not there */
            continue;
        }
        if (++r->properties > ENTITY_PROPERTIES_MAX) {
            return TABLE_TOO_MANY_PROPERTIES;
        }
        TABLE_TRY(find_type(r, &before, &e, &type));
        TABLE_TRY(read_value(r, &e, type));
    }
    return TABLE_FINE;
}

static table_error read_key(slice source, slice name, slice given, slice *key_out) {
    doc_element e;
    bool there = doc_find_member(source, name, &e) && e.type != BSON_TYPE_NULL;
    if (there && e.type != BSON_TYPE_UTF8) {
        return TABLE_INVALID_INPUT;
    }
    *key_out = given.p ? given : there ? doc_element_text(&e) : SLICE_EMPTY;
    return key_out->p ? entity_check_key(*key_out) : TABLE_NO_VALUES;
}

static table_error read_body(reader *r, const entity_ask *ask, entity *out) {
    TABLE_TRY(read_key(r->source, partition_name, ask->partition, &out->partition));
    TABLE_TRY(read_key(r->source, row_name, ask->row, &out->row));
    bson_append_utf8(r->to, partition_name.p, (int)partition_name.n, out->partition.p, (int)out->partition.n);
    bson_append_utf8(r->to, row_name.p, (int)row_name.n, out->row.p, (int)out->row.n);
    bson_append_date_time(r->to, timestamp_name.p, (int)timestamp_name.n, ask->now_ms);
    TABLE_TRY(read_properties(r));
    slice body = slice_of(bson_get_data(r->to), r->to->len);
    TABLE_TRY(entity_check_size(body, true));
    if (!arena_fits(r->op->arena, body.n)) {
        return TABLE_ENTITY_TOO_LARGE;
    }
    out->body = arena_copy(r->op->arena, body);
    out->partition = entity_text(out->body, partition_name);
    out->row = entity_text(out->body, row_name);
    return TABLE_FINE;
}

table_error entity_read(op *o, const entity_ask *ask, entity *out) {
    enum { DEPTH_MAX = 8, MEMBERS_BYTES_MAX = 16 * 1024 * 1024 };
    json_options options = {.depth_max = DEPTH_MAX};
    json_error why = {0};
    json_root root;
    buf source = buf_init_counted(MEMBERS_BYTES_MAX, o->budget);
    bson_t to = BSON_INITIALIZER;
    *out = (entity){0};
    table_error error = TABLE_INVALID_INPUT;
    err code = json_to_bson(ask->json, &options, &source, &root, &why);
    if (code != OK || root != JSON_OBJECT) {
        op_fail(o, E_BAD_REQUEST, "The body must be one JSON object (%s at byte %zu).", why.reason ? why.reason : "not an object",
                why.offset);
    } else {
        reader r = {.op = o, .source = buf_view(&source), .to = &to};
        error = read_body(&r, ask, out);
    }
    bson_destroy(&to);
    buf_free(&source);
    return error;
}

/* ---- size ---- */

static size_t size_of_value(const doc_element *e) {
    enum { BINARY_HEAD = 5 };
    switch (e->type) {
    case BSON_TYPE_UTF8:
        return entity_units(doc_element_text(e)) * 2 + 4;
    case BSON_TYPE_BINARY:
        return e->value.n - BINARY_HEAD + 4;
    default:
        return e->value.n;
    }
}

static size_t size_of(const doc_element *e) {
    bool key = slice_eq(e->key, partition_name) || slice_eq(e->key, row_name);
    return key ? entity_units(doc_element_text(e)) * 2 : 8 + entity_units(e->key) * 2 + size_of_value(e);
}

/* 4 bytes, the keys, and for each property 8 bytes, its name and its value; texts count two bytes for a UTF-16 unit. */
static size_t measure(slice body, bool only_count, size_t *properties_out) {
    doc_walk w;
    doc_element e;
    size_t size = 4;
    *properties_out = 0;
    for (doc_walk_init(&w, body); doc_walk_next(&w, &e);) {
        if (!edm_is_ticks(e.key)) {
            size += only_count ? 0 : size_of(&e);
            *properties_out += !entity_is_system(e.key);
        }
    }
    return size;
}

size_t entity_size(slice body, size_t *properties_out) {
    return measure(body, false, properties_out);
}

/* Most entities are so small that their texts need not be counted. */
table_error entity_check_size(slice body, bool large) {
    size_t properties, most = large ? ENTITY_LARGE_BYTES_MAX : ENTITY_BYTES_MAX;
    size_t size = measure(body, body.n <= most / ENTITY_SIZE_PER_BYTE, &properties);
    return properties > ENTITY_PROPERTIES_MAX ? TABLE_TOO_MANY_PROPERTIES : size > most ? TABLE_ENTITY_TOO_LARGE : TABLE_FINE;
}

static bool is_too_large(const doc_element *e) {
    bool text = e->type == BSON_TYPE_UTF8, bytes = e->type == BSON_TYPE_BINARY;
    return (text || bytes) && e->value.n > ENTITY_VALUE_MAX / ENTITY_SIZE_PER_BYTE && size_of_value(e) > ENTITY_VALUE_MAX + 4;
}

table_error entity_check_limits(slice body, bool large) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, body); !large && doc_walk_next(&w, &e);) {
        if (is_too_large(&e)) {
            return TABLE_VALUE_TOO_LARGE;
        }
    }
    return entity_check_size(body, large);
}
