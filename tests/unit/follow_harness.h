/* follow_harness.h — for tests of followers: a container of database "d" on either kind of store, writes of numbered items, and a follower
 * that remembers the last version it has seen of each item. Item i is in partition i % FOLLOW_KEYS; `v` of an item grows with every
 * write. */
#pragma once

#include "item/follow.h"
#include "item_harness.h"
#include "rounds.h"

#define FOLLOW_KEY "\"id\":\"c\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}"
#define FOLLOW_KEPT ",\"changeFeedPolicy\":{\"retentionDuration\":10}"

enum { FOLLOW_KEYS = 37, FOLLOW_ITEMS = 200 };

typedef struct follow_world {
    harness h;
    char *folder; /* folder of RocksDB; NULL: in memory */
    container *c;
    int v;                 /* `v` of the last write */
    int now[FOLLOW_ITEMS]; /* current v of each item; 0: absent */
} follow_world;

static inline void follow_world_open(follow_world *w, bool rocks, const char *properties, uint32_t throughput) {
    *w = (follow_world){.folder = rocks ? make_folder() : NULL};
    log_set_level(LOG_ERROR);
    harness_open_on(&w->h, rocks ? open_rocks(w->folder) : store_open_memory());
    w->c = harness_container(&w->h, properties, throughput);
}

static inline void follow_world_close(follow_world *w) {
    if (w->c) {
        container_give(w->c);
    }
    harness_close(&w->h);
    if (w->folder) {
        remove_folder(w->folder);
        free(w->folder);
    }
}

/* Gets the newest version of the container. */
static inline void follow_renew(follow_world *w) {
    container_give(w->c);
    w->c = harness_found(&w->h, "d", "c");
}

static inline void follow_restart(follow_world *w) {
    container_give(w->c);
    harness_restart(&w->h);
    w->c = harness_found(&w->h, "d", "c");
}

static inline void follow_split(follow_world *w, size_t i) {
    err code = account_split(w->h.account, harness_op(&w->h), w->c, w->c->space->newest->ranges[i]->id, 2);
    assert_true(code == OK || code == E_BAD_REQUEST);
    follow_renew(w);
}

static inline void follow_merge(follow_world *w, size_t i) {
    const container_tiles *tiles = w->c->space->newest;
    assert_int_equal(account_merge(w->h.account, harness_op(&w->h), w->c, tiles->ranges[i]->id, tiles->ranges[i + 1]->id), OK);
    follow_renew(w);
}

static inline size_t follow_ranges(const follow_world *w) {
    return w->c->space->newest->map->n;
}

static inline void follow_put(follow_world *w, int i) {
    char body[100];
    snprintf(body, sizeof body, "{\"id\":\"%d\",\"pk\":\"p%d\",\"v\":%d}", i, i % FOLLOW_KEYS, ++w->v);
    assert_int_equal(harness_write(&w->h, w->c, ITEM_UPSERT, NULL, NULL, body), OK);
    w->now[i] = w->v;
}

static inline void follow_delete(follow_world *w, int i) {
    char key[16], id[16];
    snprintf(key, sizeof key, "[\"p%d\"]", i % FOLLOW_KEYS);
    snprintf(id, sizeof id, "%d", i);
    assert_int_equal(harness_write(&w->h, w->c, ITEM_DELETE, key, id, NULL), w->now[i] ? OK : E_NOT_FOUND);
    w->now[i] = 0;
}

static inline item_key follow_key(follow_world *w, int key) {
    item_key found;
    pkey *header = arena_new(&w->h.arena, pkey);
    char *text = arena_alloc(&w->h.arena, 16);
    op *o = harness_op(&w->h);
    snprintf(text, 16, "[\"p%d\"]", key);
    assert_int_equal(pkey_parse(o, slice_str(text), header), OK);
    assert_int_equal(item_check_key(o, w->c, header, SLICE_EMPTY, &found), OK);
    return found;
}

/* ---- a follower, and what it has seen ---- */

typedef struct seen {
    follower *f;
    follow_start start;
    int last[FOLLOW_ITEMS]; /* last v seen of each item; 0: none, or deleted */
    size_t changes, deletes;
    size_t page; /* changes per page */
    buf place;   /* the position after the last change, if `placed` */
    bool placed;
} seen;

static inline int seen_number(slice body, const char *name) {
    bson_iter_t it;
    assert_true(doc_find_key(body, slice_str(name), &it));
    return BSON_ITER_HOLDS_UTF8(&it) ? atoi(bson_iter_utf8(&it, NULL)) : (int)bson_iter_as_int64(&it);
}

/* Checks that the writes of an item arrive in order, each once. */
static inline bool see(void *context, const follow_change *change) {
    seen *s = context;
    int i = seen_number(change->body, "id"), v = seen_number(change->body, "v");
    assert_true(i >= 0 && i < FOLLOW_ITEMS);
    if (change->kind == FOLLOW_DELETED) {
        assert_int_equal(s->last[i], v); /* the version that was deleted */
        s->last[i] = 0;
        s->deletes++;
    } else {
        assert_true(v > s->last[i]);
        assert_true(s->start.mode == FOLLOW_LATEST || (change->kind == FOLLOW_CREATED) == (s->last[i] == 0) || s->start.from_now);
        s->last[i] = v;
    }
    s->changes++;
    if (s->placed) {
        buf_clear(&s->place);
        follow_position_after(change, &s->place);
        return s->changes < s->page; /* cut off anywhere, also within a commit */
    }
    return true;
}

static inline follow_start follow_all(follow_mode mode) {
    return (follow_start){.mode = mode, .min = epk_min(), .max = epk_max()};
}

static inline err seen_open_on(harness *h, container *c, seen *s) {
    return follow_open(harness_items(h), harness_op(h), c, &s->start, &s->f);
}

static inline void seen_open(follow_world *w, seen *s, follow_start start, size_t page) {
    *s = (seen){.start = start, .page = page};
    assert_int_equal(seen_open_on(&w->h, w->c, s), OK);
}

static inline err seen_page(follow_world *w, seen *s, bool *more_out) {
    follow_page page = {.items_max = s->page, .bytes_max = SIZE_MAX};
    size_t before = s->changes;
    err code = follow_read(s->f, harness_op(&w->h), w->c, &page, see, s);
    assert_true(code != OK || page.n == s->changes - before);
    *more_out = page.more;
    return code;
}

static inline void seen_all(follow_world *w, seen *s) {
    bool more = true;
    while (more) {
        assert_int_equal(seen_page(w, s, &more), OK);
    }
}

/* Closes the follower and returns its position; seen_reopen opens another one there. */
static inline buf seen_close(seen *s) {
    buf position = buf_init(BUF_NO_LIMIT);
    follow_position(s->f, &position);
    follow_close(s->f);
    s->f = NULL;
    return position;
}

static inline void seen_reopen(follow_world *w, seen *s, buf *position) {
    s->start.position = buf_view(position);
    assert_int_equal(seen_open_on(&w->h, w->c, s), OK);
    s->start.position = SLICE_EMPTY;
    buf_free(position);
}

/* Checks that the current version of every item was seen. */
static inline void seen_matches(const follow_world *w, const seen *s) {
    for (int i = 0; i < FOLLOW_ITEMS; i++) {
        if (w->now[i] || s->start.mode == FOLLOW_VERSIONS) {
            assert_int_equal(s->last[i], w->now[i]);
        }
    }
}
