#include "item/counts.h"

#include <endian.h>
#include <stdlib.h>

#include "base/memory.h"
#include "item/layout.h"

enum { SLOTS = 256, NOTE = SLOTS, RECORD_BYTES = 8 + LAYOUT_COUNTS_BYTES };

/* ---- before a group is written ---- */

/* Called by the hook of a range that the group touched. */
void counts_log_add(counts_log *log, const container_range *range) {
    char counts[LAYOUT_COUNTS_BYTES];
    if (memcmp(&range->pending, &range->written, sizeof range->written) == 0) { /* the operations that touched it failed */
        return;
    }
    layout_counts_write(counts, &range->pending);
    if (log->pending.n == 0) {
        buf_add_be64(&log->pending, log->next);
    }
    buf_add_be32(&log->pending, range->container);
    buf_add_be32(&log->pending, range->id);
    buf_add(&log->pending, counts, sizeof counts);
}

static void gather(counts_log *log, store_batch *batch) {
    layout_key k;
    for (size_t i = 0; i < log->touched_n; i++) {
        const container_range *range = log->touched[i];
        if (!range->gone) {
            layout_range(&k, range->container, range->id);
            layout_counts_write(store_put_space(batch, STORE_META, layout_view(&k), LAYOUT_COUNTS_BYTES), &range->pending);
        }
    }
    buf_clear(&log->pending);
    buf_add_be64(&log->pending, log->next);
    layout_counts_log(&k, NOTE);
    store_put(batch, STORE_META, layout_view(&k), buf_view(&log->pending));
}

static void log_before(commit_hook *hook, commit_group *group) {
    counts_log *log = (counts_log *)hook;
    layout_key k;
    log->gathers = log->next - log->gathered >= SLOTS;
    if (log->gathers) {
        gather(log, &group->batch);
    } else if (log->pending.n) {
        layout_counts_log(&k, (uint32_t)(log->next++ % SLOTS));
        store_put(&group->batch, STORE_META, layout_view(&k), buf_view(&log->pending));
    }
    buf_clear(&log->pending);
}

static void forget_touched(counts_log *log) {
    for (size_t i = 0; i < log->touched_n; i++) {
        log->touched[i]->in_log = false;
        container_range_give(log->touched[i]);
    }
    log->touched_n = 0;
    log->gathered = log->next;
}

static void log_after(commit_hook *hook, err code) {
    counts_log *log = (counts_log *)hook;
    if (log->gathers && code == OK) {
        forget_touched(log);
    }
}

static void touch(counts_log *log, container_range *range) {
    if (range->in_log) {
        return;
    }
    if (log->touched_n == log->touched_cap) {
        log->touched_cap = log->touched_cap ? 2 * log->touched_cap : 64;
        log->touched = mem_resize(log->touched, log->touched_cap * sizeof(container_range *));
    }
    range->in_log = true;
    log->touched[log->touched_n++] = container_range_take(range);
}

void counts_log_link(commit_group *group, container_range *range) {
    counts_log *log = range->home->counts;
    touch(log, range);
    commit_link(group, &log->hook);
    commit_link(group, &range->hook);
}

/* ---- open and close ---- */

void counts_log_open(counts_log *log) {
    *log = (counts_log){.hook = {.before = log_before, .after = log_after}, .next = 1, .gathered = 1, .pending = buf_init(BUF_NO_LIMIT)};
}

void counts_log_close(counts_log *log) {
    forget_touched(log);
    free(log->touched);
    buf_free(&log->pending);
}

/* ---- loading ---- */

typedef struct slot {
    uint64_t number;
    store_value value;
} slot;

static int by_number(const void *a, const void *b) {
    uint64_t x = ((const slot *)a)->number, y = ((const slot *)b)->number;
    return (x > y) - (x < y);
}

/* Number and value of a slot; number 0: empty. */
static err load_slot(store *s, uint32_t at, slot *slot_out) {
    layout_key k;
    *slot_out = (slot){0};
    layout_counts_log(&k, at);
    err code = store_get(s, STORE_META, NULL, layout_view(&k), &slot_out->value);
    if (code != OK) {
        return code == E_NOT_FOUND ? OK : code;
    }
    slice value = slot_out->value.bytes;
    if (value.n < 8 || (value.n - 8) % RECORD_BYTES != 0) {
        return E_STORE_CORRUPT;
    }
    memcpy(&slot_out->number, value.p, 8);
    slot_out->number = be64toh(slot_out->number);
    return OK;
}

static void restore_slot(counts_log *log, slice value, container_range *(*find)(void *, uint32_t, uint32_t), void *context) {
    for (slice rest = slice_skip(value, 8); rest.n; rest = slice_skip(rest, RECORD_BYTES)) {
        uint32_t container, id;
        range_counts counts;
        layout_counts_record(rest, &container, &id, &counts);
        container_range *range = find(context, container, id);
        if (range) {
            container_range_restore(range, &counts);
            touch(log, range);
        }
    }
}

err counts_log_load(counts_log *log, store *s, container_range *(*find)(void *, uint32_t container, uint32_t range), void *context) {
    slot slots[SLOTS + 1] = {0};
    err code = OK;
    for (uint32_t i = 0; i <= NOTE && code == OK; i++) {
        code = load_slot(s, i, &slots[i]);
    }
    log->gathered = slots[NOTE].number ? slots[NOTE].number : 1;
    log->next = log->gathered;
    qsort(slots, SLOTS, sizeof *slots, by_number);
    for (size_t i = 0; i < SLOTS && code == OK; i++) {
        if (slots[i].number >= log->gathered) {
            restore_slot(log, slots[i].value.bytes, find, context);
            log->next = slots[i].number + 1;
        }
    }
    for (size_t i = 0; i <= NOTE; i++) {
        store_give(&slots[i].value);
    }
    return code;
}
