/* item.h — items: read one, write some, read many in order.
 *
 * The core of every API. It knows containers, partition keys, ids and BSON bodies, and no protocol. Reads are answered at once on the
 * caller's thread. Writes are prepared there and decided by the committer (store/committer.h), so that what they check is what is there.
 *
 * Words: a *place* is segment and document number; a *stamp* is what a write leaves on an item (number, lsn, ts), from which _rid, _etag
 * and _ts are made; an item past its ttl is *expired* and as good as gone. */
#pragma once

#include "base/clock.h"
#include "doc/patch.h"
#include "item/cache.h"
#include "item/counts.h"
#include "item/edit.h"
#include "item/sizes.h"

typedef struct item_limits {
    uint64_t partition_bytes; /* of one logical partition */
    uint64_t fixed_bytes;     /* of a container without a partition key */
} item_limits;

struct items {
    home *const *homes; /* the stores that ranges are in; the first one has the metadata too */
    size_t homes_n;
    struct item_nearest *nearest; /* graphs of vectors (item/nearest.h); NULL: there are none */
    const clock_source *clock;
    item_limits limits;
};

/* Where a range stood at some time: what session tokens are made of. */
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
    slice row; /* the row key (item/row.h): of a container of the SQL API, the id */
} item_key;

/* ---- reading ---- */

typedef struct item_found {
    store_value value; /* these two pin body: the one or the other */
    const cached_item *cached;
    item_head head;
    slice body; /* BSON */
    item_place place;
    container_range *range;
} item_found;

/* E_NOT_FOUND: not there, or expired. E_THROTTLED: the range's share is spent. On OK give the item back. Adds the charge of a read. */
MUST_CHECK err item_read(const items *s, op *o, const container *c, const item_key *key, item_found *found_out);
void item_give(item_found *found);

/* Before many are read as one request: all their ranges must have something left of their shares, and what is then read is part of what was
 * admitted. E_THROTTLED. */
MUST_CHECK err item_admit_many(const items *s, op *o, const container *c, const item_key *keys, size_t n);

/* The row key of the item with this number in the key's logical partition, copied to the operation's arena. E_NOT_FOUND: there is none, or
 * it is another partition's. Costs nothing. */
MUST_CHECK err item_id_of(const items *s, op *o, const container *c, const item_key *key, uint64_t number, slice *row_out);

/* The number of the item with this key, which is its own for life. E_NOT_FOUND. Costs nothing. */
MUST_CHECK err item_number_of(const items *s, const container *c, const item_key *key, uint64_t *number_out);

/* What a transaction has written of a container, seen on top of the moment it began at. Bodies live as long as it. */
typedef struct item_written {
    uint64_t number;
    item_head head;
    slice body; /* empty: it is deleted */
} item_written;

typedef struct item_overlay item_overlay;
struct item_overlay {
    bool (*find)(const item_overlay *overlay, uint64_t number, item_written *written_out);    /* false: it is as it was */
    bool (*next_new)(const item_overlay *overlay, uint64_t after, item_written *written_out); /* of those that it made, in order */
    /* … in the order of their primary keys: the first one from `at` on; backward, the last one before it. */
    bool (*next_row)(const item_overlay *overlay, slice at, bool backward, slice *primary_out, item_written *written_out);
};

/* What a container has in one home at one moment, to be read from while writes go on. */
typedef struct item_moment {
    container_tiles *tiles;
    const home *home;
    const store_snapshot *at;    /* of its store */
    bool borrowed;               /* `at` is given back by somebody else */
    container_index *index;      /* NULL: it cannot be used */
    const item_overlay *overlay; /* NULL: nothing was written; otherwise feeds read all items, since the index knows nothing of it */
} item_moment;

/* As it is now; or, at a snapshot that was taken before and is not given back with the moment, as it was then: without the index, since
 * nobody knows which one that was. */
void item_moment_take(container *c, const home *home, item_moment *moment_out);
void item_moment_take_at(container *c, const home *home, const store_snapshot *at, item_moment *moment_out);
void item_moment_give(item_moment *moment);

/* The item of a key of that home as it was then, expired or not. E_NOT_FOUND. On OK give it back. Costs nothing and is not admitted. */
MUST_CHECK err item_read_at(const container *c, const item_moment *moment, const item_key *key, item_found *found_out);

/* The same of the item with this number in the key's logical partition. */
MUST_CHECK err item_read_number_then(const items *s, op *o, const container *c, const item_moment *moment, const item_key *key,
                                     uint64_t number, item_found *found_out);

/* The item that a feed found at this place; if it was moved since, where it is now. E_NOT_FOUND: deleted. On OK give it back. Costs
 * nothing: the feed was charged. `moment` is the feed's, or NULL. */
MUST_CHECK err item_read_place(const items *s, const container *c, const item_moment *moment, item_place place, item_found *found_out);

bool item_expired(const container *c, const item_head *head, int64_t now_s);

/* The etag's text, quotes included: "xxxxxxxx-0000-0d00-0000-tttttttt0000" from version and ts. */
enum { ITEM_ETAG_BYTES = 38 };
void item_etag(char text[ITEM_ETAG_BYTES + 1], uint64_t version, uint32_t ts);
bool item_etag_matches(slice wanted, uint64_t version, uint32_t ts); /* also without quotes; "*" matches all */

/* The version in an item's etag. */
static inline uint64_t item_version(const item_head *head) {
    return head->etag ? head->etag : head->lsn;
}

/* ---- writing ---- */

/* A write of each kind may have an etag (if_match) and conditions (item/edit.h). They are asked when the item is there, or is not, as the
 * kind needs it. An upsert with an etag inserts where nothing is; an edit with one fails there with E_NOT_FOUND. */
typedef enum item_kind { ITEM_CREATE, ITEM_UPSERT, ITEM_REPLACE, ITEM_DELETE, ITEM_EDIT, ITEM_READ } item_kind;

/* A transaction (item/transaction.h) tells what its writes will leave on their items before they are decided. */
typedef struct item_preset {
    uint64_t number; /* of an item that it makes, from item_reserve; 0: the commit gives one */
    uint32_t ts, etag;
} item_preset;

/* … and read its items at an earlier moment: E_RETRY_WITH if the item is another one now. */
typedef struct item_expected {
    bool there;
    uint64_t number, lsn;
} item_expected;

typedef struct item_op {
    /* what is asked */
    item_kind kind;
    item_key key;
    slice body;                 /* create, upsert, replace: BSON without system properties */
    item_edit edit;             /* edit */
    item_condition *conditions; /* of any kind but read: all must hold */
    size_t conditions_n;
    slice if_match;      /* etag; empty: any */
    slice if_none_match; /* read: not modified if it matches */
    int32_t ttl;         /* item_check_body's */
    bool not_indexed;
    const item_preset *preset;     /* NULL: number, time and etag are the commit's */
    const item_expected *expected; /* NULL: anything */

    /* item/'s own */
    bool ready;                     /* edit and conditions are (item_edit_make_ready) */
    bool is_long;                   /* the committer found conditions or edit too long for it */
    range_counts counts_before;     /* of its range: to undo it */
    struct item_prepared *prepared; /* what they came to outside; NULL: they were not run there */
    const index_kept *terms;        /* of the body `listed`, by the policy of the commit's container; NULL: the committer lists them */
    slice listed;

    /* how it went */
    op op; /* charge and sentence of this one; its arena is the request's */
    err code;
    bool undone;  /* it was carried out, and taken back since another one of its batch failed */
    bool created; /* an upsert or edit that inserted */
    bool deleted; /* an edit that deleted */
    bool left;    /* an edit that wrote nothing; after and result are the item as it is, if it is there */
    bool before_there;
    item_head before; /* the item before the write */
    item_head after;  /* its stamp now */
    slice result;     /* body now: create, upsert, replace, edit, read */
    slice before_body;
    slice reply;            /* of an edit, for its client: BSON, or empty */
    uint32_t properties;    /* that an edit changed and is charged for */
    container_range *range; /* that it was applied to; valid until item_commit_give */
    store_value pin;        /* of before_body and result */
} item_op;

/* One request's operations, decided and written together. `done` runs on the committer's thread and must hand over.
 *
 * Operations of several containers are a chain of atomic commits (`also`), one for each container. The first one stands for all of them: it
 * alone is submitted, has the code, calls `done`, and is charged and given back. None of them may ask to be prepared.
 *
 * The life of a commit: item_commit_submit; `done`; if item_commit_is_long, item_commit_prepare on a thread that may take its time, and
 * submit again; then item_commit_charge, and item_commit_give when the results are no longer needed. */
typedef struct item_commit item_commit;
typedef struct item_commit_parts item_commit_parts; /* item/divide.h */
struct item_commit {
    commit base;
    const items *items;
    op *op;               /* of the request: its class, its time, its sentence */
    container *container; /* the caller's reference is held until done */
    item_op *ops;
    size_t n;
    bool atomic;           /* all or nothing, of one home; otherwise each by itself */
    item_commit *also;     /* atomic: writes of another container of the same home, decided and written together with these; or NULL */
    bool stops_at_failure; /* if not atomic: what follows a failure is not tried */
    bool prepares;         /* the caller asks item_commit_is_long; otherwise long edits are decided by the committer at once */
    int64_t range_id;      /* -1, or the range the client thinks it talks to: gone is E_RANGE_GONE */
    void (*done)(item_commit *c);

    container_tiles *tiles;   /* the newest when it was applied; NULL: it was not */
    item_commit_parts *parts; /* of a request over several homes */

    /* item/'s own */
    container_range *first;                     /* of the first operation, by the container's tiles; NULL: not looked up yet */
    bool admitted;                              /* its ranges had something left of their shares */
    bool again;                                 /* item_commit_is_long */
    unsigned attempts;                          /* to prepare it */
    size_t from;                                /* if not atomic: the first operation that is not decided yet */
    size_t began;                               /* `from` when it was submitted last: what comes before is written */
    container_tiles *past[LIMIT_EDIT_ATTEMPTS]; /* that earlier operations were applied with */
    size_t past_n;
};

/* Nothing was submitted: item_commit_give does nothing. */
static inline void item_commit_init(item_commit *c) {
    c->n = 0;
    c->tiles = NULL;
    c->parts = NULL;
    c->also = NULL;
}

/* Checks a body for create, upsert and replace: row key, partition key against `header_key` (NULL: none given), ttl, sizes. Fills op->key
 * and op->ttl. E_BAD_REQUEST and friends with the service's sentence. */
MUST_CHECK err item_check_body(op *o, const container *c, const pkey *header_key, item_op *op);

/* Written by us into every item that goes out through the SQL API, and left out of every one that comes in. */
enum { ITEM_SYSTEM_PROPERTIES = 6 };
extern const slice item_system_properties[ITEM_SYSTEM_PROPERTIES];
slice item_without_system(arena *a, slice body); /* the same bytes if there is none in it */

/* The key of an item addressed from outside: whole, within limits, hashed. */
MUST_CHECK err item_check_key(op *o, const container *c, const pkey *header_key, slice row, item_key *key_out);

/* E_THROTTLED: the share of a range is spent. E_BAD_REQUEST and friends: an edit or condition is wrong; its operation has code and
 * sentence. E_TRANSACTION_SPREAD: an atomic one is of several homes. Then nothing was submitted. */
MUST_CHECK err item_commit_submit(item_commit *c);

/* Lists the index terms of the bodies that are to be written, so that the committer need not. Before the first submit, on a thread that may
 * take its time; item_commit_submit does it itself for up to LIMIT_LISTED_BYTES. What is listed by nobody else is listed by the committer.
 */
void item_commit_list(item_commit *c);
bool item_commit_lists_much(const item_commit *c); /* more than item_commit_submit would */

/* After done: the committer did not decide some operations, since their edits or conditions are too long for it. They are to be prepared,
 * and the commit submitted again. */
static inline bool item_commit_is_long(const item_commit *c) {
    return c->again;
}

/* Runs long edits and conditions over the items as they are now. Any thread; takes up to LIMIT_EDIT_STEPS_MAX for each of them. */
void item_commit_prepare(item_commit *c);

/* What an operation costs that was decided, by what was there before and is after. */
double item_price(const item_op *op, const index_policy *index);

/* After done: the request as a whole failed (container or range gone, the store), rather than one of its operations. */
bool item_commit_failed(const item_commit *c);

/* After done, on the caller's own thread: the charges, from what was there before and after, taken from the ranges' shares; the sum is
 * returned and added to the request's. */
double item_commit_charge(item_commit *c);

/* Gives the pins and the tiles back. Harmless twice, and if nothing was submitted: then only what item_commit_init sets is looked at. */
void item_commit_give(item_commit *c);

/* ---- reading many ----
 *
 * A feed reads stretches of the hash space: range by range, and within a range in document-number order, which is creation order. Where it
 * stands is a cursor, and a cursor is about EPKs and numbers only: it stays right whatever is split or merged between two pages. */

typedef struct item_stretch {
    epk min, max;
    uint64_t after; /* items of [min, max) with greater numbers are still to come */
} item_stretch;

enum { ITEM_STRETCHES_MAX = 32 };

/* Which items a feed reads, and where it stands. */
typedef struct item_cursor {
    /* which: set once */
    const item_moment *moment; /* of one partition: as it was then (E_TRANSACTION_SPREAD: it is of another home). NULL: now */
    const item_key *partition; /* one logical partition, or NULL; its id is not looked at. Then there is one stretch, for its `after`. */
    const pkey *prefix;        /* only items whose keys start so, whatever else hashes to the same place; NULL: all of the stretches */

    /* where: moved along by the feed */
    size_t n; /* 0: all was read */
    item_stretch stretches[ITEM_STRETCHES_MAX];
} item_cursor;

/* From the beginning: all items now of [min, max); of one logical partition. The caller may set moment and prefix. */
void item_cursor_init(item_cursor *c, const epk *min, const epk *max);
void item_cursor_init_partition(item_cursor *c, const item_key *partition);
void item_cursor_copy(item_cursor *to, const item_cursor *from); /* without the room that is not in use */

/* A cursor as bytes that may travel to a client and back: appended; and read into a cursor that stands at the beginning of what is asked.
 * False: the bytes are none of ours, or lie outside of that; the cursor cannot be used then. */
void item_cursor_write(buf *out, const item_cursor *c);
bool item_cursor_read(slice bytes, item_cursor *c);

/* Called for each item; false ends the page (the item counts as not seen). */
typedef bool (*item_visit)(void *context, const item_found *found);

/* Visits items until the visitor stops or there are no more; the cursor is moved along. At most `steps_max` entries are looked at, so that
 * a page's time is bounded. E_THROTTLED only if nothing was read: a share that is spent later on ends the page. */
MUST_CHECK err item_feed(const items *s, op *o, container *c, item_cursor *cursor, size_t steps_max, item_visit visit, void *context,
                         item_mark *mark_out);

typedef struct item_view item_view; /* item/view.h */

/* Finds the items of a view by the index. *found_out false: it cannot, all are read. Otherwise it moves the view's stretch.after along, and
 * when v->stopped is not set the range is done with. */
typedef err (*item_find)(void *context, item_view *v, bool *found_out);

/* Who reads a feed, and how. */
typedef struct item_reader {
    item_visit visit;
    void *context;  /* of all callbacks */
    item_find find; /* NULL: all items are read */
    bool (*leave)(
        void *context);  /* NULL, or called when a range was read, before the cursor moves on: a visitor that held items back sees to
                            them. False: it stopped at one of them, and has set the first stretch's `after` to stand before it */
    size_t steps_max;    /* entries that are looked at by one call */
    bool unpriced;       /* the visitor adds the charge itself; a zero charge is allowed */
    bool trial;          /* of one range at most (else E_QUERY_TOO_LONG), and nothing is taken from its share: it may be done again */
    double entry_charge; /* taken with each range that the feed comes to */

    /* kept from one call to the next */
    uint32_t entered; /* the range that the charge was last taken with, if `any_entered` */
    bool any_entered;
} item_reader;

void item_reader_init(item_reader *r, item_visit visit, void *context, size_t steps_max);

/* item_feed with all that a reader can say. */
MUST_CHECK err item_feed_by(const items *s, op *o, container *c, item_cursor *cursor, item_reader *reader, item_mark *mark_out);

/* A trial that was good: what it cost, from the share of its range. */
void item_settle_trial(const items *s, const op *o, const container *c, const item_cursor *cursor, const item_mark *mark, double ru);

/* What a request cost after its feed had ended: from the share of the range where it did. The charge itself was added. */
void item_settle_more(const items *s, const op *o, const container *c, const item_mark *mark, double ru);

/* ---- reading what has changed ----
 *
 * Every write advances its range's lsn and leaves it on the item, and items are found by it, whatever their indexing: each once, in the
 * order of its last write. What is deleted or expired leaves no trace. A reader stands at an lsn of a range. After a split the children go
 * on with their parent's; after a merge each part of the new range goes on with the lsn of the range it was. */

typedef struct item_changes {
    const item_key *partition; /* one logical partition, or NULL: [min, max), which must lie within one range */
    const pkey *prefix;        /* of [min, max) only items whose keys start so; NULL: all */
    epk min, max;
    uint64_t after;   /* those with greater lsns are to come; moved along */
    bool from_now;    /* nothing is read: `after` is moved to the range's end */
    int64_t since_s;  /* only those written in this second or later; 0: all */
    int64_t until_us; /* monotonic: the page ends then, with what it has; 0: it need not */
    bool unpriced;    /* the house reads for itself: neither admitted nor charged */
    bool more;        /* there may be more behind `after` at once */
} item_changes;

/* Visits items until the visitor stops, the time is over, or there are no more. The visitor must take an item with the same lsn as the one
 * before it. E_RANGE_GONE: [min, max) is of several ranges by now. E_THROTTLED. Adds its charge, if nothing was found too. */
MUST_CHECK err item_changes_read(const items *s, op *o, container *c, item_changes *changes, item_visit visit, void *context,
                                 item_mark *mark_out);

/* ---- transactions ---- */

/* Document numbers for items that a transaction will make: `n` from `first` on are nobody else's. `done` runs on the committer's thread. */
typedef struct item_reserve item_reserve;
struct item_reserve {
    commit base;
    container *container; /* the caller's reference is held until done */
    const item_key *key;
    uint32_t n;
    home *home; /* of the key's range */
    uint64_t first;
    void (*done)(item_reserve *r);
};
void item_reserve_submit(const items *s, item_reserve *r);

/* The key that an item's values of the container's unique key `index` have in the store, and the item that held it then. E_NOT_FOUND. */
void item_unique_key(const container *c, unsigned index, const item_key *key, slice body, layout_key *k);
MUST_CHECK err item_unique_holder_then(const container *c, const item_moment *moment, slice unique_key, item_found *found_out);

/* What the range of a key gives, in RU/s; 0: no limit. */
double item_rate(const container *c, const item_key *key);

/* What a transaction cost, from the share of its range; `counted`: this is the one request that it counts as. */
void item_settle(const items *s, const op *o, const container *c, const item_key *key, double ru, bool counted, bool failed);

/* ---- moving items to where their range has its own ----
 *
 * After a split, one commit's worth of the move of range `range_id` from the sources that it is leaving. `cost_max` as for a sweep.
 * `done` runs on the committer's thread; *ended_out then says that nothing is left to move. */
typedef struct item_move item_move;
struct item_move {
    commit base;
    const items *items;
    container *container; /* the caller's reference is held until done */
    uint32_t range_id;
    unsigned cost_max;
    home *home; /* the range's */
    bool ended;
    uint64_t moved;
    void (*done)(item_move *m);
};
void item_move_submit(item_move *m);

/* ---- expiry ---- */

/* A ttl was turned on: items of before get their expiry entries in the background. Within a solo commit; then part->ttl_backfill is set. */
void item_backfill_start(commit_group *group, uint32_t container);

/* Removes expired items of a container by a commit of its own that waits its turn like any other, and brings the ttl backfill on by a step.
 * `cost_max` bounds the work: an item costs 1, and 1 more for each 4 KB. `in_flight` is counted down when it has ended. */
void item_sweep(const items *s, container *c, unsigned cost_max, atomic_uint *in_flight);
