/* written.h — within item/: what a transaction has touched and written in one container, found by key, by number and by unique value, and
 * shown to feeds and rows as an overlay (item.h). One thread at a time; everything lives in the transaction's arena. */
#pragma once

#include "item/item.h"

/* An item that the transaction has written or guards. */
typedef struct written_item written_item;
struct written_item {
    written_item *next;        /* in the same by_key bucket */
    written_item *next_number; /* in the same by_number bucket */
    written_item *next_all;
    slice primary; /* its primary key in the store (layout.h) */
    item_key key;
    item_expected expected; /* as in the transaction's snapshot */
    written_item *now_at;   /* the entry that the snapshot's item is at now; another one if its row key has changed */
    bool guarded;           /* it was read, and must be unchanged at the commit */
    bool written;           /* the members below hold its new state */
    bool in_rows;
    bool there;
    item_head head;
    slice body;
};

enum { WRITTEN_BUCKETS = 512 };

typedef struct written_claim written_claim;

typedef struct item_writes {
    item_overlay overlay; /* must be first */
    const container *container;
    arena *arena;
    written_item *all;
    written_item *by_key[WRITTEN_BUCKETS];
    written_item *by_number[WRITTEN_BUCKETS]; /* items that exist in the snapshot */
    written_claim *claims[WRITTEN_BUCKETS];

    written_item **made; /* created items by number; some may be deleted again, or created anew with a higher number */
    uint64_t *made_numbers;
    size_t made_n, made_cap;
    written_item **rows; /* created and renamed items by primary key, each once */
    size_t rows_n, rows_cap;
} item_writes;

void item__writes_init(item_writes *w, const container *c, arena *a);
void item__writes_free(item_writes *w);

/* NULL: not touched. */
written_item *item__writes_find(const item_writes *w, slice primary);

/* Adds an item that was not touched before. Copies key and primary. */
written_item *item__writes_enter(item_writes *w, const item_key *key, slice primary, const item_expected *expected);

/* Records the new state of the item; `there` false: deleted. The body is in the arena already. `made`: the transaction created the item,
 * with a number of its own. */
void item__writes_set(item_writes *w, written_item *e, bool there, const item_head *head, slice body, bool made);

/* Records that the item of `from` has got the key of `to`, which is free; its new state is `head` and `body`. */
void item__writes_rename(item_writes *w, written_item *from, written_item *to, const item_head *head, slice body);

/* Whether another item was given these values of a unique key, and still has them. */
bool item__writes_claims(const item_writes *w, const written_item *e, slice unique_key);
