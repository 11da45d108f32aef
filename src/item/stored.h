/* stored.h — within item/: loading, putting and removing items with all their entries. Committer's thread. */
#pragma once

#include "item/item.h"
#include "item/logical_size.h"

/* An item as it is now, including the group's changes. */
typedef struct stored_item {
    bool there;
    item_place place;
    item_head head;
    slice body;
    store_value pin; /* keeps the body alive if it is in the store */
} stored_item;

/* The context of a write. */
typedef struct item_work {
    const items *items;
    home *home; /* the home whose committer is running */
    commit_group *group;
    item_commit *commit; /* the request's commit, and the operation being applied; NULL outside of requests */
    item_op *op;
    container *container;
    container_part *part;         /* the container's part in that home */
    const container_tiles *tiles; /* the newest as far as that home's ranges are concerned */
    container_range *range;
    size_sum size;           /* size of the logical partition; loaded before its items are changed */
    const item_key *spelled; /* the key that the next two were built for; NULL: none */
    const layout_key *primary_key, *size_key;
    arena *arena; /* for data that must outlive the group */
    int64_t now_s;
    uint64_t batch;      /* the number of the atomic commit, whose writes share an lsn; 0: each write has its own */
    size_t result_bytes; /* result bytes of the request's operations so far */
} item_work;

/* w->size must be that of the key's partition (item__enter): in an empty one nothing is looked up. */
MUST_CHECK err item__load(const item_work *w, const item_key *key, stored_item *stored_out);
MUST_CHECK err item__load_place(const item_work *w, item_place place, stored_item *stored_out);

/* The key of an item, from its body. Points into the body, or lives in `a`. */
MUST_CHECK err item__key_of(const container *c, arena *a, slice body, item_key *key_out);

/* Sets w->range and w->size for a key. Call it before the first change to the key's partition. */
MUST_CHECK err item__enter(item_work *w, const item_key *key);
MUST_CHECK err item__enter_range(item_work *w, const item_key *key); /* the same when w->range is already set */

/* Builds the primary key and size entry of an item once for all following calls, until w->spelled is set to NULL. `primary` and `size` hold
 * them. */
void item__spell_keys(item_work *w, const item_key *key, layout_key *primary, layout_key *size);

/* The lsn of the next write to w->range, and taking it. All writes of an atomic commit share one, so that followers see all of it or
 * nothing. But an item that the same commit has written already (`before`: its lsn; 0: none) gets a new one: its versions and etags differ
 * by lsn. The removal of an item that is gone (item_gone) has an lsn of its own: set w->batch to 0 for it. */
uint64_t item__next_lsn(const item_work *w, uint64_t before);
uint64_t item__take_lsn(item_work *w, uint64_t before);

/* Puts an item and all entries that lead to it. `before` is the item being replaced; before->there is false if none is. A failure leaves
 * some changes in the batch: the caller must cut them, or fail its commit. */
MUST_CHECK err item__put(item_work *w, const item_key *key, item_place place, const item_head *head, slice body, const stored_item *before);
/* Makes another primary key lead to an item, instead of `from`. item__put with the new key must follow. */
void item__rename(item_work *w, const item_key *from, const item_key *to, item_place place);
/* Removes an item that is gone, in place of another write. */
MUST_CHECK err item__remove_gone(item_work *w, const item_key *key, const stored_item *stored);
/* Takes an lsn, as every change does. `expired`: removed by its ttl, not by a client. */
MUST_CHECK err item__remove(item_work *w, const item_key *key, const stored_item *stored, bool expired);

/* Changes the counted bytes of the partition and its range. */
void item__count_bytes(item_work *w, const item_key *key, int64_t bytes);

/* E_PARTITION_FULL or E_CONTAINER_FULL if a write would grow a full logical partition. Reads, deletes and shrinking writes always pass. */
MUST_CHECK err item__check_room(item_work *w, op *o, size_t before, size_t after);

/* Removes the attachments of an item that is being removed (item/attach.c). */
MUST_CHECK err item__remove_attachments(item_work *w, const item_key *key, uint64_t number);

/* Moves an item and the entries that lead to it to another segment. */
MUST_CHECK err item__move(item_work *w, const item_key *key, const stored_item *stored, uint32_t segment);

/* Unique keys: E_UNIQUE_KEY if another item of the partition has the same values. `self` is the item's own number, or 0. */
void item__count_index(item_work *w, const item_key *key, int64_t bytes); /* of entries that were added; after item__enter */
MUST_CHECK err item__unique_check(item_work *w, const item_key *key, slice body, uint64_t self);
size_t item__unique_put(const item_work *w, const item_key *key, slice body, item_place place); /* returns the size of the entries */
size_t item__unique_remove(const item_work *w, const item_key *key, slice body);

/* Append to the log of versions (item/versions.h), if the container has one. */
MUST_CHECK err item__log_put(item_work *w, const item_key *key, const item_head *head, slice body, const stored_item *before);
MUST_CHECK err item__log_remove(item_work *w, const item_key *key, const stored_item *stored, bool expired, uint64_t lsn);

/* Receipts (item/receipt.h). Finding one makes the operation repeat its first outcome; E_NOT_FOUND: apply it. */
MUST_CHECK err item__receipt_find(item_work *w, item_op *op);
void item__receipt_put(item_work *w, const item_op *op);

/* Builds the expiry entry for an item with this head; false if it has none. */
bool item__expiry_key(const container *c, const container_part *part, item_place place, const item_head *head, slice body, layout_key *k);
