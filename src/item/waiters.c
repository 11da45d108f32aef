#include "item/waiters.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>

#include "base/memory.h"

enum { BUCKETS = 1024, TOUCHED_MAX = 4096 };

typedef struct change_waiters {
    pthread_mutex_t lock;
    _Atomic uint32_t waiting;         /* total of all lists */
    _Atomic uint32_t keyed_followers; /* open followers, waiting or not */
    change_waiter *wide;
    change_waiter *keyed[BUCKETS]; /* by hash */
} change_waiters;

uint64_t waiters_hash(const epk *e) { /* FNV-1a; a collision only causes needless wakes */
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < e->n; i++) {
        hash = (hash ^ e->bytes[i]) * 0x100000001b3u;
    }
    return hash ^ hash >> 32;
}

hash_place waiters_first(const epk *min) {
    uint64_t words[2] = {0};
    memcpy(words, min->bytes, min->n < sizeof words ? min->n : sizeof words);
    return (hash_place)be64toh(words[0]) << 64 | be64toh(words[1]);
}

hash_place waiters_last(const epk *max) {
    hash_place end = waiters_first(max);
    return end && max->n <= sizeof end ? end - 1 : end;
}

/* ---- the list of a space ---- */

static change_waiters *list_of(container_space *space) {
    return atomic_load_explicit(&space->waiters, memory_order_acquire);
}

/* Created with the first follower: most containers never have one. */
static change_waiters *make_list(container_space *space) {
    pthread_mutex_lock(&space->lock);
    change_waiters *list = list_of(space);
    if (!list) {
        list = mem_zero(sizeof *list);
        pthread_mutex_init(&list->lock, NULL);
        atomic_store_explicit(&space->waiters, list, memory_order_release);
    }
    pthread_mutex_unlock(&space->lock);
    return list;
}

void waiters_free(change_waiters *list) {
    if (list) {
        assert(atomic_load(&list->waiting) == 0);
        pthread_mutex_destroy(&list->lock);
        free(list);
    }
}

static void put_in(change_waiter **head, change_waiter *w) {
    w->next = *head;
    w->at = head;
    if (w->next) {
        w->next->at = &w->next;
    }
    *head = w;
}

static void take_out(change_waiters *list, change_waiter *w) {
    *w->at = w->next;
    if (w->next) {
        w->next->at = w->at;
    }
    w->at = NULL;
    atomic_fetch_sub(&list->waiting, 1);
}

void waiters_follow_key(container_space *space, bool begins) {
    change_waiters *list = make_list(space);
    begins ? atomic_fetch_add(&list->keyed_followers, 1) : atomic_fetch_sub(&list->keyed_followers, 1);
}

void waiters_add(container_space *space, change_waiter *w) {
    change_waiters *list = make_list(space);
    pthread_mutex_lock(&list->lock);
    assert(!w->at);
    put_in(w->keyed ? &list->keyed[w->hash % BUCKETS] : &list->wide, w);
    atomic_fetch_add(&list->waiting, 1);
    pthread_mutex_unlock(&list->lock);
    atomic_thread_fence(memory_order_seq_cst); /* so the caller's next check sees newer state */
}

bool waiters_remove(container_space *space, change_waiter *w) {
    change_waiters *list = list_of(space);
    if (!list) {
        return false;
    }
    pthread_mutex_lock(&list->lock);
    bool listed = w->at != NULL;
    if (listed) {
        take_out(list, w);
    }
    pthread_mutex_unlock(&list->lock);
    return listed;
}

size_t waiters_count(container_space *space) {
    change_waiters *list = list_of(space);
    return list ? atomic_load(&list->waiting) : 0;
}

/* ---- waking ---- */

/* Moves a waiter to the list to be woken after the unlock. */
static void pick(change_waiters *list, change_waiter *w, change_waiter **picked) {
    take_out(list, w);
    w->next = *picked;
    *picked = w;
}

static void pick_within(change_waiters *list, change_waiter *from, hash_place first, hash_place last, change_waiter **picked) {
    for (change_waiter *w = from, *next; w; w = next) {
        next = w->next;
        if (w->first <= last && first <= w->last) {
            pick(list, w, picked);
        }
    }
}

static void pick_all_keyed(change_waiters *list, hash_place first, hash_place last, change_waiter **picked) {
    for (size_t i = 0; i < BUCKETS; i++) {
        pick_within(list, list->keyed[i], first, last, picked);
    }
}

static void pick_key(change_waiters *list, uint64_t hash, change_waiter **picked) {
    for (change_waiter *w = list->keyed[hash % BUCKETS], *next; w; w = next) {
        next = w->next;
        if (w->hash == hash) {
            pick(list, w, picked);
        }
    }
}

/* A waiter may wait again, or be freed, as soon as its function is called. */
static void wake(change_waiter *picked) {
    for (change_waiter *next; picked; picked = next) {
        next = picked->next;
        picked->woken(picked->context);
    }
}

void waiters_wake_all(container_space *space) {
    atomic_thread_fence(memory_order_seq_cst); /* orders the caller's changes before the check of the list */
    change_waiters *list = list_of(space);
    change_waiter *picked = NULL;
    if (!list) {
        return;
    }
    pthread_mutex_lock(&list->lock);
    pick_within(list, list->wide, 0, ~(hash_place)0, &picked);
    pick_all_keyed(list, 0, ~(hash_place)0, &picked);
    pthread_mutex_unlock(&list->lock);
    wake(picked);
}

/* ---- commits ---- */

static bool keys_are_followed(const container_range *range) {
    change_waiters *list = range->space ? list_of(range->space) : NULL;
    return list && atomic_load_explicit(&list->keyed_followers, memory_order_relaxed) > 0;
}

void waiters_touch(container_range *range, const epk *e) {
    if (range->touched_incomplete || !keys_are_followed(range)) {
        range->touched_incomplete = true;
        return;
    }
    uint64_t hash = waiters_hash(e);
    if (range->touched_n && range->touched[range->touched_n - 1] == hash) {
        return;
    }
    if (range->touched_n == TOUCHED_MAX) {
        range->touched_incomplete = true;
        return;
    }
    if ((range->touched_n & (range->touched_n - 1)) == 0) { /* a power of two or 0: the array is full */
        range->touched = mem_resize(range->touched, (range->touched_n ? 2 * range->touched_n : 1) * sizeof *range->touched);
    }
    range->touched[range->touched_n++] = hash;
}

static void wake_touched(change_waiters *list, const container_range *range) {
    change_waiter *picked = NULL;
    pthread_mutex_lock(&list->lock);
    pick_within(list, list->wide, range->first, range->last, &picked);
    if (range->touched_incomplete) {
        pick_all_keyed(list, range->first, range->last, &picked);
    }
    for (size_t i = 0; !range->touched_incomplete && i < range->touched_n; i++) {
        pick_key(list, range->touched[i], &picked);
    }
    pthread_mutex_unlock(&list->lock);
    wake(picked);
}

void waiters_published(container_range *range, bool advanced) {
    if (advanced && range->space) {
        atomic_thread_fence(memory_order_seq_cst); /* orders the published lsn before the check of the list */
        change_waiters *list = list_of(range->space);
        if (list && atomic_load_explicit(&list->waiting, memory_order_relaxed) > 0) {
            wake_touched(list, range);
        }
    }
    range->touched_n = 0;
    range->touched_incomplete = false;
}
