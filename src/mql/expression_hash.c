/* expression_hash.c — $toHashedIndexKey: the hash that MongoDB's hashed indexes and shard keys use, for clients that compute it themselves.
 *
 * It is the first eight bytes of an MD5 of: a seed of 4 zero bytes, then the value as (class, 4 bytes; value), where numbers are truncated
 * to 64 bits; and of objects and arrays their members as (class; name with its zero byte; value), and a class of 0 as their end. */
#include <math.h>
#include <openssl/evp.h>

#include "mql/expression_int.h"
#include "mql/number.h"

static void feed(EVP_MD_CTX *md5, const void *p, size_t n) {
    EVP_DigestUpdate(md5, p, n);
}

static void feed_class(EVP_MD_CTX *md5, int class) {
    char bytes[4];
    doc_store_i32(bytes, class);
    feed(md5, bytes, sizeof bytes);
}

/* Out of range: the nearest int64. NaN is 0. */
static int64_t truncated(mql_value v) {
    int64_t integer = 0;
    double d = mql_as_double(v);
    if (mql_as_integer(v, &integer) || isnan(d)) {
        return integer;
    }
    if (v.type == BSON_TYPE_DECIMAL128) {
        bson_decimal128_t decimal = mql_as_decimal(v);
        return mql_decimal_to_int64(&decimal, &integer) ? integer : d < 0 ? INT64_MIN : INT64_MAX;
    }
    return d >= 0x1p63 ? INT64_MAX : d < -0x1p63 ? INT64_MIN : (int64_t)d;
}

static void feed_value(EVP_MD_CTX *md5, mql_value v, const slice *name, unsigned depth) {
    doc_walk w;
    doc_element e;
    feed_class(md5, mql_class(v.type));
    if (name) {
        feed(md5, name->p, name->n);
        feed(md5, "", 1);
    }
    if (mql_is_number(v)) {
        char bytes[8];
        doc_store_i64(bytes, truncated(v));
        feed(md5, bytes, sizeof bytes);
    } else if (doc_is_container(v.type) && depth < MQL_DEPTH_MAX) {
        for (doc_walk_init(&w, v.bytes); doc_walk_next(&w, &e);) {
            feed_value(md5, mql_of(&e), &e.key, depth + 1);
        }
        feed_class(md5, 0);
    } else {
        feed(md5, v.bytes.p, v.bytes.n);
    }
}

static err hashed(const mql__call *c, mql_value *value_out) {
    unsigned char digest[EVP_MAX_MD_SIZE] = {0};
    mql_value v = mql_is_missing(c->args[0]) ? mql_null() : c->args[0];
    TRY(mql_pay(c->run, 100 + v.bytes.n));
    EVP_MD_CTX *md5 = EVP_MD_CTX_new();
    if (!md5 || !EVP_DigestInit_ex(md5, EVP_md5(), NULL)) {
        EVP_MD_CTX_free(md5);
        return E_INTERNAL;
    }
    feed(md5, "\0\0\0\0", 4);
    feed_value(md5, v, NULL, 0);
    EVP_DigestFinal_ex(md5, digest, NULL);
    EVP_MD_CTX_free(md5);
    *value_out = mql_int64(c->run->arena, doc_load_i64((const char *)digest));
    return OK;
}

static const mql__operator rows[] = {
    {"$toHashedIndexKey", 1, 1, 0, .function = hashed},
};
const mql__operators mql__hash_operators = MQL__OPERATORS(rows);
