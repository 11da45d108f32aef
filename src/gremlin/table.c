/* table.c — queues of traversers, and tables of what gathering steps keep. Their memory is counted by the buffers. */
#include "gremlin/machine_int.h"

void gremlin__put(queue *q, const traverser *t) {
    buf_add(&q->bytes, t, sizeof *t);
}

void gremlin__queue_clear(queue *q) {
    buf_clear(&q->bytes);
    q->from = 0;
}

void gremlin__queue_free(queue *q) {
    buf_free(&q->bytes);
    q->from = 0;
}

enum { QUEUE_SHIFT = 4096 };

void gremlin__queue_take(queue *q, size_t n) {
    q->from += n;
    size_t rest = queue_n(q);
    if (rest == 0) {
        gremlin__queue_clear(q);
    } else if (q->from >= QUEUE_SHIFT && q->from >= rest) {
        memmove(q->bytes.p, queue_at(q), rest * sizeof(traverser));
        q->bytes.n = rest * sizeof(traverser);
        q->from = 0;
    }
}

/* ---- tables ---- */

static uint64_t hash_of(uint32_t tag, gremlin_value key) {
    uint64_t h = (gremlin_hash(key) + tag) * 0x9E3779B97F4A7C15u;
    return h ^ h >> 31;
}

static size_t slots_of(const table *t) {
    return t->index.n / sizeof(uint32_t);
}

static uint32_t *slot_of(const table *t, uint64_t hash, uint32_t tag, gremlin_value key) {
    size_t mask = slots_of(t) - 1;
    uint32_t *slots = (uint32_t *)(void *)t->index.p;
    for (size_t i = hash & mask;; i = (i + 1) & mask) {
        const entry *e = slots[i] ? &table_at(t)[slots[i] - 1] : NULL;
        if (!e || (e->hash == hash && e->tag == tag && gremlin_same(e->key, key))) {
            return &slots[i];
        }
    }
}

static bool enlarge(table *t) {
    size_t n = slots_of(t) ? slots_of(t) * 2 : 16;
    buf index = buf_init_counted(BUF_NO_LIMIT, t->entries.budget);
    if (!buf_reserve(&index, n * sizeof(uint32_t))) {
        buf_free(&index);
        return false;
    }
    memset(index.p, 0, n * sizeof(uint32_t));
    index.n = n * sizeof(uint32_t);
    uint32_t *slots = (uint32_t *)(void *)index.p;
    for (size_t i = 0; i < table_n(t); i++) {
        size_t at = table_at(t)[i].hash & (n - 1);
        while (slots[at]) {
            at = (at + 1) & (n - 1);
        }
        slots[at] = (uint32_t)i + 1;
    }
    buf_free(&t->index);
    t->index = index;
    return true;
}

entry *gremlin__entry_find(const table *t, uint32_t tag, gremlin_value key) {
    uint32_t at = slots_of(t) ? *slot_of(t, hash_of(tag, key), tag, key) : 0;
    return at ? &table_at(t)[at - 1] : NULL;
}

entry *gremlin__entry(table *t, uint32_t tag, gremlin_value key, bool *new_out) {
    if (table_n(t) * 2 >= slots_of(t) && !enlarge(t)) {
        return NULL;
    }
    uint64_t hash = hash_of(tag, key);
    uint32_t *slot = slot_of(t, hash, tag, key);
    bool is_new = *slot == 0;
    if (is_new) {
        entry e = {.tag = tag, .key = key, .hash = hash};
        buf_add(&t->entries, &e, sizeof e);
        if (!buf_ok(&t->entries)) {
            return NULL;
        }
        *slot = (uint32_t)table_n(t);
    }
    if (new_out) {
        *new_out = is_new;
    }
    return &table_at(t)[*slot - 1];
}

void gremlin__table_clear(table *t) {
    buf_clear(&t->entries);
    if (t->index.n) {
        memset(t->index.p, 0, t->index.n);
    }
}

void gremlin__table_free(table *t) {
    buf_free(&t->entries);
    buf_free(&t->index);
}
