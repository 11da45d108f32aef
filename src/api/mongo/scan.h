/* scan.h — within api/mongo: reads the documents of a find, page after page, for commands that want all of them.
 *
 * `take` is called for each document, on a worker. When the scan has ended, `done` is called on the loop, with the code in q->scan.code. */
#pragma once

#include "api/mongo/find.h"
#include "api/mongo/mongo_int.h"

struct mongo_scan {
    const mongo_find *find;
    bool (*take)(mongo_request *q, slice document); /* false: stop before this document, or an error, which is in `failed` */
    void (*begin_page)(mongo_request *q);           /* called before each page, on the loop; NULL: not called */
    mongo_handler page; /* called after each page; calls mongo_scan_next to continue. NULL: the next page follows at once */
    mongo_handler done;
    size_t rows_max;      /* documents of a page; 0: the core's limit */
    bool verified;        /* as in query_find */
    container *container; /* in a transaction: another one than the request's; NULL: the request's */
    bool paused;          /* in a transaction: `take` wants the page to end before the next document */
    uint64_t times;       /* how many documents the one that is taken stands for (query_found) */
    uint64_t counted;     /* documents that were not taken, but counted by an index; only if the find counts */
    slice from;           /* where the next page begins */
    bool stopped;         /* `take` has stopped it */
    err failed;           /* by `take` */
    err code;             /* the result */
};

void mongo_scan_start(mongo_request *q, mongo_scan *scan);
void mongo_scan_next(mongo_request *q); /* the next page, or the end */
