#include "script/transaction.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"
#include "script/process.h"
#include "throughput/charge.h"

enum { BUCKETS = 512, RESERVE_FIRST = 4, RESERVE_MAX = 256, CHARGED_SECONDS = 5 };

/* An item that the transaction wrote. */
typedef struct entry entry;
struct entry {
    entry *next;        /* of the same bucket */
    entry *next_number; /* of the same bucket, by number */
    entry *next_all;    /* of all */
    slice id;
    script_item now;
    item_expected expected; /* of the snapshot */
    item_found found;       /* pins what was there */
    bool written;
};

/* Values of a unique key that the transaction gave to an item, which may have others by now. */
typedef struct claim claim;
struct claim {
    claim *next;
    unsigned index;
    slice key;
    entry *holder;
};

struct script_transaction {
    script_scope scope;
    item_moment moment;
    op op;
    arena arena, call_arena;
    random_source random;
    item_op *ops;
    size_t n, cap, bytes;
    entry *buckets[BUCKETS], *entries;
    claim *claims[BUCKETS];

    /* for those that read all: what was written, by number */
    item_overlay overlay;
    entry *by_number[BUCKETS];
    entry **made; /* in the order of their numbers; some may be gone again, and made anew further on */
    uint64_t *made_numbers;
    size_t made_n, made_cap;
    uint64_t reserved;
    uint32_t reserved_n, reserve_next;
    double charge_max; /* 0: no bound */
    double unsettled_ru;

    /* for the committer's answer */
    pthread_mutex_t lock;
    pthread_cond_t come;
    bool answered;
    item_commit commit;
    item_reserve reserve;
};

/* ---- life ---- */

static bool find_written(const item_overlay *overlay, uint64_t number, item_written *written_out);
static bool next_new(const item_overlay *overlay, uint64_t after, item_written *written_out);

script_transaction *script_transaction_begin(const script_scope *scope, const op *o) {
    script_transaction *t = mem_zero(sizeof *t);
    t->scope = *scope;
    t->arena = t->call_arena = arena_init_counted(o->budget);
    op_init(&t->op, &t->call_arena, clock_wall_ms(scope->items->clock) / 1000);
    t->op.low_priority = o->low_priority;
    t->op.lane = o->lane;
    t->op.strong = o->strong;
    t->op.admitted = true;
    t->reserve_next = RESERVE_FIRST;
    t->charge_max = CHARGED_SECONDS * item_rate(scope->container, scope->key);
    t->overlay = (item_overlay){find_written, next_new};
    random_seed_system(&t->random);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->come, NULL);
    item_moment_take(scope->items, scope->container, &t->moment);
    return t;
}

void script_transaction_end(script_transaction *t) {
    for (entry *e = t->entries; e; e = e->next_all) {
        item_give(&e->found);
    }
    item_commit_give(&t->commit);
    item_moment_give(t->scope.items, &t->moment);
    pthread_cond_destroy(&t->come);
    pthread_mutex_destroy(&t->lock);
    arena_free(&t->arena);
    arena_free(&t->call_arena);
    free(t->made);
    free(t->made_numbers);
    free(t->ops);
    free(t);
}

op *script_transaction_op(script_transaction *t) {
    return &t->op;
}

const script_scope *script__scope(const script_transaction *t) {
    return &t->scope;
}

const item_moment *script__moment(const script_transaction *t) {
    return &t->moment;
}

void script__charge(script_transaction *t, double ru) {
    op_charge(&t->op, ru);
    t->unsettled_ru += ru;
}

double script_transaction_unsettled(const script_transaction *t) {
    return t->unsettled_ru;
}

arena *script__arena(script_transaction *t) {
    return &t->call_arena;
}

random_source *script__random(script_transaction *t) {
    return &t->random;
}

bool script__accepts(script_transaction *t, size_t bytes) {
    bool in_time = !t->scope.soft_us || script_now_us() < t->scope.soft_us;
    bool room = t->n < SCRIPT_OPERATIONS_MAX && t->bytes + bytes <= SCRIPT_WRITTEN_BYTES_MAX;
    return in_time && room && (t->charge_max == 0 || t->op.charge_ru < t->charge_max);
}

/* ---- finding ---- */

static size_t bucket_number(slice bytes) {
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < bytes.n; i++) {
        hash = (hash ^ (unsigned char)bytes.p[i]) * 0x100000001b3;
    }
    return (hash ^ hash >> 32) % BUCKETS;
}

static entry **bucket_of(script_transaction *t, slice id) {
    return &t->buckets[bucket_number(id)];
}

static entry *find_entry(script_transaction *t, slice id) {
    entry *e = *bucket_of(t, id);
    while (e && !slice_eq(e->id, id)) {
        e = e->next;
    }
    return e;
}

/* As the snapshot has it; what has expired is not there. */
static err find_then(script_transaction *t, slice id, script_item *item_out, item_found *found) {
    item_key key = *t->scope.key;
    key.row = id;
    *item_out = (script_item){0};
    err code = item_read_then(t->scope.items, t->scope.container, &t->moment, &key, found);
    if (code == E_NOT_FOUND) {
        return OK;
    }
    TRY(code);
    if (item_expired(t->scope.container, &found->head, t->op.now_s)) {
        item_give(found);
        return OK;
    }
    *item_out = (script_item){true, found->head, found->body};
    return OK;
}

err script__find(script_transaction *t, slice id, script_item *item_out, item_found *pinned) {
    *pinned = (item_found){0};
    const entry *e = find_entry(t, id);
    if (e) {
        *item_out = e->now;
        return OK;
    }
    return find_then(t, id, item_out, pinned);
}

err script__find_number(script_transaction *t, uint64_t number, slice *id_out) {
    item_found found;
    slice row;
    for (const entry *e = t->entries; e; e = e->next_all) {
        if (e->now.there && e->now.head.number == number) {
            *id_out = e->id;
            return OK;
        }
    }
    TRY(item_read_number_then(t->scope.items, &t->op, t->scope.container, &t->moment, t->scope.key, number, &found));
    err code = row_of(&t->op, &t->call_arena, &t->scope.container->row, found.body, &row);
    *id_out = arena_copy(&t->call_arena, row);
    item_give(&found);
    return code == OK ? OK : E_STORE_CORRUPT;
}

/* ---- what queries and lists see of it ---- */

static script_transaction *of_overlay(const item_overlay *overlay) {
    return (script_transaction *)(uintptr_t)((const char *)overlay - offsetof(script_transaction, overlay));
}

static bool show(const entry *e, uint64_t number, item_written *written_out) {
    bool there = e->now.there && e->now.head.number == number;
    *written_out = (item_written){.number = number, .head = e->now.head, .body = there ? e->now.body : SLICE_EMPTY};
    return there;
}

static size_t first_made_after(const script_transaction *t, uint64_t number) {
    size_t low = 0, high = t->made_n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (t->made_numbers[middle] > number) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* By the number that the item had when the transaction began. */
static bool find_written(const item_overlay *overlay, uint64_t number, item_written *written_out) {
    const script_transaction *t = of_overlay(overlay);
    for (const entry *e = t->by_number[number % BUCKETS]; e; e = e->next_number) {
        if (e->expected.number == number) {
            show(e, number, written_out);
            return e->written;
        }
    }
    size_t i = first_made_after(t, number - 1);
    bool own = i < t->made_n && t->made_numbers[i] == number;
    if (own) {
        show(t->made[i], number, written_out);
    }
    return own;
}

static bool next_new(const item_overlay *overlay, uint64_t after, item_written *written_out) {
    const script_transaction *t = of_overlay(overlay);
    size_t i = first_made_after(t, after);
    while (i < t->made_n && !show(t->made[i], t->made_numbers[i], written_out)) {
        i++;
    }
    return i < t->made_n;
}

static void note_made(script_transaction *t, entry *e, uint64_t number) {
    if (t->made_n == t->made_cap) {
        t->made_cap = t->made_cap ? 2 * t->made_cap : 16;
        t->made = mem_resize(t->made, t->made_cap * sizeof *t->made);
        t->made_numbers = mem_resize(t->made_numbers, t->made_cap * sizeof *t->made_numbers);
    }
    t->made[t->made_n] = e;
    t->made_numbers[t->made_n++] = number;
}

/* The entry of an item that is about to be written. */
static err enter(script_transaction *t, slice id, entry **entry_out) {
    entry *e = find_entry(t, id);
    if (!e) {
        script_item now;
        item_found found = {0};
        TRY(find_then(t, id, &now, &found));
        e = arena_new(&t->arena, entry);
        entry **bucket = bucket_of(t, id);
        *e = (entry){.next = *bucket, .next_all = t->entries, .id = arena_copy(&t->arena, id), .now = now, .found = found};
        e->expected = (item_expected){now.there, now.head.number, now.head.lsn};
        *bucket = t->entries = e;
        if (now.there) {
            entry **numbers = &t->by_number[now.head.number % BUCKETS];
            e->next_number = *numbers;
            *numbers = e;
        }
    }
    *entry_out = e;
    return OK;
}

/* ---- unique keys: what the commit will find, told at once ---- */

static bool still_holds(const script_transaction *t, const claim *c) {
    layout_key k;
    if (!c->holder->now.there) {
        return false;
    }
    item_unique_key(t->scope.container, c->index, t->scope.key, c->holder->now.body, &k);
    return slice_eq(layout_view(&k), c->key);
}

static bool claimed_by_other(script_transaction *t, const entry *e, slice key) {
    bool claimed = false;
    for (const claim *c = t->claims[bucket_number(key)]; c && !claimed; c = c->next) {
        claimed = c->holder != e && slice_eq(c->key, key) && still_holds(t, c);
    }
    return claimed;
}

/* Of the snapshot, by an item that the transaction has not written: that one's values are claimed, if it still has any. */
static err held_by_other(script_transaction *t, const entry *e, slice key, bool *held_out) {
    item_found found;
    slice row;
    *held_out = false;
    err code = item_unique_holder_then(t->scope.items, t->scope.container, &t->moment, t->scope.key, key, &found);
    if (code != OK) {
        return code == E_NOT_FOUND ? OK : code;
    }
    bool has_row = row_of(&t->op, &t->call_arena, &t->scope.container->row, found.body, &row) == OK;
    const entry *holder = has_row ? find_entry(t, row) : NULL;
    bool own = holder && (holder == e || holder->written);
    *held_out = has_row && !own && !item_expired(t->scope.container, &found.head, t->op.now_s);
    item_give(&found);
    return has_row ? OK : E_STORE_CORRUPT;
}

static err check_unique(script_transaction *t, const entry *e, slice body) {
    for (unsigned i = 0; i < t->scope.container->unique_keys_n; i++) {
        layout_key k;
        bool held = false;
        item_unique_key(t->scope.container, i, t->scope.key, body, &k);
        bool claimed = claimed_by_other(t, e, layout_view(&k));
        TRY(claimed ? OK : held_by_other(t, e, layout_view(&k), &held));
        if (claimed || held) {
            return E_UNIQUE_KEY;
        }
    }
    return OK;
}

static void claim_unique(script_transaction *t, entry *e) {
    for (unsigned i = 0; e->now.there && i < t->scope.container->unique_keys_n; i++) {
        layout_key k;
        item_unique_key(t->scope.container, i, t->scope.key, e->now.body, &k);
        claim **bucket = &t->claims[bucket_number(layout_view(&k))];
        claim *made = arena_new(&t->arena, claim);
        *made = (claim){*bucket, i, arena_copy(&t->arena, layout_view(&k)), e};
        *bucket = made;
    }
}

/* ---- the committer ---- */

static void answer(script_transaction *t) {
    pthread_mutex_lock(&t->lock);
    t->answered = true;
    pthread_cond_signal(&t->come);
    pthread_mutex_unlock(&t->lock);
}

static void reserve_done(item_reserve *r) {
    answer((script_transaction *)((char *)r - offsetof(script_transaction, reserve)));
}

static void commit_done(item_commit *c) {
    answer((script_transaction *)((char *)c - offsetof(script_transaction, commit)));
}

static void wait_for_answer(script_transaction *t) {
    pthread_mutex_lock(&t->lock);
    while (!t->answered) {
        pthread_cond_wait(&t->come, &t->lock);
    }
    t->answered = false;
    pthread_mutex_unlock(&t->lock);
}

/* Some at a time, and more the more are used. */
static err next_number(script_transaction *t, uint64_t *number_out) {
    if (t->reserved_n == 0) {
        uint32_t n = t->reserve_next;
        t->reserve_next = 2 * n < RESERVE_MAX ? 2 * n : RESERVE_MAX;
        t->reserve = (item_reserve){.container = t->scope.container, .key = t->scope.key, .n = n, .done = reserve_done};
        item_reserve_submit(t->scope.items, &t->reserve);
        wait_for_answer(t);
        TRY(t->reserve.base.code);
        t->reserved = t->reserve.first;
        t->reserved_n = n;
    }
    t->reserved_n--;
    *number_out = t->reserved++;
    return OK;
}

/* ---- writing ---- */

static err check_op(const item_op *op, const script_item *now) {
    if (op->kind == ITEM_CREATE && now->there) {
        return E_CONFLICT;
    }
    if (!now->there && op->kind != ITEM_CREATE && op->kind != ITEM_UPSERT) {
        return E_NOT_FOUND;
    }
    bool matches = !op->if_match.n || !now->there || item_etag_matches(op->if_match, item_version(&now->head), now->head.ts);
    return matches ? OK : E_PRECONDITION;
}

static uint32_t new_etag(script_transaction *t) {
    return (uint32_t)random_u64(&t->random) | 0x80000000; /* not 0, and far from where lsns begin */
}

/* What the operation leaves. */
static err decide(script_transaction *t, item_op *op, const script_item *now, item_preset *preset, script_item *then) {
    *preset = (item_preset){.ts = clock_ts(t->op.now_s), .etag = new_etag(t)};
    op->before_there = now->there;
    op->before = now->head;
    op->before_body = now->body;
    op->created = !now->there;
    *then = (script_item){0};
    op->after = now->head;
    if (op->kind == ITEM_DELETE) {
        return OK;
    }
    if (op->created) {
        TRY(next_number(t, &preset->number));
    }
    uint64_t number = op->created ? preset->number : now->head.number;
    uint8_t flags = op->not_indexed ? ITEM_NOT_INDEXED : 0;
    op->after = (item_head){.flags = flags, .ts = preset->ts, .etag = preset->etag, .ttl = op->ttl, .number = number};
    op->body = op->result = arena_copy(&t->arena, op->body);
    *then = (script_item){true, op->after, op->body};
    return OK;
}

static void keep(script_transaction *t, const item_op *op, const item_preset *preset, const item_expected *expected) {
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 16;
        t->ops = mem_resize(t->ops, t->cap * sizeof *t->ops);
    }
    item_preset *kept = arena_new(&t->arena, item_preset);
    *kept = *preset;
    item_op *kept_op = &t->ops[t->n++];
    *kept_op = (item_op){.kind = op->kind,
                         .key = op->key,
                         .body = op->body,
                         .ttl = op->ttl,
                         .not_indexed = op->not_indexed,
                         .preset = kept,
                         .expected = expected};
    op_init(&kept_op->op, &t->arena, t->op.now_s);
    t->bytes += op->body.n;
}

static err write_item(script_transaction *t, item_op *op) {
    entry *e;
    item_preset preset;
    script_item then;
    TRY(enter(t, op->key.row, &e));
    bool first = !e->written;
    TRY(check_op(op, &e->now));
    TRY(op->kind == ITEM_DELETE ? OK : check_unique(t, e, op->body));
    TRY(decide(t, op, &e->now, &preset, &then));
    op->key = *t->scope.key;
    op->key.row = e->id;
    keep(t, op, &preset, first ? &e->expected : NULL);
    e->written = true;
    e->now = then;
    claim_unique(t, e);
    if (op->created) {
        note_made(t, e, preset.number);
    }
    t->moment.overlay = &t->overlay;
    return OK;
}

err script_transaction_write(script_transaction *t, item_op *op) {
    if (t->n >= SCRIPT_OPERATIONS_MAX || t->bytes + op->body.n > SCRIPT_WRITTEN_BYTES_MAX) {
        return op_fail(&t->op, E_TOO_LARGE, "A transaction may write %d items and %d MB at most.", (int)SCRIPT_OPERATIONS_MAX,
                       (int)SCRIPT_WRITTEN_BYTES_MAX >> 20);
    }
    op->code = write_item(t, op);
    op_init(&op->op, &t->call_arena, t->op.now_s);
    script__charge(t, item_price(op, &t->scope.container->index));
    return op->code;
}

/* ---- committing ---- */

static err sentence(script_transaction *t) {
    err code = t->commit.base.code;
    for (size_t i = 0; i < t->n; i++) {
        if (t->ops[i].code == code && t->ops[i].op.detail_n) {
            return op_fail(&t->op, code, "%s", t->ops[i].op.detail);
        }
    }
    return code;
}

err script_transaction_commit(script_transaction *t, item_mark *mark_out) {
    const container *c = t->scope.container;
    if (t->n == 0) {
        *mark_out = item_mark_of(container_route(c->tiles, &t->scope.key->epk));
        return OK;
    }
    t->commit = (item_commit){.items = t->scope.items,
                              .op = &t->op,
                              .container = t->scope.container,
                              .ops = t->ops,
                              .n = t->n,
                              .atomic = true,
                              .range_id = -1,
                              .done = commit_done};
    TRY(item_commit_submit(&t->commit));
    wait_for_answer(t);
    if (t->commit.base.code != OK) {
        return sentence(t);
    }
    const item_op *last = &t->ops[t->n - 1];
    *mark_out = (item_mark){last->range->id, last->range->segment, last->after.lsn};
    return OK;
}
