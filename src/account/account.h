/* account.h — databases and containers by name and by rid, their settings and their throughput; the top of the core.
 *
 * Everything is held in memory and kept in STORE_META. Lookups take a shared lock for as long as it takes to find and count a reference.
 * Changes go through the committer as solo commits: checked against what is there, written, and only then seen by others.
 *
 * STORE_META, beside what item/layout.h lists (numbers big-endian, values BSON):
 *   'A'                        → the account: next numbers, never used twice
 *   'D' · database u32         → a database
 *   'C' · database · container → a container: settings, partition map, where each range's items are; who made it, if not the SQL API, and
 *                                what that front end remembers of it
 *   'O' · offer u32            → an offer
 *   'U' · database · user      → a user
 *   'P' · database · user · permission u32 → a permission: account/users.h
 *   'E' · number u64           → an event: a split, a merge
 *   'S' · …                    → a stored procedure, trigger or function: account/scripts.h
 *   'X' · container u32        → a deleted container whose bytes in other homes are to go
 *
 * All of that is in the first home's store. With several stores each has a record 'H' (which one it is), and those but the first
 *   'T' · container u32        → the tiles after the last split or merge there; newer than the container's record if that was not written
 */
#pragma once

#include "account/offer.h"
#include "account/rid.h"
#include "item/item.h"
#include "item/reindex.h"
#include "partition/plan.h"

typedef struct account account;
typedef struct account_script account_script; /* account/scripts.h */
typedef enum account_script_kind { ACCOUNT_FUNCTION, ACCOUNT_TRIGGER, ACCOUNT_PROCEDURE, ACCOUNT_SCRIPT_KINDS } account_script_kind;

/* What partitions may hold and give, and what happens by itself. Zero limits are the service's. */
typedef struct account_rules {
    uint32_t range_throughput; /* RU/s that one physical partition gives: t in N = ceil(T / t) */
    uint64_t range_bytes;      /* what it may hold before it splits */
    uint64_t partition_bytes;  /* what a logical partition may hold */
    uint64_t fixed_bytes;      /* what a container without a partition key may hold */
    bool unlimited;            /* charges are told, but nobody is refused for them */
    bool burst;                /* idle times give credit */
    bool follow_load;          /* shares follow the load within a container's total */
    bool no_merges;            /* ranges are merged by command only */
    bool serverless;           /* no throughput is provisioned: each physical partition gives 5,000 RU/s */
} account_rules;

/* Where the ranges of a new container go. */
typedef enum account_placement { ACCOUNT_FIRST, ACCOUNT_ROUND_ROBIN } account_placement;

typedef struct account_options {
    store *store;         /* holds the metadata, and ranges */
    store *const *others; /* further stores for ranges, the same ones in the same order each time; more may be added at the end */
    size_t others_n;      /* below HOMES_MAX */
    account_placement placement;
    const clock_source *clock;
    size_t item_cache_bytes;
    size_t vector_bytes; /* that graphs of vectors may take; 0: there are none */
    account_rules rules;
    bool background; /* a thread of its own calls account_balance; otherwise the caller does */
} account_options;

/* One version of a database's properties; counted, never changed. */
typedef struct database {
    atomic_uint refs;
    uint32_t number;
    rid rid;
    char *id;
    int64_t ts;
    uint64_t version;
    bool shares_throughput; /* it has an offer that its containers share */
} database;

MUST_CHECK err account_open(const account_options *options, account **account_out, char *why, size_t why_n);
/* Writes what was submitted and takes no more; lookups go on until account_close. At the server's end: stop, let the answers out, close. */
void account_stop(account *a);
void account_close(account *a);

const items *account_items(const account *a);
uint64_t account_lsn(const account *a); /* counts the changes of databases, containers and offers; never goes back */

/* ---- finding ---- */

/* `by_rid`: the text looks like a rid; it is tried as one first, then as a name. On OK give the result back. E_NOT_FOUND /
 * E_OWNER_NOT_FOUND. */
MUST_CHECK err account_database(account *a, slice name, bool by_rid, database **database_out);
MUST_CHECK err account_container(account *a, slice database, bool database_by_rid, slice name, bool by_rid, container **container_out);
/* The newest version of a container, whatever it is called by now; a reference. NULL: it was deleted. */
container *account_container_newest(account *a, const container *c);
MUST_CHECK err account_offer(account *a, const rid *offer_rid, offer *offer_out);
bool account_offer_of(account *a, uint32_t database, uint32_t container, offer *offer_out); /* container 0: the database's own */

void database_give(database *d);

/* In creation order, those with number > after; the visitor returns false to stop. It must not call back into the account. */
void account_each_database(account *a, uint32_t after, bool (*visit)(void *, const database *), void *context);
void account_each_container(account *a, const database *d, uint32_t after, bool (*visit)(void *, const container *), void *context);
void account_each_offer(account *a, uint32_t after, bool (*visit)(void *, const offer *), void *context);

/* What an offer's answer says beside the offer itself. */
typedef struct offer_state {
    uint32_t least;      /* the lowest value it may be changed to */
    uint32_t instant;    /* the highest that needs no split */
    bool pending;        /* splits are still under way */
    uint64_t storage;    /* bytes of what it is for */
    uint32_t ranges;     /* physical partitions */
    uint32_t containers; /* that draw from it */
} offer_state;
offer_state account_offer_state(account *a, const offer *o);

/* The settings by which partitions are limited and throughput divided, defaults filled in. */
const account_rules *account_get_rules(const account *a);

/* ---- changing ---- */

/* Each change of a resource is a struct of its own: what it takes, and below that what it gives. The caller fills in what it takes, leaves
 * the rest zero, and submits the struct once; the struct and the bytes that it points to are the caller's until `done`. What is given is a
 * reference of the caller's, also after an error, or NULL. */

/* What all changes have. */
typedef struct account_change account_change;
typedef struct account_verb account_verb; /* account/'s own */
struct account_change {
    commit commit; /* commit.code is how it went */
    commit_hook hook;
    account *account;
    op *op;                               /* sentence of an error; arena for what the change makes */
    slice if_match;                       /* etag that what is changed must have; empty: any */
    void (*done)(account_change *change); /* committer's thread: hand over */
    void *context;                        /* the caller's */

    const account_verb *verb; /* these three are account/'s own */
    void *made;
    bool wide; /* it is counted as one that may be of several homes */
};

/* A resource that is there, as a client names it. */
typedef struct account_name {
    slice text;
    bool by_rid; /* the text looks like a rid: it is tried as one first, then as a name */
} account_name;

typedef struct database_creation {
    account_change base;
    slice id;
    throughput_setting throughput; /* that its containers share */

    database *database_out;
    offer offer_out; /* if offer_made */
    bool offer_made;
} database_creation;

typedef struct database_deletion {
    account_change base;
    account_name database;
} database_deletion;

typedef struct container_creation {
    account_change base;
    account_name database;
    slice settings;            /* BSON of its properties */
    bool hierarchical_allowed; /* the client's API version knows MultiHash keys */
    slice rows;                /* BSON: how its rows are told apart, kept and indexed, for its life; empty: as the SQL API has them
                                *   {"typed": true,                                      partition keys of any BSON type (partition/key.h)
                                *    "key": [{"path": "/a", "order": "descending"}, …],  the row key (item/row.h); else the text of `id`
                                *    "clustered": true,                                  rows lie in key order (item/layout.h)
                                *    "lean": true}                                       index entries of the named paths only (index/policy.h) */
    throughput_setting throughput;
    slice api;  /* whose front end makes it, in small letters; empty: "sql" */
    slice memo; /* BSON that the front end wants to remember of it, up to LIMIT_MEMO_BYTES; empty: nothing */

    container *container_out;
    offer offer_out; /* if offer_made */
    bool offer_made;
} container_creation;

/* Settings, memo or both, at once. What is not given stays: an ALTER TABLE changes the memo alone, a createIndex the memo and the indexing
 * policy. A front end that computes the new memo from the old one says which version it read: E_PRECONDITION if that is not the newest. */
typedef struct container_replacement {
    account_change base;
    account_name database, container;
    slice settings;    /* as in a creation; the partition key may be left out. Empty: as they are */
    const slice *memo; /* NULL: as it is */
    uint64_t expected; /* container->version; 0: any */
    slice api;         /* E_FORBIDDEN if another API made the container; empty: any */

    container *container_out;
    index_change index;   /* these three are account/'s own */
    container *wanted;    /* over several homes: the container as it is to be … */
    uint64_t wanted_from; /* … and the version that it takes the place of */
} container_replacement;

/* Another name in the same database: data, number, rid and memo stay. E_CONFLICT: the name is taken. */
typedef struct container_renaming {
    account_change base;
    account_name database, container;
    slice id;
    bool replaces; /* a container that has the name is deleted by the same change */

    container *container_out;
    void *replaced; /* account/'s own */
} container_renaming;

typedef struct container_deletion {
    account_change base;
    account_name database, container;
} container_deletion;

typedef struct offer_replacement {
    account_change base;
    rid offer;
    throughput_setting throughput;
    const uint8_t *bucket_percents; /* percentages of throughput buckets 1 to 5; NULL: as they are */

    offer offer_out;
} offer_replacement;

void account_create_database(database_creation *create);
void account_delete_database(database_deletion *remove);
void account_create_container(container_creation *create);
void account_replace_container(container_replacement *replace);
void account_rename_container(container_renaming *renaming);
void account_delete_container(container_deletion *remove);
void account_replace_offer(offer_replacement *replace);

/* ---- splits and merges ----
 *
 * By themselves, from account_balance; or asked for, one at a time, by these. The caller waits: a thread that may. E_RANGE_GONE: no such
 * range (any more); E_BAD_REQUEST with a sentence: it cannot be. */

typedef struct account_event {
    uint64_t number;
    int64_t ts_ms;
    char database[LIMIT_NAME_BYTES + 1], container[LIMIT_NAME_BYTES + 1];
    plan_reason reason;
    uint32_t before[8], after[8]; /* ids of the ranges, the first few */
    uint32_t before_n, after_n;   /* how many there were */
    uint64_t items, bytes;        /* that changed hands, by the map alone */
    uint32_t took_us;             /* from decision to effect */
    uint32_t held_us;             /* of that, how long the committer did nothing else: what writers may have waited; 0 after a restart */
} account_event;

/* The container's ranges are then left unmerged for five minutes. */
MUST_CHECK err account_split(account *a, op *o, container *c, uint32_t range_id, uint32_t parts);
MUST_CHECK err account_merge(account *a, op *o, container *c, uint32_t first_id, uint32_t second_id); /* neighbours */

enum { ACCOUNT_EVENTS_MAX = 1000 };
/* The newest, newest first; returns how many. */
size_t account_events(account *a, account_event *events, size_t max);

/* ---- background ---- */

/* One round: what was metered becomes history; ranges that must be are split, those that may be are merged; items are moved to their
 * range's own segment for at most `move_ms`. Returns whether there is more to move. Call it once a second or more often, from one thread
 * at a time; account_wake asks for a round soon. With options.background nobody need. */
bool account_balance(account *a, unsigned move_ms);
void account_wake(account *a);

void account_tick(account *a); /* many times a second, on the thread of account_stop: expiry */
