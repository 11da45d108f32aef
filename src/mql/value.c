/* value.c — making, reading and comparing values; builder.c builds documents of them. */
#include "mql/value.h"

#include <string.h>

#include "doc/order.h"
#include "mql/collation.h"
#include "mql/decimal.h"

/* ---- making ---- */

static mql_value made(arena *a, bson_type_t type, const void *bytes, size_t n) {
    return (mql_value){type, arena_copy(a, slice_of(bytes, n))};
}

mql_value mql_bool(bool truth) {
    return (mql_value){BSON_TYPE_BOOL, {truth ? "\1" : "\0", 1}};
}

mql_value mql_int32(arena *a, int32_t number) {
    char bytes[4];
    doc_store_i32(bytes, number);
    return made(a, BSON_TYPE_INT32, bytes, sizeof bytes);
}

static mql_value eight_bytes(arena *a, bson_type_t type, int64_t bits) {
    char bytes[8];
    doc_store_i64(bytes, bits);
    return made(a, type, bytes, sizeof bytes);
}

mql_value mql_int64(arena *a, int64_t number) {
    return eight_bytes(a, BSON_TYPE_INT64, number);
}

mql_value mql_double(arena *a, double number) {
    int64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return eight_bytes(a, BSON_TYPE_DOUBLE, bits);
}

mql_value mql_date(arena *a, int64_t ms) {
    return eight_bytes(a, BSON_TYPE_DATE_TIME, ms);
}

mql_value mql_timestamp(arena *a, uint32_t seconds, uint32_t increment) {
    return eight_bytes(a, BSON_TYPE_TIMESTAMP, (int64_t)((uint64_t)seconds << 32 | increment));
}

mql_value mql_decimal(arena *a, const bson_decimal128_t *number) {
    char bytes[16];
    doc_store_i64(bytes, (int64_t)number->low);
    doc_store_i64(bytes + 8, (int64_t)number->high);
    return made(a, BSON_TYPE_DECIMAL128, bytes, sizeof bytes);
}

mql_value mql_object_id(arena *a, const uint8_t bytes[static 12]) {
    return made(a, BSON_TYPE_OID, bytes, 12);
}

mql_value mql_text(arena *a, slice text) {
    if (text.n > INT32_MAX - 1 || !arena_fits(a, text.n + 5)) {
        return mql_missing();
    }
    char *p = arena_alloc(a, text.n + 5);
    doc_store_i32(p, (int32_t)text.n + 1);
    if (text.n) {
        memcpy(p + 4, text.p, text.n);
    }
    p[4 + text.n] = 0;
    return (mql_value){BSON_TYPE_UTF8, slice_of(p, text.n + 5)};
}

/* ---- reading ---- */

static doc_element element_of(mql_value v) {
    return (doc_element){{"", 0}, v.bytes, v.type};
}

bson_decimal128_t mql_as_decimal(mql_value v) {
    return (bson_decimal128_t){.low = (uint64_t)doc_load_i64(v.bytes.p), .high = (uint64_t)doc_load_i64(v.bytes.p + 8)};
}

double mql_as_double(mql_value v) {
    bool exact;
    if (v.type == BSON_TYPE_DOUBLE) {
        return doc_load_double(v.bytes.p); /* keeps the sign of a zero */
    }
    doc_element e = element_of(v);
    return doc_order_nearest(&e, &exact);
}

static bool integer_of_double(double number, int64_t *integer_out) {
    if (!(number >= -0x1p63 && number < 0x1p63) || number != (double)(int64_t)number) {
        return false;
    }
    *integer_out = (int64_t)number;
    return true;
}

bool mql_as_integer(mql_value v, int64_t *integer_out) {
    *integer_out = 0;
    switch (v.type) {
    case BSON_TYPE_INT32:
        *integer_out = doc_load_i32(v.bytes.p);
        return true;
    case BSON_TYPE_INT64:
        *integer_out = doc_load_i64(v.bytes.p);
        return true;
    case BSON_TYPE_DOUBLE:
        return integer_of_double(doc_load_double(v.bytes.p), integer_out);
    case BSON_TYPE_DECIMAL128: {
        bson_decimal128_t decimal = mql_as_decimal(v), back;
        bool fits = mql_decimal_to_int64(&decimal, integer_out);
        back = mql_decimal_of_int64(*integer_out);
        return fits && mql_decimal_compare(&decimal, &back) == 0;
    }
    default:
        return false;
    }
}

bool mql_truth(mql_value v) {
    switch (v.type) {
    case BSON_TYPE_EOD:
    case BSON_TYPE_NULL:
    case BSON_TYPE_UNDEFINED:
        return false;
    case BSON_TYPE_BOOL:
        return mql_as_bool(v);
    default:
        return !mql_is_number(v) || mql_as_double(v) != 0;
    }
}

mql_value mql_member(mql_value document, slice name) {
    doc_walk w;
    doc_element e;
    if (!doc_is_container(document.type) || !doc_walk_init(&w, document.bytes)) {
        return mql_missing();
    }
    while (doc_walk_next(&w, &e)) {
        if (slice_eq(e.key, name)) {
            return mql_of(&e);
        }
    }
    return mql_missing();
}

mql_value mql_element_at(mql_value array, size_t position) {
    doc_walk w;
    doc_element e;
    if (array.type != BSON_TYPE_ARRAY || !doc_walk_init(&w, array.bytes)) {
        return mql_missing();
    }
    for (size_t i = 0; doc_walk_next(&w, &e); i++) {
        if (i == position) {
            return mql_of(&e);
        }
    }
    return mql_missing();
}

size_t mql_length(mql_value container) {
    doc_walk w;
    doc_element e;
    size_t n = 0;
    if (doc_is_container(container.type) && doc_walk_init(&w, container.bytes)) {
        while (doc_walk_next(&w, &e)) {
            n++;
        }
    }
    return n;
}

/* ---- types ---- */

typedef struct type_row {
    const char *name;
    int class;
} type_row;

static const type_row types[256] = {
    [BSON_TYPE_EOD] = {"missing", 0},
    [BSON_TYPE_UNDEFINED] = {"undefined", 0},
    [BSON_TYPE_MINKEY] = {"minKey", -1},
    [BSON_TYPE_NULL] = {"null", 5},
    [BSON_TYPE_DOUBLE] = {"double", 10},
    [BSON_TYPE_INT32] = {"int", 10},
    [BSON_TYPE_INT64] = {"long", 10},
    [BSON_TYPE_DECIMAL128] = {"decimal", 10},
    [BSON_TYPE_UTF8] = {"string", 15},
    [BSON_TYPE_SYMBOL] = {"symbol", 15},
    [BSON_TYPE_DOCUMENT] = {"object", 20},
    [BSON_TYPE_ARRAY] = {"array", 25},
    [BSON_TYPE_BINARY] = {"binData", 30},
    [BSON_TYPE_OID] = {"objectId", 35},
    [BSON_TYPE_BOOL] = {"bool", 40},
    [BSON_TYPE_DATE_TIME] = {"date", 45},
    [BSON_TYPE_TIMESTAMP] = {"timestamp", 47},
    [BSON_TYPE_REGEX] = {"regex", 50},
    [BSON_TYPE_DBPOINTER] = {"dbPointer", 55},
    [BSON_TYPE_CODE] = {"javascript", 60},
    [BSON_TYPE_CODEWSCOPE] = {"javascriptWithScope", 65},
    [BSON_TYPE_MAXKEY] = {"maxKey", 127},
};

const char *mql_type_name(bson_type_t type) {
    const char *name = types[(uint8_t)type].name;
    return name ? name : "unknown";
}

int mql_class(bson_type_t type) {
    return types[(uint8_t)type].class;
}

/* ---- order ---- */

static int compare(const mql_collation *c, mql_value a, mql_value b, unsigned depth);

/* Objects: member by member, each by class, then name, then value; a prefix comes first. Arrays: element by element. */
static int compare_containers(const mql_collation *c, mql_value a, mql_value b, unsigned depth) {
    doc_walk wa, wb;
    if (depth == MQL_DEPTH_MAX || !doc_walk_init(&wa, a.bytes) || !doc_walk_init(&wb, b.bytes)) {
        return slice_cmp(a.bytes, b.bytes);
    }
    for (;;) {
        doc_element ea, eb;
        bool more_a = doc_walk_next(&wa, &ea), more_b = doc_walk_next(&wb, &eb);
        if (!more_a || !more_b) {
            return (int)more_a - (int)more_b;
        }
        int by = mql_class(ea.type) - mql_class(eb.type);
        if (by == 0 && a.type == BSON_TYPE_DOCUMENT) {
            by = slice_cmp(ea.key, eb.key);
        }
        by = by ? by : compare(c, mql_of(&ea), mql_of(&eb), depth + 1);
        if (by) {
            return by;
        }
    }
}

/* Two integers, or two doubles that are not NaN, need no conversion. */
static bool compare_alike(mql_value a, mql_value b, int *order) {
    if (a.type == BSON_TYPE_DOUBLE && b.type == BSON_TYPE_DOUBLE) {
        double x = doc_load_double(a.bytes.p), y = doc_load_double(b.bytes.p);
        *order = (x > y) - (x < y);
        return x == x && y == y;
    }
    if ((a.type != BSON_TYPE_INT32 && a.type != BSON_TYPE_INT64) || (b.type != BSON_TYPE_INT32 && b.type != BSON_TYPE_INT64)) {
        return false;
    }
    int64_t x = a.type == BSON_TYPE_INT32 ? doc_load_i32(a.bytes.p) : doc_load_i64(a.bytes.p);
    int64_t y = b.type == BSON_TYPE_INT32 ? doc_load_i32(b.bytes.p) : doc_load_i64(b.bytes.p);
    *order = (x > y) - (x < y);
    return true;
}

static int compare_numbers(mql_value a, mql_value b) {
    doc_element ea = element_of(a), eb = element_of(b);
    int order;
    return compare_alike(a, b, &order) ? order : doc_order_compare(&ea, &eb);
}

static int compare(const mql_collation *c, mql_value a, mql_value b, unsigned depth) {
    int class = mql_class(a.type);
    int by_class = class - mql_class(b.type);
    if (by_class) {
        return by_class;
    }
    switch (class) {
    case 0: /* missing and undefined */
    case 5:
    case -1:
    case 127:
        return 0;
    case 10:
        return compare_numbers(a, b);
    case 15: /* strings and symbols */
        return c ? mql_collation_compare(c, mql_as_text(a), mql_as_text(b)) : slice_cmp(mql_as_text(a), mql_as_text(b));
    case 20:
    case 25:
        return compare_containers(c, a, b, depth);
    default: {
        doc_element ea = element_of(a), eb = element_of(b);
        return doc_order_compare(&ea, &eb);
    }
    }
}

int mql_compare(mql_value a, mql_value b) {
    return compare(NULL, a, b, 0);
}

int mql_compare_by(const mql_collation *collation, mql_value a, mql_value b) {
    return compare(collation, a, b, 0);
}
