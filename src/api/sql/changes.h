/* changes.h — within api/sql: the frame of the change feed, GET …/docs with A-IM. A mode gives the sink.
 *
 *   A-IM                Incremental feed (changes.c: each item's latest version), Full-Fidelity Feed (versions.c: every version and delete)
 *   If-None-Match       "43": after that lsn; *: from now on; without: from the beginning
 *   If-Modified-Since   an RFC 1123 date: what was written in that second or later
 *
 * A feed is about a partition key, a range by its id, a part of one by x-ms-start-epk and x-ms-end-epk, or the whole of a container of one
 * range. Where to go on is told by `etag`. 304: nothing has changed. */
#pragma once

#include "api/sql/sql_int.h"

typedef struct sql_changes {
    call_changes call; /* first: scope, place, time as asked, and then where the page ended */
    sql_request *q;
    item_key key;        /* of one partition: call.what.partition points here */
    bool from_beginning; /* neither a place nor a time is named */
    size_t max;          /* items of a page */
    size_t count;        /* in the page so far */
    uint64_t last;       /* the lsn of the last of them */
    buf body;            /* of them: JSON, with commas between */
} sql_changes;

/* A page has room for one more of this size? What has the lsn of the one before it always is taken. */
bool sql_changes_fits(const sql_changes *f, uint64_t lsn, size_t bytes);

/* Every version and delete. */
MUST_CHECK err sql_versions_begin(sql_changes *f);
