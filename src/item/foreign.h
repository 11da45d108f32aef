/* foreign.h — writing items of a container that belongs to another API.
 *
 * A container belongs to the API that made it (container.api): its *owner*. The owner decides what its items look like: keys, types,
 * limits. A *foreign write* comes from the front end of another API. The core hands its item to the owner, which turns it into the form
 * that it stores, or refuses it. So the owner's clients never find an item that they could not have written themselves.
 *
 *   SQL     {"PartitionKey":"p","RowKey":"r","n":1}  →  Table stores the same with a Timestamp
 *
 * A front end marks a foreign write by item_op.foreign_ms. item_check_body then adopts the body of a create, an upsert or a replace; what
 * an edit makes is adopted where the edit runs. Nothing else of a write changes: etags, conditions, unique keys, charges and commits are
 * the core's. An API that registers no owner has containers that other front ends can only read (E_FORBIDDEN).
 *
 * Owners are registered at start and then only read: any thread. */
#pragma once

#include "item/item.h"

typedef struct item_owner {
    const char *api; /* the name in container.api: "table" */

    /* Turns `body` into the item as the owner stores it, in the operation's arena, or returns `body` itself. The body is well-formed BSON
     * without system properties. Values of types that JSON lacks are typed values, never {"$date":…} objects. `now_ms` is the time of the
     * write. Called for whole bodies and for the results of edits, on any thread, perhaps several times for one write: the result must
     * depend on the arguments only, and must be itself if it is adopted again. Time is linear in the body: it may run on the committer.
     * E_BAD_REQUEST or E_TOO_LARGE, with an error text that names the property and the rule. */
    err (*adopt)(op *o, const container *c, int64_t now_ms, slice body, slice *stored_out);

    /* The row key of the item that another API calls by the text `id`, in the operation's arena. E_BAD_REQUEST: no item can have it. */
    err (*row_of_id)(op *o, const container *c, slice id, slice *row_out);

    /* Appends the text by which other APIs know an item that has no member `id` of its own. NULL: such items are shown without one. */
    void (*show_id)(slice body, buf *out);
} item_owner;

/* At start, before the first write. Registering the same owner again does nothing. The caller never frees it. */
void item_owner_register(const item_owner *owner);
const item_owner *item_owner_of(const container *c); /* NULL: the SQL API's container, or no owner is registered */

/* The owner, if items of the container may be shown with an id that they do not store; otherwise NULL. */
static inline const item_owner *item_owner_shows_ids(const container *c) {
    const item_owner *owner = c->row.n ? item_owner_of(c) : NULL; /* items of the SQL API have a row key of no paths */
    return owner && owner->show_id ? owner : NULL;
}

/* Appends `,"id":"…"` to an item's JSON, unless it has a member `id`. */
void item_add_shown_id(buf *json, const item_owner *owner, slice body);

/* The row key for the id in a request of another API: the owner's, or the id itself if there is no owner. */
MUST_CHECK err item_row_of_id(op *o, const container *c, slice id, slice *row_out);

/* Replaces *body by the item as the owner stores it. E_FORBIDDEN: the container has no owner that adopts items. */
MUST_CHECK err item_adopt(op *o, const container *c, int64_t now_ms, slice *body);
