/* continuation.h — where a feed of items stands, as text that goes to the client and comes back with the next request. The service's form:
 * a backend token that names the last item, wrapped with the part of the hash space it belongs to when the feed spans ranges.
 *
 *   +RID:~{rid}#RT:1#TRC:{count}#ISV:2#IEO:65567#QCF:8           one range or partition key: items after that one
 *   {"token":"+RID:~…","range":{"min":"","max":"1FFF…"}}         … of this range, then all that follows it; token "": from its start
 *   [{"token":…,"range":…}, …]                                   … of each of these, and nothing else: a split came between
 *
 * What comes back may be anything. What is written is always read again. Pure functions, any thread. */
#pragma once

#include "account/rid.h"
#include "item/item.h"

enum { CONTINUATION_BYTES_MAX = 32 * 1024 };

/* What a request asks for. */
typedef struct sql_scope {
    rid container;
    epk min, end; /* [min, end); of a cursor for one partition they are not looked at */
    bool plain;   /* one range or partition key: the continuation need not name a part of the hash space */
} sql_scope;

/* Fills the cursor's stretches; an empty text is the feed's beginning. The cursor's partition is set before. E_BAD_CONTINUATION: not ours,
 * of another container, of nothing that is asked for, ranges out of order or too many. */
MUST_CHECK err sql_continuation_read(slice text, const sql_scope *scope, item_cursor *cursor);

/* For a cursor with something left; `count` is that of the page. */
void sql_continuation_write(buf *out, const sql_scope *scope, const item_cursor *cursor, size_t count);
