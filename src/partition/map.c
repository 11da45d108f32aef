#include "partition/map.h"

#include <assert.h>
#include <bson/bson.h>
#include <endian.h>
#include <stdlib.h>

#include "base/memory.h"

static const char *const status_texts[] = {
    [PARTITION_ONLINE] = "online",
    [PARTITION_SPLITTING] = "splitting",
    [PARTITION_OFFLINE] = "offline",
    [PARTITION_SPLIT] = "split",
};

enum { STATUS_COUNT = sizeof status_texts / sizeof status_texts[0] };

const char *partition_status_text(partition_status status) {
    return status_texts[status];
}

/* ---- building ---- */

static bool tiles(const partition_range *ranges, size_t n, uint32_t next_id) {
    epk at = epk_min();
    for (size_t i = 0; i < n; i++) {
        bool follows = epk_cmp(&ranges[i].min, &at) == 0 && epk_cmp(&ranges[i].min, &ranges[i].max) < 0;
        if (!follows || ranges[i].id >= next_id || (unsigned)ranges[i].status >= STATUS_COUNT) {
            return false;
        }
        at = ranges[i].max;
    }
    epk end = epk_max();
    return epk_cmp(&at, &end) == 0;
}

static int by_id_order(const void *a, const void *b, void *ranges) {
    const partition_range *r = ranges;
    uint32_t x = r[*(const uint32_t *)a].id;
    uint32_t y = r[*(const uint32_t *)b].id;
    return (x > y) - (x < y);
}

static bool index_ids(partition_range *ranges, uint32_t *by_id, size_t n) {
    for (size_t i = 0; i < n; i++) {
        by_id[i] = (uint32_t)i;
    }
    qsort_r(by_id, n, sizeof *by_id, by_id_order, ranges);
    for (size_t i = 1; i < n; i++) {
        if (ranges[by_id[i]].id == ranges[by_id[i - 1]].id) {
            return false;
        }
    }
    return true;
}

/* The first eight bytes as a number. If two heads differ, the EPKs have the same order; if not, the EPKs must be compared in full. */
static uint64_t head_of(const epk *e) {
    uint64_t head = 0;
    memcpy(&head, e->bytes, sizeof head);
    head = be64toh(head);
    return e->n >= 8 ? head : e->n ? head >> (64 - 8 * e->n) << (64 - 8 * e->n) : 0;
}

/* One allocation holds the map, its ranges, `heads`, `by_id` and all parents. Ranges are added in order. */
typedef struct builder {
    partition_map *map;
    partition_range *ranges;
    uint64_t *heads;
    uint32_t *by_id;
    uint32_t *parents; /* where the next range's parents go */
} builder;

static builder begin(size_t n, size_t parents_n, uint32_t next_id) {
    builder b = {.map = mem_alloc(sizeof *b.map + n * (sizeof *b.ranges + sizeof *b.heads) + (parents_n + n) * sizeof(uint32_t))};
    b.ranges = (partition_range *)(void *)(b.map + 1);
    b.heads = (uint64_t *)(void *)(b.ranges + n);
    b.by_id = (uint32_t *)(void *)(b.heads + n);
    b.parents = b.by_id + n;
    *b.map = (partition_map){.next_id = next_id, .ranges = b.ranges, .heads = b.heads, .by_id = b.by_id};
    return b;
}

static void add(builder *b, const partition_range *range) {
    size_t i = b->map->n++;
    b->ranges[i] = *range;
    b->ranges[i].parents = b->parents;
    b->heads[i] = head_of(&range->min);
    for (uint32_t j = 0; j < range->parents_n; j++) {
        *b->parents++ = range->parents[j];
    }
}

static size_t count_parents(const partition_range *ranges, size_t n) {
    size_t parents_n = 0;
    for (size_t i = 0; i < n; i++) {
        parents_n += ranges[i].parents_n;
    }
    return parents_n;
}

static partition_map *copy(const partition_range *ranges, size_t n, uint32_t next_id) {
    builder b = begin(n, count_parents(ranges, n), next_id);
    for (size_t i = 0; i < n; i++) {
        add(&b, &ranges[i]);
    }
    if (!index_ids(b.ranges, b.by_id, n)) {
        free(b.map);
        return NULL;
    }
    return b.map;
}

partition_map *partition_map_build(const partition_range *ranges, size_t n, uint32_t next_id) {
    if (n == 0 || n > PARTITION_RANGES_MAX || !tiles(ranges, n, next_id)) {
        return NULL;
    }
    return copy(ranges, n, next_id);
}

partition_map *partition_map_new(const pkey_definition *definition, uint32_t n) {
    assert(n > 0 && n <= PARTITION_RANGES_MAX);
    partition_range *ranges = mem_zero(n * sizeof *ranges);
    for (uint32_t i = 0; i < n; i++) {
        ranges[i].id = i;
        ranges[i].rid_prefix = i;
        epk_boundary(definition, i, n, &ranges[i].min);
        epk_boundary(definition, i + 1, n, &ranges[i].max);
    }
    partition_map *map = partition_map_build(ranges, n, n);
    free(ranges);
    assert(map != NULL);
    return map;
}

void partition_map_free(partition_map *map) {
    free(map);
}

/* ---- splitting and merging ---- */

/* Ancestors of the new ranges. Has room for PARTITION_PARENTS_MAX ids, plus one more range and its parents. */
typedef struct lineage {
    uint32_t n;
    uint32_t ids[2 * PARTITION_PARENTS_MAX + 1];
} lineage;

static int id_order(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Sorts, removes duplicates and keeps the newest. */
static void lineage_tidy(lineage *l) {
    qsort(l->ids, l->n, sizeof *l->ids, id_order);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        if (kept == 0 || l->ids[kept - 1] != l->ids[i]) {
            l->ids[kept++] = l->ids[i];
        }
    }
    uint32_t old = kept > PARTITION_PARENTS_MAX ? kept - PARTITION_PARENTS_MAX : 0;
    memmove(l->ids, l->ids + old, (kept - old) * sizeof *l->ids);
    l->n = kept - old;
}

static void lineage_add(lineage *l, const partition_range *range) {
    if (l->n > PARTITION_PARENTS_MAX) {
        lineage_tidy(l);
    }
    uint32_t skipped = range->parents_n > PARTITION_PARENTS_MAX ? range->parents_n - PARTITION_PARENTS_MAX : 0;
    for (uint32_t i = skipped; i < range->parents_n; i++) {
        l->ids[l->n++] = range->parents[i];
    }
    l->ids[l->n++] = range->id;
}

static bool ascend_inside(const epk *min, const epk *max, const epk *cuts, uint32_t cuts_n) {
    for (uint32_t i = 0; i < cuts_n; i++) {
        if (epk_cmp(i ? &cuts[i - 1] : min, &cuts[i]) >= 0) {
            return false;
        }
    }
    return cuts_n == 0 || epk_cmp(&cuts[cuts_n - 1], max) < 0;
}

static bool fits(const partition_map *map, size_t first, size_t n, uint32_t parts) {
    bool there = n > 0 && first < map->n && n <= map->n - first;
    return there && parts > 0 && parts <= PARTITION_RANGES_MAX && map->n - n + parts <= PARTITION_RANGES_MAX &&
           map->next_id <= PARTITION_IDS_MAX - parts;
}

/* Makes the order by id without sorting: ranges that stay keep their relative order, and new ids are the highest. */
static void index_again(const partition_map *map, size_t first, size_t n, uint32_t parts, uint32_t *by_id) {
    for (size_t i = 0; i < map->n; i++) {
        uint32_t at = map->by_id[i];
        if (at < first) {
            *by_id++ = at;
        } else if (at >= first + n) {
            *by_id++ = at - (uint32_t)n + parts;
        }
    }
    for (uint32_t i = 0; i < parts; i++) {
        *by_id++ = (uint32_t)first + i;
    }
}

static bool are_mixed(const partition_range *ranges, size_t n) {
    bool mixed = n > 1;
    for (size_t i = 0; i < n; i++) {
        mixed = mixed || ranges[i].mixed;
    }
    return mixed;
}

static void add_new(builder *b, const partition_map *map, size_t first, size_t n, const lineage *parents, const epk *cuts, uint32_t parts) {
    bool mixed = are_mixed(map->ranges + first, n);
    for (uint32_t i = 0; i < parts; i++) {
        partition_range range = {
            .id = map->next_id + i,
            .rid_prefix = map->next_id + i,
            .status = PARTITION_ONLINE,
            .mixed = mixed,
            .parents_n = parents->n,
            .parents = parents->ids,
            .min = i ? cuts[i - 1] : map->ranges[first].min,
            .max = i + 1 < parts ? cuts[i] : map->ranges[first + n - 1].max,
        };
        add(b, &range);
    }
}

partition_map *partition_map_reshape(const partition_map *map, size_t first, size_t n, const epk *cuts, uint32_t parts) {
    if (!fits(map, first, n, parts) || !ascend_inside(&map->ranges[first].min, &map->ranges[first + n - 1].max, cuts, parts - 1)) {
        return NULL;
    }
    lineage parents = {0};
    for (size_t i = first; i < first + n; i++) {
        lineage_add(&parents, &map->ranges[i]);
    }
    lineage_tidy(&parents);
    size_t parents_n = count_parents(map->ranges, map->n) - count_parents(map->ranges + first, n) + (size_t)parts * parents.n;
    builder b = begin(map->n - n + parts, parents_n, map->next_id + parts);
    for (size_t i = 0; i < first; i++) {
        add(&b, &map->ranges[i]);
    }
    add_new(&b, map, first, n, &parents, cuts, parts);
    for (size_t i = first + n; i < map->n; i++) {
        add(&b, &map->ranges[i]);
    }
    index_again(map, first, n, parts, b.by_id);
    return b.map;
}

/* ---- lookup ---- */

/* How many ranges start at or before `e`; at least one does. */
static size_t count_starting(const partition_map *map, const epk *e) {
    uint64_t head = head_of(e);
    size_t low = 1;
    size_t high = map->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (map->heads[middle] < head || (map->heads[middle] == head && epk_cmp(&map->ranges[middle].min, e) <= 0)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const partition_range *partition_map_find(const partition_map *map, const epk *e) {
    return &map->ranges[count_starting(map, e) - 1];
}

const partition_range *partition_map_by_id(const partition_map *map, uint32_t id) {
    size_t low = 0;
    size_t high = map->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const partition_range *range = &map->ranges[map->by_id[middle]];
        if (range->id == id) {
            return range;
        }
        if (range->id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

bool partition_map_gone(const partition_map *map, uint32_t id) {
    return id < map->next_id && partition_map_by_id(map, id) == NULL;
}

size_t partition_map_overlap(const partition_map *map, const epk *min, const epk *max, const partition_range **first_out) {
    *first_out = partition_map_find(map, min);
    if (epk_cmp(min, max) >= 0) {
        return 0;
    }
    const partition_range *last = partition_map_find(map, max);
    if (epk_cmp(&last->min, max) == 0) { /* this range starts at the exclusive end */
        last--;
    }
    return (size_t)(last - *first_out) + 1;
}

/* ---- storage ----
 *
 * {"format": 1, "nextId": n, "ranges": [{"id", "ridPrefix", "status", "mixed", "min": bytes, "parents": [ids]}, …]}. A range ends where the
 * next begins, so a stored map cannot have gaps. */

enum { FORMAT = 1 };

static void append_parents(bson_t *to, const partition_range *range) {
    bson_t parents;
    bson_append_array_begin(to, "parents", -1, &parents);
    for (uint32_t i = 0; i < range->parents_n; i++) {
        char room[16];
        const char *key = NULL;
        size_t n = bson_uint32_to_string(i, &key, room, sizeof room);
        bson_append_int64(&parents, key, (int)n, range->parents[i]);
    }
    bson_append_array_end(to, &parents);
}

static void append_range(bson_t *to, uint32_t position, const partition_range *range) {
    char room[16];
    const char *key = NULL;
    size_t n = bson_uint32_to_string(position, &key, room, sizeof room);
    bson_t child;
    bson_append_document_begin(to, key, (int)n, &child);
    bson_append_int64(&child, "id", -1, range->id);
    bson_append_int64(&child, "ridPrefix", -1, range->rid_prefix);
    bson_append_int32(&child, "status", -1, (int)range->status);
    bson_append_bool(&child, "mixed", -1, range->mixed);
    bson_append_binary(&child, "min", -1, BSON_SUBTYPE_BINARY, range->min.bytes, range->min.n);
    append_parents(&child, range);
    bson_append_document_end(to, &child);
}

void partition_map_write(const partition_map *map, buf *out) {
    bson_t root;
    bson_t ranges;
    bson_init(&root);
    bson_append_int32(&root, "format", -1, FORMAT);
    bson_append_int64(&root, "nextId", -1, map->next_id);
    bson_append_array_begin(&root, "ranges", -1, &ranges);
    for (size_t i = 0; i < map->n; i++) {
        append_range(&ranges, (uint32_t)i, &map->ranges[i]);
    }
    bson_append_array_end(&root, &ranges);
    buf_add(out, bson_get_data(&root), root.len);
    bson_destroy(&root);
}

static bool read_u32(const bson_iter_t *iter, uint32_t *value_out) {
    int64_t value = BSON_ITER_HOLDS_INT(iter) ? bson_iter_as_int64(iter) : -1;
    *value_out = (uint32_t)value;
    return value >= 0 && value <= UINT32_MAX;
}

static bool read_min(const bson_iter_t *iter, epk *epk_out) {
    uint32_t n = 0;
    const uint8_t *bytes = NULL;
    if (!BSON_ITER_HOLDS_BINARY(iter)) {
        return false;
    }
    bson_iter_binary(iter, NULL, &n, &bytes);
    if (n > EPK_BYTES_MAX) {
        return false;
    }
    *epk_out = (epk){.n = (uint8_t)n};
    memcpy(epk_out->bytes, bytes, n);
    return true;
}

static bool read_parents(arena *a, const bson_iter_t *iter, partition_range *range) {
    bson_iter_t child;
    if (!BSON_ITER_HOLDS_ARRAY(iter) || !bson_iter_recurse(iter, &child)) {
        return false;
    }
    uint32_t n = 0;
    for (bson_iter_t count = child; bson_iter_next(&count);) {
        n++;
    }
    uint32_t *parents = arena_array(a, uint32_t, n + 1);
    for (uint32_t i = 0; bson_iter_next(&child); i++) {
        if (!read_u32(&child, &parents[i])) {
            return false;
        }
    }
    range->parents = parents;
    range->parents_n = n;
    return true;
}

static bool read_range(arena *a, const bson_iter_t *iter, partition_range *range) {
    bson_iter_t child;
    uint32_t status = 0;
    if (!BSON_ITER_HOLDS_DOCUMENT(iter) || !bson_iter_recurse(iter, &child)) {
        return false;
    }
    bool good = bson_iter_find(&child, "id") && read_u32(&child, &range->id) && bson_iter_find(&child, "ridPrefix") &&
                read_u32(&child, &range->rid_prefix) && bson_iter_find(&child, "status") && read_u32(&child, &status) &&
                status < STATUS_COUNT && bson_iter_find(&child, "mixed") && BSON_ITER_HOLDS_BOOL(&child);
    range->mixed = good && bson_iter_bool(&child);
    good = good && bson_iter_find(&child, "min") && read_min(&child, &range->min) && bson_iter_find(&child, "parents") &&
           read_parents(a, &child, range);
    range->status = (partition_status)status;
    return good;
}

static partition_map *read_ranges(arena *a, bson_iter_t *iter, uint32_t next_id) {
    size_t n = 0;
    for (bson_iter_t count = *iter; bson_iter_next(&count);) {
        n++;
    }
    if (n == 0 || n > PARTITION_RANGES_MAX) {
        return NULL;
    }
    partition_range *ranges = arena_array(a, partition_range, n);
    for (size_t i = 0; bson_iter_next(iter); i++) {
        if (!read_range(a, iter, &ranges[i])) {
            return NULL;
        }
        if (i) {
            ranges[i - 1].max = ranges[i].min;
        }
    }
    ranges[n - 1].max = epk_max();
    return partition_map_build(ranges, n, next_id);
}

partition_map *partition_map_read(slice bson) {
    bson_iter_t iter;
    bson_iter_t ranges;
    uint32_t format = 0;
    uint32_t next_id = 0;
    if (bson.n == 0 || !bson_iter_init_from_data(&iter, (const uint8_t *)bson.p, bson.n)) {
        return NULL;
    }
    bool good = bson_iter_find(&iter, "format") && read_u32(&iter, &format) && format == FORMAT && bson_iter_find(&iter, "nextId") &&
                read_u32(&iter, &next_id) && bson_iter_find(&iter, "ranges") && BSON_ITER_HOLDS_ARRAY(&iter) &&
                bson_iter_recurse(&iter, &ranges);
    if (!good) {
        return NULL;
    }
    arena a = arena_init();
    partition_map *map = read_ranges(&a, &ranges, next_id);
    arena_free(&a);
    return map;
}
