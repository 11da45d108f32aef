/* hiding.h — within api/cassandra: writes that deleted ranges hide (range.h).
 *
 * A write is hidden if its timestamp is not later than that of a range that has its row. Nearly all writes are later than every range that
 * was ever deleted, which is known without reading: the slot of a table has the latest timestamp of such a range since the server's start,
 * and at first the time of the start. The others read the ranges of their partition before they are committed, and once more afterwards, if
 * a range was deleted meanwhile. So a range with a timestamp in the future costs the writes of its own table, and of few others.
 *
 * A range delete writes its range before it reads the rows to delete. So a write of the same moment is seen by it, or sees the range. Not
 * known after a restart: ranges with timestamps in the future. */
#pragma once

#include "api/cassandra/write.h"

/* A look at the ranges of the partitions of some rows; in the writer's memory. */
typedef struct cass_hiding {
    cass_request *q;
    op *op; /* memory for what is found */
    cass_target *rows;
    uint32_t n;
    void (*then)(cass_request *q, err code); /* the mutations say what is hidden */
    bool any;                                /* more is hidden than before */

    /* private */
    uint32_t at;
    uint64_t changes;         /* of ranges, when the look began */
    const cass_range *ranges; /* of one partition */
    uint32_t ranges_n;
    bool stepping, again;
    err code;
} cass_hiding;

void cass_hiding_begin(cass_hiding *h); /* may complete before it returns */

/* Whether a range was deleted since the last look, and one of the writes is not later than all of them. */
bool cass_hiding_is_behind(const cass_hiding *h);

/* A range delete calls it before it writes its range, and afterwards. */
void cass_hiding_note(cass_front *front, const container *table, int64_t us);
