/* Why a key is good or bad, in words. */
#include "advise/advise_int.h"

#include "base/units.h"

static void add(advise *a, advise_key *k, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void add(advise *a, advise_key *k, const char *format, ...) {
    buf text = buf_init(BUF_NO_LIMIT);
    va_list args;
    if (k->reasons_n == ADVISE_REASONS_MAX) {
        return;
    }
    va_start(args, format);
    buf_addv(&text, format, args);
    va_end(args);
    char *copy = arena_alloc(&a->arena, text.n + 1);
    memcpy(copy, text.p, text.n);
    k->reasons[k->reasons_n++] = slice_of(copy, text.n);
    buf_free(&text);
}

static double percent(double part) {
    return 100 * part;
}

static void say_storage(advise *a, advise_key *k) {
    char now[32], then[32], limit[32];
    bytes_text(now, sizeof now, (uint64_t)k->largest_bytes);
    bytes_text(then, sizeof then, (uint64_t)k->projected_bytes);
    bytes_text(limit, sizeof limit, (uint64_t)a->options.logical_max_bytes);
    if (k->outgrows) {
        add(a, k, "The largest logical partition, %.*s, will have %s; a logical partition may have %s.", (int)k->largest.n, k->largest.p,
            then, limit);
    } else if (k->largest_share > 0.2) {
        add(a, k, "One value, %.*s, has %.0f %% of the data (%s).", (int)k->largest.n, k->largest.p, percent(k->largest_share), now);
    }
    if (k->values < 100) {
        add(a, k, "There are only %.0f values: no more than %.0f logical partitions to divide data and load among.", k->values, k->values);
    }
}

static void say_load(advise *a, advise_key *k, const advise_candidate *c) {
    const advise_report *r = &a->report;
    if (c->excess > 0.3) {
        add(a, k, "Items that are written at the same time mostly have the same key, so one partition at a time takes the writes.");
    } else if (k->kind == ADVISE_HIERARCHICAL && k->refused > 0.02) {
        add(a, k, "Items with the same %.*s are together in one physical partition until they outgrow it.", (int)k->paths[0].n,
            k->paths[0].p);
    }
    if (k->refused > 0.02) {
        add(a, k, "%.0f %% of the load gets 429: the busiest of %u physical partitions is asked for more than its share, %.0f RU/s.",
            percent(k->refused), r->partitions, r->throughput / r->partitions);
    } else if (r->partitions > 1 && k->hottest < 2.0 / r->partitions) {
        add(a, k, "The load is spread: the busiest key has %.1f %% of it.", percent(k->hottest));
    }
}

static void say_reads(advise *a, advise_key *k) {
    const advise_report *r = &a->report;
    double all = 1 - k->one_partition - k->known_keys;
    if (r->reads == 0) {
        return;
    }
    if (k->one_partition > 0.005) {
        add(a, k, "%.0f %% of the reads stay in one partition.", percent(k->one_partition));
    }
    if (k->known_keys > 0.005) {
        add(a, k, "%.0f %% of the reads need several keys that the client can list, %d at most.", percent(k->known_keys), ADVISE_SUFFIXES);
    }
    if (all > 0.005) {
        add(a, k, "%.0f %% of the reads do not name the key: each asks all %u physical partition%s.", percent(all), r->partitions,
            r->partitions == 1 ? "" : "s");
    }
}

static void say_kind(advise *a, advise_key *k, const advise_candidate *c) {
    if (k->kind == ADVISE_RANDOM) {
        add(a, k, "A reader does not know an item's suffix, and must try all %d.", ADVISE_SUFFIXES);
    }
    if (k->kind == ADVISE_HIERARCHICAL) {
        add(a, k, "All items of one %.*s can be read together, and may exceed a logical partition.", (int)k->paths[0].n, k->paths[0].p);
    }
    if (k->values > 0.9 * a->report.items) {
        add(a, k, "Each item is alone in its logical partition: no transaction covers two items.");
    }
    if (c->missing > 0.001 * a->report.items) {
        add(a, k, "%.1f %% of the items have no value there; all of them are in one logical partition.",
            percent(c->missing / a->report.items));
    }
    if (c->too_long > 0) {
        add(a, k, "%.0f items have a longer value than a key may have, %d bytes.", c->too_long, LIMIT_KEY_BYTES);
    }
}

/* One container for each of the largest, as an alternative to a key that holds them. */
static void say_apart(advise *a, advise_key *k, const advise_candidate *c, const advise_key *best) {
    bool large = k == best && k->kind == ADVISE_HIERARCHICAL && c->n > 1;
    for (size_t i = 0; large && i < a->candidates_n; i++) {
        const advise_candidate *first = a->candidates[i];
        if (first->kind == ADVISE_PATH && first->paths[0] == c->paths[0] && first->bytes.n &&
            first->bytes.keys[0].weight > 0.2 * first->bytes.total) {
            add(a, k, "%.*s has %.0f %% of the data: a container of its own would keep its load from the others.",
                first->bytes.keys[0].text_n, first->bytes.keys[0].text, percent(first->bytes.keys[0].weight / first->bytes.total));
        }
    }
    if (k == best && k->kind == ADVISE_PATH && c->novelty > 0.8 && c->excess > 0.3) {
        add(a, k, "If writes increase, use a container for each period, with a finer key.");
    }
}

void advise__add_reasons(advise *a, advise_key *k, const advise_candidate *c, const advise_key *best) {
    say_storage(a, k);
    say_load(a, k, c);
    say_reads(a, k);
    say_kind(a, k, c);
    say_apart(a, k, c, best);
}
