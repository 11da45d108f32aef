/* account_int.h — within account/: the tables behind account.h. Only the committer's thread changes them, under the write lock. Other
 * threads read them under the read lock; the committer's thread reads without a lock. uthash keeps insertion order, which is creation
 * order. */
#pragma once

#include <pthread.h>
/* uthash's default has unannotated switch fall-through, which clang rejects. */
#define HASH_FUNCTION HASH_OAT
#include <uthash.h>

#include "account/scripts.h"
#include "account/users.h"

typedef struct script_node script_node;
typedef struct container_node container_node;
typedef struct database_node database_node;
typedef struct user_node user_node;
typedef struct permission_node permission_node;

struct container_node {
    container *container;
    database_node *database;
    script_node *scripts[ACCOUNT_SCRIPT_KINDS]; /* by name */
    UT_hash_handle by_name;                     /* in its database's table */
    UT_hash_handle by_rid;                      /* in the account's table */
    UT_hash_handle by_sweep;                    /* in the account, keyed by rid: present while the container has a ttl or keeps versions */
    bool is_swept;
};

struct database_node {
    database *database;
    container_node *containers;                  /* by name */
    user_node *users, *users_by_name;            /* users: by number, so in creation order even after renames */
    struct encryption_key_node *encryption_keys; /* by name (account/encryption.c) */
    bucket **pool;                               /* throughput shared by its containers: one bucket per physical partition */
    size_t pool_n;
    bucket **spare; /* buckets of the previous pool; the next pool reuses them, so repeated resizing does not pile them up */
    size_t spare_n;
    UT_hash_handle by_name;
    UT_hash_handle by_number;
};

struct user_node {
    user *user;
    database_node *database;
    permission_node *permissions, *permissions_by_name, *permissions_by_resource;
    UT_hash_handle by_number; /* in its database's table */
    UT_hash_handle by_name;
};

struct permission_node {
    permission *permission;
    user_node *user;
    slice resource;           /* the granted resource, as bytes; in the permission's arena */
    UT_hash_handle by_number; /* in its user's table */
    UT_hash_handle by_name;
    UT_hash_handle by_resource;
};

typedef struct offer_node {
    offer offer;
    UT_hash_handle by_number;
    UT_hash_handle by_resource; /* database and container numbers */
} offer_node;

/* The next numbers to assign, and the version counter behind metadata etags; every change takes a version. */
typedef struct account_numbers {
    uint32_t database, container, segment, offer, script, user, permission, encryption_key;
    uint64_t version;
} account_numbers;

/* The thread that splits, merges and moves. */
typedef struct balancer {
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool woken, stopping;
    pthread_mutex_t turn;      /* held during a round, a split or a merge, so that only one runs */
    int64_t ticked_s;          /* the last second whose meters were read */
    unsigned char last_rid[8]; /* the last container of a round whose list was full; the next round starts after it */
} balancer;

struct account {
    items items;
    home *homes[HOMES_MAX]; /* items.homes; the first holds the STORE_META records */
    account_rules rules;
    account_placement placement;
    pthread_rwlock_t lock;
    database_node *databases_by_name, *databases_by_number;
    container_node *containers_by_rid;
    container_node *containers_swept;
    offer_node *offers, *offers_by_resource;
    account_numbers numbers; /* used only by the committer */
    uint64_t noted;          /* likewise: the version of the newest memo of a database since the start */
    _Atomic uint64_t lsn;    /* lsn of the newest published change */
    atomic_uint sweeps_in_flight;
    atomic_uint wide;           /* changes in progress that affect several homes (account/wide.h) */
    unsigned char swept_rid[8]; /* the container swept last */
    balancer balancer;
    pthread_mutex_t events_lock;
    account_event *events; /* ring buffer */
    uint64_t events_next;  /* number of the next event; only the committer changes it, under the lock */
};

/* ---- tables ---- */
/* The storage limit of a container's ranges. */
static inline uint64_t account__range_bytes(const account *a, const container *c) {
    return c->range_bytes && c->range_bytes < a->rules.range_bytes ? c->range_bytes : a->rules.range_bytes;
}

database_node *account__find_database(account *a, slice name, bool by_rid);
container_node *account__find_container(account *a, database_node *d, slice name, bool by_rid);
container_node *account__find_any_case(account *a, database_node *d, slice name); /* an exact match, or else one that differs in case */
offer_node *account__find_offer(account *a, uint32_t database, uint32_t container);
void account__add_database(account *a, database *d);
void account__swap_database(database_node *node, database *d); /* takes ownership of the reference */
void account__add_container(account *a, database_node *d, container *c);
void account__add_offer(account *a, const offer *o);
void account__note_sweeps(account *a, container_node *node); /* call after node->container was set */
void account__remove_container(account *a, container_node *node);
void account__remove_database(account *a, database_node *node);
void account__remove_offer(account *a, offer_node *node);
void account__swap_container(account *a, container_node *node, container *c);   /* takes the reference over */
void account__rename_container(account *a, container_node *node, container *c); /* likewise, under a new name; keeps its place in lists */
/* Two containers of one database under each other's names. Takes both references over. */
void account__exchange_containers(account *a, container_node *one, container *c, container_node *other, container *d);
/* Makes these settings the current ones of a home; call on its committer's thread. home NULL: all homes, for a container not in use yet. */
void account__set_rules(const container *c, const home *home);
container_node *account__node_of(account *a, const container *c); /* NULL: deleted */

database *database_new(uint32_t number, slice id, int64_t ts, uint64_t version, bool shares, slice memo);

/* ---- changes ---- */

/* The steps of a change: `apply` checks and writes records; `publish` updates the tables once the records are on disk, under the write
 * lock. */
struct account_verb {
    store_use use;
    err (*apply)(account_change *change, commit_group *group);
    void (*ended)(account_change *change, err code); /* may be NULL; called before `publish`, also if the write failed */
    void (*publish)(account_change *change);
    bool (*goes_on)(account_change *change); /* may be NULL; called after the commit. True: the change continues and ends later itself */
};

void account__submit(account_change *change, const account_verb *verb); /* to the committer */

/* Within apply: the container, whose etag is checked; a new version of it with another name. */
MUST_CHECK err account__find_named(account_change *change, const account_name *database, const account_name *name,
                                   container_node **node_out);
MUST_CHECK err account__renamed(account_change *change, const container *before, slice id, container **container_out);

/* ---- scripts ---- */
void account__free_scripts(container_node *c);
void account__delete_script_records(store_batch *batch, const container_node *c);
MUST_CHECK err account__load_script(account *a, slice key, slice record);

/* ---- records in STORE_META ---- */
void account__put_numbers(store_batch *batch, const account_numbers *numbers);
void account__put_database(store_batch *batch, const database *d);
void account__put_container(store_batch *batch, uint32_t database, const container *c);
void account__put_tiles(store_batch *batch, uint32_t container, const container_tiles *tiles);   /* in the home of the reshaped ranges */
void account__put_deleted(store_batch *batch, uint32_t container, const container_tiles *tiles); /* data in other homes is to be deleted */
void account__delete_deleted(store_batch *batch, uint32_t container);
void account__put_offer(store_batch *batch, const offer *o);
void account__delete_database_record(store_batch *batch, uint32_t database);
void account__delete_container_record(store_batch *batch, uint32_t database, uint32_t container);
void account__delete_offer_record(store_batch *batch, uint32_t offer);

void account__delete_range_records(store_batch *batch, uint32_t container, uint32_t range);
void account__put_event(store_batch *batch, const account_event *e);  /* also deletes the event that is now too old */
void account__add_event(account *a, const account_event *e);          /* to the ring buffer */
bool account__undoes_command(account *a, const account_event *merge); /* one of the merged ranges comes from a manual split */
MUST_CHECK err account__load_event(account *a, slice key, slice record);

err account__missing(op *o, err code); /* with the service's sentence */
static inline bool account__etag_matches(slice wanted, uint64_t version, int64_t ts) {
    return wanted.n == 0 || item_etag_matches(wanted, version, (uint32_t)ts);
}

/* ---- users and permissions ---- */
void account__remove_users(database_node *d);
void account__delete_user_records(store_batch *batch, uint32_t database); /* all users of a database and their permissions */
MUST_CHECK err account__load_user(account *a, slice key, slice record);
MUST_CHECK err account__load_permission(account *a, slice key, slice record);

/* ---- client encryption keys ---- */
void account__free_encryption_keys(database_node *d);
void account__delete_encryption_key_records(store_batch *batch, const database_node *d);
MUST_CHECK err account__load_encryption_key(account *a, slice key, slice record);
/* Whether the policy of a new container, if it has one, is valid and its keys exist. E_BAD_REQUEST. */
MUST_CHECK err account__check_encryption_policy(op *o, const database_node *d, const container *c);
MUST_CHECK err account__check_encryption_policy_kept(op *o, const container *before, const container *after);

/* ---- throughput ---- */

/* A container's throughput: from its own offer or its database's. */
typedef struct provision {
    double total; /* RU/s; 0: unlimited */
    bool shared;
    const uint8_t *bucket_percents;
} provision;
provision account__provision(account *a, const container_node *node);
uint32_t account__ranges_for(const account *a, throughput_setting t, bool fixed); /* the fewest that can give t */
uint32_t account__ranges_at_creation(const account *a, throughput_setting own, bool fixed);

/* Gives all ranges their buckets and equal rates, and notes what is provisioned from now on. Call after a change of offers or tiles, on the
 * committer's thread, under the write lock, or at start. */
void account__divide(account *a, const container_node *node);
void account__divide_database(account *a, database_node *d); /* its pool and all containers that share it */
void account__free_pool(database_node *d);
offer_state account__offer_state(account *a, const offer *o);

/* ---- the balancer ---- */
void account__init_balancer(balancer *b);
void account__free_balancer(balancer *b);
bool account__start_balancer(account *a); /* false: could not start the thread */
void account__stop_balancer(account *a);

/* Replaces the ranges [first, first + n) of the newest tiles by `parts` ranges, and waits until that is done. The caller holds
 * balancer.turn. */
typedef struct reshape_request {
    container *container;
    uint32_t first_id; /* id of the first range; the others are the ones after it */
    size_t n;
    uint32_t parts;
    plan_reason reason;
} reshape_request;
MUST_CHECK err account__reshape(account *a, const reshape_request *request);

/* Writes the newest tiles to the container's record if it lacks them, and waits. The caller holds balancer.turn. */
MUST_CHECK err account__record_tiles(account *a, container *c);

/* Removes from the tiles the source segments that ranges no longer use, and waits. */
MUST_CHECK err account__forget_sources(account *a, container *c, uint32_t range_id);

/* Checks that each store is the same as at the last start. E_UNAVAILABLE with a sentence if not. */
MUST_CHECK err account__check_homes(account *a, char *why, size_t why_n);

/* Fills the tables from the store. */
MUST_CHECK err account__load(account *a);

/* Deletes a container's data in one home: the batch deletes key ranges; once it is written, reclaim their space. */
typedef struct deleted_container {
    uint32_t number;
    const container_tiles *tiles;
    bool versions; /* it may have a versions log */
} deleted_container;
void account__delete_bytes(store_batch *batch, const home *home, const deleted_container *c);
void account__reclaim_bytes(const container *c, const home *home);
