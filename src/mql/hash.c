/* hash.c — a keyed hash of values: equal values have equal hashes, whatever the type of their numbers. */
#include "base/keyed_hash.h"
#include "doc/order.h"
#include "mql/collation.h"

static uint64_t hash_value(const mql_collation *c, mql_value v, uint64_t h, unsigned depth);

/* Equal values have the same encoding. */
static uint64_t hash_spelled(mql_value v, uint64_t h) {
    buf spelled = buf_init(BUF_NO_LIMIT);
    doc_element e = {.key = {"", 0}, .value = v.bytes, .type = v.type};
    doc_order_spell(&spelled, &e, false);
    h = keyed_hash_bytes(buf_view(&spelled), h);
    buf_free(&spelled);
    return h;
}

static uint64_t hash_number(mql_value v, uint64_t h) {
    doc_element e = {.key = {"", 0}, .value = v.bytes, .type = v.type};
    bool exact;
    uint64_t bits = 0;
    double number = doc_order_nearest(&e, &exact);
    if (number != number) {
        return keyed_hash_mix(h, 1);
    }
    if (!exact) {
        return hash_spelled(v, h);
    }
    if (number != 0) { /* -0 equals 0 */
        memcpy(&bits, &number, sizeof bits);
    }
    return keyed_hash_mix(h, bits);
}

static uint64_t hash_text(const mql_collation *c, slice text, uint64_t h) {
    if (!c) {
        return keyed_hash_bytes(text, h);
    }
    buf key = buf_init(BUF_NO_LIMIT);
    mql_collation_key(c, text, &key);
    h = keyed_hash_bytes(buf_view(&key), h);
    buf_free(&key);
    return h;
}

static uint64_t hash_container(const mql_collation *c, mql_value v, uint64_t h, unsigned depth) {
    doc_walk w;
    doc_element e;
    if (depth == MQL_DEPTH_MAX) {
        return keyed_hash_bytes(v.bytes, h);
    }
    for (doc_walk_init(&w, v.bytes); doc_walk_next(&w, &e);) {
        h = v.type == BSON_TYPE_DOCUMENT ? keyed_hash_bytes(e.key, h) : h;
        h = hash_value(c, mql_of(&e), h, depth + 1);
    }
    return keyed_hash_mix(h, 2);
}

static uint64_t hash_value(const mql_collation *c, mql_value v, uint64_t h, unsigned depth) {
    h = keyed_hash_mix(h, (uint64_t)mql_class(v.type));
    switch (v.type) {
    case BSON_TYPE_EOD:
    case BSON_TYPE_UNDEFINED:
    case BSON_TYPE_NULL:
    case BSON_TYPE_MINKEY:
    case BSON_TYPE_MAXKEY:
        return h;
    case BSON_TYPE_UTF8:
    case BSON_TYPE_SYMBOL:
        return hash_text(c, mql_as_text(v), h);
    case BSON_TYPE_DOCUMENT:
    case BSON_TYPE_ARRAY:
        return hash_container(c, v, h, depth);
    default:
        return mql_is_number(v) ? hash_number(v, h) : hash_spelled(v, h);
    }
}

uint64_t mql_hash(const mql_collation *collation, mql_value v) {
    return hash_value(collation, v, 0, 0);
}
