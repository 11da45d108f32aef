/* account.h — databases and containers by name and by rid, their settings and their throughput; the top of the core.
 *
 * Everything is held in memory and kept in STORE_META. Lookups take a shared lock for as long as it takes to find and count a reference.
 * Changes go through the committer as solo commits: checked against what is there, written, and only then seen by others.
 *
 * STORE_META, beside what item/layout.h lists (numbers big-endian, values BSON):
 *   'A'                        → the account: next numbers, never used twice
 *   'D' · database u32         → a database
 *   'C' · database · container → a container: settings, partition map, segments
 *   'O' · offer u32            → an offer */
#pragma once

#include "account/offer.h"
#include "account/rid.h"
#include "item/item.h"

typedef struct account account;

typedef struct account_options {
    store *store;
    const clock_source *clock;
    size_t item_cache_bytes;
    uint32_t partition_max_throughput; /* RU/s that one physical partition gives: t in N = ceil(T / t) */
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
MUST_CHECK err account_offer(account *a, const rid *offer_rid, offer *offer_out);
bool account_offer_of(account *a, uint32_t database, uint32_t container, offer *offer_out); /* container 0: the database's own */

void database_give(database *d);

/* In creation order, those with number > after; the visitor returns false to stop. It must not call back into the account. */
void account_each_database(account *a, uint32_t after, bool (*visit)(void *, const database *), void *context);
void account_each_container(account *a, const database *d, uint32_t after, bool (*visit)(void *, const container *), void *context);
void account_each_offer(account *a, uint32_t after, bool (*visit)(void *, const offer *), void *context);

/* ---- changing ---- */

typedef struct account_change account_change;
struct account_change {
    commit base;
    commit_hook hook;
    account *account;
    op *op; /* sentence of an error; arena for what the change makes */

    /* what is asked */
    slice database, container; /* names */
    bool database_by_rid, container_by_rid;
    slice settings;            /* BSON of a container's properties */
    bool hierarchical_allowed; /* the client's API version knows MultiHash keys */
    throughput_setting throughput;
    rid offer_rid;
    slice if_match;

    /* how it went: references of the caller's */
    database *database_out;
    container *container_out;
    offer offer_out;
    bool offer_made;

    void (*publish)(account_change *change); /* account's own */
    void *made;
    void (*done)(account_change *change); /* committer's thread: hand over */
};

void account_create_database(account_change *change);
void account_delete_database(account_change *change);
void account_create_container(account_change *change);
void account_replace_container(account_change *change);
void account_delete_container(account_change *change);
void account_replace_offer(account_change *change);

/* ---- background ---- */

void account_tick(account *a); /* many times a second, on the thread of account_stop: expiry */
