/* attach.h — attachments: small named documents that belong to an item (a legacy feature of the service: metadata of a file, and a link to
 * where its bytes are).
 *
 * All attachments of an item are one value in the store, keyed by the item's hash and number, so splits and merges do not move them. They
 * are deleted with the item. Their bytes count towards the size of the logical partition. Reads are answered on the caller's thread, writes
 * are decided by the committer. Each write advances the range's LSN and stamps the attachment; the item itself does not change. */
#pragma once

#include "item/item.h"

enum { ATTACH_COUNT_MAX = 256, ATTACH_BYTES_MAX = 1024 * 1024 }; /* per item */

typedef struct attachment {
    uint32_t number; /* creation order within the item; never reused */
    uint32_t ts;
    uint64_t lsn; /* the etag is made from ts and lsn */
    slice id;
    slice body; /* BSON, including the id */
} attachment;

/* ---- reading ---- */

typedef struct attach_list {
    uint64_t item_number;
    container_range *range;
    store_value value;
    slice rest;
} attach_list;

/* E_OWNER_NOT_FOUND: no such item. Adds the charge of reading the item. On OK close the list; the attachments it returned live until
 * then. */
MUST_CHECK err attach_open(const items *s, op *o, const container *c, const item_key *item, attach_list *list_out);
bool attach_next(attach_list *list, attachment *attachment_out);                  /* in creation order */
void attach_charge(const items *s, op *o, const attach_list *list, size_t bytes); /* charges for the attachments returned */
void attach_close(attach_list *list);

/* ---- writing ---- */

typedef enum attach_kind { ATTACH_CREATE, ATTACH_UPSERT, ATTACH_REPLACE, ATTACH_DELETE } attach_kind;

typedef struct attach_write attach_write;
struct attach_write {
    commit base;
    const items *items;
    op *op;               /* the request's */
    container *container; /* the caller keeps its reference until `done` */
    attach_kind kind;
    item_key item;
    slice id;        /* addresses the attachment by id */
    uint32_t number; /* or by number; 0: by id only */
    slice body;      /* BSON without system properties */
    slice if_match;  /* etag; empty: any */
    void (*done)(attach_write *w);

    /* output, besides base.code */
    attachment now; /* id and body are the caller's */
    bool created;
    uint64_t item_number;
    container_range *range; /* valid until attach_write_give */
    container_tiles *tiles;
};

MUST_CHECK err
attach_submit(attach_write *w); /* E_THROTTLED: nothing submitted. E_OWNER_NOT_FOUND, E_NOT_FOUND, E_CONFLICT … come in `done` */
void attach_write_charge(attach_write *w);          /* after done, on the caller's thread */
item_mark attach_write_mark(const attach_write *w); /* the range's lsn after the write */
void attach_write_give(attach_write *w);
