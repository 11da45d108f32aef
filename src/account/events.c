/* Past splits and merges: the newest thousand, in memory and in STORE_META. */
#include <endian.h>
#include <stdlib.h>

#include "account/account_int.h"
#include "base/memory.h"

typedef struct event_key {
    char bytes[9];
} event_key;

static event_key key_of(uint64_t number) {
    event_key k = {{'E'}};
    number = htobe64(number);
    memcpy(k.bytes + 1, &number, sizeof number);
    return k;
}

static void append_ids(bson_t *to, const char *name, const uint32_t *ids, uint32_t n) {
    bson_append_binary(to, name, -1, BSON_SUBTYPE_BINARY, (const uint8_t *)ids, (n < 8 ? n : 8) * (uint32_t)sizeof *ids);
}

void account__put_event(store_batch *batch, const account_event *e) {
    bson_t r = BSON_INITIALIZER;
    event_key k = key_of(e->number);
    bson_append_int64(&r, "ts", -1, e->ts_ms);
    bson_append_utf8(&r, "database", -1, e->database, -1);
    bson_append_utf8(&r, "container", -1, e->container, -1);
    bson_append_int32(&r, "reason", -1, (int32_t)e->reason);
    append_ids(&r, "before", e->before, e->before_n);
    append_ids(&r, "after", e->after, e->after_n);
    bson_append_int64(&r, "beforeN", -1, e->before_n);
    bson_append_int64(&r, "afterN", -1, e->after_n);
    bson_append_int64(&r, "items", -1, (int64_t)e->items);
    bson_append_int64(&r, "bytes", -1, (int64_t)e->bytes);
    bson_append_int64(&r, "us", -1, e->took_us);
    store_put(batch, STORE_META, slice_of(k.bytes, sizeof k.bytes), slice_of(bson_get_data(&r), r.len));
    bson_destroy(&r);
    if (e->number >= ACCOUNT_EVENTS_MAX) {
        k = key_of(e->number - ACCOUNT_EVENTS_MAX);
        store_delete(batch, STORE_META, slice_of(k.bytes, sizeof k.bytes));
    }
}

static int64_t number_in(slice record, const char *name) {
    bson_iter_t it;
    return doc_find_key(record, slice_str(name), &it) && BSON_ITER_HOLDS_NUMBER(&it) ? bson_iter_as_int64(&it) : 0;
}

static void text_in(slice record, const char *name, char text[LIMIT_NAME_BYTES + 1]) {
    bson_iter_t it;
    slice found = doc_find_key(record, slice_str(name), &it) && BSON_ITER_HOLDS_UTF8(&it) ? doc_text(&it) : SLICE_EMPTY;
    size_t n = found.n < LIMIT_NAME_BYTES ? found.n : LIMIT_NAME_BYTES;
    memcpy(text, found.p ? found.p : "", n);
}

static void ids_in(slice record, const char *name, uint32_t ids[8]) {
    bson_iter_t it;
    uint32_t n = 0;
    const uint8_t *bytes = NULL;
    if (doc_find_key(record, slice_str(name), &it) && BSON_ITER_HOLDS_BINARY(&it)) {
        bson_iter_binary(&it, NULL, &n, &bytes);
    }
    memcpy(ids, bytes ? (const void *)bytes : "", n < 32 ? n : 32);
}

err account__load_event(account *a, slice key, slice record) {
    account_event e = {.reason = (plan_reason)number_in(record, "reason")};
    if (key.n != sizeof(event_key)) {
        return E_STORE_CORRUPT;
    }
    memcpy(&e.number, key.p + 1, sizeof e.number);
    e.number = be64toh(e.number);
    e.ts_ms = number_in(record, "ts");
    text_in(record, "database", e.database);
    text_in(record, "container", e.container);
    ids_in(record, "before", e.before);
    ids_in(record, "after", e.after);
    e.before_n = (uint32_t)number_in(record, "beforeN");
    e.after_n = (uint32_t)number_in(record, "afterN");
    e.items = (uint64_t)number_in(record, "items");
    e.bytes = (uint64_t)number_in(record, "bytes");
    e.took_us = (uint32_t)number_in(record, "us");
    account__add_event(a, &e);
    return OK;
}

void account__add_event(account *a, const account_event *e) {
    pthread_mutex_lock(&a->events_lock);
    if (!a->events) {
        a->events = mem_zero(ACCOUNT_EVENTS_MAX * sizeof *a->events);
    }
    a->events[e->number % ACCOUNT_EVENTS_MAX] = *e;
    a->events_next = e->number + 1;
    pthread_mutex_unlock(&a->events_lock);
}

size_t account_events(account *a, account_event *events, size_t max) {
    size_t n = 0;
    pthread_mutex_lock(&a->events_lock);
    for (uint64_t number = a->events_next; number-- > 0 && n < max && n < ACCOUNT_EVENTS_MAX;) {
        const account_event *e = &a->events[number % ACCOUNT_EVENTS_MAX];
        if (e->number != number || e->after_n == 0) {
            break;
        }
        events[n++] = *e;
    }
    pthread_mutex_unlock(&a->events_lock);
    return n;
}

static bool has_id(const uint32_t ids[8], uint32_t n, uint32_t id) {
    bool has = false;
    for (uint32_t i = 0; i < n && i < 8; i++) {
        has = has || ids[i] == id;
    }
    return has;
}

bool account__undoes_command(account *a, const account_event *merge) {
    bool undoes = false;
    pthread_mutex_lock(&a->events_lock);
    for (size_t i = 0; a->events && i < ACCOUNT_EVENTS_MAX && !undoes; i++) {
        const account_event *e = &a->events[i];
        bool split = e->reason == PLAN_COMMAND && e->after_n > e->before_n && strcmp(e->container, merge->container) == 0 &&
                     strcmp(e->database, merge->database) == 0;
        for (uint32_t j = 0; split && j < merge->before_n && j < 8 && !undoes; j++) {
            undoes = has_id(e->after, e->after_n, merge->before[j]);
        }
    }
    pthread_mutex_unlock(&a->events_lock);
    return undoes;
}
