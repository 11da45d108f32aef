/* account.h — databases and containers by name and by rid, their settings and their throughput; the top of the core.
 *
 * Everything is held in memory and stored in STORE_META. Lookups take a shared lock only until they have found and counted a reference.
 * Changes go through the committer as solo commits: checked against the current state, written, and only then visible to others.
 *
 * Records in STORE_META, in addition to those in item/layout.h (numbers big-endian, values BSON):
 *   'A'                        → the account: the next numbers to assign; numbers are never reused
 *   'D' · database u32         → a database
 *   'C' · database · container → a container: settings, partition map, location of each range's items; the API that made it, if not SQL,
 *                                and that front end's memo
 *   'O' · offer u32            → an offer
 *   'U' · database · user      → a user
 *   'P' · database · user · permission u32 → a permission: account/users.h
 *   'K' · database · key       → a client encryption key: account/encryption.h
 *   'E' · number u64           → an event: a split, a merge
 *   'S' · …                    → a stored procedure, trigger or function: account/scripts.h
 *   'X' · container u32        → a deleted container whose data in other homes is still to be deleted
 *
 * All of these are in the first home's store. With several stores each has a record 'H' (which one it is), and all but the first have
 *   'T' · container u32        → the tiles after the last split or merge there; newer than the container's record after a crash in between
 */
#pragma once

#include "account/offer.h"
#include "account/rid.h"
#include "item/item.h"
#include "item/reindex.h"
#include "partition/split_merge.h"

typedef struct account account;
typedef struct account_script account_script; /* account/scripts.h */
typedef enum account_script_kind { ACCOUNT_FUNCTION, ACCOUNT_TRIGGER, ACCOUNT_PROCEDURE, ACCOUNT_SCRIPT_KINDS } account_script_kind;

/* Limits of partitions, and which automatic behaviour is on. A limit of 0 means the service's. */
typedef struct account_rules {
    uint32_t range_throughput;         /* RU/s of one physical partition: t in N = ceil(T / t) */
    uint32_t initial_range_throughput; /* RU/s for which each range of a new container is made, if its throughput is manual and above t */
    uint64_t range_bytes;              /* size at which a physical partition splits */
    uint64_t partition_bytes;          /* maximum size of a logical partition */
    uint64_t fixed_bytes;              /* maximum size of a container without a partition key */
    uint32_t page_ms;                  /* time limit of one page of a query or feed; 0: 5 s */
    bool unlimited;                    /* charges are reported, but no request is throttled */
    bool burst;                        /* unused throughput accumulates as burst credit */
    bool follow_load;                  /* shares follow the load within a container's total */
    bool no_merges;                    /* ranges are merged by command only */
    bool serverless;                   /* no provisioned throughput: each physical partition gets 5,000 RU/s */
} account_rules;

/* In which stores the ranges of a new container are placed. */
typedef enum account_placement { ACCOUNT_FIRST, ACCOUNT_ROUND_ROBIN } account_placement;

typedef struct account_options {
    store *store;         /* for metadata and ranges */
    store *const *others; /* more stores for ranges: the same ones in the same order at each start; new ones may be appended */
    size_t others_n;      /* below HOMES_MAX */
    account_placement placement;
    const clock_source *clock;
    size_t item_cache_bytes;
    size_t vector_bytes; /* memory limit of vector graphs; 0: no graphs */
    account_rules rules;
    bool background; /* a background thread calls account_balance; otherwise the caller does */
} account_options;

/* One version of a database's properties; counted, never changed. */
typedef struct database {
    atomic_uint refs;
    uint32_t number;
    rid rid;
    char *id;
    int64_t ts;
    uint64_t version;
    bool shares_throughput; /* it has an offer, which its containers share */
    slice memo;             /* BSON that a front end keeps with it (settings of its service), or empty; not interpreted here */
} database;

MUST_CHECK err account_open(const account_options *options, account **account_out, char *why, size_t why_n);
/* Writes what was submitted and accepts no more; lookups still work until account_close. Shutdown order: account_stop, send the pending
 * answers, account_close. */
void account_stop(account *a);
void account_close(account *a);

const items *account_items(const account *a);
int64_t account_page_deadline_us(const account *a); /* deadline of a page that begins now, by the account's monotonic clock */
uint64_t account_lsn(const account *a);             /* counts changes of databases, containers and offers; never decreases */

/* ---- finding ---- */

/* `by_rid`: the text looks like a rid; it is tried as a rid first, then as a name. On OK the caller releases the result. E_NOT_FOUND /
 * E_OWNER_NOT_FOUND. */
MUST_CHECK err account_database(account *a, slice name, bool by_rid, database **database_out);
MUST_CHECK err account_container(account *a, slice database, bool database_by_rid, slice name, bool by_rid, container **container_out);
/* The same by name only, where the case of ASCII letters does not matter; an exact match is preferred. */
MUST_CHECK err account_container_any_case(account *a, slice database, slice name, container **container_out);
/* A reference to the newest version of a container, even if it was renamed. NULL: it was deleted. */
container *account_container_newest(account *a, const container *c);
MUST_CHECK err account_offer(account *a, const rid *offer_rid, offer *offer_out);
bool account_offer_of(account *a, uint32_t database, uint32_t container, offer *offer_out); /* container 0: the database's own */

void database_give(database *d);

/* Visits, in creation order, the resources with number > after; the visitor returns false to stop. It must not call back into the
 * account. */
void account_each_database(account *a, uint32_t after, bool (*visit)(void *, const database *), void *context);
void account_each_container(account *a, const database *d, uint32_t after, bool (*visit)(void *, const container *), void *context);
void account_each_offer(account *a, uint32_t after, bool (*visit)(void *, const offer *), void *context);

/* Values that an answer contains in addition to the offer itself. */
typedef struct offer_state {
    uint32_t least;      /* minimum allowed value */
    uint32_t instant;    /* highest value reachable without a split */
    bool pending;        /* splits are in progress */
    uint64_t storage;    /* stored bytes of its container or database */
    uint32_t ranges;     /* physical partitions */
    uint32_t containers; /* containers that use it */
} offer_state;
offer_state account_offer_state(account *a, const offer *o);

/* The rules in force, defaults filled in. */
const account_rules *account_get_rules(const account *a);

/* ---- changing ---- */

/* Each change of a resource is a struct: inputs first, outputs (`_out`) below. The caller fills in the inputs, zeroes the rest, and submits
 * the struct once. It keeps the struct and the bytes it points to alive until `done`. Outputs are references owned by the caller, also
 * after an error, or NULL. */

/* Common to all changes. */
typedef struct account_change account_change;
typedef struct account_verb account_verb; /* private to account/ */
struct account_change {
    commit commit; /* commit.code is the result */
    commit_hook hook;
    account *account;
    op *op;                               /* for error messages; its arena holds what the change makes */
    slice if_match;                       /* required etag of the changed resource; empty: any */
    void (*done)(account_change *change); /* runs on the committer's thread: must only hand over */
    void *context;                        /* the caller's */

    const account_verb *verb; /* these three are private to account/ */
    void *made;
    bool wide; /* counted in account.wide (may affect several homes) */
};

/* An existing resource, as a client names it. */
typedef struct account_name {
    slice text;
    bool by_rid; /* the text looks like a rid: tried as a rid first, then as a name */
} account_name;

typedef struct database_creation {
    account_change base;
    slice id;
    throughput_setting throughput; /* shared by its containers */

    database *database_out;
    offer offer_out; /* if offer_made */
    bool offer_made;
} database_creation;

/* Replaces the memo of a database. */
typedef struct database_noting {
    account_change base;
    account_name database;
    slice memo;        /* BSON, up to LIMIT_MEMO_BYTES */
    uint64_t expected; /* database->version that the memo was made from, else E_PRECONDITION; 0: any */

    database *database_out;
} database_noting;

typedef struct database_deletion {
    account_change base;
    account_name database;
} database_deletion;

typedef struct container_creation {
    account_change base;
    account_name database;
    slice settings;            /* BSON of its properties */
    bool hierarchical_allowed; /* the client's API version knows MultiHash keys */
    slice rows;                /* BSON: how its rows are identified, stored and indexed, fixed for its life; empty: as in the SQL API
                                *   {"typed": true,                                      partition keys of any BSON type (partition/partition_key.h)
                                *    "key": [{"path": "/a", "order": "descending"}, …],  the row key (item/row.h); else the text of `id`
                                *    "clustered": true,                                  rows lie in key order (item/layout.h)
                                *    "ordered": true,                                    … and partitions keep creation order and an index
                                *    "lean": true,                                       only named paths are indexed (index/policy.h)
                                *    "tokens": [9, 13, …],                               types of the partition key, for tokens (partition/token.h)
                                *    "rangeBytes": 32212254720,                          storage limit of a range, if below the account's
                                *    "ttl": "_ttl"}                                      the member with an item's own ttl; else `ttl` */
    throughput_setting throughput;
    slice api;         /* the API that makes it, in lower case; empty: "sql" */
    slice memo;        /* BSON that the front end stores with it, up to LIMIT_MEMO_BYTES; empty: none */
    uint64_t replaces; /* version of a container with the same name: if it is still that one and has no items, the same change deletes it
                        * and the new one keeps its throughput. E_PRECONDITION: it changed, or has items. 0: E_CONFLICT */
    bool truncates;    /* the replaced container may have items; they are deleted with it */
    bool any_case;     /* E_CONFLICT also if a container's name differs only in the case of ASCII letters */
    uint64_t as_of;    /* account_lsn before databases' memos were read from which the settings follow: E_RETRY_WITH if a memo was replaced
                        * after it. 0: none was read */

    container *container_out;
    offer offer_out; /* if offer_made */
    bool offer_made;
    void *replaced; /* private to account/ */
} container_creation;

/* Replaces settings, memo or both, in one change. Inputs that are not given stay as they are: ALTER TABLE changes only the memo,
 * createIndex the memo and the indexing policy. A front end that computes the new memo from the old one sets `expected` to the version it
 * read: E_PRECONDITION if that is not the newest. */
typedef struct container_replacement {
    account_change base;
    account_name database, container;
    slice settings;    /* as in a creation; the partition key may be omitted. Empty: unchanged */
    const slice *memo; /* NULL: unchanged */
    uint64_t expected; /* container->version; 0: any */
    slice api;         /* E_FORBIDDEN if another API made the container; empty: any */

    container *container_out;
    index_change index;   /* these three are private to account/ */
    container *wanted;    /* the new container, if there are several homes */
    uint64_t wanted_from; /* the version that `wanted` replaces */
} container_replacement;

/* Renames within the same database: data, number, rid and memo stay. E_CONFLICT: the name is taken. */
typedef struct container_renaming {
    account_change base;
    account_name database, container;
    slice id;
    bool replaces; /* if another container has the name, the same change deletes it */

    container *container_out;
    void *replaced; /* private to account/ */
} container_renaming;

typedef struct container_deletion {
    account_change base;
    account_name database, container;
} container_deletion;

typedef struct offer_replacement {
    account_change base;
    rid offer;
    throughput_setting throughput;
    const uint8_t *bucket_percents; /* percentages of throughput buckets 1 to 5; NULL: unchanged */

    offer offer_out;
} offer_replacement;

void account_create_database(database_creation *create);
void account_note_database(database_noting *note);
void account_delete_database(database_deletion *remove);
void account_create_container(container_creation *create);
void account_replace_container(container_replacement *replace);
void account_rename_container(container_renaming *renaming);
void account_delete_container(container_deletion *remove);
void account_replace_offer(offer_replacement *replace);

/* ---- splits and merges ----
 *
 * Automatic, from account_balance; or manual, one at a time, by these functions, which block. E_RANGE_GONE: the range does not exist
 * (any more). E_BAD_REQUEST with a sentence: the split or merge is not possible. */

typedef struct account_event {
    uint64_t number;
    int64_t ts_ms;
    char database[LIMIT_NAME_BYTES + 1], container[LIMIT_NAME_BYTES + 1];
    plan_reason reason;
    uint32_t before[8], after[8]; /* ids of the first few ranges */
    uint32_t before_n, after_n;   /* number of ranges */
    uint64_t items, bytes;        /* reassigned to other ranges by changing the map; nothing was copied */
    uint32_t took_us;             /* from decision to effect */
    uint32_t held_us; /* the part of took_us in which the committer did nothing else, so that writers waited; 0 after a restart */
} account_event;

/* The container's ranges are then not merged automatically for five minutes. */
MUST_CHECK err account_split(account *a, op *o, container *c, uint32_t range_id, uint32_t parts);
MUST_CHECK err account_merge(account *a, op *o, container *c, uint32_t first_id, uint32_t second_id); /* the ranges must be neighbours */

/* ---- another container in the place of one ----
 *
 * A container cannot change its partition key. So a client copies it into another one of the same database (by the log of versions, while
 * writers go on), then it freezes the container, copies the rest, and lets the two exchange their names. All three block.
 *
 *   serving ──freeze──▶ frozen ──switch──▶ retired: under the other's name, read-only for ever
 *      ▲                  │
 *      └──thaw, time over─┘
 *
 * A freeze is in memory only, and ends by itself: whatever becomes of its client or of the server, writers go on. */

enum { ACCOUNT_FREEZE_MS_MAX = 60000 };

/* Refuses writes with E_FROZEN from now on; when it returns, all that were accepted before are readable. Deletes of logical partitions must
 * be done (E_BUSY). `token_io`: 0; or a freeze that is to be prolonged. Returns the freeze's token. E_CONFLICT: somebody else's freeze, or
 * the one to be prolonged is over. */
MUST_CHECK err account_freeze(account *a, op *o, container *c, unsigned ms, int64_t *token_io);
void account_thaw(container *c, int64_t token); /* nothing if the freeze is over */

/* Keeps others from doing the same for `ms`: a claim is in memory too, and ends by itself. The same claimant prolongs it. E_CONFLICT:
 * somebody else's claim. */
MUST_CHECK err account_claim(const account *a, op *o, container *c, uint64_t claimant, unsigned ms);

/* Exchanges the names of a frozen container and of another one, in one write; the frozen one is retired. E_PRECONDITION: the freeze is
 * over, so that there may be writes which `with` lacks. E_BAD_REQUEST: they were made by different APIs, or their front end's memos differ.
 */
MUST_CHECK err account_switch(account *a, op *o, const container *c, const container *with, int64_t token);

enum { ACCOUNT_EVENTS_MAX = 1000 };
/* Fills in the newest events, newest first; returns their number. */
size_t account_events(account *a, account_event *events, size_t max);

/* ---- background ---- */

/* One balancing round: adds the meters to the history, splits ranges that must be split, merges ranges that may be merged, and moves items
 * to their range's own segment for at most `move_ms`. Returns whether there is more to move. Call it at least once a second, from one
 * thread at a time; account_wake requests a round soon. Not needed with options.background. */
bool account_balance(account *a, unsigned move_ms);
void account_wake(account *a);

void account_tick(account *a); /* call many times a second, on the thread of account_stop: starts expiry */
