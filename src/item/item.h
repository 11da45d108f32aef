/* item.h — items: read one, write some, read many in order.
 *
 * The core of every API. It knows containers, partition keys, row keys and BSON bodies, but no protocol. Reads are answered at once on the
 * caller's thread. Writes are prepared there and decided by the committer (store/committer.h), so that their checks see the current state.
 *
 * Terms: a *place* is a segment and a document number; a *stamp* is what a write leaves on an item (number, lsn, ts), from which _rid,
 * _etag and _ts are made; an item past its ttl is *expired* and treated as deleted. */
#pragma once

#include "base/clock.h"
#include "doc/patch.h"
#include "item/cache.h"
#include "item/counts.h"
#include "item/edit.h"
#include "item/logical_size.h"

typedef struct item_limits {
    uint64_t partition_bytes; /* limit of one logical partition */
    uint64_t fixed_bytes;     /* limit of a container without a partition key */
} item_limits;

struct items {
    home *const *homes; /* the stores that hold the ranges; the first one holds the metadata too */
    size_t homes_n;
    struct item_nearest *nearest; /* graphs of vectors (item/nearest.h); NULL: not in use */
    const clock_source *clock;
    item_limits limits;
};

/* A range's lsn at some time; session tokens are made of these. */
typedef struct item_mark {
    uint32_t range_id, segment;
    uint64_t lsn;
} item_mark;

static inline item_mark item_mark_of(const container_range *range) {
    return (item_mark){range->id, range->segment, atomic_load_explicit(&range->lsn, memory_order_acquire)};
}

typedef struct item_key {
    pkey partition;
    epk epk;
    slice row; /* the row key (item/row.h); in containers of the SQL API, the id */
} item_key;

/* ---- reading ---- */

typedef struct item_found {
    store_value value; /* one of these two keeps the body alive */
    const cached_item *cached;
    item_head head;
    slice body; /* BSON */
    item_place place;
    container_range *range;
    bool in_memory; /* in: never wait for the disk */
} item_found;

/* E_NOT_FOUND: absent or expired. E_THROTTLED: the range's share is spent. On OK release the item with item_give. Adds the charge of a
 * read. */
MUST_CHECK err item_read(const items *s, op *o, const container *c, const item_key *key, item_found *found_out);

/* The same for loops, without waiting for the disk. E_NOT_IN_MEMORY: nothing was charged; the request is admitted, and item_read on a
 * worker completes it. */
MUST_CHECK err item_read_in_memory(const items *s, op *o, const container *c, const item_key *key, item_found *found_out);
void item_give(item_found *found);

/* Before each of several reads, with i = 0, 1, 2 …: fetches ahead the memory of the reads that follow. `ahead` is kept between the calls.
 */
enum { ITEMS_AHEAD_MAX = 8 };
typedef struct item_ahead {
    uint64_t hashes[ITEMS_AHEAD_MAX];
} item_ahead;
void item_read_ahead(const container *c, const item_key *keys, size_t n, size_t i, item_ahead *ahead);

/* Admits many reads as one request: every range of the keys must have some of its share left. Reads of the same operation are then not
 * admitted again. E_THROTTLED. */
MUST_CHECK err item_admit_many(const items *s, op *o, const container *c, const item_key *keys, size_t n);

/* Finds the row key of the item with this number in the key's logical partition, and copies it to the operation's arena. E_NOT_FOUND: no
 * such item, or it belongs to another partition. Not charged. */
MUST_CHECK err item_row_of_number(const items *s, op *o, const container *c, const item_key *key, uint64_t number, slice *row_out);

/* The document number of the item with this key. E_NOT_FOUND. Not charged. */
MUST_CHECK err item_number_of(const items *s, const container *c, const item_key *key, uint64_t *number_out);

/* An item as a transaction has written it. Overlays show these on top of the transaction's snapshot. Bodies live as long as the
 * transaction. */
typedef struct item_written {
    uint64_t number;
    item_head head;
    slice body;    /* empty: the item is deleted */
    slice primary; /* its primary key now; lives as long as the body */
} item_written;

typedef struct item_overlay item_overlay;
struct item_overlay {
    bool (*find)(const item_overlay *overlay, uint64_t number, item_written *written_out);    /* false: the transaction did not write it */
    bool (*next_new)(const item_overlay *overlay, uint64_t after, item_written *written_out); /* the next created item by number */
    /* The next created or renamed item by primary key: the first one from `at` on; backward, the last one before it. */
    bool (*next_row)(const item_overlay *overlay, slice at, bool backward, item_written *written_out);
};

/* A consistent view of a container in one home at one time, unaffected by later writes. */
typedef struct item_moment {
    container_tiles *tiles;
    const home *home;
    const store_snapshot *at;    /* snapshot of the home's store */
    bool borrowed;               /* someone else releases `at` */
    container_index *index;      /* NULL: no index can be used */
    const item_overlay *overlay; /* the transaction's writes, or NULL. The index does not contain them, so with an overlay feeds read all
                                    items */
} item_moment;

/* Takes a view of the container as it is now; or, with _at, as of an older snapshot, which the caller keeps and releases. The latter has no
 * index, since nobody knows which index belongs to that snapshot. */
void item_moment_take(container *c, const home *home, item_moment *moment_out);
void item_moment_take_at(container *c, const home *home, const store_snapshot *at, item_moment *moment_out);
void item_moment_give(item_moment *moment);

/* The item with this key as of the snapshot, even if expired. E_NOT_FOUND. On OK release it with item_give. Neither admitted nor
 * charged. */
MUST_CHECK err item_read_at(const container *c, const item_moment *moment, const item_key *key, item_found *found_out);

/* The same for the item with this number in the key's logical partition. */
MUST_CHECK err item_read_number_at(const items *s, op *o, const container *c, const item_moment *moment, const item_key *key,
                                   uint64_t number, item_found *found_out);

/* The item that a feed found at this place, even if it was moved since. E_NOT_FOUND: deleted. On OK release it with item_give. Not charged,
 * since the feed was. `moment` is the feed's, or NULL. */
MUST_CHECK err item_read_place(const items *s, const container *c, const item_moment *moment, item_place place, item_found *found_out);

bool item_expired(const container *c, const item_head *head, int64_t now_s);
/* Whether an item that is in the store counts as absent: it is expired, or its partition was deleted as a whole. `wipes`: there may be such
 * items where it was read (item_wipes_now, item_wipes_past in item/wipe.h). */
bool item_gone(const container *c, bool wipes, const item_head *head, slice body, int64_t now_s);

/* The etag's text, quotes included: "xxxxxxxx-0000-0d00-0000-tttttttt0000" from version and ts. */
enum { ITEM_ETAG_BYTES = 38 };
void item_etag(char text[ITEM_ETAG_BYTES + 1], uint64_t version, uint32_t ts);
bool item_etag_matches(slice wanted, uint64_t version, uint32_t ts); /* with or without quotes; "*" matches all */

/* The number that an item's etag is made from. */
static inline uint64_t item_version(const item_head *head) {
    return head->etag ? head->etag : head->lsn;
}

/* ---- writing ---- */

/* Every kind of write may have an etag (if_match) and conditions (item/edit.h). They are checked against the current item, or its absence.
 * An upsert with an etag inserts if the item is absent; an edit with one then fails with E_NOT_FOUND. In containers of the SQL API a
 * replace may change the item's id: E_CONFLICT if another item of the partition has the new one. The item keeps its number. */
typedef enum item_kind { ITEM_CREATE, ITEM_UPSERT, ITEM_REPLACE, ITEM_DELETE, ITEM_EDIT, ITEM_READ } item_kind;

/* A transaction (item/transaction.h) reports the stamps of its writes before the commit decides them; the commit uses these values. */
typedef struct item_preset {
    uint64_t number; /* number for a new item, from item_reserve; 0: the commit assigns one */
    uint32_t ts, etag;
} item_preset;

/* The item as a transaction read it from its snapshot. If the current item differs, the commit fails with E_RETRY_WITH. */
typedef struct item_expected {
    bool there;
    uint64_t number, lsn;
} item_expected;

/* Which state of the item a receipt keeps for a repetition. */
typedef enum item_image { ITEM_IMAGE_NONE, ITEM_IMAGE_BEFORE, ITEM_IMAGE_AFTER } item_image;

/* Makes a write that its client may repeat happen once: item/receipt.h. */
typedef struct item_receipt {
    slice key; /* empty: none; up to ITEM_RECEIPT_KEY_BYTES_MAX */
    item_image image;
} item_receipt;

typedef struct item_op {
    /* input */
    item_kind kind;
    item_key key;
    slice row_after;            /* replace: the row key that the body gives the item, if it is another one; set by item_check_body */
    slice body;                 /* create, upsert, replace: BSON without system properties */
    item_edit edit;             /* for ITEM_EDIT */
    item_condition *conditions; /* for any kind but read; all must hold */
    size_t conditions_n;
    slice if_match;      /* etag; empty: any */
    slice if_none_match; /* read: not modified if it matches */
    int32_t ttl;         /* set by item_check_body */
    bool not_indexed;
    int64_t foreign_ms; /* not 0: a front end of another API than the container's writes this, at that time (item/foreign.h) */
    item_receipt receipt;
    const item_preset *preset;     /* NULL: the commit chooses number, time and etag */
    const item_expected *expected; /* NULL: not checked */

    /* internal to item/ */
    bool ready;                     /* edit and conditions were prepared (item_edit_make_ready) */
    bool is_long;                   /* the committer found the conditions or the edit too long to run */
    range_counts counts_before;     /* the range's counts before the operation, to undo it */
    struct item_prepared *prepared; /* result of running them outside the committer; NULL: not run there */
    const index_kept *terms;        /* index terms of the body `listed`, by the policy of the commit's container; NULL: the committer
                                       lists them */
    slice listed;

    /* output */
    op op; /* charge and error text of this operation; shares the request's arena */
    err code;
    bool undone;   /* it succeeded, but was undone because another operation of its batch failed */
    bool repeated; /* it was applied before, and left a receipt with what follows; nothing was written now */
    bool created;  /* an upsert or edit inserted the item */
    bool deleted;  /* an edit deleted the item */
    bool left;     /* an edit wrote nothing; `after` and `result` are the current item, if it exists */
    bool before_there;
    item_head before; /* head of the item before the write */
    item_head after;  /* head of the item now */
    slice result;     /* the body now: create, upsert, replace, edit, read */
    slice before_body;
    slice reply;            /* an edit's reply to its client: BSON, or empty */
    slice note;             /* an edit's note for the log of versions: BSON, or empty */
    uint32_t properties;    /* number of properties that an edit changed and is charged for */
    container_range *range; /* the range it was applied to; valid until item_commit_give */
    store_value pin;        /* keeps before_body and result alive */
} item_op;

/* One request's operations, decided and written together. `done` runs on the committer's thread and must hand the result to another thread.
 *
 * Operations on several containers form a chain of atomic commits (`also`), one per container. The first commit represents the chain: only
 * it is submitted, holds the code, calls `done`, is prepared, and is charged and given back. Only the first may set `prepares`, and none of
 * them has edits or conditions.
 *
 * Life cycle of a commit: item_commit_submit; `done`; if item_commit_is_long, item_commit_prepare on a thread that may take its time, and
 * submit again; then item_commit_charge, and item_commit_give when the results are no longer needed. */
typedef struct item_commit item_commit;
typedef struct item_commit_parts item_commit_parts; /* item/divide.h */
struct item_commit {
    commit base;
    const items *items;
    op *op;               /* the request's: priority, time, error text */
    container *container; /* the caller keeps its reference until `done` */
    item_op *ops;
    size_t n;
    bool atomic;           /* all or nothing, within one home; otherwise each operation by itself */
    item_commit *also;     /* if atomic: the next commit of the chain, for another container of the same home; or NULL */
    bool stops_at_failure; /* if not atomic: operations after a failed one are not tried */
    bool prepares;         /* the caller checks item_commit_is_undecided; otherwise the committer runs long edits and reads the disk */
    int64_t range_id;      /* the range that the client addresses, or -1; E_RANGE_GONE if that range no longer exists */
    void (*done)(item_commit *c);

    container_tiles *tiles;   /* the newest when it was applied; NULL: not applied */
    item_commit_parts *parts; /* set if the operations are spread over several homes */

    /* internal to item/ */
    container_range *first; /* range of the first operation, by the container's tiles; NULL: not looked up yet */
    bool admitted;          /* its ranges had some of their shares left */
    bool again;             /* see item_commit_is_undecided */
    bool missed;            /* an item or entry that it needs is not in memory */
    bool paused;            /* the rest of its operations follow in another group, since others wait */
    bool fetched;           /* that was read since: the committer now waits for what is still missing */
    unsigned attempts;      /* number of times it was prepared */
    size_t from;            /* if not atomic: the first operation that is not decided yet */
    size_t began;           /* `from` at the last submit: the operations before it are written */
    container_tiles **past; /* tiles that earlier operations were applied with */
    size_t past_n;
};

/* Marks a commit as not submitted, so that item_commit_give does nothing. */
static inline void item_commit_init(item_commit *c) {
    c->n = 0;
    c->tiles = NULL;
    c->parts = NULL;
    c->also = NULL;
}

/* Checks a body for create, upsert and replace: row key, partition key against `header_key` (NULL: none given), ttl, sizes. Fills op->key
 * (which a replace keeps as addressed), op->row_after and op->ttl. The body of a foreign write is adopted first (item/foreign.h). Fails
 * with E_BAD_REQUEST or similar, and the service's error text. */
MUST_CHECK err item_check_body(op *o, const container *c, const pkey *header_key, item_op *op);

/* The server adds these to every item that it returns through the SQL API, and strips them from every item that a client sends. */
enum { ITEM_SYSTEM_PROPERTIES = 6 };
extern const slice item_system_properties[ITEM_SYSTEM_PROPERTIES];
slice item_without_system(arena *a, slice body); /* returns `body` itself if it has none of them */

/* Makes the key of an item that a client addresses: checks that it is complete and within limits, and hashes it. */
MUST_CHECK err item_check_key(op *o, const container *c, const pkey *header_key, slice row, item_key *key_out);

/* On an error nothing was submitted. E_THROTTLED: the share of a range is spent; a commit that is not atomic is submitted all the same, and
 * its operations get that code one by one, with retry times of their own. E_BAD_REQUEST and similar: an edit or condition is
 * invalid; its operation has the code and error text. E_TRANSACTION_SPREAD: an atomic commit spans several homes. */
MUST_CHECK err item_commit_submit(item_commit *c);

/* Lists the index terms of the bodies to be written, so that the committer need not. Call it before the first submit, on a thread that may
 * take its time; item_commit_submit calls it for up to LIMIT_LISTED_BYTES of bodies. The committer lists the terms of all other bodies
 * itself. */
void item_commit_list(item_commit *c);
bool item_commit_has_long_lists(const item_commit *c); /* more than LIMIT_LISTED_BYTES */

/* After done: the committer left some operations undecided, since their edits or conditions are too long for it, or since it would have to
 * wait for the disk. Prepare the commit and submit it again. */
static inline bool item_commit_is_undecided(const item_commit *c) {
    return c->again;
}

/* Whether preparing an undecided commit reads from the disk. */
static inline bool item_commit_missed(const item_commit *c) {
    return c->missed;
}

/* Runs long edits and conditions on the current items, each for up to LIMIT_EDIT_STEPS_MAX; or reads the missing items into memory, so that
 * neither the committer nor other writers wait for the disk. Any thread. */
void item_commit_prepare(item_commit *c);

/* The charge of a decided operation, from the item before and after it. */
double item_price(const item_op *op, const index_policy *index);

/* After done: the request failed as a whole (container or range gone, store error), not just one of its operations. */
bool item_commit_failed(const item_commit *c);

/* After done, on the caller's thread: computes the charges from the items before and after, takes them from the ranges' shares, adds the
 * sum to the request's charge and returns it. */
double item_commit_charge(item_commit *c);

/* Releases the pins and the tiles. Safe to call twice, and on a commit that was not submitted: then it reads only what item_commit_init
 * sets. */
void item_commit_give(item_commit *c);

/* ---- reading many ----
 *
 * A feed reads stretches of the hash space: range by range, and within a range in document-number order, which is creation order. Its
 * cursor holds only EPKs and numbers, so it stays valid whatever is split or merged between two pages. */

typedef struct item_stretch {
    epk min, max;
    uint64_t after; /* the items of [min, max) with greater numbers are still to be read */
} item_stretch;

enum { ITEM_STRETCHES_MAX = 32 };

/* Which items a feed reads, and how far it has come. */
typedef struct item_cursor {
    /* the selection: set once */
    const item_moment *moment; /* for one partition: read as of this moment (E_TRANSACTION_SPREAD: it is in another home). NULL: now */
    const item_key *partition; /* one logical partition, or NULL; its id is ignored. It has one stretch, of which only `after` is used. */
    const pkey *prefix;        /* only items whose partition keys begin with this, even if other keys have the same hash; NULL: all */

    /* the position: advanced by the feed */
    size_t n; /* 0: everything was read */
    item_stretch stretches[ITEM_STRETCHES_MAX];
} item_cursor;

/* Starts at the beginning: of [min, max), or of one logical partition. The caller may set moment and prefix. */
void item_cursor_init(item_cursor *c, const epk *min, const epk *max);
void item_cursor_init_partition(item_cursor *c, const item_key *partition);
void item_cursor_copy(item_cursor *to, const item_cursor *from); /* copies only the stretches in use */

/* A cursor as bytes for a client, and back. item_cursor_write appends them. item_cursor_read needs a cursor that was just initialised for
 * the same selection. False: the bytes are invalid or lie outside the selection; the cursor cannot be used then. */
void item_cursor_write(buf *out, const item_cursor *c);
bool item_cursor_read(slice bytes, item_cursor *c);

/* Called for each item. False ends the page; that item counts as not read. */
typedef bool (*item_visit)(void *context, const item_found *found);

/* Visits items until the visitor stops or there are no more, and advances the cursor. Looks at no more than `steps_max` entries, so that a
 * page's time is bounded. E_THROTTLED only if nothing was read: if a share is spent later on, the page ends there. */
MUST_CHECK err item_feed(const items *s, op *o, container *c, item_cursor *cursor, size_t steps_max, item_visit visit, void *context,
                         item_mark *mark_out);

typedef struct item_view item_view; /* item/view.h */

/* Finds the items of a view through the index. *found_out false: the index cannot be used, and the feed reads all items. Otherwise it
 * advances the view's stretch.after; the range is finished unless v->stopped is set. */
typedef err (*item_find)(void *context, item_view *v, bool *found_out);

/* How a feed reads its items. */
typedef struct item_reader {
    item_visit visit;
    void *context;  /* passed to all callbacks */
    item_find find; /* NULL: read all items */
    bool (*leave)(
        void *context); /* NULL, or called after a range was read, before the cursor advances: a visitor that held items back processes
                           them now. False: it stopped at one of them, and has set the first stretch's `after` to just before that item */
    size_t steps_max;   /* entries that one call may look at */
    bool unpriced;      /* the visitor adds the charge itself; a zero charge is allowed */
    bool trial; /* reads what is in memory, of one range at most (else E_QUERY_TOO_LONG), and takes nothing from its share: repeatable */
    double entry_charge; /* charged for each range that the feed enters */

    /* state kept between calls */
    uint32_t entered; /* the last range that entry_charge was added for, if `any_entered` */
    bool any_entered;
} item_reader;

void item_reader_init(item_reader *r, item_visit visit, void *context, size_t steps_max);

/* item_feed with all the options of a reader. */
MUST_CHECK err item_feed_by(const items *s, op *o, container *c, item_cursor *cursor, item_reader *reader, item_mark *mark_out);

/* Shows `look` a view of each range of the cursor, to count entries; it must not offer items. Neither admitted, charged nor counted as a
 * request. The view has no index while it is off or being replaced. Ends with the cursor at its end. */
MUST_CHECK err item_look(const items *s, op *o, container *c, item_cursor *cursor, item_find look, void *context);

/* After a successful trial: takes its cost from the share of its range. */
void item_debit_trial(const items *s, const op *o, const container *c, const item_cursor *cursor, const item_mark *mark, double ru);

/* Deducts a cost that became known after the feed ended from the share of its last range. It is in the operation's charge already. */
void item_debit_more(const items *s, const op *o, const container *c, const item_mark *mark, double ru);

/* ---- reading what has changed ----
 *
 * Every write advances its range's lsn and stores it on the item. Items can be read by lsn, whatever the indexing policy: each item once,
 * in the order of its last write. Deleted and expired items leave no trace. A reader's position is an lsn of a range. After a split the
 * children continue with the parent's lsn; after a merge each part of the new range continues with the lsn of the range it was. */

typedef struct item_changes {
    const item_key *partition; /* one logical partition, or NULL: [min, max), which must lie within one range */
    const pkey *prefix;        /* only the items of [min, max) whose partition key begins with this; NULL: all */
    epk min, max;
    uint64_t after;   /* read items with greater lsns; advanced */
    bool from_now;    /* reads nothing, and sets `after` to the range's current lsn */
    int64_t since_s;  /* only items written in this second or later; 0: all */
    int64_t until_us; /* monotonic deadline: the page then ends with what it has; 0: none */
    bool unpriced;    /* internal read: neither admitted nor charged */
    bool more;        /* output: more changes after `after` may be ready to read */
} item_changes;

/* Visits items until the visitor stops, the deadline passes, or there are no more. The visitor must accept an item that has the same lsn as
 * the previous one. E_RANGE_GONE: [min, max) is no longer within one range. E_THROTTLED. Adds its charge even if nothing was found. */
MUST_CHECK err item_changes_read(const items *s, op *o, container *c, item_changes *changes, item_visit visit, void *context,
                                 item_mark *mark_out);

/* ---- transactions ---- */

/* Reserves `n` document numbers from `first` on, for items that a transaction will create. `done` runs on the committer's thread. */
typedef struct item_reserve item_reserve;
struct item_reserve {
    commit base;
    container *container; /* the caller keeps its reference until `done` */
    const item_key *key;
    uint32_t n;
    home *home; /* home of the key's range */
    uint64_t first;
    void (*done)(item_reserve *r);
};
void item_reserve_submit(const items *s, item_reserve *r);

/* Builds the store key of an item's values for the container's unique key `index`; and finds the item that held such a key at the moment.
 * E_NOT_FOUND. */
bool item_unique_key(const container *c, unsigned index, const item_key *key, slice body, layout_key *k); /* false: the key is not for it */
/* The time at which the container's date expiries remove the item; false: none does. */
bool item_expires_by_date(const container *c, slice body, int64_t *at_s_out);

/* In a solo commit: adds the entries of unique keys from `from` on for all items that are there. E_UNIQUE_KEY: two have the same values.
 * The committer does nothing else meanwhile, so the caller bounds the number of items. */
enum { UNIQUE_ADD_ITEMS_MAX = 50000, UNIQUE_ADD_BYTES_MAX = 64 * 1024 * 1024 };
MUST_CHECK err item_unique_add(const items *s, commit_group *group, container *c, unsigned from, op *o);
/* The same: removes the entries of unique keys of `before` that `after` has dropped. */
MUST_CHECK err item_unique_drop(const items *s, commit_group *group, container *before, const container *after, op *o);
MUST_CHECK err item_unique_holder_at(const container *c, const item_moment *moment, slice unique_key, item_found *found_out);

/* The throughput of the key's range in RU/s; 0: no limit. */
double item_rate(const container *c, const item_key *key);

/* Takes the cost of a transaction from the share of the key's range. A transaction counts as one request: `counted` is set in one call
 * only. */
void item_debit(const items *s, const op *o, const container *c, const item_key *key, double ru, bool counted, bool failed);

/* ---- moving items to their range's own segment ----
 *
 * After a split: one commit that moves items of range `range_id` away from the sources that it is leaving. `cost_max` bounds the work, as
 * for a sweep. `done` runs on the committer's thread; `ended` then says whether the move is complete. */
typedef struct item_move item_move;
struct item_move {
    commit base;
    const items *items;
    container *container; /* the caller keeps its reference until `done` */
    uint32_t range_id;
    unsigned cost_max;
    home *home; /* home of the range */
    bool ended;
    uint64_t moved;
    void (*done)(item_move *m);
};
void item_move_submit(item_move *m);

/* ---- expiry ---- */

/* Starts the background job that adds expiry entries to existing items after a ttl was turned on. Call it within a solo commit; the caller
 * then sets part->ttl_backfill. */
void item_backfill_start(commit_group *group, uint32_t container);

/* Removes expired items of a container by a commit of its own, queued like any other, and advances the ttl backfill by one step. `cost_max`
 * bounds the work: an item costs 1, plus 1 for each 4 KB. Decrements `in_flight` when the commit has ended. */
void item_sweep(const items *s, container *c, unsigned cost_max, atomic_uint *in_flight);
