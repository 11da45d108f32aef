#include "account/wide.h"

#include <semaphore.h>
#include <stdlib.h>

#include "account/settings.h"
#include "base/log.h"
#include "base/memory.h"
#include "item/versions.h"

typedef struct wide wide;

/* The part of a change in one home. */
typedef struct wide_part {
    commit base;
    wide *of;
    container_part *part;
    container *newest; /* the container version whose settings are spread */
    index_change index;
} wide_part;

typedef struct wide_verb {
    store_use use;
    err (*apply)(wide_part *p, commit_group *group);
    void (*applied)(wide_part *p, err code);
} wide_verb;

struct wide {
    account *account;
    container *container;
    const wide_verb *verb;
    wide_done done;
    void *context;
    _Atomic err code;
    atomic_size_t left;
    wide_part parts[];
};

bool account__is_wide(const container *c) {
    bool any = false;
    for (size_t i = 1; i < c->space->parts_n && !any; i++) {
        any = c->space->parts[i].home != NULL;
    }
    return any;
}

static err apply_one(commit *base, commit_group *group) {
    wide_part *p = (wide_part *)base;
    return p->of->verb->apply(p, group);
}

static void end(wide *w) {
    account *a = w->account;
    w->done(w->context, w->code);
    container_give(w->container);
    free(w);
    atomic_fetch_sub(&a->wide, 1);
}

static void one_is_done(commit *base) {
    wide_part *p = (wide_part *)base;
    wide *w = p->of;
    if (base->code != OK) {
        atomic_store(&w->code, base->code);
    }
    w->verb->applied(p, base->code);
    if (atomic_fetch_sub(&w->left, 1) == 1) {
        end(w);
    }
}

static void run(const wide *asked) {
    container_space *space = asked->container->space;
    wide *w = mem_zero(sizeof *w + space->parts_n * sizeof *w->parts);
    size_t n = 0;
    *w = *asked;
    container_take(w->container);
    atomic_fetch_add(&w->account->wide, 1); /* account_stop waits for it */
    for (size_t i = 1; i < space->parts_n; i++) {
        if (space->parts[i].home) {
            commit base = {.solo = true, .use = w->verb->use, .apply = apply_one, .done = one_is_done};
            w->parts[n++] = (wide_part){.base = base, .of = w, .part = &space->parts[i]};
        }
    }
    atomic_store(&w->left, n);
    wide_part *parts = w->parts;
    for (size_t i = 0; i < n; i++) { /* after the last submit, w may already be freed */
        committer_submit(parts[i].part->home->committer, &parts[i].base);
    }
}

/* ---- before the record is written: preparing the other homes ---- */

static bool starts_ttl(const wide_part *p) {
    return p->part->ttl == TTL_OFF && p->of->container->ttl != TTL_OFF;
}

static err prepare(wide_part *p, commit_group *group) {
    const container *c = p->of->container;
    TRY(item_index_pin(group, c, p->part->home));
    if (starts_ttl(p)) {
        item_backfill_start(group, c->space->container);
    }
    if (p->of->container->version_minutes && p->part->version_minutes == 0) {
        item_versions_start(group, c, p->part->home);
    }
    return OK;
}

static void prepared(wide_part *p, err code) {
    if (code == OK && starts_ttl(p)) {
        p->part->ttl_backfill = true;
    }
}

static const wide_verb preparing = {STORE_GROWS, prepare, prepared};

void account__prepare_settings(account *a, container *wanted, wide_done done, void *context) {
    run(&(wide){.account = a, .container = wanted, .verb = &preparing, .done = done, .context = context});
}

/* ---- after the record was written ---- */

/* A reference to the newest version; NULL: deleted. */
static container *newest_of(account *a, const container *c) {
    pthread_rwlock_rdlock(&a->lock);
    const container_node *node = account__node_of(a, c);
    container *newest = node ? container_take(node->container) : NULL;
    pthread_rwlock_unlock(&a->lock);
    return newest;
}

static err spread(wide_part *p, commit_group *group) {
    arena scratch = arena_init();
    container *c = p->newest = newest_of(p->of->account, p->of->container);
    if (c && c->version_minutes && p->part->version_minutes == 0) {
        item_versions_start(group, c, p->part->home);
    } else if (c && c->version_minutes == 0 && p->part->version_minutes) {
        item_versions_drop(&group->batch, c->space->container);
    }
    if (c) {
        item_index_change(group, c, p->part->home, settings_indexing_policy(&scratch, c), &p->index);
    }
    arena_free(&scratch);
    return OK;
}

/* The ttl applies from here on even if the write failed. */
static void has_spread(wide_part *p, err code) {
    container *c = p->newest;
    if (!c) {
        return;
    }
    item_index_changed(c, &p->index, code);
    if (code == OK && c->version_minutes == 0 && p->part->version_minutes) {
        item_versions_reclaim(c, p->part->home);
    }
    container_part_set_rules(p->part, c->ttl, code == OK ? c->version_minutes : p->part->version_minutes);
    p->part->checks = container_checks(c);
    container_give(c);
}

static const wide_verb spreading = {STORE_GROWS, spread, has_spread};

void account__spread_settings(account *a, container *c, wide_done done, void *context) {
    run(&(wide){.account = a, .container = c, .verb = &spreading, .done = done, .context = context});
}

bool account__follows_settings(const container *c, container_part *part) {
    return part->home == NULL || part->home->number == 0 ||
           (atomic_load(&part->version_minutes) == c->version_minutes && item_index_matches_policy(c, part));
}

typedef struct waited {
    sem_t done;
    err code;
} waited;

static void wake(void *context, err code) {
    waited *w = context;
    w->code = code;
    sem_post(&w->done);
}

err account__follow_settings(account *a, container *c) {
    waited w = {0};
    sem_init(&w.done, 0, 0);
    account__spread_settings(a, c, wake, &w);
    while (sem_wait(&w.done) != 0) {
    }
    sem_destroy(&w.done);
    return w.code;
}

/* ---- deleting ---- */

static err delete_part(wide_part *p, commit_group *group) {
    deleted_container c = {.number = p->of->container->space->container, .tiles = p->part->tiles, .versions = true};
    account__delete_bytes(&group->batch, p->part->home, &c);
    return OK;
}

static void part_is_deleted(wide_part *p, err code) {
    if (code == OK) {
        account__reclaim_bytes(p->of->container, p->part->home);
    }
}

static const wide_verb deleting = {STORE_DROPS, delete_part, part_is_deleted};

/* A commit in the first home that removes the record of the pending deletion. */
typedef struct note {
    commit base;
    account *account;
    uint32_t container;
} note;

static err remove_note(commit *base, commit_group *group) {
    account__delete_deleted(&group->batch, ((note *)base)->container);
    return OK;
}

static void note_is_removed(commit *base) {
    note *n = (note *)base;
    account *a = n->account;
    free(n);
    atomic_fetch_sub(&a->wide, 1);
}

static void all_is_deleted(void *context, err code) {
    note *n = context;
    if (code == OK) {
        committer_submit(n->account->homes[0]->committer, &n->base);
    } else { /* the next start continues */
        log_warn("account", "a deleted container's items still take space", "container=%u code=%s", n->container, err_lookup(code)->name);
        note_is_removed(&n->base);
    }
}

void account__delete_in_other_homes(account *a, container *c) {
    note *n = mem_zero(sizeof *n);
    *n = (note){.base = {.solo = true, .use = STORE_DROPS, .apply = remove_note, .done = note_is_removed},
                .account = a,
                .container = c->space->container};
    atomic_fetch_add(&a->wide, 1);
    run(&(wide){.account = a, .container = c, .verb = &deleting, .done = all_is_deleted, .context = n});
}
