#include "partition/partition_key.h"

#include <math.h>

#include "doc/json.h"

/* ---- JSON text ---- */

enum {
    SHOWN_MAX = 256,     /* bytes of a rejected header quoted in the error message */
    HEADER_DEPTH_MAX = 8 /* nesting of objects in a header; they mean undefined */
};

static err refuse(op *o, slice header) {
    int n = (int)(header.n < SHOWN_MAX ? header.n : SHOWN_MAX);
    return op_fail(o, E_BAD_REQUEST, "Partition key %.*s is invalid.", n, header.p ? header.p : "");
}

static pkey_value number_value(double number) {
    return (pkey_value){.type = PKEY_NUMBER, .number = number};
}

bool pkey_plain_value(const doc_element *e, pkey_value *value_out) {
    *value_out = (pkey_value){0};
    switch ((int)e->type) {
    case BSON_TYPE_NULL:
        value_out->type = PKEY_NULL;
        return true;
    case BSON_TYPE_BOOL:
        value_out->type = e->value.p[0] ? PKEY_TRUE : PKEY_FALSE;
        return true;
    case BSON_TYPE_INT32:
        *value_out = number_value(doc_load_i32(e->value.p));
        return true;
    case BSON_TYPE_INT64:
        *value_out = number_value((double)doc_load_i64(e->value.p));
        return true;
    case BSON_TYPE_DOUBLE:
        *value_out = number_value(doc_load_double(e->value.p));
        return !isnan(value_out->number);
    case BSON_TYPE_UTF8:
        *value_out = (pkey_value){.type = PKEY_STRING, .text = doc_element_text(e)};
        return true;
    case BSON_TYPE_DOCUMENT:
        value_out->type = PKEY_UNDEFINED;
        return true;
    default:
        return false;
    }
}

/* ---- typed values ---- */

static doc_element element_of(const pkey_value *typed) {
    return (doc_element){.type = (bson_type_t)typed->bson, .value = typed->text};
}

static bool plain_double(double number, pkey_value *plain_out) {
    *plain_out = number_value(number == 0 ? 0 : number); /* -0 is 0 */
    return !isnan(number);
}

static bool plain_integer(int64_t number, pkey_value *plain_out) {
    double nearest = (double)number;
    *plain_out = number_value(nearest);
    return nearest < 0x1p63 && (int64_t)nearest == number;
}

/* Spells the value and reads it back, which gives the narrowest type that represents it. */
static bool plain_decimal(const pkey_value *typed, pkey_value *plain_out) {
    char spelled_room[DOC_ORDER_NUMBER_BYTES], value_room[16];
    buf spelled = {.p = spelled_room, .cap = sizeof spelled_room, .max = sizeof spelled_room};
    buf value = {.p = value_room, .cap = sizeof value_room, .max = sizeof value_room};
    bson_type_t type = BSON_TYPE_EOD;
    size_t used;
    doc_element e = element_of(typed);
    doc_order_spell(&spelled, &e, false);
    bool read = buf_ok(&spelled) && doc_order_read(buf_view(&spelled), false, &value, &type, &used);
    pkey_value narrow = {.type = PKEY_TYPED, .bson = (uint8_t)type, .text = buf_view(&value)};
    return read && type != BSON_TYPE_DECIMAL128 && pkey_plain(&narrow, plain_out);
}

bool pkey_plain(const pkey_value *typed, pkey_value *plain_out) {
    doc_element e = element_of(typed);
    *plain_out = (pkey_value){0};
    switch (e.type) {
    case BSON_TYPE_UNDEFINED:
        return true;
    case BSON_TYPE_NULL:
        plain_out->type = PKEY_NULL;
        return true;
    case BSON_TYPE_BOOL:
        plain_out->type = e.value.p[0] ? PKEY_TRUE : PKEY_FALSE;
        return true;
    case BSON_TYPE_UTF8:
        *plain_out = (pkey_value){.type = PKEY_STRING, .text = doc_element_text(&e)};
        return true;
    case BSON_TYPE_INT32:
        return plain_integer(doc_load_i32(e.value.p), plain_out);
    case BSON_TYPE_INT64:
        return plain_integer(doc_load_i64(e.value.p), plain_out);
    case BSON_TYPE_DOUBLE:
        return plain_double(doc_load_double(e.value.p), plain_out);
    case BSON_TYPE_DECIMAL128:
        return plain_decimal(typed, plain_out);
    default:
        return false;
    }
}

static pkey_value make_typed(arena *a, const pkey_value *plain) {
    static const uint8_t types[] = {
        [PKEY_UNDEFINED] = BSON_TYPE_UNDEFINED, [PKEY_NULL] = BSON_TYPE_NULL,     [PKEY_FALSE] = BSON_TYPE_BOOL,
        [PKEY_TRUE] = BSON_TYPE_BOOL,           [PKEY_NUMBER] = BSON_TYPE_DOUBLE, [PKEY_STRING] = BSON_TYPE_UTF8};
    static const slice flags[] = {[PKEY_FALSE] = {"\0", 1}, [PKEY_TRUE] = {"\1", 1}};
    if (plain->type == PKEY_TYPED) {
        return *plain;
    }
    pkey_value typed = {.type = PKEY_TYPED, .bson = types[plain->type]};
    if (plain->type == PKEY_NUMBER) {
        uint64_t bits = 0;
        memcpy(&bits, &plain->number, sizeof bits);
        char *bytes = arena_alloc_aligned(a, sizeof bits, 1);
        doc_store_i64(bytes, (int64_t)bits);
        typed.text = slice_of(bytes, sizeof bits);
    } else if (plain->type == PKEY_STRING) {
        char *bytes = arena_alloc_aligned(a, plain->text.n + 5, 1);
        doc_store_i32(bytes, (int32_t)plain->text.n + 1);
        memcpy(bytes + 4, plain->text.p ? plain->text.p : "", plain->text.n);
        bytes[4 + plain->text.n] = 0;
        typed.text = slice_of(bytes, plain->text.n + 5);
    } else if (plain->type == PKEY_FALSE || plain->type == PKEY_TRUE) {
        typed.text = flags[plain->type];
    }
    return typed;
}

void pkey_make_typed(arena *a, const pkey *key, pkey *typed_out) {
    typed_out->n = key->n;
    for (size_t i = 0; i < key->n; i++) {
        typed_out->values[i] = make_typed(a, &key->values[i]);
    }
}

/* ---- JSON text, continued ---- */

static bool read_array(slice bson, pkey *key_out) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, bson); doc_walk_next(&w, &e);) {
        if (key_out->n == LIMIT_KEY_LEVELS || !pkey_plain_value(&e, &key_out->values[key_out->n++])) {
            return false;
        }
    }
    return true;
}

/* Fast path: nearly every header is one plain string, ["..."], which needs no JSON parser. */
static bool read_plain_string(slice header, pkey *key_out) {
    if (header.n < 4 || memcmp(header.p, "[\"", 2) != 0 || memcmp(header.p + header.n - 2, "\"]", 2) != 0) {
        return false;
    }
    slice text = slice_of(header.p + 2, header.n - 4);
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c < 0x20 || c > 0x7E || c == '"' || c == '\\') {
            return false;
        }
    }
    key_out->n = 1;
    key_out->values[0] = (pkey_value){.type = PKEY_STRING, .text = text};
    return true;
}

/* A key's BSON is longer than its text by a few bytes per component at most, so a buffer from the arena is enough. If it does not fit,
 * there are too many components. */
static bool read_json(arena *a, slice header, pkey *key_out) {
    size_t room = header.n + 128;
    buf bson = {.p = arena_alloc(a, room), .cap = room, .max = room};
    json_root root = JSON_OBJECT;
    json_options options = {.depth_max = HEADER_DEPTH_MAX};
    return json_to_bson(header, &options, &bson, &root, NULL) == OK && root == JSON_ARRAY && read_array(buf_view(&bson), key_out);
}

err pkey_parse(op *o, slice header, pkey *key_out) {
    key_out->n = 0;
    if (read_plain_string(header, key_out)) {
        return OK;
    }
    if (header.n > LIMIT_HEADER_BYTES || !read_json(o->arena, header, key_out)) {
        key_out->n = 0;
        return refuse(o, header);
    }
    return OK;
}

/* Reads one code point of UTF-8; each invalid byte becomes U+FFFD. */
static uint32_t next_code_point(slice text, size_t *at) {
    const unsigned char *p = (const unsigned char *)text.p + *at;
    size_t left = text.n - *at;
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    uint32_t c = n == 1 ? p[0] : p[0] & (0x7Fu >> n);
    if (n > left || (p[0] >= 0x80 && p[0] < 0xC2)) {
        *at += 1;
        return 0xFFFD;
    }
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80) {
            *at += 1;
            return 0xFFFD;
        }
        c = c << 6 | (p[i] & 0x3Fu);
    }
    *at += n;
    return c > 0x10FFFF ? 0xFFFD : c;
}

static void write_code_point(buf *out, uint32_t c) {
    if (c == '"' || c == '\\') {
        buf_add_byte(out, '\\');
        buf_add_byte(out, (char)c);
    } else if (c >= 0x20 && c < 0x7F) {
        buf_add_byte(out, (char)c);
    } else if (c < 0x10000) {
        buf_addf(out, "\\u%04x", c);
    } else {
        buf_addf(out, "\\u%04x\\u%04x", 0xD7C0 + (c >> 10), 0xDC00 + (c & 0x3FF));
    }
}

static void write_string(buf *out, slice text) {
    buf_add_byte(out, '"');
    for (size_t at = 0; at < text.n;) {
        write_code_point(out, next_code_point(text, &at));
    }
    buf_add_byte(out, '"');
}

/* Writes relaxed Extended JSON: makes an array of the one value, writes that and drops the brackets. Characters that are not ASCII, which
 * occur only in strings, are escaped. */
static void write_typed(buf *out, const pkey_value *value) {
    buf bson = buf_init(BUF_NO_LIMIT), json = buf_init(BUF_NO_LIMIT);
    char length[4];
    doc_store_i32(length, (int32_t)(sizeof length + 3 + value->text.n + 1));
    buf_add(&bson, length, sizeof length);
    buf_add_byte(&bson, (char)value->bson);
    buf_add(&bson, "0", 2);
    buf_add_slice(&bson, value->text);
    buf_add_byte(&bson, 0);
    json_from_bson_array(&json, buf_view(&bson));
    slice text = json.n > 2 ? slice_of(json.p + 1, json.n - 2) : SLICE_LIT("null");
    for (size_t at = 0; at < text.n;) {
        if ((unsigned char)text.p[at] < 0x80) {
            buf_add_byte(out, text.p[at++]);
        } else {
            write_code_point(out, next_code_point(text, &at));
        }
    }
    buf_free(&json);
    buf_free(&bson);
}

static void write_value(buf *out, const pkey_value *value) {
    static const char *const words[] = {[PKEY_UNDEFINED] = "{}", [PKEY_NULL] = "null", [PKEY_FALSE] = "false", [PKEY_TRUE] = "true"};
    pkey_value plain;
    if (value->type == PKEY_TYPED && pkey_plain(value, &plain)) {
        write_value(out, &plain);
    } else if (value->type == PKEY_TYPED) {
        write_typed(out, value);
    } else if (value->type == PKEY_NUMBER && value->number == 0 && signbit(value->number)) {
        buf_add_lit(out, "-0.0"); /* JavaScript writes 0, which is a different key */
    } else if (value->type == PKEY_NUMBER) {
        json_add_double(out, value->number);
    } else if (value->type == PKEY_STRING) {
        write_string(out, value->text);
    } else {
        buf_add_slice(out, slice_str(words[value->type]));
    }
}

void pkey_write(buf *out, const pkey *key) {
    buf_add_byte(out, '[');
    for (size_t i = 0; i < key->n; i++) {
        if (i) {
            buf_add_byte(out, ',');
        }
        write_value(out, &key->values[i]);
    }
    buf_add_byte(out, ']');
}

/* ---- documents ---- */

static err refuse_component(op *o, const doc_path *path) {
    int n = (int)(path->text.n < SHOWN_MAX ? path->text.n : SHOWN_MAX);
    return op_fail(o, E_BAD_REQUEST,
                   "Unsupported PartitionKey value component '%.*s'. Numeric, string, bool, null, Undefined are the only supported types.",
                   n, path->text.p);
}

static err extract_typed(op *o, slice document, const pkey_definition *definition, pkey *key_out) {
    static const doc_element nothing = {.type = BSON_TYPE_UNDEFINED};
    for (size_t i = 0; i < definition->n; i++) {
        doc_element e;
        bool there = doc_find_element(document, &definition->paths[i], &e);
        if (there && e.type == BSON_TYPE_ARRAY) {
            key_out->n = 0;
            return op_fail(o, E_BAD_REQUEST, "The value at '%.*s' is an array, which cannot be a partition key.",
                           slice_shown(definition->paths[i].text), definition->paths[i].text.p);
        }
        key_out->values[i] = pkey_typed_value(there ? &e : &nothing);
    }
    return OK;
}

err pkey_extract(op *o, slice document, const pkey_definition *definition, pkey *key_out) {
    key_out->n = definition->n;
    if (definition->typed) {
        return extract_typed(o, document, definition, key_out);
    }
    for (size_t i = 0; i < definition->n; i++) {
        doc_element e;
        if (!doc_find_element(document, &definition->paths[i], &e)) {
            key_out->values[i] = (pkey_value){.type = PKEY_UNDEFINED};
        } else if (!pkey_plain_value(&e, &key_out->values[i])) {
            key_out->n = 0;
            return refuse_component(o, &definition->paths[i]);
        }
    }
    return OK;
}

/* ---- rules ---- */

static err check_typed_size(op *o, const pkey *key) {
    char room[LIMIT_TYPED_KEY_BYTES];
    buf encoded = {.p = room, .cap = sizeof room, .max = sizeof room};
    pkey_encode(&encoded, key);
    return buf_ok(&encoded)
               ? OK
               : op_fail(o, E_BAD_REQUEST, "The partition key is longer than %d bytes, or nested too deeply. Choose a shorter one.",
                         LIMIT_TYPED_KEY_BYTES);
}

err pkey_check_size(op *o, const pkey *key) {
    if (key->n && key->values[0].type == PKEY_TYPED) {
        return check_typed_size(o, key);
    }
    for (size_t i = 0; i < key->n; i++) {
        if (key->values[i].type == PKEY_STRING && key->values[i].text.n > LIMIT_KEY_BYTES) {
            return op_fail(o, E_BAD_REQUEST, "Partition key value must be at most %d bytes long; this one has %zu.", LIMIT_KEY_BYTES,
                           key->values[i].text.n);
        }
    }
    return OK;
}

err pkey_check_whole(op *o, const pkey_definition *definition, const pkey *key) {
    if (key->n == definition->n) {
        return OK;
    }
    if (key->n < definition->n) {
        o->detail_n = 0; /* use the default message of E_KEY_COMPONENTS, which is the service's */
        return E_KEY_COMPONENTS;
    }
    return op_fail(o, E_KEY_COMPONENTS, "PartitionKey has more components than defined the collection resource.");
}

static uint64_t bits_of(double number) {
    uint64_t bits = 0;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static bool value_equal(const pkey_value *a, const pkey_value *b);

static bool typed_equal(const pkey_value *a, const pkey_value *b) {
    pkey_value plain;
    if (a->type == PKEY_TYPED && b->type == PKEY_TYPED) {
        doc_element x = element_of(a), y = element_of(b);
        return doc_order_compare(&x, &y) == 0;
    }
    return a->type == PKEY_TYPED ? pkey_plain(a, &plain) && value_equal(&plain, b) : pkey_plain(b, &plain) && value_equal(a, &plain);
}

static bool value_equal(const pkey_value *a, const pkey_value *b) {
    if (a->type == PKEY_TYPED || b->type == PKEY_TYPED) {
        return typed_equal(a, b);
    }
    if (a->type != b->type) {
        return false;
    }
    return a->type == PKEY_NUMBER ? bits_of(a->number) == bits_of(b->number) : a->type == PKEY_STRING ? slice_eq(a->text, b->text) : true;
}

bool pkey_starts(const pkey *key, const pkey *prefix) {
    if (key->n < prefix->n) {
        return false;
    }
    for (size_t i = 0; i < prefix->n; i++) {
        if (!value_equal(&key->values[i], &prefix->values[i])) {
            return false;
        }
    }
    return true;
}

bool pkey_equal(const pkey *a, const pkey *b) {
    return a->n == b->n && pkey_starts(a, b);
}

/* ---- order-preserving bytes ---- */

static const uint64_t sign_bit = (uint64_t)1 << 63;

static void encode_text(buf *out, slice text) {
    while (text.n) {
        const char *zero = memchr(text.p, 0, text.n);
        size_t n = zero ? (size_t)(zero - text.p) : text.n;
        buf_add(out, text.p, n);
        if (zero) {
            buf_add(out, "\0\xFF", 2);
            n++;
        }
        text = slice_skip(text, n);
    }
    buf_add(out, "\0\0", 2);
}

static void encode_value(buf *out, const pkey_value *value) {
    buf_add_byte(out, (char)value->type);
    if (value->type == PKEY_NUMBER) {
        uint64_t bits = bits_of(value->number);
        buf_add_be64(out, bits & sign_bit ? ~bits : bits ^ sign_bit);
    } else if (value->type == PKEY_STRING) {
        encode_text(out, value->text);
    } else if (value->type == PKEY_TYPED) {
        doc_element e = element_of(value);
        doc_order_spell(out, &e, false);
    }
}

void pkey_encode(buf *out, const pkey *key) {
    for (size_t i = 0; i < key->n; i++) {
        encode_value(out, &key->values[i]);
    }
}

/* Nearly every key is one text without zero bytes. */
slice pkey_encoded(arena *a, const pkey *key) {
    slice text = key->n == 1 && key->values[0].type == PKEY_STRING ? key->values[0].text : SLICE_EMPTY;
    if (text.n && !memchr(text.p, 0, text.n)) {
        char *p = arena_alloc(a, text.n + 3);
        p[0] = (char)PKEY_STRING;
        memcpy(p + 1, text.p, text.n);
        memset(p + 1 + text.n, 0, 2);
        return slice_of(p, text.n + 3);
    }
    buf bytes = buf_init(LIMIT_KEY_BYTES * 3);
    pkey_encode(&bytes, key);
    slice whole = arena_copy(a, buf_view(&bytes));
    buf_free(&bytes);
    return whole;
}

static bool decode_number(slice *bytes, pkey_value *value_out) {
    if (bytes->n < 8) {
        return false;
    }
    uint64_t bits = 0;
    for (size_t i = 0; i < 8; i++) {
        bits = bits << 8 | (unsigned char)bytes->p[i];
    }
    bits = bits & sign_bit ? bits ^ sign_bit : ~bits;
    memcpy(&value_out->number, &bits, sizeof bits);
    *bytes = slice_skip(*bytes, 8);
    return !isnan(value_out->number);
}

/* Finds the terminating 00 00. `n_out`: bytes before it; `zero_bytes_out`: escaped zero bytes among them. */
static bool find_text_end(slice bytes, size_t *n_out, size_t *zero_bytes_out) {
    size_t at = 0;
    *zero_bytes_out = 0;
    for (;;) {
        const char *zero = at < bytes.n ? memchr(bytes.p + at, 0, bytes.n - at) : NULL;
        if (!zero || zero + 1 == bytes.p + bytes.n) {
            return false;
        }
        at = (size_t)(zero - bytes.p);
        if (zero[1] == 0) {
            *n_out = at;
            return true;
        }
        if (zero[1] != '\xFF') {
            return false;
        }
        *zero_bytes_out += 1;
        at += 2;
    }
}

static bool decode_text(arena *a, slice *bytes, pkey_value *value_out) {
    size_t n = 0;
    size_t zero_bytes = 0;
    if (!find_text_end(*bytes, &n, &zero_bytes)) {
        return false;
    }
    char *text = arena_alloc_aligned(a, n + 1, 1);
    size_t to = 0;
    for (size_t from = 0; from < n; from += bytes->p[from] ? 1 : 2) {
        text[to++] = bytes->p[from];
    }
    value_out->text = slice_of(text, n - zero_bytes);
    *bytes = slice_skip(*bytes, n + 2);
    return true;
}

static bool decode_typed(arena *a, slice *bytes, pkey_value *value_out) {
    buf value = buf_init(BUF_NO_LIMIT);
    bson_type_t type = BSON_TYPE_EOD;
    size_t used = 0;
    bool read = doc_order_read(*bytes, false, &value, &type, &used);
    value_out->bson = (uint8_t)type;
    value_out->text = arena_copy(a, buf_view(&value));
    buf_free(&value);
    *bytes = slice_skip(*bytes, used);
    return read;
}

static bool decode_value(arena *a, slice *bytes, pkey_value *value_out) {
    if (bytes->n == 0) {
        return false;
    }
    *value_out = (pkey_value){.type = (pkey_type)(unsigned char)bytes->p[0]};
    *bytes = slice_skip(*bytes, 1);
    switch (value_out->type) {
    case PKEY_UNDEFINED:
    case PKEY_NULL:
    case PKEY_FALSE:
    case PKEY_TRUE:
        return true;
    case PKEY_NUMBER:
        return decode_number(bytes, value_out);
    case PKEY_STRING:
        return decode_text(a, bytes, value_out);
    case PKEY_TYPED:
        return decode_typed(a, bytes, value_out);
    default:
        return false;
    }
}

bool pkey_decode(arena *a, slice bytes, size_t n, pkey *key_out, size_t *used_out) {
    slice left = bytes;
    *key_out = (pkey){.n = n};
    *used_out = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == LIMIT_KEY_COMPONENTS || !decode_value(a, &left, &key_out->values[i])) {
            *key_out = (pkey){0};
            return false;
        }
    }
    *used_out = bytes.n - left.n;
    return true;
}
