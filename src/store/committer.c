#include "store/committer.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/thread.h"

enum { GROUP_BYTES_MAX = 8 * 1024 * 1024 };

struct committer {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    commit *first;
    commit **last;
    bool waiting, stopping;
    commit_group group;
};

err commit_get(commit_group *group, store_family family, slice key, store_value *value_out, bool *of_group_out) {
    const store_change *change = store_batch_find(&group->batch, family, key);
    *of_group_out = change != NULL;
    if (!change) {
        return store_get(group->store, family, NULL, key, value_out);
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

static err write_group(commit_group *group) {
    for (commit_hook *hook = group->hooks; hook; hook = hook->next) {
        hook->before(hook, group);
    }
    return group->batch.n ? store_write(group->store, &group->batch) : OK;
}

static void end_hooks(commit_group *group, err code) {
    for (commit_hook *hook = group->hooks, *next; hook; hook = next) {
        next = hook->next;
        hook->linked = false;
        hook->after(hook, code);
    }
    group->hooks = NULL;
}

/* A delete that came together with a write that the full disk refuses must not share its fate: so that is decided here, one by one. */
static void apply_one(commit_group *group, commit *c) {
    store_mark mark = store_batch_mark(&group->batch);
    c->code = store_has_room(group->store, c->use) ? c->apply(c, group) : E_STORE_FULL;
    if (c->code != OK) {
        store_batch_cut(&group->batch, mark);
    } else if (c->use < group->batch.use) {
        group->batch.use = c->use;
    }
}

/* Applies commits from the list until the group is full or the next one wants to be alone. Returns the first not taken. */
static commit *fill_group(commit_group *group, commit *list) {
    size_t taken = 0;
    group->batch.use = STORE_READS;
    while (list && group->batch.bytes_held < GROUP_BYTES_MAX && !(list->solo && taken)) {
        apply_one(group, list);
        bool alone = list->solo;
        list = list->next;
        taken++;
        if (alone) {
            break;
        }
    }
    return list;
}

static void run_list(commit_group *group, commit *list) {
    while (list) {
        commit *rest = fill_group(group, list);
        err code = write_group(group);
        end_hooks(group, code);
        for (commit *next; list != rest; list = next) {
            next = list->next;
            list->code = list->code == OK ? code : list->code;
            list->done(list);
        }
        store_batch_clear(&group->batch);
    }
}

static void *run(void *context) {
    committer *c = context;
    pthread_mutex_lock(&c->lock);
    for (;;) {
        commit *list = c->first;
        if (list) {
            c->first = NULL;
            c->last = &c->first;
            pthread_mutex_unlock(&c->lock);
            run_list(&c->group, list);
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
