/* Another container in the place of one: freezing, thawing, and the exchange of names (account.h). */
#include <semaphore.h>

#include "account/account_int.h"
#include "item/wipe.h"

/* ---- freezing ---- */

/* A commit that does nothing: when it is done, so are all that the queue had before it. */
typedef struct barrier {
    commit base; /* must be first */
    sem_t done;
} barrier;

static err apply_nothing(commit *base, commit_group *group) {
    (void)base;
    (void)group;
    return OK;
}

static void has_passed(commit *base) {
    sem_post(&((barrier *)base)->done);
}

static void wait_for(sem_t *done) {
    while (sem_wait(done) != 0) {
    }
    sem_destroy(done);
}

static void pass_queue(container_part *part, commit_queue *queue) {
    barrier b = {.base = {.queue = queue, .solo = true, .use = STORE_READS, .apply = apply_nothing, .done = has_passed}};
    sem_init(&b.done, 0, 0);
    committer_submit(part->home->committer, &b.base);
    wait_for(&b.done);
}

static void pass_barrier(container_part *part) {
    pass_queue(part, &part->commits);
    pass_queue(part, &part->bulk);
}

static err refuse_freeze(op *o, const container *c) {
    if (c->retired) {
        return E_RETIRED;
    }
    return op_fail(o, E_CONFLICT, "The container is frozen already, or the freeze to be prolonged is over.");
}

err account_freeze(account *a, op *o, container *c, unsigned ms, int64_t *token_io) {
    int64_t until_us = clock_monotonic_us(a->items.clock) + 1000 * (int64_t)ms;
    bool prolongs = *token_io != 0;
    if (!container_space_freeze(c->space, a->items.clock, *token_io, until_us)) {
        return refuse_freeze(o, c);
    }
    *token_io = until_us;
    for (size_t i = 0; i < c->space->parts_n && !prolongs; i++) {
        if (c->space->parts[i].home) {
            pass_barrier(&c->space->parts[i]);
        }
    }
    if (item_wipes_open(c)) {
        account_thaw(c, until_us);
        return op_fail(o, E_BUSY, "Items of deleted partition keys are still being removed. Please retry this request later.");
    }
    return OK;
}

void account_thaw(container *c, int64_t token) {
    (void)container_space_thaw(c->space, token);
}

err account_claim(const account *a, op *o, container *c, uint64_t claimant, unsigned ms) {
    int64_t until_us = clock_monotonic_us(a->items.clock) + 1000 * (int64_t)ms;
    return container_space_claim(c->space, a->items.clock, claimant, until_us)
               ? OK
               : op_fail(o, E_CONFLICT, "Another client has claimed the container, to put another one in its place.");
}

/* ---- the exchange ---- */

typedef struct switching {
    account_change base; /* must be first */
    account_name database, container, with;
    int64_t token;
    container_node *with_node;
    container *retired, *serving; /* the new versions of both */
    sem_t done;
} switching;

static err check_alike(op *o, const container *c, const container *with) {
    if (c == with) {
        return op_fail(o, E_BAD_REQUEST, "The two containers must be different ones.");
    }
    if (!slice_eq(c->api, with->api) || !slice_eq(c->memo, with->memo)) {
        return op_fail(o, E_BAD_REQUEST, "The two containers must be of the same API, with the same schema.");
    }
    return with->retired ? E_RETIRED : OK;
}

static void drop_versions(switching *s) {
    if (s->retired) {
        container_give(s->retired);
    }
    if (s->serving) {
        container_give(s->serving);
    }
    s->retired = s->serving = NULL;
}

static err make_versions(switching *s, const container *c, const container *with) {
    TRY(account__renamed(&s->base, c, with->id, &s->retired));
    TRY(account__renamed(&s->base, with, c->id, &s->serving));
    s->retired->retired = true;
    return container_space_retire(c->space, s->token)
               ? OK
               : op_fail(s->base.op, E_PRECONDITION, "The freeze is over: there may be writes that the other container lacks.");
}

static err apply_switch(account_change *change, commit_group *group) {
    switching *s = (switching *)change;
    container_node *node;
    TRY(account__find_named(change, &s->database, &s->container, &node));
    TRY(account__find_named(change, &s->database, &s->with, &s->with_node));
    TRY(check_alike(change->op, node->container, s->with_node->container));
    err code = make_versions(s, node->container, s->with_node->container);
    if (code != OK) {
        drop_versions(s);
        return code;
    }
    change->made = node;
    uint32_t database = node->database->database->number;
    account__put_container(&group->batch, database, s->retired);
    account__put_container(&group->batch, database, s->serving);
    commit_link(group, &change->hook);
    return OK;
}

/* If it was not written, writers go on. */
static void end_switch(account_change *change, err code) {
    switching *s = (switching *)change;
    if (code != OK) {
        atomic_store(&s->retired->space->frozen_us, 0);
        drop_versions(s);
    }
}

static void publish_switch(account_change *change) {
    switching *s = (switching *)change;
    account__exchange_containers(change->account, change->made, s->retired, s->with_node, s->serving);
}

static void has_switched(account_change *change) {
    sem_post(&((switching *)change)->done);
}

err account_switch(account *a, op *o, const container *c, const container *with, int64_t token) {
    static const account_verb verb = {.use = STORE_GROWS, .apply = apply_switch, .ended = end_switch, .publish = publish_switch};
    switching s = {.base = {.account = a, .op = o, .done = has_switched},
                   .database = {.text = c->database_id},
                   .container = {.text = c->id},
                   .with = {.text = with->id},
                   .token = token};
    sem_init(&s.done, 0, 0);
    account__submit(&s.base, &verb);
    wait_for(&s.done);
    return s.base.commit.code;
}
