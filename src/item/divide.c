#include "item/divide.h"

/* The operations of one home: copies of them in a commit of their own. */
typedef struct division {
    item_commit commit;
    item_commit_parts *whole;
    size_t *positions; /* positions of its operations in the request */
} division;

struct item_commit_parts {
    item_commit *request;
    atomic_size_t left; /* divisions not done yet */
    size_t n;
    division *list;
};

static home *home_of(const item_commit *c, size_t i) {
    return container_route(c->container->tiles, &c->ops[i].key.epk)->home;
}

bool item__is_divided(const item_commit *c) {
    bool divided = false;
    if (c->items->homes_n > 1 && !c->atomic) {
        home *first = home_of(c, 0);
        for (size_t i = 1; i < c->n && !divided; i++) {
            divided = home_of(c, i) != first;
        }
    }
    return divided;
}

/* ---- completion ---- */

/* An error of the home's whole commit becomes that of each of its operations. */
static void copy_back(item_commit *request, const division *d) {
    err code = d->commit.base.code;
    for (size_t i = 0; i < d->commit.n; i++) {
        item_op *op = &request->ops[d->positions[i]];
        *op = d->commit.ops[i];
        op->code = op->code == OK ? code : op->code;
    }
}

static bool is_about_target(err code) {
    return code == E_OWNER_NOT_FOUND || code == E_RANGE_GONE;
}

/* The request fails as a whole if its target is gone, or if every home failed. */
static err code_of(const item_commit_parts *p) {
    bool all = true;
    for (size_t i = 0; i < p->n; i++) {
        err code = p->list[i].commit.base.code;
        if (is_about_target(code)) {
            return code;
        }
        all = all && code != OK;
    }
    return all ? p->list[0].commit.base.code : OK;
}

static size_t count_undecided(const item_commit_parts *p) {
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        n += p->list[i].commit.again;
    }
    return n;
}

static bool any_missed(const item_commit_parts *p) {
    bool missed = false;
    for (size_t i = 0; i < p->n; i++) {
        missed = missed || p->list[i].commit.missed;
    }
    return missed;
}

/* If some operations are undecided they must be prepared first: the request is not finished then. */
static void finish(item_commit_parts *p) {
    item_commit *request = p->request;
    request->again = count_undecided(p) > 0;
    request->missed = any_missed(p);
    if (request->again) {
        request->base.code = OK;
        request->done(request);
        return;
    }
    container_tiles *tiles = p->list[0].commit.tiles; /* those of the first operation's home */
    request->base.code = code_of(p);
    request->tiles = tiles ? container_tiles_take(tiles) : NULL;
    for (size_t i = 0; i < p->n; i++) {
        copy_back(request, &p->list[i]);
    }
    request->done(request);
}

static void one_is_done(item_commit *c) {
    item_commit_parts *p = ((division *)c)->whole;
    if (atomic_fetch_sub(&p->left, 1) == 1) {
        finish(p);
    }
}

static bool any_failed(const item_commit *c) {
    bool failed = c->base.code != OK;
    for (size_t i = 0; i < c->n; i++) {
        failed = failed || c->ops[i].code != OK;
    }
    return failed;
}

/* The homes run one after the other: after a failure, the rest is not tried. */
static void next_or_end(item_commit *c) {
    division *d = (division *)c, *end = d->whole->list + d->whole->n;
    bool failed = any_failed(c);
    if (c->again) {
        finish(d->whole);
        return;
    }
    if (!failed && d + 1 < end) {
        item__submit_here(&d[1].commit);
        return;
    }
    for (division *rest = d + 1; rest < end; rest++) {
        for (size_t i = 0; i < rest->commit.n; i++) {
            rest->commit.ops[i].code = E_FAILED_DEPENDENCY;
        }
    }
    finish(d->whole);
}

/* ---- dividing ---- */

/* Assigns operations to divisions: one division per home; if the order matters, one per run of operations of the same home. */
static size_t assign(const item_commit *c, size_t *division_of) {
    size_t n = 0;
    size_t known[HOMES_MAX] = {0}; /* by home: its division plus one; 0: none */
    for (size_t i = 0; i < c->n; i++) {
        uint32_t home = home_of(c, i)->number;
        bool same = c->stops_at_failure ? i > 0 && home_of(c, i - 1)->number == home : known[home] > 0;
        known[home] = same ? known[home] : ++n;
        division_of[i] = known[home] - 1;
    }
    return n;
}

static void fill(const item_commit *c, division *d, const size_t *division_of, size_t number) {
    arena *a = c->op->arena;
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        n += division_of[i] == number;
    }
    d->positions = arena_array(a, size_t, n);
    d->commit = *c;
    d->commit.ops = arena_array(a, item_op, n);
    d->commit.n = 0;
    d->commit.parts = NULL;
    d->commit.first = NULL;
    d->commit.base.code = OK;
    d->commit.done = c->stops_at_failure ? next_or_end : one_is_done;
    for (size_t i = 0; i < c->n; i++) {
        if (division_of[i] == number) {
            d->positions[d->commit.n] = i;
            d->commit.ops[d->commit.n++] = c->ops[i];
        }
    }
}

void item__divide(item_commit *c) {
    arena *a = c->op->arena;
    size_t *division_of = arena_array(a, size_t, c->n);
    item_commit_parts *p = arena_new(a, item_commit_parts);
    p->request = c;
    p->n = assign(c, division_of);
    p->left = p->n;
    p->list = arena_array(a, division, p->n);
    for (size_t i = 0; i < p->n; i++) {
        p->list[i].whole = p;
        fill(c, &p->list[i], division_of, i);
    }
    c->parts = p;
    size_t n = c->stops_at_failure ? 1 : p->n; /* read it now: once all are submitted, the request may be freed */
    division *list = p->list;
    for (size_t i = 0; i < n; i++) {
        item__submit_here(&list[i].commit);
    }
}

void item__divided_prepare(item_commit *c) {
    for (size_t i = 0; i < c->parts->n; i++) {
        item_commit *part = &c->parts->list[i].commit;
        if (part->again) {
            part->op = c->op;
            item_commit_prepare(part);
        }
    }
}

void item__divide_again(item_commit *c) {
    item_commit_parts *p = c->parts;
    division *list = p->list;
    size_t left = count_undecided(p), n = p->n;
    bool prepares = c->prepares; /* false: no worker could prepare them, so the committers decide now */
    c->again = false;
    p->left = left;
    for (size_t i = 0; i < n && left; i++) { /* once the last one is submitted, the request may be freed */
        if (list[i].commit.again) {
            left--;
            list[i].commit.prepares = prepares;
            item__submit_here(&list[i].commit);
        }
    }
}

/* The request has the operations and their pins again, so the divisions must not release them. */
void item__divided_give(item_commit *c) {
    for (size_t i = 0; i < c->parts->n; i++) {
        item_commit *part = &c->parts->list[i].commit;
        part->n = 0;
        item_commit_give(part);
    }
    c->parts = NULL;
}
