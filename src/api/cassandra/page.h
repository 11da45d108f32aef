/* page.h — paging states: where the next page of a SELECT begins, as bytes that the client hands back.
 *
 *   u8 1 · i64 rows left of LIMIT · i64 rows left of PER PARTITION LIMIT · u32 partition · u32 range · string place · string partition key
 *
 * `partition` and `range` count those that the restrictions name. `place` is the core's position within them (item/rows.h, query/find.h).
 * Whoever forges a state reads other rows of the same statement at most: counts are checked against the statement, and the core checks the
 * place. Pure functions. */
#pragma once

#include "api/cassandra/cassandra_int.h"

typedef struct cass_page {
    int64_t left, partition_left;
    uint32_t partition, range;
    slice place;
    slice key; /* the bytes of the partition key that the page ended in (cql_partition_bytes), if the rest of it follows; or empty */
} cass_page;

slice cass_page_write(arena *a, const cass_page *p);
bool cass_page_read(slice bytes, cass_page *page_out); /* false: it is not a paging state */
