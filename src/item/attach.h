/* attach.h — attachments: small documents that belong to an item and are named within it (the service's legacy: metadata of a file, and a
 * link to where its bytes are).
 *
 * All of an item's are one value in the store, keyed by the item's hash and number, so that nothing of them moves when ranges are split or
 * merged; they go with the item, however it goes. Their bytes count as the logical partition's. Reads are answered on the caller's thread,
 * writes are decided by the committer. Each write advances the range's LSN and stamps the attachment; the item itself stays as it is. */
#pragma once

#include "item/item.h"

enum { ATTACH_COUNT_MAX = 256, ATTACH_BYTES_MAX = 1024 * 1024 }; /* of one item */

typedef struct attachment {
    uint32_t number; /* creation order within the item; given out once */
    uint32_t ts;
    uint64_t lsn; /* these two make the etag */
    slice id;
    slice body; /* BSON, its id in it */
} attachment;

/* ---- reading ---- */

typedef struct attach_list {
    uint64_t item_number;
    container_range *range;
    store_value value;
    slice rest;
} attach_list;

/* E_OWNER_NOT_FOUND: there is no such item. Adds the charge of reading it. On OK close the list; what it gave lives until then. */
MUST_CHECK err attach_open(const items *s, op *o, const container *c, const item_key *item, attach_list *list_out);
bool attach_next(attach_list *list, attachment *attachment_out);                  /* in creation order */
void attach_charge(const items *s, op *o, const attach_list *list, size_t bytes); /* of attachments that were given to the client */
void attach_close(attach_list *list);

/* ---- writing ---- */

typedef enum attach_kind { ATTACH_CREATE, ATTACH_UPSERT, ATTACH_REPLACE, ATTACH_DELETE } attach_kind;

typedef struct attach_write attach_write;
struct attach_write {
    commit base;
    const items *items;
    op *op;               /* of the request */
    container *container; /* the caller's reference is held until done */
    attach_kind kind;
    item_key item;
    slice id;        /* which one */
    uint32_t number; /* or the one of this number; 0: only by id */
    slice body;      /* BSON without system properties */
    slice if_match;  /* etag; empty: any */
    void (*done)(attach_write *w);

    /* how it went: base.code, and */
    attachment now; /* its id and body are what was given */
    bool created;
    uint64_t item_number;
    container_range *range; /* valid until attach_write_give */
    container_tiles *tiles;
};

MUST_CHECK err
attach_submit(attach_write *w);            /* E_THROTTLED: nothing was submitted. E_OWNER_NOT_FOUND, E_NOT_FOUND, E_CONFLICT … in done */
void attach_write_charge(attach_write *w); /* after done, on the caller's own thread */
item_mark attach_write_mark(const attach_write *w); /* of its range, after it */
void attach_write_give(attach_write *w);
