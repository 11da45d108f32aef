#include "api/sql/batch_rows.h"

#include <bson/bson.h>

#include "base/crc32.h"
#include "doc/json_binary.h"
#include "doc/walk.h"

enum { VERSION = 0x81, SEGMENT = 0x7FFFD8F0, RECORD = 0x7FFFD8F1, OPERATION = 2145473648, RESULT = 2145473649 };
enum { ROW_HEAD = 5, RECORD_HEAD = ROW_HEAD + 8, SEGMENT_BYTES = ROW_HEAD + 5 };
enum {
    TYPE_NULL = 1,
    TYPE_FALSE = 2,
    TYPE_TRUE = 3,
    TYPE_INT32 = 7,
    TYPE_UINT32 = 11,
    TYPE_FLOAT64 = 16,
    TYPE_UTF8 = 20,
    TYPE_BINARY = 21
};

/* ---- reading ---- */

typedef struct reader {
    slice rest;
    const char *bad; /* the reason, or NULL */
} reader;

static slice take(reader *r, uint64_t n) {
    slice part = slice_of(r->rest.p, n <= r->rest.n ? n : 0);
    if (n > r->rest.n) {
        r->bad = "a HybridRow ends too early";
        r->rest.n = 0;
        return SLICE_EMPTY;
    }
    r->rest = slice_skip(r->rest, n);
    return part;
}

static uint32_t take_u32(reader *r) {
    slice bytes = take(r, 4);
    return bytes.n ? (uint32_t)doc_load_i32(bytes.p) : 0;
}

static unsigned take_byte(reader *r) {
    slice byte = take(r, 1);
    return byte.n ? (unsigned char)byte.p[0] : 0;
}

static uint64_t take_number(reader *r) {
    uint64_t number = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
        unsigned byte = take_byte(r);
        number |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            return number;
        }
    }
    r->bad = "a length in a HybridRow is too long";
    return 0;
}

static slice take_bytes(reader *r) {
    return take(r, take_number(r));
}

static void expect_schema(reader *r, uint32_t schema) {
    unsigned version = take_byte(r);
    if (take_u32(r) != schema || version != VERSION) {
        r->bad = r->bad ? r->bad : "a HybridRow has another version or schema";
    }
}

/* The properties of an operation, in the order of the schema: two fixed, five variable, the others sparse. */
enum {
    P_OPERATION = 1,
    P_RESOURCE,
    P_KEY,
    P_EPK,
    P_ID,
    P_BINARY_ID,
    P_BODY,
    P_DIRECTIVE,
    P_IF_MATCH,
    P_IF_NONE_MATCH,
    P_TTL,
    P_MINIMAL,
    P_END
};

typedef struct operation {
    unsigned kind;
    bool minimal;
    slice text[P_END];
} operation;

/* A name that the schema does not have follows as text, and its number says how long it is. */
static unsigned take_name(reader *r) {
    uint64_t token = take_number(r);
    if (token >= P_END) {
        take(r, token - P_END);
        return 0;
    }
    return (unsigned)token;
}

static void read_sparse(reader *r, operation *o) {
    unsigned type = take_byte(r), name = take_name(r);
    if (type == TYPE_UTF8 || type == TYPE_BINARY) {
        slice value = take_bytes(r);
        o->text[name] = type == TYPE_UTF8 ? value : SLICE_EMPTY;
    } else if (type == TYPE_INT32 || type == TYPE_UINT32) {
        take(r, 4);
    } else if (type == TYPE_FLOAT64) {
        take(r, 8);
    } else if (type == TYPE_NULL || type == TYPE_FALSE || type == TYPE_TRUE) {
        o->minimal = name == P_MINIMAL ? type == TYPE_TRUE : o->minimal;
    } else {
        r->bad = r->bad ? r->bad : "a HybridRow has a field of an unexpected type";
    }
}

static void read_operation(reader *r, operation *o) {
    *o = (operation){0};
    expect_schema(r, OPERATION);
    unsigned present = take_byte(r);
    o->kind = take_u32(r);
    take_u32(r); /* the type of resource: items */
    for (unsigned name = P_KEY; name <= P_BODY; name++) {
        if (present & 1u << (name - 1)) {
            o->text[name] = take_bytes(r);
        }
    }
    while (r->rest.n && !r->bad) {
        read_sparse(r, o);
    }
}

/* ---- as BSON ---- */

static size_t begin_document(buf *out) {
    size_t at = out->n;
    buf_add(out, "\0\0\0\0", 4);
    return at;
}

static void end_document(buf *out, size_t at) {
    buf_add_byte(out, 0);
    if (buf_ok(out)) {
        doc_store_i32(out->p + at, (int32_t)(out->n - at));
    }
}

static void add_i32(buf *out, int32_t value) {
    char bytes[4];
    doc_store_i32(bytes, value);
    buf_add(out, bytes, sizeof bytes);
}

static void add_text(buf *out, const char *name, slice text) {
    if (!text.n) {
        return;
    }
    buf_add_byte(out, BSON_TYPE_UTF8);
    buf_add(out, name, strlen(name) + 1);
    add_i32(out, (int32_t)text.n + 1);
    buf_add_slice(out, text);
    buf_add_byte(out, 0);
}

static slice word_of(unsigned kind) {
    static const char *const words[] = {[0] = "Create", [1] = "Patch", [2] = "Read", [4] = "Delete", [5] = "Replace", [20] = "Upsert"};
    const char *word = kind < sizeof words / sizeof *words ? words[kind] : NULL;
    return word ? slice_str(word) : SLICE_EMPTY;
}

static err add_item(buf *out, slice item, json_error *why) {
    size_t at = out->n;
    json_root root;
    if (!item.n) {
        return OK;
    }
    buf_add_byte(out, BSON_TYPE_DOCUMENT);
    buf_add(out, "resourceBody", sizeof "resourceBody");
    buf text = buf_init_counted(out->max, out->budget);
    err code = json_is_binary(item) ? json_binary_to_text(item, &text, why) : OK;
    code = code != OK ? code : json_to_bson(text.n ? buf_view(&text) : item, NULL, out, &root, why);
    buf_free(&text);
    if (code == OK && root == JSON_ARRAY) {
        out->p[at] = BSON_TYPE_ARRAY;
    }
    return code;
}

static err add_operation(buf *out, size_t index, const operation *o, json_error *why) {
    char name[24];
    int n = snprintf(name, sizeof name, "%zu", index);
    buf_add_byte(out, BSON_TYPE_DOCUMENT);
    buf_add(out, name, (size_t)n + 1);
    size_t at = begin_document(out);
    add_text(out, "operationType", word_of(o->kind));
    add_text(out, "partitionKey", o->text[P_KEY]);
    add_text(out, "id", o->text[P_ID]);
    add_text(out, "ifMatch", o->text[P_IF_MATCH]);
    add_text(out, "ifNoneMatch", o->text[P_IF_NONE_MATCH]);
    if (o->minimal) {
        buf_add_byte(out, BSON_TYPE_BOOL);
        buf_add(out, "minimalReturnPreference", sizeof "minimalReturnPreference");
        buf_add_byte(out, 1);
    }
    TRY(add_item(out, o->text[P_BODY], why));
    end_document(out, at);
    return buf_ok(out) ? OK : E_TOO_LARGE;
}

/* ---- the records of a body ---- */

static void read_segment(reader *r) {
    reader whole = *r;
    expect_schema(r, SEGMENT);
    unsigned present = take_byte(r);
    uint32_t length = take_u32(r);
    if (!(present & 1) || length < SEGMENT_BYTES) {
        r->bad = r->bad ? r->bad : "a HybridRow segment has no length";
    }
    if (!r->bad) { /* skips comments and schemas */
        take(&whole, length);
        *r = whole;
    }
}

static reader take_record(reader *r) {
    expect_schema(r, RECORD);
    uint32_t length = take_u32(r), crc = take_u32(r);
    reader row = {.rest = take(r, length)};
    if (!r->bad && crc32_of(row.rest) != crc) {
        r->bad = "the checksum of a HybridRow is wrong";
    }
    return row;
}

static bool is_text(const operation *o) {
    static const unsigned names[] = {P_KEY, P_ID, P_IF_MATCH, P_IF_NONE_MATCH};
    bool good = true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        slice text = o->text[names[i]];
        good = good && (!text.n || bson_utf8_validate(text.p, text.n, true));
    }
    return good;
}

static err read_record(reader *r, size_t index, buf *out, json_error *why) {
    operation o;
    reader row = take_record(r);
    if (!r->bad) {
        read_operation(&row, &o);
        r->bad = row.bad ? row.bad : is_text(&o) ? NULL : "a text in a HybridRow is not UTF-8";
    }
    return r->bad ? E_BAD_JSON : add_operation(out, index, &o, why);
}

err sql_rows_read(slice body, buf *out, json_error *why) {
    reader r = {.rest = body};
    json_error inner = {0};
    size_t start = out->n;
    read_segment(&r);
    err code = r.bad ? E_BAD_JSON : OK;
    size_t at = begin_document(out);
    for (size_t i = 0; code == OK && r.rest.n; i++) {
        code = read_record(&r, i, out, &inner);
    }
    end_document(out, at);
    code = code == OK && !buf_ok(out) ? E_TOO_LARGE : code;
    if (code != OK) {
        out->n = start;
        out->overflow = false;
    }
    if (why) {
        *why = (json_error){.offset = body.n - r.rest.n, .reason = r.bad ? r.bad : inner.reason};
    }
    return code;
}

/* ---- writing ---- */

static void add_head(buf *out, uint32_t schema) {
    buf_add_byte(out, (char)VERSION);
    add_i32(out, (int32_t)schema);
}

static void add_number(buf *out, uint64_t number) {
    for (; number >= 0x80; number >>= 7) {
        buf_add_byte(out, (char)(number | 0x80));
    }
    buf_add_byte(out, (char)number);
}

static void add_bytes(buf *out, slice bytes) {
    if (bytes.n) {
        add_number(out, bytes.n);
        buf_add_slice(out, bytes);
    }
}

void sql_rows_start(buf *out) {
    add_head(out, SEGMENT);
    buf_add_byte(out, 1);
    add_i32(out, SEGMENT_BYTES);
}

/* The properties of a result, in the order of the schema: two fixed, two variable, two sparse. */
enum { P_STATUS = 1, P_SUBSTATUS, P_ETAG, P_RESULT_BODY, P_RETRY_AFTER, P_CHARGE };

static void add_result(buf *out, const sql_row_result *result) {
    add_head(out, RESULT);
    buf_add_byte(out, (char)(3 | (result->etag.n ? 1 << (P_ETAG - 1) : 0) | (result->body.n ? 1 << (P_RESULT_BODY - 1) : 0)));
    add_i32(out, (int32_t)result->status);
    add_i32(out, (int32_t)result->substatus);
    add_bytes(out, result->etag);
    add_bytes(out, result->body);
    if (result->throttled) {
        buf_add_byte(out, TYPE_UINT32);
        buf_add_byte(out, P_RETRY_AFTER);
        add_i32(out, (int32_t)result->retry_after_ms);
    }
    buf_add_byte(out, TYPE_FLOAT64);
    buf_add_byte(out, P_CHARGE);
    buf_add(out, &result->charge_ru, sizeof result->charge_ru);
}

void sql_rows_add(buf *out, const sql_row_result *result) {
    size_t at = out->n;
    buf_add(out, (char[RECORD_HEAD]){0}, RECORD_HEAD);
    add_result(out, result);
    if (buf_ok(out)) {
        slice row = slice_skip(buf_view(out), at + RECORD_HEAD);
        out->p[at] = (char)VERSION;
        doc_store_i32(out->p + at + 1, RECORD);
        doc_store_i32(out->p + at + ROW_HEAD, (int32_t)row.n);
        doc_store_i32(out->p + at + ROW_HEAD + 4, (int32_t)crc32_of(row));
    }
}
