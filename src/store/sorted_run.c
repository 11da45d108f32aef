#include "store/sorted_run.h"

#include <assert.h>
#include <endian.h>
#include <lz4.h>
#include <stdlib.h>

#include "base/memory.h"
#include "store/batch_order.h"

enum { VERSION = 1, HEAD_BYTES = 9, LENGTH_BYTES_MAX = 5, LENGTH_MAX = 1 << 28 };
enum { COMPRESSED = 2, COMPRESSED_HEAD_BYTES = 5, RATIO_MAX = 255 };
enum { SHORTENED = 3, SHORTENED_HEAD_BYTES = 13, SHORTEN_FROM = 512, TAIL_BYTES = 8, CHANGE_HEAD_BYTES_MAX = 2 + 2 * LENGTH_BYTES_MAX };
enum { SAME_MAX = 63, GIVEN_MAX = 15 }; /* in the head of a shortened change: a length follows */

typedef enum change_kind { PUT_EMPTY, PUT_VALUE, GONE, KINDS } change_kind;

/* ---- making ---- */

/* Allocates a run with room for this many bytes, changes and ranges; `finish` trims it. */
static store_run *begin(size_t bytes, size_t changes, size_t ranges, uint64_t first, uint64_t last) {
    assert(bytes + HEAD_BYTES <= UINT32_MAX);
    store_run *run = mem_zero(sizeof *run);
    atomic_init(&run->refs, 1);
    run->first = first;
    run->last = last;
    run->at = mem_alloc(changes * sizeof *run->at);
    run->ranges = ranges ? mem_alloc(ranges * sizeof *run->ranges) : NULL;
    run->p = mem_alloc(HEAD_BYTES + bytes);
    run->bytes = HEAD_BYTES;
    return run;
}

static void put_u32(char *p, uint32_t value) {
    value = htole32(value);
    memcpy(p, &value, sizeof value);
}

static uint32_t get_u32(const char *p) {
    uint32_t value;
    memcpy(&value, p, sizeof value);
    return le32toh(value);
}

static char *put_length(char *p, size_t length) {
    assert(length < (size_t)LENGTH_MAX * 4);
    for (; length >= 128; length >>= 7) {
        *p++ = (char)(length | 128);
    }
    *p++ = (char)length;
    return p;
}

static char *put_bytes(char *p, slice s) {
    memcpy(p, s.p ? s.p : "", s.n);
    return p + s.n;
}

static void add_range(store_run *run, store_range range) {
    char *p = run->p + run->bytes;
    char *from = put_length(p, range.from.n);
    char *to = put_length(put_bytes(from, range.from), range.to.n);
    run->ranges[run->ranges_n++] = (store_range){slice_of(from, range.from.n), slice_of(to, range.to.n)};
    run->bytes = (size_t)(put_bytes(to, range.to) - run->p);
}

static void add_change(store_run *run, const store_change *c) {
    change_kind kind = c->kind == STORE_DELETE ? GONE : c->value.n ? PUT_VALUE : PUT_EMPTY;
    run->at[run->n++] = (uint32_t)run->bytes;
    char *p = put_bytes(put_length(run->p + run->bytes, c->key.n << 2 | kind), c->key);
    if (kind == PUT_VALUE) {
        p = put_bytes(put_length(p, c->value.n), c->value);
    }
    run->bytes = (size_t)(p - run->p);
}

/* Releases unused memory, unless it is little. */
static store_run *finish(store_run *run, size_t bytes_made, size_t changes_made) {
    run->p[0] = VERSION;
    put_u32(run->p + 1, run->ranges_n);
    put_u32(run->p + 5, run->n);
    if (run->bytes < bytes_made / 8 * 7 && run->ranges_n == 0) { /* ranges point into `p`, so it must not move */
        run->p = mem_resize(run->p, run->bytes);
    }
    if (run->n < changes_made / 8 * 7) {
        run->at = mem_resize(run->at, (run->n + 1) * sizeof *run->at);
    }
    return run;
}

store_run *store_run_hold(store_run *run) {
    atomic_fetch_add_explicit(&run->refs, 1, memory_order_relaxed);
    return run;
}

void store_run_give(store_run *run) {
    if (atomic_fetch_sub_explicit(&run->refs, 1, memory_order_acq_rel) == 1) {
        free(run->at);
        free(run->ranges);
        free(run->p);
        free(run);
    }
}

/* ---- from a batch ---- */

typedef struct batch_terms {
    const store_change *changes;
    batch_point *points;
    size_t points_n;
    uint32_t *ranges; /* in the order of the batch */
    size_t ranges_n;
    size_t bytes;
} batch_terms;

static void collect(const store_batch *batch, batch_terms *t) {
    for (uint32_t i = 0; i < batch->n; i++) {
        const store_change *c = &batch->changes[i];
        if (c->family != STORE_TERMS) {
            continue;
        }
        t->bytes += c->key.n + c->value.n + 2 * LENGTH_BYTES_MAX;
        if (c->kind == STORE_DELETE_RANGE) {
            t->ranges[t->ranges_n++] = i;
        } else {
            t->points[t->points_n++].index = i;
        }
    }
}

/* Whether a range that came later in the batch deletes this key. */
static bool is_covered(const batch_terms *t, uint32_t point) {
    for (size_t i = t->ranges_n; i-- > 0 && t->ranges[i] > point;) {
        const store_change *range = &t->changes[t->ranges[i]];
        if (slice_cmp(range->key, t->changes[point].key) <= 0 && slice_cmp(t->changes[point].key, range->value) < 0) {
            return true;
        }
    }
    return false;
}

static int by_from(const void *a, const void *b) {
    return slice_cmp(((const store_range *)a)->from, ((const store_range *)b)->from);
}

/* Joins overlapping and adjacent ranges, which are sorted by `from`. Returns how many are left. */
static size_t join_ranges(store_range *ranges, size_t n) {
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (slice_cmp(ranges[i].from, ranges[i].to) >= 0) {
            continue;
        }
        if (kept && slice_cmp(ranges[i].from, ranges[kept - 1].to) <= 0) {
            store_range *last = &ranges[kept - 1];
            last->to = slice_cmp(last->to, ranges[i].to) < 0 ? ranges[i].to : last->to;
        } else {
            ranges[kept++] = ranges[i];
        }
    }
    return kept;
}

static void add_batch_ranges(store_run *run, const batch_terms *t) {
    store_range *ranges = mem_alloc((t->ranges_n + 1) * sizeof *ranges);
    for (size_t i = 0; i < t->ranges_n; i++) {
        const store_change *c = &t->changes[t->ranges[i]];
        ranges[i] = (store_range){c->key, c->value};
    }
    if (t->ranges_n) {
        qsort(ranges, t->ranges_n, sizeof *ranges, by_from);
    }
    size_t n = join_ranges(ranges, t->ranges_n);
    for (size_t i = 0; i < n; i++) {
        add_range(run, ranges[i]);
    }
    free(ranges);
}

static void add_batch_points(store_run *run, const batch_terms *t) {
    store_batch_order(t->changes, t->points, t->points + t->points_n, t->points_n);
    for (size_t i = 0; i < t->points_n; i++) {
        if (store_batch_is_last(t->changes, t->points, t->points_n, i) && !is_covered(t, t->points[i].index)) {
            add_change(run, &t->changes[t->points[i].index]);
        }
    }
}

static bool has_terms(const store_batch *batch) {
    for (size_t i = 0; i < batch->n; i++) {
        if (batch->changes[i].family == STORE_TERMS) {
            return true;
        }
    }
    return false;
}

store_run *store_run_of_batch(const store_batch *batch) {
    if (!has_terms(batch)) {
        return NULL;
    }
    batch_terms t = {
        .changes = batch->changes, .points = mem_alloc(2 * batch->n * sizeof *t.points), .ranges = mem_alloc(batch->n * sizeof *t.ranges)};
    collect(batch, &t);
    store_run *run = begin(t.bytes, t.points_n, t.ranges_n, 0, 0);
    add_batch_ranges(run, &t);
    add_batch_points(run, &t);
    free(t.points);
    free(t.ranges);
    return finish(run, t.bytes, t.points_n);
}

/* ---- from the log ---- */

/* Reads a length within [p, end); NULL if it is invalid. */
static const char *read_length(const char *p, const char *end, size_t *length_out) {
    size_t length = 0;
    for (unsigned shift = 0; p < end && shift < 7 * LENGTH_BYTES_MAX; shift += 7) {
        char c = *p++;
        length |= ((size_t)(unsigned char)c & 127) << shift;
        if (!(c & 128)) {
            *length_out = length;
            return p;
        }
    }
    return NULL;
}

static const char *read_bytes(const char *p, const char *end, size_t n, slice *bytes_out) {
    if (!p || n > (size_t)(end - p)) {
        return NULL;
    }
    *bytes_out = slice_of(p, n);
    return p + n;
}

static const char *read_ranges(store_run *run, const char *p, const char *end, uint32_t n) {
    for (uint32_t i = 0; p && i < n; i++) {
        size_t length = 0;
        store_range *range = &run->ranges[i];
        p = read_length(p, end, &length);
        p = read_bytes(p, end, length, &range->from);
        p = p ? read_length(p, end, &length) : NULL;
        p = read_bytes(p, end, length, &range->to);
        if (p && (slice_cmp(range->from, range->to) >= 0 || (i && slice_cmp(range[-1].to, range->from) >= 0))) {
            return NULL;
        }
        run->ranges_n = i + 1;
    }
    return p;
}

static const char *read_changes(store_run *run, const char *p, const char *end, uint32_t n) {
    slice key = SLICE_EMPTY, last = SLICE_EMPTY, value;
    for (uint32_t i = 0; p && i < n; i++) {
        size_t head = 0, length = 0;
        run->at[i] = (uint32_t)(p - run->p);
        p = read_length(p, end, &head);
        p = read_bytes(p, end, head >> 2, &key);
        if (p && (head & 3) == PUT_VALUE) {
            p = read_length(p, end, &length);
            p = read_bytes(p, end, length, &value);
        }
        if ((head & 3) >= KINDS || (p && i && slice_cmp(last, key) >= 0)) {
            return NULL;
        }
        last = key;
        run->n = i + 1;
    }
    return p;
}

static err read_plain(slice logged, uint64_t number, store_run **run_out) {
    *run_out = NULL;
    if (logged.n < HEAD_BYTES || logged.n > UINT32_MAX || logged.p[0] != VERSION) {
        return E_STORE_CORRUPT;
    }
    uint32_t ranges = get_u32(logged.p + 1), changes = get_u32(logged.p + 5);
    if (ranges > logged.n || changes > logged.n) {
        return E_STORE_CORRUPT;
    }
    store_run *run = begin(logged.n - HEAD_BYTES, changes, ranges, number, number);
    memcpy(run->p, logged.p, logged.n);
    run->bytes = logged.n;
    const char *end = run->p + run->bytes, *p = read_ranges(run, run->p + HEAD_BYTES, end, ranges);
    p = read_changes(run, p, end, changes);
    if (p != end) {
        store_run_give(run);
        return E_STORE_CORRUPT;
    }
    *run_out = run;
    return OK;
}

/* ---- shortening: neighbouring keys begin alike, and the numbers at their ends do too ---- */

static uint64_t word_at(const char *p) {
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return be64toh(word);
}

static size_t same_bytes(uint64_t a, uint64_t b) {
    return a == b ? sizeof a : (size_t)__builtin_clzll(a ^ b) / 8;
}

static size_t common_begin(slice a, slice b) {
    size_t most = a.n < b.n ? a.n : b.n, same = 0;
    for (; same + sizeof(uint64_t) <= most; same += sizeof(uint64_t)) {
        size_t here = same_bytes(word_at(a.p + same), word_at(b.p + same));
        if (here < sizeof(uint64_t)) {
            return same + here;
        }
    }
    while (same < most && a.p[same] == b.p[same]) {
        same++;
    }
    return same;
}

static char *put_change_head(char *p, change_kind kind, size_t alike, size_t same, size_t given) {
    size_t head = kind | alike << 2 | (same < SAME_MAX ? same : SAME_MAX) << 6 | (given < GIVEN_MAX ? given : GIVEN_MAX) << 12;
    *p++ = (char)head;
    *p++ = (char)(head >> 8);
    p = same < SAME_MAX ? p : put_length(p, same - SAME_MAX);
    return given < GIVEN_MAX ? p : put_length(p, given - GIVEN_MAX);
}

/* Writes a key as what is new after `before`. Up to TAIL_BYTES more than that may be overwritten. */
static char *put_shortened(char *p, slice before, slice key, change_kind kind) {
    size_t same = common_begin(before, key);
    if (before.n < TAIL_BYTES || key.n - same < TAIL_BYTES) {
        return put_bytes(put_change_head(p, kind, 0, same, key.n - same), slice_skip(key, same));
    }
    uint64_t tail = word_at(key.p + key.n - TAIL_BYTES);
    size_t alike = same_bytes(tail, word_at(before.p + before.n - TAIL_BYTES)), middle = key.n - same - TAIL_BYTES;
    p = put_change_head(p, kind, alike, same, middle + TAIL_BYTES - alike);
    p = put_bytes(p, slice_of(key.p + same, middle));
    tail = alike < TAIL_BYTES ? htobe64(tail << 8 * alike) : 0;
    memcpy(p, &tail, sizeof tail);
    return p + TAIL_BYTES - alike;
}

/* Where the changes begin. */
static size_t changes_at(const store_run *run) {
    return run->n ? run->at[0] : run->bytes;
}

static char *put_all_shortened(char *p, const store_run *run) {
    slice before = SLICE_EMPTY;
    for (size_t i = 0; i < run->n; i++) {
        size_t head, length = 0;
        const char *from = store_run_length(run->p + run->at[i], &head);
        slice key = slice_of(from, head >> 2);
        p = put_shortened(p, before, key, (change_kind)(head & 3));
        if ((head & 3) == PUT_VALUE) {
            from = store_run_length(key.p + key.n, &length);
            p = put_bytes(put_length(p, length), slice_of(from, length));
        }
        before = key;
    }
    return p;
}

slice store_run_logged(const store_run *run, buf *scratch) {
    slice plain = slice_of(run->p, run->bytes);
    if (run->bytes < SHORTEN_FROM) {
        return plain;
    }
    buf_clear(scratch);
    buf_grow(scratch, SHORTENED_HEAD_BYTES + run->bytes + (size_t)run->n * CHANGE_HEAD_BYTES_MAX + TAIL_BYTES);
    scratch->p[0] = SHORTENED;
    put_u32(scratch->p + 1, (uint32_t)run->bytes);
    put_u32(scratch->p + 5, run->ranges_n);
    put_u32(scratch->p + 9, run->n);
    char *p = put_bytes(scratch->p + SHORTENED_HEAD_BYTES, slice_of(run->p + HEAD_BYTES, changes_at(run) - HEAD_BYTES));
    scratch->n = (size_t)(put_all_shortened(p, run) - scratch->p);
    return scratch->n < run->bytes && run->bytes / RATIO_MAX < scratch->n ? buf_view(scratch) : plain;
}

/* The bytes of a shortened run that are left to read, and its plain form that is being made. */
typedef struct lengthening {
    const char *p, *end;
    char *to, *to_end;
} lengthening;

static bool take_length(lengthening *l, size_t *length_out) {
    l->p = read_length(l->p, l->end, length_out);
    return l->p != NULL;
}

static bool copy(lengthening *l, const char *from, size_t n) {
    if (n > (size_t)(l->to_end - l->to)) {
        return false;
    }
    memcpy(l->to, from ? from : "", n);
    l->to += n;
    return true;
}

static bool copy_given(lengthening *l, size_t n) {
    slice given;
    const char *rest = read_bytes(l->p, l->end, n, &given);
    l->p = rest;
    return rest && copy(l, given.p, n);
}

static bool copy_length(lengthening *l, size_t length) {
    char bytes[LENGTH_BYTES_MAX];
    return length < (size_t)LENGTH_MAX * 4 && copy(l, bytes, (size_t)(put_length(bytes, length) - bytes));
}

typedef struct change_head {
    change_kind kind;
    size_t alike, same, given;
} change_head;

static bool take_change_head(lengthening *l, change_head *h) {
    size_t more = 0;
    if (l->end - l->p < 2) {
        return false;
    }
    unsigned head = (unsigned char)l->p[0] | (unsigned)(unsigned char)l->p[1] << 8;
    l->p += 2;
    *h = (change_head){(change_kind)(head & 3), head >> 2 & 15, head >> 6 & SAME_MAX, head >> 12};
    if (h->same == SAME_MAX && !take_length(l, &more)) {
        return false;
    }
    h->same += more;
    more = 0;
    if (h->given == GIVEN_MAX && !take_length(l, &more)) {
        return false;
    }
    h->given += more;
    return true;
}

/* `before`: the key before, in the plain form; becomes this one. */
static bool lengthen_key(lengthening *l, slice *before, change_kind *kind_out) {
    change_head h;
    if (!take_change_head(l, &h)) {
        return false;
    }
    size_t alike = h.alike, same = h.same, given = h.given, last = alike ? TAIL_BYTES - alike : 0;
    *kind_out = h.kind;
    if (alike > TAIL_BYTES || same > before->n || given < last || (alike && before->n < TAIL_BYTES)) {
        return false;
    }
    size_t n = same + given + alike;
    bool whole = n < LENGTH_MAX && copy_length(l, n << 2 | *kind_out);
    const char *key = l->to;
    whole = whole && copy(l, before->p, same) && copy_given(l, given - last);
    whole = whole && (!alike || copy(l, before->p + before->n - TAIL_BYTES, alike)) && copy_given(l, last);
    *before = slice_of(key, n);
    return whole;
}

static bool lengthen_change(lengthening *l, slice *before) {
    change_kind kind;
    size_t length;
    if (!lengthen_key(l, before, &kind)) {
        return false;
    }
    return kind != PUT_VALUE || (take_length(l, &length) && copy_length(l, length) && copy_given(l, length));
}

static bool lengthen_ranges(lengthening *l, uint32_t ranges) {
    for (uint64_t i = 0; i < 2 * (uint64_t)ranges; i++) {
        size_t length;
        if (!take_length(l, &length) || !copy_length(l, length) || !copy_given(l, length)) {
            return false;
        }
    }
    return true;
}

static err read_shortened(slice logged, uint64_t number, store_run **run_out) {
    size_t size = get_u32(logged.p + 1);
    uint32_t changes = get_u32(logged.p + 9);
    if (size < HEAD_BYTES || size / RATIO_MAX > logged.n) {
        return E_STORE_CORRUPT;
    }
    char *plain = mem_alloc(size);
    slice before = SLICE_EMPTY;
    lengthening l = {logged.p + SHORTENED_HEAD_BYTES, logged.p + logged.n, plain + HEAD_BYTES, plain + size};
    plain[0] = VERSION;
    memcpy(plain + 1, logged.p + 5, 8); /* the numbers of ranges and changes */
    bool whole = lengthen_ranges(&l, get_u32(logged.p + 5));
    for (uint32_t i = 0; whole && i < changes; i++) {
        whole = lengthen_change(&l, &before);
    }
    whole = whole && l.p == l.end && l.to == l.to_end;
    err code = whole ? read_plain(slice_of(plain, size), number, run_out) : E_STORE_CORRUPT;
    free(plain);
    return code;
}

/* ---- compressed by LZ4, as earlier versions logged runs ---- */

/* LZ4 makes at most 255 bytes of one, so a damaged size is refused before memory is allocated. */
static err read_compressed(slice logged, uint64_t number, store_run **run_out) {
    slice packed = slice_skip(logged, COMPRESSED_HEAD_BYTES);
    size_t size = get_u32(logged.p + 1);
    if (size > packed.n * RATIO_MAX || size > LZ4_MAX_INPUT_SIZE || packed.n > LZ4_MAX_INPUT_SIZE) {
        return E_STORE_CORRUPT;
    }
    char *plain = mem_alloc(size);
    int n = LZ4_decompress_safe(packed.p, plain, (int)packed.n, (int)size);
    err code = n >= 0 && (size_t)n == size ? read_plain(slice_of(plain, size), number, run_out) : E_STORE_CORRUPT;
    free(plain);
    return code;
}

err store_run_read(slice logged, uint64_t number, store_run **run_out) {
    *run_out = NULL;
    if (logged.n >= SHORTENED_HEAD_BYTES && logged.p[0] == SHORTENED) {
        return read_shortened(logged, number, run_out);
    }
    bool compressed = logged.n >= COMPRESSED_HEAD_BYTES && logged.p[0] == COMPRESSED;
    return compressed ? read_compressed(logged, number, run_out) : read_plain(logged, number, run_out);
}

/* ---- merging ---- */

/* `most`: how many ranges all runs have. */
static void merge_ranges(store_run *into, store_run *const *runs, size_t n, size_t most) {
    store_range *all = mem_alloc((most + 1) * sizeof *all);
    size_t ranges = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < runs[i]->ranges_n; j++) {
            all[ranges++] = runs[i]->ranges[j];
        }
    }
    if (ranges) {
        qsort(all, ranges, sizeof *all, by_from);
        ranges = join_ranges(all, ranges);
    }
    for (size_t i = 0; i < ranges; i++) {
        add_range(into, all[i]);
    }
    free(all);
}

/* A run that is being merged, at one of its changes. */
typedef struct merge_source {
    store_run *const *runs; /* all of them, oldest first; this one is runs[age] */
    size_t age, runs_n;
    const store_run *run;
    size_t at;
    slice key;
    bool hides; /* a newer run has ranges */
} merge_source;

/* False: there are no more changes. */
static bool step(merge_source *s) {
    s->at++;
    if (s->at >= s->run->n) {
        return false;
    }
    s->key = store_run_key(s->run, s->at);
    return true;
}

static bool is_hidden(const merge_source *s, size_t i) {
    for (size_t newer = s->age + 1; newer < s->runs_n; newer++) {
        if (s->runs[newer]->ranges_n && store_run_covers(s->runs[newer], store_run_key(s->run, i))) {
            return true;
        }
    }
    return false;
}

/* Copies changes [from, to) of a run. Their bytes are adjacent. */
static void copy_changes(store_run *into, const store_run *run, size_t from, size_t to) {
    uint32_t begins = run->at[from], ends = to < run->n ? run->at[to] : (uint32_t)run->bytes;
    uint32_t moved = (uint32_t)into->bytes - begins;
    for (size_t i = from; i < to; i++) {
        into->at[into->n++] = run->at[i] + moved;
    }
    memcpy(into->p + into->bytes, run->p + begins, ends - begins);
    into->bytes += ends - begins;
}

static void copy_visible(store_run *into, const merge_source *s, size_t from, size_t to) {
    if (!s->hides) {
        copy_changes(into, s->run, from, to);
        return;
    }
    for (size_t i = from; i < to; i++) {
        if (!is_hidden(s, i)) {
            copy_changes(into, s->run, i, i + 1);
        }
    }
}

static size_t remove_source(merge_source **sources, size_t i, size_t n) {
    memmove(sources + i, sources + i + 1, (n - i - 1) * sizeof *sources);
    return n - 1;
}

/* Moves a source to its place among those after it, which are sorted and at different keys. Of two at the same key, the older one steps on.
 * Returns how many sources are left. */
static size_t settle(merge_source **sources, size_t i, size_t n) {
    while (i + 1 < n) {
        int c = slice_cmp(sources[i]->key, sources[i + 1]->key);
        if (c < 0) {
            break;
        }
        if (c > 0) {
            merge_source *swap = sources[i];
            sources[i] = sources[i + 1];
            sources[++i] = swap;
            continue;
        }
        i += sources[i]->age > sources[i + 1]->age;
        if (!step(sources[i])) {
            return remove_source(sources, i, n);
        }
    }
    return n;
}

/* Copies from the first source as long as it is before the second. Returns how many sources are left. */
static size_t copy_first(store_run *into, merge_source **sources, size_t n) {
    merge_source *first = sources[0];
    slice bound = sources[1]->key;
    size_t from = first->at;
    bool more = step(first);
    while (more && slice_cmp(first->key, bound) < 0) {
        more = step(first);
    }
    copy_visible(into, first, from, first->at);
    return more ? settle(sources, 0, n) : remove_source(sources, 0, n);
}

static void merge_changes(store_run *into, merge_source **sources, size_t n) {
    while (n > 1) {
        n = copy_first(into, sources, n);
    }
    if (n) {
        copy_visible(into, sources[0], sources[0]->at, sources[0]->run->n);
    }
}

/* Begins with the newest run. Returns how many have changes, sorted by their first. */
static size_t begin_sources(store_run *const *runs, size_t runs_n, merge_source *space, merge_source **sources) {
    size_t n = 0;
    bool hides = false;
    for (size_t age = runs_n; age-- > 0;) {
        if (runs[age]->n) {
            space[age] = (merge_source){runs, age, runs_n, runs[age], 0, store_run_key(runs[age], 0), hides};
            memmove(sources + 1, sources, n * sizeof *sources);
            sources[0] = &space[age];
            n = settle(sources, 0, n + 1);
        }
        hides = hides || runs[age]->ranges_n;
    }
    return n;
}

store_run *store_run_merge(store_run *const *runs, size_t n) {
    size_t bytes = 0, changes = 0, ranges = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += runs[i]->bytes;
        changes += runs[i]->n;
        ranges += runs[i]->ranges_n;
    }
    store_run *run = begin(bytes, changes, ranges, runs[0]->first, runs[n - 1]->last);
    merge_source *space = mem_alloc(n * sizeof *space), **sources = mem_alloc(n * sizeof *sources);
    merge_ranges(run, runs, n, ranges);
    merge_changes(run, sources, begin_sources(runs, n, space, sources));
    free(space);
    free(sources);
    return finish(run, bytes, changes);
}

/* ---- lookups ---- */

store_run_change store_run_get(const store_run *run, size_t i) {
    size_t head, length = 0;
    const char *p = store_run_length(run->p + run->at[i], &head);
    store_run_change change = {.key = slice_of(p, head >> 2), .gone = (head & 3) == GONE};
    if ((head & 3) == PUT_VALUE) {
        p = store_run_length(p + change.key.n, &length);
        change.value = slice_of(p, length);
    } else {
        change.value = slice_of(p + change.key.n, 0);
    }
    return change;
}

size_t store_run_find(const store_run *run, slice key) {
    size_t low = 0, high = run->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_cmp(store_run_key(run, middle), key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const store_range *store_run_covers(const store_run *run, slice key) {
    size_t low = 0, high = run->ranges_n; /* finds the first range that ends after the key */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (slice_cmp(run->ranges[middle].to, key) <= 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < run->ranges_n && slice_cmp(run->ranges[low].from, key) <= 0 ? &run->ranges[low] : NULL;
}

size_t store_run_bytes_in(const store_run *run, slice from, slice to) {
    size_t first = store_run_find(run, from), last = to.n ? store_run_find(run, to) : run->n;
    size_t begins = first < run->n ? run->at[first] : run->bytes, ends = last < run->n ? run->at[last] : run->bytes;
    return ends > begins ? ends - begins : 0;
}
