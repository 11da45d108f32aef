/* changes.h — within api/sql: the change feed, GET …/docs with A-IM. Both modes share this code; a mode supplies the item callback.
 *
 *   A-IM                Incremental feed (changes.c: each item's latest version), Full-Fidelity Feed (versions.c: every version and delete)
 *   If-None-Match       "43": after that lsn; *: from now on; absent: from the beginning
 *   If-Modified-Since   an RFC 1123 date: changes written in that second or later
 *
 * A feed covers a partition key, a range by its id, a part of a range by x-ms-start-epk and x-ms-end-epk, or a whole container that has one
 * range. The answer's `etag` is the position of the next page. 304: nothing has changed. */
#pragma once

#include "api/sql/sql_int.h"

typedef struct sql_changes {
    call_changes call; /* first member. The scope, position and time that were requested; afterwards the position where the page ended */
    sql_request *q;
    item_key key;        /* if the feed covers one partition: call.what.partition points here */
    bool from_beginning; /* the request names neither a position nor a time */
    size_t max;          /* items per page at most */
    size_t count;        /* items in the page so far */
    uint64_t last;       /* lsn of the last item in the page */
    buf body;            /* the page's items as JSON, separated by commas */
} sql_changes;

/* Whether the page has room for another item of this size. An item with the same lsn as the one before it always fits. */
bool sql_changes_fits(const sql_changes *f, uint64_t lsn, size_t bytes);

/* The mode with every version and delete. */
MUST_CHECK err sql_versions_begin(sql_changes *f);
