/* GET /_tesela/hotkeys: the partition keys that cost most, and the largest ones.
 *
 * Ranking by size needs all partitions: the first request for a range seeds the range's sketch from its partitions' entries
 * (item/hot.h), within the time limit of an answer; the next request continues. */
#include "api/admin/admin_int.h"
#include "doc/json.h"

enum {
    SEEDING_MS = 5000,
    RANGES_MAX = 2000, /* per answer at most: a sketch takes 18 KB */
};

typedef struct hot_ru {
    hotkey key;
    uint32_t range;
} hot_ru;

typedef struct hot_bytes {
    hot_size key;
    uint32_t range;
} hot_bytes;

typedef struct search {
    admin_request *q;
    const items *items;
    const container *container;
    int64_t until_us;
    bool complete;
    hot_ru by_ru[HOTKEYS_TOP];
    size_t by_ru_n;
    hot_bytes by_size[HOTKEYS_TOP];
    size_t by_size_n;
} search;

/* ---- top keys over all ranges: a key is in one range only ---- */

static void keep_ru(search *s, const hotkey *key, uint32_t range) {
    if (s->by_ru_n == HOTKEYS_TOP && s->by_ru[HOTKEYS_TOP - 1].key.value >= key->value) {
        return;
    }
    size_t at = s->by_ru_n < HOTKEYS_TOP ? s->by_ru_n++ : HOTKEYS_TOP - 1;
    for (; at > 0 && s->by_ru[at - 1].key.value < key->value; at--) {
        s->by_ru[at] = s->by_ru[at - 1];
    }
    s->by_ru[at] = (hot_ru){*key, range};
}

static void keep_size(search *s, const hot_size *key, uint32_t range) {
    if (s->by_size_n == HOTKEYS_TOP && s->by_size[HOTKEYS_TOP - 1].key.size.bytes >= key->size.bytes) {
        return;
    }
    size_t at = s->by_size_n < HOTKEYS_TOP ? s->by_size_n++ : HOTKEYS_TOP - 1;
    for (; at > 0 && s->by_size[at - 1].key.size.bytes < key->size.bytes; at--) {
        s->by_size[at] = s->by_size[at - 1];
    }
    s->by_size[at] = (hot_bytes){*key, range};
}

/* ---- seeding ---- */

static unfinished *find_unfinished(admin *a, uint32_t container, uint32_t range) {
    for (size_t i = 0; i < a->seedings_n; i++) {
        if (a->seedings[i].container == container && a->seedings[i].range == range) {
            return &a->seedings[i];
        }
    }
    if (a->seedings_n == SEEDINGS_MAX) { /* drop the oldest; its seeding restarts when requested again */
        memmove(&a->seedings[0], &a->seedings[1], (SEEDINGS_MAX - 1) * sizeof a->seedings[0]);
        a->seedings_n--;
    }
    unfinished *made = &a->seedings[a->seedings_n++];
    *made = (unfinished){container, range, {0}};
    return made;
}

static void finish(admin *a, unfinished *done) {
    memmove(done, done + 1, (size_t)(&a->seedings[a->seedings_n] - (done + 1)) * sizeof *done);
    a->seedings_n--;
}

static err seed(search *s, size_t position, uint32_t range) {
    const container *c = s->container;
    admin *a = s->q->admin;
    bool ended;
    if (item_hot_sizes_known(c, position)) {
        return OK;
    }
    if (clock_monotonic_us(s->items->clock) >= s->until_us) {
        s->complete = false;
        return OK;
    }
    unfinished *where = find_unfinished(a, c->space->container, range);
    err code = item_hot_seed(s->items, c, position, &where->seeding, s->until_us, &ended);
    if (code != OK || ended) {
        finish(a, where);
    }
    s->complete = s->complete && code == OK && ended && item_hot_sizes_known(c, position);
    return code;
}

/* ---- ranges ---- */

static err search_range(search *s, size_t position) {
    const container *c = s->container;
    hotkey by_ru[HOTKEYS_TOP];
    hot_size by_size[HOTKEYS_TOP];
    range_info info;
    bool there = range_info_at(c, position, &info);
    size_t n = there ? range_hottest_keys(c, position, clock_monotonic_us(s->items->clock), by_ru) : 0;
    for (size_t i = 0; i < n; i++) {
        keep_ru(s, &by_ru[i], info.range.id);
    }
    if (!there || info.partitions == 0 || c->key.n == 0) {
        return OK;
    }
    TRY(seed(s, position, info.range.id));
    TRY(item_hot_sizes(c, position, by_size, &n));
    for (size_t i = 0; i < n; i++) {
        keep_size(s, &by_size[i], info.range.id);
    }
    return OK;
}

static err search_all(search *s) {
    size_t n = range_count(s->container);
    if (n > RANGES_MAX) {
        s->complete = false;
        n = RANGES_MAX;
    }
    for (size_t i = 0; i < n; i++) {
        TRY(search_range(s, i));
    }
    return OK;
}

/* ---- answering ---- */

static void add_key(buf *out, size_t i, const hotkey *key, uint32_t range) {
    buf_add(out, ",", i > 0);
    buf_add_lit(out, "{\"key\":");
    json_add_string(out, slice_of(key->text, key->text_n));
    buf_addf(out, ",\"cut\":%s", key->text_n == HOTKEY_TEXT_MAX ? "true" : "false");
    admin_add_id(out, "range", range);
}

static void write_found(search *s, bool all) {
    buf *out = &s->q->body;
    buf_add_lit(out, "{\"database\":");
    json_add_string(out, s->container->database_id);
    admin_add_text(out, "container", s->container->id);
    buf_addf(out, ",\"allRanges\":%s,\"byRu\":[", all ? "true" : "false");
    for (size_t i = 0; i < s->by_ru_n; i++) {
        add_key(out, i, &s->by_ru[i].key, s->by_ru[i].range);
        admin_add_decimal(out, "ruPerSecond", s->by_ru[i].key.value, 2);
        buf_add_byte(out, '}');
    }
    buf_add_lit(out, "],\"bySize\":[");
    for (size_t i = 0; i < s->by_size_n; i++) {
        const hot_size *found = &s->by_size[i].key;
        add_key(out, i, &found->key, s->by_size[i].range);
        admin_add(out, "bytes", found->size.bytes);
        if (found->exact) {
            admin_add(out, "indexBytes", found->size.index_bytes);
            admin_add(out, "items", found->size.items);
        }
        buf_addf(out, ",\"exact\":%s}", found->exact ? "true" : "false");
    }
    buf_addf(out, "],\"sizesComplete\":%s}\n", s->complete ? "true" : "false");
}

static err search_asked(search *s) {
    slice range;
    uint64_t id = 0;
    size_t position;
    TRY(admin_param(s->q, "range", &range));
    if (range.n) {
        TRY(admin_param_number(s->q, "range", 0, UINT32_MAX, &id));
        TRY(admin_range(s->q, s->container, (int64_t)id, &position));
        TRY(search_range(s, position));
    } else {
        TRY(search_all(s));
    }
    write_found(s, range.n == 0);
    return OK;
}

err admin_hotkeys(admin_request *q) {
    slice database, name;
    container *c;
    TRY(admin_param(q, "database", &database));
    TRY(admin_param(q, "container", &name));
    TRY(admin_container(q, database, name, &c));
    const items *items = account_items(q->admin->account);
    search *s = arena_new(q->op.arena, search);
    *s = (search){
        .q = q,
        .items = items,
        .container = c,
        .until_us = clock_monotonic_us(items->clock) + (int64_t)SEEDING_MS * 1000,
        .complete = true,
    };
    err code = search_asked(s);
    container_give(c);
    return code;
}
