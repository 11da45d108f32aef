/* data.h — the items that are loaded and asked for. Each is a function of its number, so that whoever asks knows what is there.
 *
 * Plain items have ten or so properties and any size: for point reads and writes. Records have 20 and are 1 KB as JSON text: for queries.
 * Records are the same whatever container they are in; what differs is which property is the partition key. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { DATA_GUID_BYTES = 36, DATA_RECORD_BYTES = 1024, DATA_VALUE_MAX = 96, DATA_DEVICES = 1000, DATA_CITIES = 1000, DATA_TAGS = 10000 };

typedef enum data_kind {
    DATA_PLAIN,
    DATA_BY_ID,     /* records, one in each logical partition */
    DATA_BY_DEVICE, /* records, 1,000 logical partitions */
    DATA_BY_TENANT, /* records, all in one logical partition */
    DATA_GRAPH,     /* vertices and edges: graph.h */
} data_kind;

/* Properties of records that are asked for. */
typedef enum data_field {
    DATA_ID,
    DATA_TENANT,  /* one */
    DATA_DEVICE,  /* one of 1,000, in turn */
    DATA_NAME,    /* one of 1,024 */
    DATA_EMAIL,   /* each its own */
    DATA_CITY,    /* one of 1,000 */
    DATA_COUNTRY, /* one of 50 */
    DATA_STATUS,  /* one of 5 */
    DATA_TAG,     /* the first of an item's three, of 10,000 */
    DATA_CREATED, /* later for each number */
    DATA_LOAD,    /* an integer under 1,000,000, evenly spread; the only one that is not a string */
} data_field;

uint64_t data_random(uint64_t *state); /* the same sequence for everybody who begins with DATA_SEED */
#define DATA_SEED UINT64_C(88172645463325252)
uint64_t data_mix(uint64_t number); /* spreads numbers evenly */

/* The text of a property, without quotes; returns its bytes. `out` has DATA_VALUE_MAX. */
size_t data_value(data_field field, uint64_t number, char *out);

/* The id and the partition key of an item, without quotes, and the path of the key. */
size_t data_id(data_kind kind, uint64_t number, char *out);
size_t data_key(data_kind kind, uint64_t number, char *out);
const char *data_key_path(data_kind kind);

/* Appends a number to a text and returns its new end: printf would take most of the time in which a request is made. */
char *data_add_number(char *p, uint64_t v);
char *data_add_digits(char *p, uint64_t v, int digits); /* its last digits */

/* An item as JSON text; plain ones have `bytes` of it, if that is enough for their properties. */
size_t data_item(data_kind kind, uint64_t number, size_t bytes, char *out);
