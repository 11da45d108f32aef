/* waiters.h — within item/ and account/: who waits for changes of a container (item/follow.h).
 *
 * The list is the space's: it stays through splits and merges, and does not depend on which committer writes a range. A waiter is for a
 * part of the hash space (*wide*: woken by every commit that writes a range which the part is in) or for one logical partition (*keyed*:
 * woken by commits that write a key of the same hash). A waiter is woken once and then is in no list.
 *
 * No wake is lost: a waiter is listed first and then looks whether the ranges' lsns have moved on; a commit publishes the lsn first and
 * then looks who is listed. A key that a group has written before its waiter was listed is remembered until the group is published
 * (container_range.touched). While nobody follows a logical partition the keys are not noted; if some follower comes in the middle of a
 * group, the group wakes all keyed waiters.
 *
 * A range without waiters costs a commit a fence and two loads. */
#pragma once

#include "item/container.h"

typedef struct change_waiter change_waiter;
struct change_waiter {
    void (*woken)(void *context); /* the committer's thread, or that of a deletion; no lock of the list is held */
    void *context;
    bool keyed;
    uint64_t hash;          /* keyed: waiters_hash of its EPK */
    hash_place first, last; /* what it waits for; a keyed one has the same twice */

    change_waiter *next, **at; /* `at` NULL: in no list */
};

uint64_t waiters_hash(const epk *e);

/* Places of keys in the hash space: those of [min, max) are from waiters_first(min) to waiters_last(max). EPKs of more than sixteen bytes
 * (hierarchical keys, V1) that begin alike have one place, so that a neighbour's write may wake a follower for nothing. */
hash_place waiters_first(const epk *min);
hash_place waiters_last(const epk *max);

/* Any thread. */
void waiters_follow_key(container_space *space, bool begins); /* a follower of a logical partition comes, or goes */
void waiters_add(container_space *space, change_waiter *w);
bool waiters_remove(container_space *space, change_waiter *w); /* false: it is not listed; if it was, it is being woken */
size_t waiters_count(container_space *space);
void waiters_wake_all(container_space *space);
void waiters_free(struct change_waiters *list); /* nobody waits; NULL is nothing */

/* The committer's. */
void waiters_touch(container_range *range, const epk *e);      /* the group writes this key */
void waiters_published(container_range *range, bool advanced); /* the group has ended; `advanced`: it has written something */
