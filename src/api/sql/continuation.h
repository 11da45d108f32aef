/* continuation.h — the position of a feed of items, as text that the client sends back with its next request. It has the service's form:
 * a backend token that names the last item; if the feed spans ranges, wrapped with the part of the hash space that it is for.
 *
 *   +RID:~{rid}#RT:1#TRC:{count}#ISV:2#IEO:65567#QCF:8           one range or partition key: items after that one
 *   {"token":"+RID:~…","range":{"min":"","max":"1FFF…"}}         … of this range, then all ranges after it; token "": from its start
 *   {"token":…,"range":…,"then":[{"token":…,"range":…}, …]}      … of exactly these ranges: used after a split
 *
 * The reader accepts everything that the writer wrote, and treats the text as untrusted. Pure functions, any thread. */
#pragma once

#include "account/rid.h"
#include "item/item.h"

enum { CONTINUATION_BYTES_MAX = 32 * 1024 };

/* The part of the container that a request covers. */
typedef struct sql_scope {
    rid container;
    epk min, end; /* [min, end); ignored if the cursor is for one partition */
    bool plain;   /* one range or partition key: the continuation need not name its part of the hash space */
} sql_scope;

/* Fills the cursor's stretches; an empty text means the beginning of the feed. The caller has set the cursor's partition.
 * E_BAD_CONTINUATION: malformed, of another container, outside the scope, or its ranges are out of order or too many. */
MUST_CHECK err sql_continuation_read(slice text, const sql_scope *scope, item_cursor *cursor);

/* Call it only if the cursor has items left. `count` is the number of items in the page. */
void sql_continuation_write(buf *out, const sql_scope *scope, const item_cursor *cursor, size_t count);
