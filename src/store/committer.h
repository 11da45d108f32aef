/* committer.h — the one writer of a store: group commit.
 *
 * Loops submit commits. The committer's thread takes all that wait, lets each check itself against what is now there and add its changes
 * to one batch, writes and syncs the batch once, and then tells each how it went. One writer order makes every logical partition's
 * transactions serial without locks.
 *
 * Commits of one queue are applied in the order submitted. Queues, which are containers, take turns by the time that their commits took:
 * one that submits much, or what takes long, is its own queue's wait. A commit is never interrupted, so others may wait for the end of one.
 *
 * The order of effects in a group:
 *   1. apply of each commit that the disk has room for; the changes of one that fails are cut out of the batch
 *   2. before of each hook (range states are added to the batch)
 *   3. the batch is written and synced: all of it or nothing
 *   4. after of each hook (new states become visible, or are forgotten when the write failed)
 *   5. done of each commit
 * A commit that is `solo` has a group of its own: changes of databases and containers, which others look up in memory. */
#pragma once

#include "store/store.h"

typedef struct committer committer;
typedef struct commit commit;
typedef struct commit_group commit_group;
typedef struct commit_hook commit_hook;

/* Whose commits take turns with those of others. All zero at first, then the committer's own; it outlives its commits. */
typedef struct commit_queue commit_queue;
struct commit_queue {
    commit_queue *next; /* in the ring of those that have commits; NULL: it is not there */
    commit *first, **last;
    int64_t credit_us; /* what it may take before the others' turn; below 0: what it took too much */
    int64_t took_us;   /* by its last commit */
    uint64_t quiet;    /* when that was: between the same two times at which nobody had any */
};

struct commit {
    commit *next;
    commit_queue *queue; /* NULL: that of whoever has none */
    bool solo;
    store_use use; /* if the disk has no room for it, it is refused with E_STORE_FULL and not applied */
    /* Committer's thread. Reads with commit_get (it sees the group's changes), adds changes to group->batch. Not OK: all cut. */
    err (*apply)(commit *c, commit_group *group);
    /* Committer's thread, last touch: hand the result to the loop it came from. */
    void (*done)(commit *c);
    err code; /* of apply, or of the group's write */
};

struct commit_hook {
    commit_hook *next;
    bool linked;
    void (*before)(commit_hook *hook, commit_group *group);
    void (*after)(commit_hook *hook, err code);
};

struct commit_group {
    store *store;
    store_batch batch;
    commit_hook *hooks;
};

committer *committer_open(store *store);             /* NULL: no thread could be started for it */
void committer_submit(committer *c, commit *commit); /* any thread; the commit's memory is the caller's until done */
void committer_close(committer *c);                  /* finishes what was submitted */

/* Within apply: what a key holds, the group's own changes first. Give the value back with store_give. The bytes live until then, or, if
 * they are of this group, until the group ends. */
MUST_CHECK err commit_get(commit_group *group, store_family family, slice key, store_value *value_out, bool *of_group_out);

/* Within apply: the hook takes part in this group, once however often it is linked. */
void commit_link(commit_group *group, commit_hook *hook);
