/* written.h — within item/: what a transaction has touched and written of one container, found by key, by number and by unique value, and
 * shown to feeds and rows as an overlay (item.h). One thread at a time; everything lives in the transaction's arena. */
#pragma once

#include "item/item.h"

/* An item that the transaction has written or guards. */
typedef struct written_item written_item;
struct written_item {
    written_item *next;        /* of the same bucket */
    written_item *next_number; /* of the same bucket, by number */
    written_item *next_all;
    slice primary; /* its primary key in the store (layout.h) */
    item_key key;
    item_expected expected; /* as the moment had it */
    bool guarded;           /* it must still be so at the commit, though it was not written */
    bool written;           /* then the rest tells how it is now */
    bool in_rows;
    bool there;
    item_head head;
    slice body;
};

enum { WRITTEN_BUCKETS = 512 };

typedef struct written_claim written_claim;

typedef struct item_writes {
    item_overlay overlay; /* first */
    const container *container;
    arena *arena;
    written_item *all;
    written_item *by_key[WRITTEN_BUCKETS];
    written_item *by_number[WRITTEN_BUCKETS]; /* that the moment had */
    written_claim *claims[WRITTEN_BUCKETS];

    written_item **made; /* in the order of their numbers; some may be gone again, and made anew further on */
    uint64_t *made_numbers;
    size_t made_n, made_cap;
    written_item **rows; /* those that were made, in the order of their primary keys, each once */
    size_t rows_n, rows_cap;
} item_writes;

void item__writes_init(item_writes *w, const container *c, arena *a);
void item__writes_free(item_writes *w);

/* NULL: it was not touched. */
written_item *item__writes_find(const item_writes *w, slice primary);

/* Enters an item that was not touched before. Copies key and primary. */
written_item *item__writes_enter(item_writes *w, const item_key *key, slice primary, const item_expected *expected);

/* The item is now so: `there` false: deleted. The body lives in the arena already. `made`: it has a number of its own. */
void item__writes_set(item_writes *w, written_item *e, bool there, const item_head *head, slice body, bool made);

/* Whether another item was given the values of this unique key, and still has them. */
bool item__writes_claims(const item_writes *w, const written_item *e, slice unique_key);
