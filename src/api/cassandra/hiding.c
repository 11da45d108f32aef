#include "api/cassandra/hiding.h"

static atomic_int_fast64_t *slot_of(cass_front *front, const container *table) {
    return &front->ranges_us[table->space->container % CASS_RANGE_SLOTS];
}

void cass_hiding_note(cass_front *front, const container *table, int64_t us) {
    atomic_int_fast64_t *slot = slot_of(front, table);
    int_fast64_t before = atomic_load(slot);
    while (before < us && !atomic_compare_exchange_weak(slot, &before, us)) {
    }
    atomic_fetch_add(&front->ranges_changes, 1);
}

/* Deletions need not be hidden. */
static bool may_be_hidden(const cass_hiding *h, const cass_target *row) {
    const cass_mutation *m = &row->mutation;
    bool writes = m->inserts || m->assigns_n;
    return writes && m->clustering && m->table->table.clustering_n && !m->table->counters &&
           m->us <= atomic_load(slot_of(h->q->front, row->container));
}

bool cass_hiding_is_behind(const cass_hiding *h) {
    bool behind = false;
    if (atomic_load(&h->q->front->ranges_changes) == h->changes) {
        return false;
    }
    for (uint32_t i = 0; i < h->n && !behind; i++) {
        behind = may_be_hidden(h, &h->rows[i]);
    }
    return behind;
}

static err hide(cass_hiding *h, cass_target *row) {
    cass_mutation *m = &row->mutation;
    slice key;
    int64_t us;
    TRY(cass_row_prefix(h->op, m->table, row->container, m->clustering, m->table->table.clustering_n, &key));
    if (cass_ranges_hide(h->ranges, h->ranges_n, key, &us) && us >= m->us && (!m->is_hidden || us > m->hidden_us)) {
        m->is_hidden = h->any = true;
        m->hidden_us = us;
    }
    return OK;
}

/* The rows from h->at on that are in the partition whose ranges were read. */
static err hide_rows(cass_hiding *h) {
    const cass_mutation *first = &h->rows[h->at].mutation;
    while (h->at < h->n && cass_mutation_same_partition(first, &h->rows[h->at].mutation)) {
        if (may_be_hidden(h, &h->rows[h->at])) {
            TRY(hide(h, &h->rows[h->at]));
        }
        h->at++;
    }
    return OK;
}

static err keep_ranges(cass_hiding *h, slice body) {
    const cass_mutation *m = &h->rows[h->at].mutation;
    bool *none = arena_array(h->op->arena, bool, m->table->table.n);
    cass_row row;
    TRY(cass_row_read(h->op, m->table, arena_copy(h->op->arena, body), m->now_s, none, false, &row));
    h->ranges = row.ranges;
    h->ranges_n = row.ranges_n;
    return OK;
}

static void go_on(cass_hiding *h);

static void ranges_read(call *c) {
    cass_request *q = (cass_request *)c;
    cass_hiding *h = q->hiding;
    err code = c->code;
    h->ranges_n = 0;
    if (code == OK) {
        slice body = q->call.read.found.body;
        code = arena_fits(h->op->arena, body.n) ? keep_ranges(h, body) : budget_error(h->op->budget);
        call_read_give(&q->call.read);
    } else if (code == E_NOT_FOUND) {
        q->op.detail_n = 0;
        code = OK;
    }
    h->code = code == OK ? hide_rows(h) : code;
    go_on(h);
}

static err read_ranges(cass_hiding *h) {
    cass_request *q = h->q;
    const cass_target *row = &h->rows[h->at];
    item_key *key = arena_new(h->op->arena, item_key);
    TRY(cass_key_of(h->op, row->mutation.table, row->container, row->mutation.partition, NULL, key));
    call_read_init(&q->call.read, &q->front->core, &q->frame->client, &q->op, row->container, ranges_read);
    q->call.read.key = *key;
    call_read_submit(&q->call.read);
    return OK;
}

/* A read may complete at once: the loop bounds the depth. */
static void go_on(cass_hiding *h) {
    if (h->stepping) {
        h->again = true;
        return;
    }
    h->stepping = true;
    do {
        h->again = false;
        while (h->at < h->n && !may_be_hidden(h, &h->rows[h->at])) {
            h->at++;
        }
        if (h->code == OK && h->at < h->n) {
            h->code = read_ranges(h);
        }
    } while (h->again);
    h->stepping = false;
    if (h->code != OK || h->at == h->n) {
        h->then(h->q, h->code);
    }
}

void cass_hiding_begin(cass_hiding *h) {
    h->q->hiding = h;
    h->changes = atomic_load(&h->q->front->ranges_changes);
    h->at = 0;
    h->any = false;
    h->code = OK;
    go_on(h);
}
