/* A follower has stretches of the hash space, in order and without gaps, each with the lsn up to which it was read.
 *
 * A stretch lies within one range of the tiles that it was last aligned with. When a range is split, its stretches are cut at the new
 * bounds, and both parts continue with the same lsn. When ranges are merged, their stretches stay separate until they reach the same lsn of
 * the merged range, since before that their lsns belong to different sequences. */
#include "item/follow.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>

#include "base/memory.h"
#include "item/waiters.h"

enum { POSITION_VERSION = 1, POSITION_VERSION_PLACES = 2, KIND_HASHES = 0, KIND_PARTITION = 1 };

typedef struct stretch {
    epk min, max;
    uint64_t after; /* everything up to this lsn was read */
    /* Of the next lsn, what comes before this place was read; `places` 0: nothing. */
    uint32_t segment;
    uint16_t places;
} stretch;

struct follower {
    const items *items;
    container_space *space;
    arena arena; /* holds the followed key or prefix */
    follow_mode mode;
    bool keyed; /* follows one logical partition: `key` */
    item_key key;
    bool prefixed; /* follows only keys that begin with `prefix` */
    pkey prefix;
    epk min, max; /* the followed part of the hash space; for a partition, both are its EPK */
    int64_t since_s;

    stretch *list; /* one only for a partition */
    size_t n;
    size_t turn;            /* the stretch that the next page starts with */
    const stretch *reading; /* the stretch that is being read */
    change_waiter waiter;
};

/* ---- stretches ---- */

typedef struct stretches {
    stretch *list;
    size_t n, room;
} stretches;

static bool at_same_place(const stretch *a, const stretch *b) {
    return a->after == b->after && a->places == b->places && (a->places == 0 || a->segment == b->segment);
}

/* Appends a stretch that lies within one range. `joins`: the previous stretch lies in the same range, so the two may be joined. */
static bool add_stretch(stretches *to, stretch s, bool joins) {
    stretch *last = to->n ? &to->list[to->n - 1] : NULL;
    if (joins && last && at_same_place(last, &s) && epk_cmp(&last->max, &s.min) == 0) {
        last->max = s.max;
        return true;
    }
    if (to->n == LIMIT_FOLLOW_STRETCHES) {
        return false;
    }
    if (to->n == to->room) {
        to->room = to->room ? 2 * to->room : 1;
        to->list = mem_resize(to->list, to->room * sizeof *to->list);
    }
    to->list[to->n++] = s;
    return true;
}

/* Cuts a stretch at the bounds of the ranges. */
static bool cut_stretch(stretches *to, const partition_map *map, const stretch *s, const partition_range **in) {
    const partition_range *first;
    size_t n = partition_map_overlap(map, &s->min, &s->max, &first);
    bool fits = true;
    for (size_t i = 0; i < n && fits; i++) {
        const partition_range *range = &first[i];
        stretch part = *s;
        part.min = epk_cmp(&part.min, &range->min) < 0 ? range->min : part.min;
        part.max = epk_cmp(&range->max, &part.max) < 0 ? range->max : part.max;
        fits = add_stretch(to, part, *in == range);
        *in = range;
    }
    return fits;
}

static err too_many(op *o) {
    return op_fail(o, E_BAD_REQUEST, "A follower of changes may follow %d ranges at most: follow parts of the container instead.",
                   LIMIT_FOLLOW_STRETCHES);
}

static bool is_aligned(const follower *f, const partition_map *map) {
    bool aligned = true;
    for (size_t i = 0; i < f->n && aligned; i++) {
        const partition_range *range = partition_map_find(map, &f->list[i].min);
        bool joins = i > 0 && at_same_place(&f->list[i - 1], &f->list[i]) && epk_cmp(&range->min, &f->list[i].min) < 0;
        aligned = epk_cmp(&f->list[i].max, &range->max) <= 0 && !joins;
    }
    return aligned;
}

/* Aligns the stretches with the ranges of these tiles. */
static err align(follower *f, op *o, const container_tiles *tiles) {
    if (f->keyed || is_aligned(f, tiles->map)) {
        return OK;
    }
    stretches to = {0};
    const partition_range *in = NULL;
    bool fits = true;
    for (size_t i = 0; i < f->n && fits; i++) {
        fits = cut_stretch(&to, tiles->map, &f->list[i], &in);
    }
    if (!fits) {
        free(to.list);
        return too_many(o);
    }
    free(f->list);
    f->list = to.list;
    f->n = to.n;
    f->turn = 0;
    return OK;
}

static container_range *range_of(const follower *f, const container_tiles *tiles, const stretch *s) {
    return container_route(tiles, f->keyed ? &f->key.epk : &s->min);
}

static uint64_t lsn_of(const container_range *range) {
    return atomic_load_explicit(&range->lsn, memory_order_acquire);
}

/* ---- positions ---- */

static void put_place(const stretch *s, bool places, buf *out) {
    buf_add_be32(out, (uint32_t)(s->after >> 32));
    buf_add_be32(out, (uint32_t)s->after);
    if (places) {
        buf_add_be32(out, s->segment);
        buf_add_byte(out, (char)(s->places >> 8));
        buf_add_byte(out, (char)s->places);
    }
}

static bool has_places(const follower *f) {
    bool has = false;
    for (size_t i = 0; i < f->n && !has; i++) {
        has = f->list[i].places > 0;
    }
    return has;
}

/* `current` stands for the stretch that is being read; NULL: none is. */
static void put_position(const follower *f, const stretch *current, buf *out) {
    bool places = current || has_places(f);
    buf_add_byte(out, places ? POSITION_VERSION_PLACES : POSITION_VERSION);
    buf_add_byte(out, (uint8_t)f->mode);
    buf_add_byte(out, f->keyed ? KIND_PARTITION : KIND_HASHES);
    buf_add_be32(out, f->space->container);
    buf_add_be32(out, (uint32_t)((uint64_t)f->since_s >> 32));
    buf_add_be32(out, (uint32_t)f->since_s);
    buf_add_byte(out, (uint8_t)(f->n >> 8));
    buf_add_byte(out, (uint8_t)f->n);
    epk_put(out, &f->list[0].min);
    for (size_t i = 0; i < f->n; i++) {
        put_place(current && f->reading == &f->list[i] ? current : &f->list[i], places, out);
        epk_put(out, &f->list[i].max);
    }
}

void follow_position(const follower *f, buf *out) {
    put_position(f, NULL, out);
}

void follow_position_after(const follow_change *change, buf *out) {
    assert(change->by->mode == FOLLOW_VERSIONS && change->by->reading);
    stretch current = {.after = change->lsn - 1, .segment = change->segment, .places = (uint16_t)(change->place + 1)};
    put_position(change->by, &current, out);
}

/* Parses what precedes the stretches, and their number. */
static bool take_head(follower *f, slice *rest, bool *places_out, uint64_t *n_out) {
    uint64_t version, mode, kind, container, since;
    bool good = slice_take_be(rest, 1, &version) && slice_take_be(rest, 1, &mode) && slice_take_be(rest, 1, &kind) &&
                slice_take_be(rest, 4, &container) && slice_take_be(rest, 8, &since) && slice_take_be(rest, 2, n_out);
    *places_out = good && version == POSITION_VERSION_PLACES && mode == FOLLOW_VERSIONS;
    if (!good || (version != POSITION_VERSION && !*places_out) || mode != f->mode || kind != (f->keyed ? KIND_PARTITION : KIND_HASHES)) {
        return false;
    }
    f->since_s = (int64_t)since;
    return container == f->space->container && f->since_s >= 0 && *n_out > 0 && *n_out <= (f->keyed ? 1 : LIMIT_FOLLOW_STRETCHES);
}

static bool take_place(slice *rest, bool places, stretch *s) {
    uint64_t segment = 0, n = 0;
    bool good = slice_take_be(rest, 8, &s->after) && (!places || (slice_take_be(rest, 4, &segment) && slice_take_be(rest, 2, &n)));
    s->segment = (uint32_t)segment;
    s->places = (uint16_t)n;
    return good;
}

/* The bounds must ascend from one end of the followed part to the other. */
static bool take_stretches(follower *f, slice rest) {
    uint64_t n;
    bool places;
    epk from;
    if (!take_head(f, &rest, &places, &n) || !epk_take(&rest, &from) || epk_cmp(&from, &f->min) != 0) {
        return false;
    }
    f->list = mem_zero(n * sizeof *f->list);
    bool good = true;
    for (f->n = 0; f->n < n && good; f->n++) {
        stretch *s = &f->list[f->n];
        s->min = from;
        good = take_place(&rest, places, s) && epk_take(&rest, &s->max) &&
               (f->keyed ? epk_cmp(&s->min, &s->max) == 0 : epk_cmp(&s->min, &s->max) < 0);
        from = s->max;
    }
    return good && rest.n == 0 && epk_cmp(&from, &f->max) == 0;
}

bool follow_position_part(slice position, epk *min_out, epk *max_out) {
    uint64_t version = 0, mode, kind = 0, container, since, n = 0;
    stretch s = {0};
    bool good = slice_take_be(&position, 1, &version) && slice_take_be(&position, 1, &mode) && slice_take_be(&position, 1, &kind) &&
                slice_take_be(&position, 4, &container) && slice_take_be(&position, 8, &since) && slice_take_be(&position, 2, &n) &&
                kind == KIND_HASHES && n > 0 && n <= LIMIT_FOLLOW_STRETCHES && epk_take(&position, min_out);
    for (uint64_t i = 0; i < n && good; i++) {
        good = take_place(&position, version == POSITION_VERSION_PLACES, &s) && epk_take(&position, max_out);
    }
    epk least = epk_min(), most = epk_max();
    return good && position.n == 0 && epk_cmp(min_out, &least) >= 0 && epk_cmp(min_out, max_out) < 0 && epk_cmp(max_out, &most) <= 0;
}

bool follow_position_container(slice position, uint32_t *container_out) {
    uint64_t version = 0, mode, kind, container = 0;
    bool good = slice_take_be(&position, 1, &version) && slice_take_be(&position, 1, &mode) && slice_take_be(&position, 1, &kind) &&
                slice_take_be(&position, 4, &container) && (version == POSITION_VERSION || version == POSITION_VERSION_PLACES);
    *container_out = (uint32_t)container;
    return good;
}

/* ---- open and close ---- */

static void copy_key(follower *f, const pkey *from, pkey *to) {
    buf bytes = buf_init(BUF_NO_LIMIT);
    size_t used;
    pkey_encode(&bytes, from);
    bool copied = pkey_decode(&f->arena, arena_copy(&f->arena, buf_view(&bytes)), from->n, to, &used);
    assert(copied);
    buf_free(&bytes);
}

static void copy_scope(follower *f, const follow_start *start) {
    f->min = start->min;
    f->max = start->max;
    if (start->partition) {
        f->keyed = true;
        copy_key(f, &start->partition->partition, &f->key.partition);
        f->min = f->max = f->key.epk = start->partition->epk;
    } else if (start->prefix) {
        f->prefixed = true;
        copy_key(f, start->prefix, &f->prefix);
    }
    f->waiter = (change_waiter){.keyed = f->keyed, .first = waiters_first(&f->min)};
    f->waiter.last = f->keyed ? f->waiter.first : waiters_last(&f->max);
    f->waiter.hash = f->keyed ? waiters_hash(&f->key.epk) : 0;
}

static err check_versions(const follower *f, op *o, const container *c) {
    if (f->mode == FOLLOW_VERSIONS && !item_versions_kept(c)) {
        return op_fail(o, E_BAD_REQUEST, "The container keeps no versions: give its change feed policy a retention duration first.");
    }
    return OK;
}

/* An lsn beyond the range's was never given out, or was lost in a crash with relaxed durability: continue from the range's current lsn. */
static void stand_within(follower *f, const container_tiles *tiles, bool from_now) {
    for (size_t i = 0; i < f->n; i++) {
        uint64_t end = lsn_of(range_of(f, tiles, &f->list[i]));
        if (from_now || f->list[i].after > end) {
            f->list[i].after = end;
            f->list[i].places = 0;
        }
    }
}

static err begin(follower *f, op *o, const container *c, const follow_start *start) {
    TRY(check_versions(f, o, c));
    if (!start->partition && epk_cmp(&start->min, &start->max) >= 0) {
        return op_fail(o, E_BAD_REQUEST, "A follower of changes needs a part of the hash space whose end lies behind its beginning.");
    }
    if (start->position.n) {
        return take_stretches(f, start->position) ? OK : E_BAD_CONTINUATION;
    }
    f->since_s = start->since_s > 0 && f->mode == FOLLOW_LATEST ? start->since_s : 0;
    f->list = mem_zero(sizeof *f->list);
    f->list[0] = (stretch){.min = f->min, .max = f->max};
    f->n = 1;
    return OK;
}

err follow_open(const items *s, op *o, container *c, const follow_start *start, follower **follower_out) {
    follower *f = mem_zero(sizeof *f);
    f->items = s;
    f->space = c->space;
    f->arena = arena_init_small();
    f->mode = start->mode;
    atomic_fetch_add_explicit(&f->space->refs, 1, memory_order_relaxed);
    copy_scope(f, start);
    if (f->keyed) {
        waiters_follow_key(f->space, true);
    }
    err code = begin(f, o, c, start);
    container_tiles *tiles = container_space_newest(f->space);
    code = code != OK ? code : align(f, o, tiles);
    if (code == OK) {
        stand_within(f, tiles, start->from_now && !start->position.n);
    } else {
        follow_close(f);
        f = NULL;
    }
    container_tiles_give(tiles);
    *follower_out = f;
    return code;
}

void follow_close(follower *f) {
    if (!f) {
        return;
    }
    assert(!f->waiter.at);
    if (f->keyed) {
        waiters_follow_key(f->space, false);
    }
    container_space_give(f->space);
    arena_free(&f->arena);
    free(f->list);
    free(f);
}

/* ---- a page ---- */

typedef struct reading {
    follower *follower;
    op *op;
    container *container;
    follow_page *page;
    follow_visit visit;
    void *context;
    size_t bytes;
    uint64_t last; /* lsn of the stretch's last change; 0: none yet */
    bool full;
} reading;

/* A change with the same lsn as the previous one must be in the same page, since a position is an lsn. */
static bool take(reading *r, const follow_change *change) {
    const follow_page *page = r->page;
    bool fits = page->n < page->items_max && (page->n == 0 || r->bytes + change->body.n <= page->bytes_max);
    bool same = r->last == change->lsn;
    r->full = (!fits && !same) || !r->visit(r->context, change);
    if (!r->full) {
        r->page->n++;
        r->bytes += change->body.n;
        r->last = change->lsn;
    }
    return !r->full;
}

static bool take_item(void *context, const item_found *found) {
    follow_change change = {.kind = FOLLOW_WRITTEN, .lsn = found->head.lsn, .ts = found->head.ts, .head = found->head, .body = found->body};
    return take(context, &change);
}

static bool was_passed(const stretch *s, const logged_version *v) {
    bool before = v->segment < s->segment || (v->segment == s->segment && v->place < s->places);
    return s->places && v->lsn == s->after + 1 && before;
}

static bool take_version(void *context, const logged_version *v) {
    const follower *f = ((const reading *)context)->follower;
    if (was_passed(f->reading, v)) {
        return true;
    }
    static const follow_kind kinds[] = {
        [VERSION_CREATE] = FOLLOW_CREATED, [VERSION_REPLACE] = FOLLOW_REPLACED, [VERSION_DELETE] = FOLLOW_DELETED};
    follow_change change = {.kind = kinds[v->entry.kind],
                            .expired = v->entry.expired,
                            .lsn = v->lsn,
                            .previous_lsn = v->entry.previous_lsn,
                            .ts = v->entry.ts,
                            .head = v->head,
                            .body = v->body,
                            .segment = v->segment,
                            .place = v->place,
                            .by = f,
                            .note = v->note};
    return take(context, &change);
}

/* Reads one stretch from its position. */
static err read_stretch(reading *r, stretch *s, bool *more_out) {
    follower *f = r->follower;
    item_changes what = {.partition = f->keyed ? &f->key : NULL,
                         .prefix = f->prefixed ? &f->prefix : NULL,
                         .min = s->min,
                         .max = s->max,
                         .after = s->after,
                         .since_s = f->since_s,
                         .until_us = r->page->until_us};
    r->last = 0;
    f->reading = s;
    err code = f->mode == FOLLOW_VERSIONS ? item_versions_read(f->items, r->op, r->container, &what, take_version, r, &r->page->mark)
                                          : item_changes_read(f->items, r->op, r->container, &what, take_item, r, &r->page->mark);
    f->reading = NULL;
    if (code == OK) {
        s->places = what.after == s->after ? s->places : 0;
        s->after = what.after;
        *more_out = what.more;
    }
    return code;
}

static bool is_late(const reading *r) {
    int64_t until = r->page->until_us;
    return until && clock_monotonic_us(r->follower->items->clock) - op_waited_us(r->op) >= until;
}

/* Reads all stretches that have something new, beginning with the one whose turn it is. E_RANGE_GONE: the tiles are outdated. */
static err read_all(reading *r, const container_tiles *tiles) {
    follower *f = r->follower;
    follow_page *page = r->page;
    for (size_t i = 0, n = f->n, first = f->turn; i < n; i++) {
        stretch *s = &f->list[(first + i) % n];
        bool more = false;
        if (s->after >= lsn_of(range_of(f, tiles, s))) {
            continue;
        }
        if (page->n && (page->n >= page->items_max || r->bytes >= page->bytes_max || is_late(r))) {
            f->turn = (first + i) % n;
            page->more = true;
            return OK;
        }
        size_t before = page->n;
        err code = read_stretch(r, s, &more);
        if (code == E_THROTTLED && before > 0) {
            code = OK;
            more = true;
        }
        TRY(code);
        if (more) {
            f->turn = (first + i + 1) % n;
            page->more = true;
            return OK;
        }
    }
    return OK;
}

/* The position before a page, restored if the page fails. */
typedef struct saved {
    stretch *list;
    size_t n, turn;
} saved;

static saved save(const follower *f) {
    saved s = {.list = mem_alloc(f->n * sizeof *f->list), .n = f->n, .turn = f->turn};
    memcpy(s.list, f->list, f->n * sizeof *f->list);
    return s;
}

static void restore(follower *f, saved *s) {
    free(f->list);
    f->list = s->list;
    f->n = s->n;
    f->turn = s->turn;
    s->list = NULL;
}

static bool has_news(const follower *f, const container_tiles *tiles) {
    bool news = false;
    for (size_t i = 0; i < f->n && !news; i++) {
        const partition_range *first;
        const stretch *s = &f->list[i];
        size_t n = f->keyed ? 1 : partition_map_overlap(tiles->map, &s->min, &s->max, &first);
        for (size_t j = 0; j < n && !news; j++) {
            const container_range *range = f->keyed ? range_of(f, tiles, s) : tiles->ranges[first - tiles->map->ranges + j];
            news = s->after < lsn_of(range);
        }
    }
    return news;
}

/* Repeats until a page is read with tiles that stay the newest meanwhile. Changes that were taken before a split or merge are not taken
 * again. */
static err read_page(reading *r) {
    follower *f = r->follower;
    err code;
    do {
        container_tiles *tiles = container_space_newest(f->space);
        code = align(f, r->op, tiles);
        code = code == OK ? read_all(r, tiles) : code;
        container_tiles_give(tiles);
    } while (code == E_RANGE_GONE && !atomic_load(&f->space->deleted));
    return code;
}

err follow_read(follower *f, op *o, container *c, follow_page *page, follow_visit visit, void *context) {
    reading r = {.follower = f, .op = o, .container = c, .page = page, .visit = visit, .context = context};
    page->n = 0;
    page->more = false;
    if (c->space != f->space || atomic_load(&f->space->deleted)) {
        return op_fail(o, E_OWNER_NOT_FOUND, "The container whose changes are followed was deleted.");
    }
    TRY(check_versions(f, o, c));
    container_tiles *tiles = container_space_newest(f->space);
    bool news = has_news(f, tiles);
    container_tiles_give(tiles);
    if (!news) {
        return OK;
    }
    saved before = save(f);
    err code = read_page(&r);
    if (code != OK) {
        restore(f, &before);
    }
    free(before.list);
    return code == E_RANGE_GONE ? E_OWNER_NOT_FOUND : code;
}

/* ---- waiting ---- */

bool follow_wait(follower *f, void (*woken)(void *context), void *context) {
    f->waiter.woken = woken;
    f->waiter.context = context;
    waiters_add(f->space, &f->waiter);
    container_tiles *tiles = container_space_newest(f->space);
    bool news = atomic_load(&f->space->deleted) || has_news(f, tiles);
    container_tiles_give(tiles);
    return !news || !waiters_remove(f->space, &f->waiter); /* if it could not be removed, it is being woken */
}

bool follow_cancel(follower *f) {
    return waiters_remove(f->space, &f->waiter);
}

size_t follow_waiting(container_space *space) {
    return waiters_count(space);
}
