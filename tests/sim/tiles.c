#include "tiles.h"

#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/memory.h"
#include "base/random.h"
#include "check.h"

static double seconds_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double tiles_bytes(const tile *t, double age) {
    return fmax(t->sums.size + t->sums.growth * age - t->excess, 0);
}

double tiles_width(const partition_range *range) {
    return (double)(world_head(&range->max) - world_head(&range->min)) * 0x1p-62;
}

static uint32_t end_of(const tiles *t, size_t i) {
    return i + 1 < t->map->n ? t->tiles[i + 1].from : t->world->options.partitions;
}

size_t tiles_find(const tiles *t, uint32_t rank) {
    epk e;
    world_epk(t->world, rank, &e);
    return (size_t)(partition_map_find(t->map, &e) - t->map->ranges);
}

/* ---- at creation ---- */

static void add_sums(world_sums *to, const world_sums *from) {
    to->partitions += from->partitions;
    to->rate += from->rate;
    to->size += from->size;
    to->growth += from->growth;
}

/* Finds the partitions that would exceed their limit by the end. */
static void watch(tiles *t, double age_most) {
    size_t room = 0;
    for (uint32_t rank = 0; rank < t->world->options.partitions; rank++) {
        if (world_bytes_unlimited(t->world, rank, age_most) <= t->world->options.size_limit) {
            continue;
        }
        if (t->watched_n == room) {
            room = 2 * room + 64;
            t->watched = mem_resize(t->watched, room * sizeof *t->watched);
        }
        t->watched[t->watched_n++] = rank;
    }
}

void tiles_build(tiles *t, const world *w, uint32_t ranges, const plan_limits *limits, double age_most) {
    *t = (tiles){.world = w, .limits = *limits, .map = partition_map_new(&w->definition, ranges)};
    t->tiles = mem_zero(limits->ranges_max * sizeof *t->tiles);
    t->plan = mem_zero(limits->ranges_max * sizeof *t->plan);
    for (size_t i = 0; i < t->map->n; i++) {
        t->tiles[i].from = world_seek(w, &t->map->ranges[i].min);
    }
    for (size_t i = 0; i < t->map->n; i++) {
        t->tiles[i].sums = world_sum(w, t->tiles[i].from, end_of(t, i));
        add_sums(&t->everything, &t->tiles[i].sums);
    }
    watch(t, age_most);
}

void tiles_free(tiles *t) {
    partition_map_free(t->map);
    free(t->tiles);
    free(t->plan);
    free(t->watched);
}

/* ---- where to cut ---- */

/* A range in pieces: piece i starts at index starts[i] in the order and, from the second on, at cuts[i-1] in the hash space. */
typedef struct pieces {
    uint32_t n;
    tile *tiles;
    epk *cuts;
} pieces;

static void cut_between_partitions(const tiles *t, size_t range, uint32_t parts, double age, pieces *out) {
    const world *w = t->world;
    plan_cutter cutter = {.total = t->plan[range].bytes, .parts = parts};
    uint32_t from = t->tiles[range].from;
    uint32_t to = end_of(t, range);
    out->n = 1;
    out->tiles[0] = (tile){.from = from};
    for (uint32_t i = from; i < to; i++) {
        if (plan_cut_here(&cutter, (uint64_t)world_bytes(w, w->order[i], age))) {
            epk left;
            epk right;
            world_epk(w, w->order[i - 1], &left);
            world_epk(w, w->order[i], &right);
            epk_cut(&w->definition, &left, &right, &out->cuts[out->n - 1]);
            out->tiles[out->n++] = (tile){.from = i};
        }
        world_add(&out->tiles[out->n - 1].sums, w, w->order[i]);
    }
}

/* Cuts a range with at most one logical partition into equal widths. */
static void cut_in_hash_space(const tiles *t, size_t range, uint32_t parts, pieces *out) {
    uint64_t low = world_head(&t->map->ranges[range].min);
    uint64_t high = world_head(&t->map->ranges[range].max);
    uint32_t end = end_of(t, range);
    out->n = parts;
    out->tiles[0].from = t->tiles[range].from;
    for (uint32_t i = 1; i < parts; i++) {
        uint64_t head = htobe64(low + (high - low) / parts * i);
        out->cuts[i - 1] = (epk){.n = 16};
        memcpy(out->cuts[i - 1].bytes, &head, sizeof head);
        out->tiles[i].from = world_seek(t->world, &out->cuts[i - 1]);
    }
    for (uint32_t i = 0; i < parts; i++) {
        out->tiles[i].sums = world_sum(t->world, out->tiles[i].from, i + 1 < parts ? out->tiles[i + 1].from : end);
    }
}

/* ---- checks of one change ---- */

static void check_reason(const tiles *t, plan_step step) {
    const plan_limits *limits = &t->limits;
    const plan_range *first = &t->plan[step.first];
    double n = (double)t->map->n;
    double wanted = ceil(limits->throughput / limits->range_most);
    double bytes = 0;
    for (size_t i = 0; i < step.n; i++) {
        bytes += (double)first[i].bytes;
    }
    CHECK(step.first + step.n <= t->map->n && step.parts >= 1, "%zu + %zu of %zu", step.first, step.n, t->map->n);
    if (step.reason == PLAN_STORAGE) {
        CHECK(step.n == 1 && first->bytes > limits->range_bytes && first->partitions >= step.parts && step.parts >= 2,
              "a split for storage of %g bytes and %zu partitions", bytes, (size_t)first->partitions);
    } else if (step.reason == PLAN_THROUGHPUT) {
        CHECK(step.n == 1 && step.parts >= 2 && n + step.parts - 1 <= wanted, "a split of %g ranges into %u more for %g", n, step.parts,
              wanted);
    } else {
        CHECK(step.reason == PLAN_SCALE_DOWN && step.n >= 2 && step.parts == 1, "%s", plan_reason_text(step.reason));
        CHECK(limits->throughput / n < 0.3 * limits->range_most, "a merge at %g RU/s a range", limits->throughput / n);
        CHECK(n - (double)step.n + 1 >= wanted, "a merge of %zu from %g ranges to less than %g", step.n, n, wanted);
        CHECK(bytes <= 0.4 * (double)limits->range_bytes, "a merge to %g bytes", bytes);
    }
}

static bool near(double a, double b) {
    return fabs(a - b) <= 1e-6 * fmax(fabs(a), fabs(b)) + 1e-3;
}

/* No logical partition is added, lost or divided by a boundary. */
static void check_pieces(const tiles *t, plan_step step, const partition_map *before, const world_sums *was, const pieces *p) {
    world_sums is = {0};
    for (uint32_t i = 0; i < p->n; i++) {
        add_sums(&is, &p->tiles[i].sums);
        const partition_range *range = &t->map->ranges[step.first + i];
        CHECK(range->id == before->next_id + i && range->parents_n > 0, "id %u after %u", range->id, before->next_id);
        CHECK(epk_cmp(&range->min, i ? &t->map->ranges[step.first + i - 1].max : &before->ranges[step.first].min) == 0, "a gap");
        CHECK(p->n == 1 || step.reason == PLAN_THROUGHPUT || p->tiles[i].sums.partitions > 0, "an empty half");
        if (p->tiles[i].sums.partitions > 0) {
            const uint32_t *run = t->world->order + p->tiles[i].from;
            CHECK(tiles_find(t, run[0]) == step.first + i, "the first of piece %u is elsewhere", i);
            CHECK(tiles_find(t, run[p->tiles[i].sums.partitions - 1]) == step.first + i, "the last of piece %u is elsewhere", i);
        }
    }
    CHECK(is.partitions == was->partitions, "%zu of %zu partitions", (size_t)is.partitions, (size_t)was->partitions);
    CHECK(near(is.rate, was->rate) && near(is.size, was->size) && near(is.growth, was->growth), "sums %g %g", is.rate, was->rate);
}

/* ---- carrying out ---- */

static void replace_tiles(tiles *t, plan_step step, size_t n_before, const pieces *p) {
    size_t after = n_before - step.first - step.n;
    memmove(t->tiles + step.first + p->n, t->tiles + step.first + step.n, after * sizeof *t->tiles);
    memcpy(t->tiles + step.first, p->tiles, p->n * sizeof *p->tiles);
    memmove(t->plan + step.first + p->n, t->plan + step.first + step.n, after * sizeof *t->plan);
}

static void count_step(tiles_counts *c, plan_step step) {
    c->splits_storage += step.reason == PLAN_STORAGE;
    c->splits_throughput += step.reason == PLAN_THROUGHPUT;
    c->merges += step.n > 1;
    c->merged += step.n > 1 ? step.n : 0;
}

static void describe(tiles *t, size_t i, double age) {
    t->plan[i] = (plan_range){
        .bytes = (uint64_t)tiles_bytes(&t->tiles[i], age),
        .partitions = t->tiles[i].sums.partitions,
        .width = tiles_width(&t->map->ranges[i]),
    };
}

/* Computes each range's excess: bytes that its full logical partitions rejected. */
static void find_full(tiles *t, double age) {
    for (size_t i = 0; i < t->map->n; i++) {
        t->tiles[i].excess = 0;
    }
    t->full = 0;
    for (size_t i = 0; i < t->watched_n; i++) {
        double over = world_bytes_unlimited(t->world, t->watched[i], age) - t->world->options.size_limit;
        if (over >= 0) {
            t->full++;
            t->tiles[tiles_find(t, t->watched[i])].excess += over;
        }
    }
}

static void piece_excess(const tiles *t, double age, pieces *p) {
    for (uint32_t i = 0; i < p->n; i++) {
        p->tiles[i].excess = 0;
        for (uint32_t k = 0; t->watched_n && k < p->tiles[i].sums.partitions; k++) {
            double over = world_bytes_unlimited(t->world, t->world->order[p->tiles[i].from + k], age) - t->world->options.size_limit;
            p->tiles[i].excess += over > 0 ? over : 0;
        }
    }
}

static void change_map(tiles *t, plan_step step, const pieces *p) {
    double started = seconds_now();
    partition_map *map = partition_map_reshape(t->map, step.first, step.n, p->cuts, p->n);
    t->counts.map_seconds += seconds_now() - started;
    CHECK(map != NULL, "%zu ranges into %u", step.n, p->n);
    t->map = map;
}

static void carry_out(tiles *t, plan_step step, double age) {
    double started = seconds_now();
    pieces p = {.n = 1, .tiles = mem_zero(step.parts * sizeof(tile)), .cuts = mem_alloc(step.parts * sizeof(epk))};
    world_sums was = {0};
    double excess = 0;
    for (size_t i = 0; i < step.n; i++) {
        add_sums(&was, &t->tiles[step.first + i].sums);
        excess += t->tiles[step.first + i].excess;
    }
    if (step.parts == 1) {
        p.tiles[0] = (tile){.from = t->tiles[step.first].from, .sums = was, .excess = excess};
    } else if (was.partitions > 1) {
        cut_between_partitions(t, step.first, step.parts, age, &p);
    } else {
        cut_in_hash_space(t, step.first, step.parts, &p);
    }
    CHECK(p.n >= 2 || step.parts == 1, "%u pieces of %u", p.n, step.parts);
    if (step.parts > 1 && excess > 0) {
        piece_excess(t, age, &p);
    }
    t->counts.cut_seconds += seconds_now() - started;
    partition_map *before = t->map;
    change_map(t, step, &p);
    replace_tiles(t, step, before->n, &p);
    for (uint32_t i = 0; i < p.n; i++) {
        describe(t, step.first + i, age);
    }
    check_pieces(t, step, before, &was, &p);
    count_step(&t->counts, step);
    partition_map_free(before);
    free(p.tiles);
    free(p.cuts);
}

bool tiles_settle(tiles *t, double throughput, double age) {
    size_t steps_most = 4 * t->limits.ranges_max;
    bool merged = false;
    t->limits.throughput = throughput;
    find_full(t, age);
    for (size_t i = 0; i < t->map->n; i++) {
        describe(t, i, age);
    }
    for (size_t steps = 0;; steps++) {
        double started = seconds_now();
        plan_step step = plan_next(&t->limits, t->plan, t->map->n);
        t->counts.plan_seconds += seconds_now() - started;
        t->counts.rounds++;
        if (step.reason == PLAN_NOTHING) {
            CHECK((double)t->map->n >= ceil(throughput / t->limits.range_most), "%zu ranges for %g RU/s", t->map->n, throughput);
            return steps > 0;
        }
        CHECK(steps < steps_most, "splits and merges without end");
        merged = merged || step.n > 1;
        CHECK(!merged || step.n > 1, "a split after a merge, though nothing else changed");
        check_reason(t, step);
        carry_out(t, step, age);
    }
}

/* ---- splitting and merging, checks ---- */

static void check_stored(const partition_map *map) {
    buf out = buf_init(BUF_NO_LIMIT);
    partition_map_write(map, &out);
    partition_map *again = partition_map_read(buf_view(&out));
    CHECK(again != NULL && again->n == map->n && again->next_id == map->next_id, "a map of %zu ranges does not come back", map->n);
    for (size_t i = 0; i < map->n; i++) {
        CHECK(again->ranges[i].id == map->ranges[i].id && epk_cmp(&again->ranges[i].min, &map->ranges[i].min) == 0, "range %zu", i);
    }
    partition_map_free(again);
    buf_free(&out);
}

void tiles_check(const tiles *t, uint32_t samples, uint64_t seed) {
    const partition_map *map = t->map;
    epk at = epk_min();
    world_sums sums = {0};
    for (size_t i = 0; i < map->n; i++) {
        CHECK(epk_cmp(&map->ranges[i].min, &at) == 0 && epk_cmp(&at, &map->ranges[i].max) < 0, "range %zu does not follow", i);
        CHECK(partition_map_by_id(map, map->ranges[i].id) == &map->ranges[i], "id %u", map->ranges[i].id);
        CHECK(t->tiles[i].sums.partitions == end_of(t, i) - t->tiles[i].from, "run %zu", i);
        add_sums(&sums, &t->tiles[i].sums);
        at = map->ranges[i].max;
    }
    epk end = epk_max();
    CHECK(epk_cmp(&at, &end) == 0, "the last range ends early");
    CHECK(sums.partitions == t->everything.partitions, "%zu partitions", (size_t)sums.partitions);
    CHECK(near(sums.rate, t->everything.rate) && near(sums.size, t->everything.size), "sums %g %g", sums.rate, sums.size);
    random_source r;
    random_seed(&r, seed);
    for (uint32_t i = 0; i < samples; i++) {
        uint32_t place = (uint32_t)random_below(&r, t->world->options.partitions);
        size_t owner = tiles_find(t, t->world->order[place]);
        CHECK(place >= t->tiles[owner].from && place < end_of(t, owner), "partition %u is not in its range's run", place);
    }
    check_stored(map);
}
