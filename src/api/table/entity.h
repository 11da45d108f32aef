/* entity.h — within api/table: entities from OData JSON to stored items and back.
 *
 * A stored entity is a BSON document: PartitionKey, RowKey, Timestamp (a date, the time of the write), then its properties as edm.h stores
 * them, in the order in which they came. Its etag is its full timestamp: the stored one, and four more digits from the item's version, so
 * that two writes of an entity in one millisecond differ. Pure functions, any thread. */
#pragma once

#include "api/table/edm.h"
#include "api/table/errors.h"
#include "item/item.h"

enum {
    ENTITY_PROPERTIES_MAX = 252, /* without the three system properties */
    ENTITY_NAME_MAX = 255,       /* characters */
    ENTITY_KEY_MAX = 512,        /* UTF-16 units, which are 1 KiB */
    ENTITY_VALUE_MAX = 64 * 1024,
    ENTITY_BYTES_MAX = 1024 * 1024,
    ENTITY_LARGE_BYTES_MAX = 2 * 1024 * 1024, /* in tables that were created for large entities */
};

/* ---- keys and names ---- */

/* Checks a key from a URL or an entity: its size, and no '/', '\', '#', '?' or control characters. */
table_error entity_check_key(slice key);

/* Checks the name of a property: an identifier of C# of up to ENTITY_NAME_MAX characters. */
table_error entity_check_name(slice name);
bool entity_is_system(slice name); /* PartitionKey, RowKey, Timestamp */

/* ---- reading ---- */

typedef struct entity_ask {
    slice json;
    slice partition, row; /* from the URL; p NULL: they are in the entity. If they are in both, the URL's are used */
    int64_t now_ms;
} entity_ask;

typedef struct entity {
    slice partition, row;
    slice body; /* BSON, in the op's arena */
} entity;

/* Up to ENTITY_LARGE_BYTES_MAX; the limits of its table are checked by entity_check_limits. */
table_error entity_read(op *o, const entity_ask *ask, entity *entity_out);

/* The size that counts against the limit, by Storage's formula, and the number of properties without the system's. The size is at most
 * ENTITY_SIZE_PER_BYTE times that of the BSON. */
enum { ENTITY_SIZE_PER_BYTE = 4 };
size_t entity_size(slice body, size_t *properties_out);
table_error entity_check_size(slice body, bool large);
table_error entity_check_limits(slice body, bool large); /* also the size of each value */

/* ---- writing ---- */

typedef enum entity_metadata { ENTITY_NO_METADATA, ENTITY_MINIMAL_METADATA, ENTITY_FULL_METADATA } entity_metadata;

typedef struct entity_view {
    entity_metadata metadata;
    slice base;    /* "https://host:port" and the account's path, without a slash at the end */
    slice account; /* for odata.type */
    slice table;
    const slice *select; /* names; NULL: all properties */
    size_t select_n;
    bool element; /* an answer of its own: it has odata.metadata */
} entity_view;

void entity_write(buf *out, const entity_view *view, slice body, uint64_t version, uint32_t ts);

/* A stored entity's timestamp in ticks, and its etag: W/"datetime'2024-01-02T03%3A04%3A05.6781234Z'". */
int64_t entity_timestamp(slice body, uint64_t version, uint32_t ts);
void entity_etag(buf *out, slice body, uint64_t version, uint32_t ts);

/* Appends people(PartitionKey='p',RowKey='r'), percent-encoded. */
void entity_link(buf *out, slice table, slice partition, slice row);

/* A text property of a stored entity; empty if it is not there. */
slice entity_text(slice body, slice name);

/* Number of UTF-16 units of a UTF-8 text. */
size_t entity_units(slice text);
