/* rid.h — resource ids: the `_rid` property of every resource, also used as segments of paths by id.
 *
 *   bytes  what                        layout, numbers little-endian
 *   3      offer                       number
 *   4      database                    number, not 0
 *   8      container or user           database, then 4 bytes whose first has its top bit set (container) or clear (user)
 *   16     child of a container        container, then 8 bytes: number, the high nibble of the last byte is the type
 *          permission                  user, then number
 *          client encryption key       database, four zero bytes, number in 4, then 2 in 4
 *   20     attachment                  document, then number in 4
 *
 * The text form is base64 with '-' for '/': DJB7AA== is database 0c907b00. Bytes 8 to 15 of a document's rid are its number as a
 * little-endian integer: creation order within a range, which clients rely on. Values, no allocation, any thread. */
#pragma once

#include "base/buf.h"

typedef enum rid_kind {
    RID_NONE,
    RID_OFFER,
    RID_DATABASE,
    RID_CONTAINER,
    RID_USER,
    RID_PERMISSION,
    RID_CLIENT_ENCRYPTION_KEY,
    RID_DOCUMENT,
    RID_CONFLICT,
    RID_PKRANGE,
    RID_UDF,
    RID_TRIGGER,
    RID_SPROC,
    RID_ATTACHMENT,
} rid_kind;

enum { RID_BYTES_MAX = 20, RID_TEXT_MAX = 28 };

typedef struct rid {
    uint8_t n; /* 0: none */
    unsigned char bytes[RID_BYTES_MAX];
} rid;

/* Constructors. Numbers start at 1 (containers at 0). Maxima: databases 2^32 - 1, users and containers 2^31 - 1, offers 2^24 - 1, a
 * container's children 2^60 - 1. */
rid rid_database(uint32_t number);
rid rid_container(rid database, uint32_t number);
rid rid_user(rid database, uint32_t number);
rid rid_offer(uint32_t number);
rid rid_child(rid container, rid_kind kind, uint64_t number); /* RID_DOCUMENT to RID_SPROC */
rid rid_attachment(rid document, uint32_t number);
rid rid_permission(rid user, uint64_t number);
rid rid_client_encryption_key(rid database, uint32_t number);

/* The kind of a rid; RID_NONE if its bytes match no layout above. */
rid_kind rid_kind_of(const rid *r);

/* Parts. The parent of a database, an offer or an invalid rid is empty. */
rid rid_parent(const rid *r);
rid rid_database_of(const rid *r);  /* empty for offers */
rid rid_container_of(const rid *r); /* empty unless the rid is a container or lies in one */
uint64_t rid_number(const rid *r);  /* the number passed to the constructor; 0 if invalid */

static inline slice rid_view(const rid *r) { /* valid as long as `r` */
    return slice_of(r->bytes, r->n);
}

static inline bool rid_equal(const rid *a, const rid *b) {
    return slice_eq(rid_view(a), rid_view(b));
}

/* Text. Parsing is strict and returns RID_NONE for anything that is not a resource id. */
void rid_write(buf *out, const rid *r);
rid_kind rid_parse(slice text, rid *rid_out);
