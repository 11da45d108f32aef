/* The report as text, and as JSON. */
#include "advise/advise_int.h"

#include <math.h>

#include "base/units.h"
#include "doc/json.h"

enum { NAME_COLUMNS = 36, BAR_COLUMNS = 40, PICTURED_PARTITIONS = 20 };

/* ---- text ---- */

static void add_bytes(buf *out, double bytes) {
    char text[32];
    bytes_text(text, sizeof text, bytes < 1e18 ? (uint64_t)bytes : (uint64_t)1e18);
    buf_addf(out, "%10s", text);
}

/* Columns are counted in characters. */
static size_t columns_of(slice text) {
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        n += ((unsigned char)text.p[i] & 0xC0) != 0x80;
    }
    return n;
}

static void add_name(buf *out, slice name, size_t columns) {
    size_t used = columns_of(name);
    if (used > columns) {
        size_t n = 0, kept = 0;
        while (n < name.n && (kept + 1 < columns || ((unsigned char)name.p[n] & 0xC0) == 0x80)) {
            kept += ((unsigned char)name.p[n++] & 0xC0) != 0x80;
        }
        buf_addf(out, "%.*s…", (int)n, name.p);
        return;
    }
    buf_addf(out, "%.*s%*s", (int)name.n, name.p, (int)(columns - used), "");
}

static void show_data(buf *out, const advise_report *r) {
    char bytes[32], later[32];
    bytes_text(bytes, sizeof bytes, (uint64_t)r->bytes);
    bytes_text(later, sizeof later, r->projected_bytes < 1e18 ? (uint64_t)r->projected_bytes : (uint64_t)1e18);
    buf_addf(out, "%.0f items, %s", r->items, bytes);
    if (r->time_path.n) {
        buf_addf(out, ", written over %.1f days by %.*s", r->days, (int)r->time_path.n, r->time_path.p);
    }
    buf_addf(out, "; projected: %s\n", later);
    buf_addf(out, "%.0f RU/s of load, %.0f %% of it writes, on %u physical partition%s of %.0f RU/s\n", r->load, 100 * r->write_share,
             r->partitions, r->partitions == 1 ? "" : "s", r->throughput / r->partitions);
    if (r->reads > 0) {
        buf_addf(out, "%.0f operations in the log\n", r->operations);
    } else {
        buf_addf(out, "no log of queries: which keys reads would name is not known\n");
    }
    if (r->paths_left_out) {
        buf_addf(out, "only the first %d paths were looked at\n", ADVISE_PATHS);
    }
    buf_add_byte(out, '\n');
}

static void show_row(buf *out, const advise_report *r, const advise_key *k) {
    buf_add_lit(out, "  ");
    add_name(out, k->name, NAME_COLUMNS);
    buf_addf(out, " %9.0f %6.1f %% %6.1f %%", k->values, 100 * k->largest_share, 100 * k->top_share);
    add_bytes(out, k->largest_bytes);
    add_bytes(out, k->projected_bytes);
    buf_addf(out, "%s %6.1f %%", k->outgrows ? "!" : " ", 100 * k->hottest);
    if (r->reads > 0) {
        buf_addf(out, " %6.0f %%", 100 * k->one_partition);
    } else {
        buf_add_lit(out, "        -");
    }
    buf_addf(out, " %9.0f %5.0f %% %6.0f\n", k->ru_per_second, 100 * k->refused, k->score);
}

static void show_table(buf *out, const advise_report *r, size_t rows) {
    buf_add_lit(out, "  ");
    add_name(out, SLICE_LIT("key"), NAME_COLUMNS);
    buf_add_lit(out, "    values  largest  top 1 %   largest projected   hottest   reads      RU/s    429s  score\n");
    buf_addf(out, "  %*s         value                 now                key  in one\n", NAME_COLUMNS, "");
    for (size_t i = 0; i < r->n && i < rows; i++) {
        show_row(out, r, r->keys[i]);
    }
    if (r->n > rows) {
        buf_addf(out, "  … and %zu more\n", r->n - rows);
    }
}

static void add_bar(buf *out, double part) {
    double columns = part * BAR_COLUMNS;
    for (int i = 0; i < BAR_COLUMNS && i < (int)(columns + 0.5); i++) {
        buf_add_lit(out, "█");
    }
}

/* A bar is the partition's share of the throughput; what is beyond it gets 429. */
static void show_picture(buf *out, const advise_report *r, const advise_key *k, const char *title) {
    double share = r->throughput / r->partitions;
    buf_addf(out, "\n%s: %.*s\n  partition      RU/s    stored  of its %.0f RU/s at the busiest moment\n", title, (int)k->name.n, k->name.p,
             share);
    for (uint32_t i = 0; i < r->partitions && i < PICTURED_PARTITIONS; i++) {
        buf_addf(out, "  %9u %9.0f", i, k->load_parts[i]);
        add_bytes(out, k->byte_parts[i]);
        buf_add_lit(out, "  ");
        add_bar(out, fmin(1, k->load_parts[i] / share));
        if (k->load_parts[i] > share) {
            buf_addf(out, " + %.0f RU/s refused", k->load_parts[i] - share);
        }
        buf_add_byte(out, '\n');
    }
    if (r->partitions > PICTURED_PARTITIONS) {
        buf_addf(out, "  … and %u more\n", r->partitions - PICTURED_PARTITIONS);
    }
    for (size_t i = 0; i < k->reasons_n; i++) {
        buf_addf(out, "  * %.*s\n", (int)k->reasons[i].n, k->reasons[i].p);
    }
}

static const advise_key *best_synthetic(const advise_report *r) {
    for (size_t i = 0; i < r->n; i++) {
        if (r->keys[i]->kind >= ADVISE_CONCATENATED) {
            return r->keys[i];
        }
    }
    return NULL;
}

/* The worst of single paths is the instructive one: it is what somebody might take. */
static const advise_key *worst_path(const advise_report *r) {
    for (size_t i = r->n; i-- > 1;) {
        if (r->keys[i]->kind == ADVISE_PATH) {
            return r->keys[i];
        }
    }
    return NULL;
}

void advise_show(buf *out, const advise_report *r, size_t rows) {
    const advise_key *best = r->keys[0], *worst = worst_path(r), *synthetic = best_synthetic(r);
    show_data(out, r);
    show_table(out, r, rows);
    show_picture(out, r, best, "recommended");
    if (worst) {
        show_picture(out, r, worst, "the worst path");
    }
    if (synthetic) {
        buf_addf(out, "\nThe code for the best synthetic key, %.*s, in a property of its own (/partitionKey):\n\n", (int)synthetic->name.n,
                 synthetic->name.p);
        advise_add_code(out, synthetic);
    }
}

/* ---- JSON ---- */

static void add_member(buf *out, const char *name, double value) {
    buf_addf(out, "\"%s\":", name);
    json_add_double(out, value);
    buf_add_byte(out, ',');
}

static void add_string(buf *out, const char *name, slice text) {
    buf_addf(out, "\"%s\":", name);
    json_add_string(out, text);
    buf_add_byte(out, ',');
}

static void add_numbers(buf *out, const char *name, const double *list, size_t n) {
    buf_addf(out, "\"%s\":[", name);
    for (size_t i = 0; i < n; i++) {
        buf_addf(out, "%s", i ? "," : "");
        json_add_double(out, round(list[i]));
    }
    buf_add_lit(out, "],");
}

static void end_object(buf *out) {
    out->p[out->n - 1] = '}'; /* in place of the last comma */
}

static void add_strings(buf *out, const char *name, const slice *list, size_t n) {
    buf_addf(out, "\"%s\":[", name);
    for (size_t i = 0; i < n; i++) {
        buf_addf(out, "%s", i ? "," : "");
        json_add_string(out, list[i]);
    }
    buf_add_lit(out, "],");
}

static void write_key(buf *out, const advise_report *r, const advise_key *k) {
    static const char *const kinds[] = {"path", "hierarchical", "concatenated", "random", "precomputed"};
    buf_add_byte(out, '{');
    add_string(out, "key", k->name);
    add_string(out, "kind", slice_str(kinds[k->kind]));
    add_strings(out, "paths", k->paths, k->n);
    add_member(out, "score", round(10 * k->score) / 10);
    add_member(out, "values", k->values);
    add_member(out, "largestShare", k->largest_share);
    add_member(out, "topPercentShare", k->top_share);
    add_member(out, "largestBytes", round(k->largest_bytes));
    add_member(out, "projectedBytes", round(k->projected_bytes));
    buf_addf(out, "\"outgrows\":%s,", k->outgrows ? "true" : "false");
    add_member(out, "hottestShare", k->hottest);
    if (r->reads > 0) {
        add_member(out, "readsInOnePartition", k->one_partition);
        add_member(out, "readsOfKnownKeys", k->known_keys);
    }
    add_member(out, "ruPerSecond", k->ru_per_second);
    add_member(out, "refusedShare", k->refused);
    add_numbers(out, "partitionLoads", k->load_parts, r->partitions);
    add_numbers(out, "partitionBytes", k->byte_parts, r->partitions);
    add_strings(out, "reasons", k->reasons, k->reasons_n);
    buf code = buf_init(BUF_NO_LIMIT);
    advise_add_code(&code, k);
    if (code.n) {
        add_string(out, "code", buf_view(&code));
    }
    buf_free(&code);
    end_object(out);
}

void advise_write_json(buf *out, const advise_report *r) {
    buf_add_byte(out, '{');
    add_member(out, "items", r->items);
    add_member(out, "bytes", round(r->bytes));
    add_member(out, "projectedBytes", round(r->projected_bytes));
    add_member(out, "growth", r->growth);
    if (r->time_path.n) {
        add_string(out, "timePath", r->time_path);
        add_member(out, "days", r->days);
    }
    add_member(out, "operations", r->operations);
    add_member(out, "load", r->load);
    add_member(out, "writeShare", r->write_share);
    add_member(out, "throughput", r->throughput);
    add_member(out, "partitions", r->partitions);
    add_member(out, "pathsLeftOut", (double)r->paths_left_out);
    add_string(out, "recommended", r->keys[0]->name);
    buf_add_lit(out, "\"keys\":[");
    for (size_t i = 0; i < r->n; i++) {
        buf_addf(out, "%s", i ? "," : "");
        write_key(out, r, r->keys[i]);
    }
    buf_add_lit(out, "]}\n");
}
