#include "account/rid.h"

#include <assert.h>

#include "base/base64.h"

enum {
    OFFER_BYTES = 3,
    DATABASE_BYTES = 4,
    CONTAINER_BYTES = 8,
    CHILD_BYTES = 16,
    ATTACHMENT_BYTES = 20,
    CONTAINER_BIT = 0x80,
    ENCRYPTION_KEY_TYPE = 2,
};

/* The type nibble of a container's child. */
static const uint8_t nibbles[] = {
    [RID_DOCUMENT] = 0x0, [RID_CONFLICT] = 0x4, [RID_PKRANGE] = 0x5, [RID_UDF] = 0x6, [RID_TRIGGER] = 0x7, [RID_SPROC] = 0x8,
};

static void put(rid *r, uint64_t value, size_t n) {
    assert(r->n + n <= RID_BYTES_MAX);
    for (size_t i = 0; i < n; i++) {
        r->bytes[r->n++] = (unsigned char)(value >> (8 * i));
    }
}

static uint64_t get(const rid *r, size_t from, size_t n) {
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        value |= (uint64_t)r->bytes[from + i] << (8 * i);
    }
    return value;
}

static rid first(const rid *r, size_t n) {
    rid part = {.n = (uint8_t)n};
    memcpy(part.bytes, r->bytes, n);
    return part;
}

/* Bit 7 of the four bytes distinguishes containers from users; the number uses the other bits. */
static uint32_t around_bit(uint32_t number) {
    return (number & 0x7F) | (number >> 7) << 8;
}

rid rid_database(uint32_t number) {
    assert(number);
    rid r = {0};
    put(&r, number, DATABASE_BYTES);
    return r;
}

rid rid_container(rid database, uint32_t number) {
    assert(database.n == DATABASE_BYTES && number <= INT32_MAX);
    put(&database, around_bit(number) | CONTAINER_BIT, 4);
    return database;
}

rid rid_user(rid database, uint32_t number) {
    assert(database.n == DATABASE_BYTES && number && number <= INT32_MAX);
    put(&database, around_bit(number), 4);
    return database;
}

rid rid_offer(uint32_t number) {
    assert(number && number < 1u << 24);
    rid r = {0};
    put(&r, number, OFFER_BYTES);
    return r;
}

rid rid_child(rid container, rid_kind kind, uint64_t number) {
    assert(rid_kind_of(&container) == RID_CONTAINER && kind >= RID_DOCUMENT && kind <= RID_SPROC && number < (uint64_t)1 << 60);
    put(&container, number | (uint64_t)nibbles[kind] << 60, 8);
    return container;
}

rid rid_attachment(rid document, uint32_t number) {
    assert(rid_kind_of(&document) == RID_DOCUMENT);
    put(&document, number, 4);
    return document;
}

rid rid_permission(rid user, uint64_t number) {
    assert(rid_kind_of(&user) == RID_USER);
    put(&user, number, 8);
    return user;
}

rid rid_client_encryption_key(rid database, uint32_t number) {
    assert(database.n == DATABASE_BYTES);
    put(&database, 0, 4);
    put(&database, number, 4);
    put(&database, ENCRYPTION_KEY_TYPE, 4);
    return database;
}

static rid_kind kind_in_container(const rid *r) {
    unsigned nibble = r->bytes[CHILD_BYTES - 1] >> 4;
    for (rid_kind kind = RID_DOCUMENT; kind <= RID_SPROC; kind++) {
        if (nibbles[kind] == nibble) {
            return kind;
        }
    }
    return RID_NONE;
}

static rid_kind kind_in_database(const rid *r) {
    if (r->bytes[4] & CONTAINER_BIT) {
        return kind_in_container(r);
    }
    if (get(r, 4, 4)) {
        return RID_PERMISSION;
    }
    return get(r, 12, 4) == ENCRYPTION_KEY_TYPE ? RID_CLIENT_ENCRYPTION_KEY : RID_NONE;
}

rid_kind rid_kind_of(const rid *r) {
    if (r->n == OFFER_BYTES) {
        return RID_OFFER;
    }
    if (r->n < DATABASE_BYTES || get(r, 0, DATABASE_BYTES) == 0) {
        return RID_NONE;
    }
    switch (r->n) {
    case DATABASE_BYTES:
        return RID_DATABASE;
    case CONTAINER_BYTES:
        return r->bytes[4] & CONTAINER_BIT ? RID_CONTAINER : get(r, 4, 4) ? RID_USER : RID_NONE;
    case CHILD_BYTES:
        return kind_in_database(r);
    case ATTACHMENT_BYTES:
        return r->bytes[4] & CONTAINER_BIT && kind_in_container(r) == RID_DOCUMENT ? RID_ATTACHMENT : RID_NONE;
    default:
        return RID_NONE;
    }
}

rid rid_parent(const rid *r) {
    static const uint8_t bytes[] = {
        [RID_CONTAINER] = DATABASE_BYTES,   [RID_USER] = DATABASE_BYTES,
        [RID_PERMISSION] = CONTAINER_BYTES, [RID_CLIENT_ENCRYPTION_KEY] = DATABASE_BYTES,
        [RID_DOCUMENT] = CONTAINER_BYTES,   [RID_CONFLICT] = CONTAINER_BYTES,
        [RID_PKRANGE] = CONTAINER_BYTES,    [RID_UDF] = CONTAINER_BYTES,
        [RID_TRIGGER] = CONTAINER_BYTES,    [RID_SPROC] = CONTAINER_BYTES,
        [RID_ATTACHMENT] = CHILD_BYTES,
    };
    return first(r, bytes[rid_kind_of(r)]);
}

rid rid_database_of(const rid *r) {
    rid_kind kind = rid_kind_of(r);
    return first(r, kind == RID_NONE || kind == RID_OFFER ? 0 : DATABASE_BYTES);
}

rid rid_container_of(const rid *r) {
    rid_kind kind = rid_kind_of(r);
    return first(r, kind == RID_CONTAINER || kind >= RID_DOCUMENT ? CONTAINER_BYTES : 0);
}

static uint64_t number_of_child(const rid *r) {
    return get(r, 8, 8) & (((uint64_t)1 << 60) - 1);
}

uint64_t rid_number(const rid *r) {
    switch (rid_kind_of(r)) {
    case RID_NONE:
        return 0;
    case RID_OFFER:
        return get(r, 0, OFFER_BYTES);
    case RID_DATABASE:
        return get(r, 0, DATABASE_BYTES);
    case RID_CONTAINER:
    case RID_USER:
        return (get(r, 4, 4) & 0x7F) | get(r, 4, 4) >> 8 << 7;
    case RID_PERMISSION:
        return get(r, 8, 8);
    case RID_CLIENT_ENCRYPTION_KEY:
        return get(r, 8, 4);
    case RID_ATTACHMENT:
        return get(r, 16, 4);
    default:
        return number_of_child(r);
    }
}

void rid_write(buf *out, const rid *r) {
    base64_encode_rid(out, rid_view(r));
}

rid_kind rid_parse(slice text, rid *rid_out) {
    char room[RID_BYTES_MAX + 1];
    buf bytes = {.p = room, .cap = RID_BYTES_MAX, .max = RID_BYTES_MAX};
    *rid_out = (rid){0};
    if (text.n > RID_TEXT_MAX || !base64_decode_rid(&bytes, text)) {
        return RID_NONE;
    }
    rid_out->n = (uint8_t)bytes.n;
    memcpy(rid_out->bytes, room, bytes.n);
    rid_kind kind = rid_kind_of(rid_out);
    if (kind == RID_NONE) {
        *rid_out = (rid){0};
    }
    return kind;
}
