/* waiters.h — within item/ and account/: the list of followers that wait for changes of a container (item/follow.h).
 *
 * The list belongs to the space: it survives splits and merges, and does not depend on which committer writes a range. A waiter waits for a
 * part of the hash space (*wide*: woken by every commit that writes a range overlapping it) or for one logical partition (*keyed*: woken by
 * commits that write a key of the same hash). A woken waiter is removed from the list.
 *
 * No wake is lost: a waiter is listed first, and then checks whether the ranges' lsns have advanced; a commit publishes the lsn first, and
 * then checks the list. Keys that a group writes before their waiter is listed are remembered until the group is published
 * (container_range.touched). While nobody follows a logical partition, keys are not recorded; if the first such follower arrives in the
 * middle of a group, the group wakes all keyed waiters of its range.
 *
 * A range without waiters costs a commit one fence and two loads. */
#pragma once

#include "item/container.h"

typedef struct change_waiter change_waiter;
struct change_waiter {
    void (*woken)(void *context); /* called on the committer's thread, or on that of a deletion; the list is not locked */
    void *context;
    bool keyed;
    uint64_t hash;          /* if keyed: waiters_hash of the key's EPK */
    hash_place first, last; /* the places it waits for; equal if keyed */

    change_waiter *next, **at; /* `at` NULL: not listed */
};

uint64_t waiters_hash(const epk *e);

/* The place of a key in the hash space. The keys of [min, max) have places from waiters_first(min) to waiters_last(max). EPKs of more than
 * sixteen bytes (hierarchical keys, V1) with a common beginning share a place, so a write to a neighbour may wake a follower needlessly. */
hash_place waiters_first(const epk *min);
hash_place waiters_last(const epk *max);

/* Any thread. */
void waiters_follow_key(container_space *space, bool begins); /* a follower of a logical partition was opened (`begins`) or closed */
void waiters_add(container_space *space, change_waiter *w);
bool waiters_remove(container_space *space, change_waiter *w); /* false: not listed; if it was before, it is being woken */
size_t waiters_count(container_space *space);
void waiters_wake_all(container_space *space);
void waiters_free(struct change_waiters *list); /* nobody waits; NULL is allowed */

/* Committer's thread. */
void waiters_touch(container_range *range, const epk *e);      /* the group writes this key */
void waiters_published(container_range *range, bool advanced); /* the group has ended; `advanced`: the range's lsn has advanced */
