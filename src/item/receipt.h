/* receipt.h — receipts: a write that a client repeats, because the answer was lost, is applied once.
 *
 * A write may name a *receipt*: bytes that the client's protocol gives to this write and to its repetitions only (MongoDB: session, number
 * of the transaction, number of the statement). The committer writes the receipt in the same batch as the item. If it finds the receipt
 * already there, it writes nothing and returns the first outcome: `repeated`, `created`, `deleted`, `reply`, and the image that the receipt
 * kept. Only writes that changed something leave a receipt.
 *
 *   STORE_INDEX  0 u32 · 'r' · period u32 · container u32 · key   →   flags u8 · image u8 · reply bytes u32 · reply · image
 *
 * No container has the number 0. A period is half an hour: a receipt is looked for in this period and the one before it, so it holds for 30
 * to 60 minutes. The first receipt of a period deletes the periods that are too old, all at once. */
#pragma once

#include "item/item.h"

enum { ITEM_RECEIPT_KEY_BYTES_MAX = 256, ITEM_RECEIPT_PERIOD_S = 1800 };

/* The outcome of a write that has left a receipt; in the operation's arena. */
typedef struct item_receipt_found {
    bool created, deleted;
    item_image image;
    slice reply, body; /* `body`: the image */
} item_receipt_found;

/* Reads into memory what the committer will look up (item/ahead.h). */
void item__receipt_fetch(const items *s, const home *h, const container *c, slice key);

/* Looks a receipt up outside a commit, in all homes, for writes whose item must be searched for first. E_NOT_FOUND. May wait for the disk.
 * Neither admitted nor charged. */
MUST_CHECK err item_receipt_read(const items *s, op *o, const container *c, slice key, item_receipt_found *found_out);
