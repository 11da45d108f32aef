/* committer.h — group commit: the only writer of a store.
 *
 * Loops submit commits. The committer's thread takes all waiting commits, lets each check itself against the current state and add its
 * changes to one batch, writes and syncs the batch once, and then reports the result to each. Since there is one writer, the transactions
 * of every logical partition are serial without locks.
 *
 * Commits of one queue are applied in the order submitted. Queues take turns, by the time that their commits took: a queue with many or
 * slow commits delays mostly itself. A container has two, one for commits with many operations. A commit is never interrupted, but one that
 * can be applied in parts asks after each (commit_should_stop), and is submitted again with the rest.
 *
 * The order of effects in a group:
 *   1. apply of each commit that the disk has room for; if it fails, its changes are cut from the batch
 *   2. before of each hook (range states are added to the batch)
 *   3. the batch is written and synced: all of it or nothing
 *   4. after of each hook (new states become visible, or are dropped if the write failed)
 *   5. done of each commit
 * A `solo` commit has a group of its own: changes of databases and containers, which other commits look up in memory. */
#pragma once

#include "store/store.h"

typedef struct committer committer;
typedef struct commit commit;
typedef struct commit_group commit_group;
typedef struct commit_hook commit_hook;

/* Commits that take turns with those of other queues. Zeroed by its owner, then private to the committer; it outlives its commits. */
typedef struct commit_queue commit_queue;
struct commit_queue {
    commit_queue *next; /* in the ring of queues that have commits; NULL: not in the ring */
    commit *first, **last;
    int64_t credit_us; /* time it may use before the others' turn; negative if it used too much */
    int64_t took_us;   /* time its last commit took */
    uint64_t quiet;    /* committer.quiet when credit_us was last reset */
};

struct commit {
    commit *next;        /* within done: the commits that are done after this one */
    commit_queue *queue; /* NULL: a queue shared by all such commits */
    bool solo;
    store_use use; /* if the disk has no room for this use, the commit is refused with E_STORE_FULL and not applied */
    /* Called on the committer's thread. Reads with commit_get, which sees the group's changes, and adds changes to group->batch. If it does
     * not return OK, its changes are cut. */
    err (*apply)(commit *c, commit_group *group);
    /* Called last, on the committer's thread: hands the result to the loop that the commit came from. */
    void (*done)(commit *c);
    err code; /* result of apply, or of the group's write */
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
    bool in_memory;   /* commit_get does not wait for the disk; an apply that sets it resets it */
    bool shared;      /* other commits were applied before this one */
    int64_t begun_us; /* when the first one was */
};

committer *committer_open(store *store);             /* NULL: its thread could not be started */
void committer_submit(committer *c, commit *commit); /* any thread; the caller keeps the commit valid until done */
void committer_close(committer *c);                  /* finishes submitted commits first */

/* Within apply: reads a key, from the group's own changes first. Release the value with store_give. If it is from this group's changes
 * (*of_group_out), its bytes live until the group ends. E_NOT_IN_MEMORY: only while group->in_memory is set. */
MUST_CHECK err commit_get(commit_group *group, store_family family, slice key, store_value *value_out, bool *of_group_out);

/* Within apply: whether the group has taken long enough while others wait, for its end or for the next one. */
bool commit_should_stop(const commit_group *group);

/* Within apply: adds the hook to this group, at most once. */
void commit_link(commit_group *group, commit_hook *hook);
