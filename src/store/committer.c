#include "store/committer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"

enum {
    GROUP_BYTES_MAX = 2 * 1024 * 1024, /* to write more takes longer than a sync */
    GROUP_BYTES_LEAST = 128 * 1024,
    WRITE_US = 40 * 1000,   /* after a longer write groups get smaller, if that helps: a disk, or RocksDB, limits bytes a second */
    FULL_GROUPS_TRY = 32,   /* after so many quick ones a larger one is tried */
    FULL_GROUPS_HOLD = 256, /* so many stay as large as they are after a smaller one took as long */
    GROUP_US = 5000,        /* target time of a group while other commits wait, since every commit waits for the end of its group */
    TURN_US = 1000,         /* time that a queue may use in one round */
};

struct committer {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    commit *first; /* submitted, but not in a queue yet */
    commit **last;
    bool waiting, stopping;
    atomic_bool more; /* `first` is not NULL */

    /* Used by the committer's thread only. */
    commit_queue others;  /* for commits without a queue */
    commit_queue *before; /* in the ring of queues with commits, the one before the current queue. NULL: the ring is empty */
    uint64_t quiet;       /* how often the ring became empty */
    size_t bytes_most;    /* a group ends at so many bytes: */
    int64_t before_us;    /* what a full group took when it had twice as many; 0: none has been halved since the last quick one */
    unsigned quick, hold; /* full groups that were quick, in a row; full groups until groups may be halved again */
    commit_group group;
};

err commit_get(commit_group *group, store_family family, slice key, store_value *value_out, bool *of_group_out) {
    const store_change *change = store_batch_find(&group->batch, family, key);
    *of_group_out = change != NULL;
    if (!change) {
        bool in_memory = group->in_memory && (family == STORE_INDEX || family == STORE_ITEMS);
        return in_memory ? store_get_in_memory(group->store, family, key, value_out)
                         : store_get(group->store, family, NULL, key, value_out);
    }
    *value_out = (store_value){.bytes = change->kind == STORE_PUT ? change->value : SLICE_EMPTY};
    return change->kind == STORE_PUT ? OK : E_NOT_FOUND;
}

void commit_link(commit_group *group, commit_hook *hook) {
    if (!hook->linked) {
        hook->linked = true;
        hook->next = group->hooks;
        group->hooks = hook;
    }
}

static void allow_more(committer *c) {
    c->quick = 0;
    c->bytes_most *= c->bytes_most < GROUP_BYTES_MAX ? 2 : 1;
}

static void allow_less(committer *c, int64_t took_us) {
    bool in_vain = c->before_us && took_us > c->before_us - c->before_us / 4; /* the disk's time is that of a sync, not of bytes */
    c->before_us = in_vain ? 0 : took_us;
    c->quick = 0;
    if (in_vain) {
        c->hold = FULL_GROUPS_HOLD;
        allow_more(c);
    } else if (c->bytes_most > GROUP_BYTES_LEAST) {
        c->bytes_most /= 2;
    }
}

/* After a full group. */
static void fit_groups(committer *c, int64_t took_us) {
    c->hold -= c->hold > 0;
    if (took_us > WRITE_US && !c->hold) {
        allow_less(c, took_us);
    } else if (took_us <= WRITE_US) {
        c->before_us = 0;
        if (took_us < WRITE_US / 4 || ++c->quick >= FULL_GROUPS_TRY) {
            allow_more(c);
        }
    }
}

static err write_group(committer *c) {
    commit_group *group = &c->group;
    for (commit_hook *hook = group->hooks; hook; hook = hook->next) {
        hook->before(hook, group);
    }
    if (group->batch.n == 0) {
        return OK;
    }
    int64_t begun = clock_monotonic_us(&clock_system);
    err code = store_write(group->store, &group->batch);
    if (group->batch.bytes_held >= c->bytes_most) {
        fit_groups(c, clock_monotonic_us(&clock_system) - begun);
    }
    return code;
}

static void end_hooks(commit_group *group, err code) {
    for (commit_hook *hook = group->hooks, *next; hook; hook = next) {
        next = hook->next;
        hook->linked = false;
        hook->after(hook, code);
    }
    group->hooks = NULL;
}

/* Checks for room per commit, so that a delete can succeed although the full disk refuses a write of the same group. */
static void apply_one(commit_group *group, commit *c) {
    store_mark mark = store_batch_mark(&group->batch);
    c->code = store_has_room(group->store, c->use) ? c->apply(c, group) : E_STORE_FULL;
    if (c->code != OK) {
        store_batch_cut(&group->batch, mark);
    } else if (c->use < group->batch.use) {
        group->batch.use = c->use;
    }
}

/* ---- queues ---- */

/* Adds the queue at the end of the round. Its negative credit is forgotten if the ring has been empty since. */
static void enter_ring(committer *c, commit_queue *q) {
    q->last = &q->first;
    if (q->quiet != c->quiet || q->credit_us > 0) {
        q->credit_us = TURN_US;
        q->quiet = c->quiet;
    }
    q->next = c->before ? c->before->next : q;
    if (c->before) {
        c->before->next = q;
    }
    c->before = q;
}

static void enqueue(committer *c, commit *list) {
    for (commit *next; list; list = next) {
        commit_queue *q = list->queue ? list->queue : &c->others;
        next = list->next;
        if (!q->next) {
            enter_ring(c, q);
        }
        list->next = NULL;
        *q->last = list;
        q->last = &list->next;
    }
}

static void leave_ring(committer *c) {
    commit_queue *q = c->before->next;
    c->before->next = q->next;
    if (q == c->before) {
        c->before = NULL;
        c->quiet++;
    }
    q->next = NULL;
}

/* The queue whose turn it is. A queue with negative credit is skipped until enough rounds have passed; a queue that is alone never
 * waits. */
static commit_queue *next_queue(committer *c) {
    while (c->before && c->before->next->credit_us <= 0) {
        c->before = c->before->next;
        c->before->credit_us = c->before->next == c->before ? TURN_US : c->before->credit_us + TURN_US;
    }
    return c->before ? c->before->next : NULL;
}

static commit *take_first(committer *c, commit_queue *q) {
    commit *taken = q->first;
    q->first = taken->next;
    if (!q->first) {
        leave_ring(c);
    }
    return taken;
}

/* ---- groups ---- */

static bool others_wait(committer *c) {
    return c->before != c->before->next || atomic_load_explicit(&c->more, memory_order_relaxed);
}

static bool is_full(committer *c, const commit_queue *next, int64_t took_us) {
    return c->group.batch.bytes_held >= c->bytes_most || next->first->solo || (took_us + next->took_us > GROUP_US && others_wait(c));
}

bool commit_should_stop(const commit_group *group) {
    const committer *c = (const committer *)((const char *)group - offsetof(committer, group));
    bool anyone = group->shared || c->before || atomic_load_explicit(&c->more, memory_order_relaxed);
    return group->batch.bytes_held >= c->bytes_most || (anyone && clock_monotonic_us(&clock_system) - group->begun_us >= GROUP_US);
}

/* Applies commits until the group is full or the next one is solo. Returns the applied commits. */
static commit *fill_group(committer *c) {
    commit *taken = NULL, **last = &taken;
    int64_t begun = clock_monotonic_us(&clock_system), now = begun;
    bool alone = false;
    c->group.batch.use = STORE_READS;
    c->group.begun_us = begun;
    for (commit_queue *q; !alone && (q = next_queue(c)) && !(taken && is_full(c, q, now - begun));) {
        commit *one = take_first(c, q);
        c->group.shared = taken != NULL;
        apply_one(&c->group, one);
        int64_t before = now;
        now = clock_monotonic_us(&clock_system);
        q->took_us = now - before;
        q->credit_us -= q->took_us;
        alone = one->solo;
        one->next = NULL;
        *last = one;
        last = &one->next;
    }
    return taken;
}

static void run_group(committer *c) {
    commit *list = fill_group(c);
    err code = write_group(c);
    end_hooks(&c->group, code);
    for (commit *next; list; list = next) {
        next = list->next;
        list->code = list->code == OK ? code : list->code;
        list->done(list);
    }
    store_batch_clear(&c->group.batch);
}

static void *run(void *context) {
    committer *c = context;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        commit *list = c->first;
        if (list || c->before) {
            c->first = NULL;
            c->last = &c->first;
            atomic_store_explicit(&c->more, false, memory_order_relaxed);
            pthread_mutex_unlock(&c->lock);
            enqueue(c, list);
            run_group(c);
            pthread_mutex_lock(&c->lock);
        } else if (c->stopping) {
            break;
        } else {
            c->waiting = true;
            pthread_cond_wait(&c->wake, &c->lock);
            c->waiting = false;
        }
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static void committer_free(committer *c) {
    store_batch_free(&c->group.batch);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->wake);
    free(c);
}

committer *committer_open(store *store) {
    committer *c = mem_zero(sizeof *c);
    c->last = &c->first;
    c->group.store = store;
    c->bytes_most = GROUP_BYTES_MAX;
    store_batch_init(&c->group.batch);
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->wake, NULL);
    if (!thread_start(&c->thread, "committer", run, c)) {
        committer_free(c);
        return NULL;
    }
    return c;
}

void committer_submit(committer *c, commit *commit) {
    commit->next = NULL;
    commit->code = OK;
    pthread_mutex_lock(&c->lock);
    *c->last = commit;
    c->last = &commit->next;
    atomic_store_explicit(&c->more, true, memory_order_relaxed);
    bool wake = c->waiting;
    pthread_mutex_unlock(&c->lock);
    if (wake) {
        pthread_cond_signal(&c->wake);
    }
}

void committer_close(committer *c) {
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_mutex_unlock(&c->lock);
    pthread_cond_signal(&c->wake);
    pthread_join(c->thread, NULL);
    committer_free(c);
}
