#include "advise/advise_int.h"

#include <stdlib.h>

#include "partition/split_merge.h"
#include "throughput/charge.h"

const advise_options advise_defaults = {
    .throughput = 20000,
    .write_share = -1,
    .horizon_days = 365,
    .logical_max_bytes = 20.0 * (1 << 30),
    .physical_max_bytes = 50.0 * (1 << 30),
    .seed = 1,
};

advise *advise_new(const advise_options *options) {
    advise *a = calloc(1, sizeof *a);
    if (!a) {
        abort();
    }
    a->options = *options;
    a->arena = arena_init();
    a->scratch = arena_init();
    a->head = buf_init(BUF_NO_LIMIT);
    a->time_path = SIZE_MAX;
    random_seed(&a->random, options->seed);
    return a;
}

void advise_free(advise *a) {
    for (size_t i = 0; i < a->kept_n; i++) {
        free(a->kept[i].bson);
    }
    for (size_t i = 0; i < a->candidates_n; i++) {
        free(a->candidates[i]);
    }
    free(a->sample);
    buf_free(&a->head);
    arena_free(&a->arena);
    arena_free(&a->scratch);
    free(a);
}

/* ---- operations ---- */

/* A place in a uniform sample of `max`, after `seen` others; SIZE_MAX: it is not in the sample. */
static size_t place_in_sample(random_source *random, double seen, size_t kept, size_t max) {
    if (kept < max) {
        return kept;
    }
    uint64_t at = random_below(random, (uint64_t)seen + 1);
    return at < max ? (size_t)at : SIZE_MAX;
}

static void keep_operation(advise *a, slice bson) {
    size_t at = place_in_sample(&a->random, a->operations, a->kept_n, ADVISE_SAMPLE);
    if (at == SIZE_MAX) {
        return;
    }
    if (at == a->kept_n) {
        a->kept_n++;
    }
    advise_kept *k = &a->kept[at];
    free(k->bson);
    k->bson = malloc(bson.n);
    if (!k->bson) {
        abort();
    }
    memcpy(k->bson, bson.p, bson.n);
    k->n = bson.n;
}

bool advise_add_operation(advise *a, slice bson, const char **why) {
    advise_operation o;
    arena_reset(&a->scratch);
    if (!advise__operation_read(&a->scratch, bson, &o, why)) {
        return false;
    }
    keep_operation(a, bson);
    a->operations++;
    double ru = o.count * (o.charge > 0 ? o.charge : o.write ? 7 : o.point ? 1 : 3);
    *(o.write ? &a->write_ru : &a->read_ru) += ru;
    if (o.time > 0) {
        a->first_time = a->first_time > 0 && a->first_time < o.time ? a->first_time : o.time;
        a->last_time = a->last_time > o.time ? a->last_time : o.time;
    }
    return true;
}

void advise_add_long_operation(advise *a) {
    a->long_operations++;
    a->read_ru += 3;
}

/* ---- items ---- */

static void read_values(const advise *a, slice bson, pkey_value *values) {
    for (size_t i = 0; i < a->paths.n; i++) {
        bool is_array;
        values[i] = advise__value_at(&a->paths.list[i], bson, &is_array);
    }
}

static void sample_item(advise *a, const pkey_value *values, const uint64_t *ids) {
    double time;
    if (a->time_path == SIZE_MAX || !advise__time_of(&values[a->time_path], &time)) {
        return;
    }
    a->from = a->sampled_from == 0 || time < a->from ? time : a->from;
    a->to = a->sampled_from == 0 || time > a->to ? time : a->to;
    size_t at = place_in_sample(&a->random, a->sampled_from, a->sample_n, ADVISE_SAMPLE);
    a->sampled_from++;
    if (at == SIZE_MAX) {
        return;
    }
    a->sample_n += at == a->sample_n;
    a->sample[at].time = time;
    memcpy(a->sample[at].ids, ids, a->candidates_n * sizeof *ids);
}

static void count_item(advise *a, slice bson, double bytes) {
    pkey_value values[ADVISE_PATHS];
    uint64_t ids[ADVISE_CANDIDATES];
    uint32_t random = (uint32_t)random_u64(&a->random);
    arena_reset(&a->scratch);
    read_values(a, bson, values);
    for (size_t i = 0; i < a->candidates_n; i++) {
        advise_candidate *c = a->candidates[i];
        advise_formed f = advise__form(&a->scratch, c, values, random);
        ids[i] = f.id;
        c->missing += f.missing;
        c->too_long += f.too_long;
        distinct_add(&c->values, f.id);
        heavy_add(&c->bytes, f.id, bytes, f.text);
        c->first_parts[(size_t)(f.position * ADVISE_SLOTS)] += bytes;
    }
    a->items++;
    a->bytes += bytes;
    sample_item(a, values, ids);
}

/* How often the log's reads name each path. */
static void count_asked(advise *a) {
    double all = 0;
    for (size_t i = 0; i < a->kept_n; i++) {
        advise_operation o;
        const char *why;
        arena_reset(&a->scratch);
        if (!advise__operation_read(&a->scratch, slice_of(a->kept[i].bson, a->kept[i].n), &o, &why) || o.write) {
            continue;
        }
        all += o.count;
        for (size_t k = 0; k < o.terms_n; k++) {
            size_t at = advise__paths_find(&a->paths, o.terms[k].path);
            if (at != SIZE_MAX) {
                a->paths.list[at].asked += o.count;
            }
        }
    }
    for (size_t i = 0; i < a->paths.n && all > 0; i++) {
        a->paths.list[i].asked /= all;
    }
}

/* Calls `each` for the items at the beginning. */
static void replay_head(advise *a, void (*each)(advise *a, slice bson, double bytes)) {
    for (slice rest = buf_view(&a->head); rest.n;) {
        uint64_t bytes = 0, n = 0;
        if (!slice_take_be(&rest, 4, &bytes) || !slice_take_be(&rest, 4, &n)) {
            break;
        }
        each(a, slice_of(rest.p, n), (double)bytes);
        rest = slice_skip(rest, n);
    }
}

static void note_paths(advise *a, slice bson, double bytes) {
    (void)bytes;
    advise__paths_note(&a->paths, &a->arena, bson);
}

static void start_streaming(advise *a) {
    replay_head(a, note_paths);
    for (size_t i = 0; i < a->paths.n; i++) {
        a->paths.list[i].values_n = distinct_count(a->paths.list[i].values);
    }
    count_asked(a);
    a->time_path = advise__time_path(&a->paths, a->options.time_path);
    a->candidates_n = advise__choose(&a->paths, a->candidates, ADVISE_CANDIDATES);
    a->sample = calloc(ADVISE_SAMPLE, sizeof *a->sample);
    if (!a->sample) {
        abort();
    }
    a->streaming = true;
    replay_head(a, count_item);
    buf_free(&a->head);
}

void advise_add_item(advise *a, slice bson, size_t json_bytes) {
    if (a->streaming) {
        count_item(a, bson, (double)json_bytes);
        return;
    }
    buf_add_be32(&a->head, (uint32_t)json_bytes);
    buf_add_be32(&a->head, (uint32_t)bson.n);
    buf_add_slice(&a->head, bson);
    if (++a->head_items == ADVISE_HEAD_ITEMS || a->head.n > ADVISE_HEAD_BYTES) {
        start_streaming(a);
    }
}

/* ---- the end ---- */

static uint32_t partitions_of(const advise *a, double bytes) {
    double t = a->options.throughput;
    uint32_t by_load = plan_ranges_for(t, t <= 10000 ? 10000 : 6000, ADVISE_PARTITIONS_MAX);
    double by_size = bytes / a->options.physical_max_bytes;
    uint32_t size_n = by_size >= ADVISE_PARTITIONS_MAX ? ADVISE_PARTITIONS_MAX : (uint32_t)by_size + 1;
    return a->options.partitions ? a->options.partitions : by_load > size_n ? by_load : size_n;
}

static double load_of(const advise *a) {
    double seconds = a->last_time - a->first_time;
    double seen = seconds > 10 ? (a->write_ru + a->read_ru) / seconds : 0;
    return a->options.load > 0 ? a->options.load : seen > 0 ? seen : 0.8 * a->options.throughput;
}

static double write_share_of(const advise *a) {
    if (a->options.write_share >= 0) {
        return a->options.write_share;
    }
    double all = a->write_ru + a->read_ru;
    return all == 0 ? 1 : a->write_ru == 0 ? 0.5 : a->write_ru / all;
}

static void summarize(advise *a) {
    advise_report *r = &a->report;
    double scale = a->options.total_bytes > a->bytes ? a->options.total_bytes / a->bytes : 1;
    r->items = a->items;
    r->bytes = a->bytes * scale;
    r->operations = a->operations + a->long_operations;
    r->days = a->sample_n ? (a->to - a->from) / 86400 : 0;
    double by_time = r->days > 1.0 / 24 ? 1 + a->options.horizon_days / r->days : 1;
    r->growth = a->options.growth > 0 ? a->options.growth : by_time;
    r->projected_bytes = r->bytes * r->growth;
    r->partitions = partitions_of(a, r->projected_bytes);
    r->throughput = a->options.throughput;
    r->load = load_of(a);
    r->write_share = write_share_of(a);
    r->paths_left_out = a->paths.left_out;
    if (a->time_path != SIZE_MAX && a->sample_n) {
        r->time_path = a->paths.list[a->time_path].path.text;
    }
}

const advise_report *advise_finish(advise *a) {
    if (!a->streaming) {
        start_streaming(a);
    }
    if (a->items == 0 || a->candidates_n == 0) {
        return NULL;
    }
    summarize(a);
    advise__look_at_time(a);
    advise__count_reads(a);
    advise__score(a);
    return &a->report;
}
