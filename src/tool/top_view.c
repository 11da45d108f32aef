#include "tool/top_view.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/units.h"
#include "doc/path.h"
#include "tool/terminal.h"

/* ---- reading ---- */

static slice text_in(slice document, const char *name) {
    bson_iter_t it;
    return doc_find_key(document, slice_str(name), &it) && BSON_ITER_HOLDS_UTF8(&it) ? doc_text(&it) : SLICE_EMPTY;
}

/* Clamps the number to 0 … 2^53, whatever the answer contains. */
static double number_in(slice document, const char *name) {
    bson_iter_t it;
    double value = doc_find_key(document, slice_str(name), &it) && BSON_ITER_HOLDS_NUMBER(&it) ? bson_iter_as_double(&it) : 0;
    return fmin(fmax(value, 0), 0x1p53);
}

static slice document_at(const bson_iter_t *it) {
    uint32_t n = 0;
    const uint8_t *p = NULL;
    if (BSON_ITER_HOLDS_DOCUMENT(it)) {
        bson_iter_document(it, &n, &p);
    }
    return slice_of(p, n);
}

static slice hottest_in(slice document) {
    bson_iter_t it;
    return doc_find_key(document, SLICE_LIT("hottest"), &it) && BSON_ITER_HOLDS_DOCUMENT(&it) ? text_in(document_at(&it), "key")
                                                                                              : SLICE_EMPTY;
}

static top_row row_of(slice document, size_t position) {
    return (top_row){
        .database = text_in(document, "database"),
        .container = text_in(document, "container"),
        .api = text_in(document, "api"),
        .range = text_in(document, "id"),
        .hottest = hottest_in(document),
        .normalized = number_in(document, "normalizedPercent"),
        .ru = number_in(document, "ruPerSecond"),
        .share = number_in(document, "shareRuPerSecond"),
        .throttled = number_in(document, "throttledPerSecond"),
        .requests = number_in(document, "requestsPerSecond"),
        .items = number_in(document, "items"),
        .bytes = number_in(document, "bytes") + number_in(document, "indexBytes"),
        .latency_us = number_in(document, "latencyAverageUs"),
        .latency_max_us = number_in(document, "latencyMaxUs"),
        .position = position,
    };
}

static void add_rows(top_rows *rows, slice answer, const char *name) {
    bson_iter_t it, each;
    if (!doc_find_key(answer, slice_str(name), &it) || !BSON_ITER_HOLDS_ARRAY(&it) || !bson_iter_recurse(&it, &each)) {
        return;
    }
    for (size_t i = 0; bson_iter_next(&each); i++) {
        slice document = document_at(&each);
        if (document.n) {
            if ((rows->n & (rows->n - 1)) == 0) {
                rows->list = mem_resize(rows->list, (rows->n ? 2 * rows->n : 1) * sizeof *rows->list);
            }
            rows->list[rows->n++] = row_of(document, i);
        }
    }
}

static bool is_container_of(const top_row *container, const top_row *range) {
    return slice_eq(container->database, range->database) && slice_eq(container->container, range->container);
}

/* Only the rows of ranges have an id; they are in the order of their containers. */
top_rows top_rows_read(slice ranges) {
    top_rows rows = {.total = number_in(ranges, "total")};
    size_t at = 0;
    add_rows(&rows, ranges, "containers");
    rows.containers = rows.n;
    add_rows(&rows, ranges, "ranges");
    for (size_t i = 0; i < rows.n; i++) {
        while (i >= rows.containers && at + 1 < rows.containers && !is_container_of(&rows.list[at], &rows.list[i])) {
            at++;
        }
        rows.list[i].container_at = i < rows.containers ? i : at;
    }
    return rows;
}

top_server top_server_read(slice overview) {
    return (top_server){
        .uptime_s = number_in(overview, "uptimeSeconds"),
        .databases = number_in(overview, "databases"),
        .containers = number_in(overview, "containers"),
        .ranges = number_in(overview, "ranges"),
        .connections = number_in(overview, "connections"),
        .memory_bytes = number_in(overview, "memoryBytes"),
        .faults = number_in(overview, "faults"),
    };
}

/* ---- sorting ---- */

static double key_of(const top_row *row, top_order order) {
    switch (order) {
    case TOP_BY_NORMALIZED:
        return row->normalized;
    case TOP_BY_RU:
        return row->ru;
    case TOP_BY_THROTTLED:
        return row->throttled;
    case TOP_BY_ITEMS:
        return row->items;
    case TOP_BY_SIZE:
        return row->bytes;
    case TOP_BY_LATENCY:
        return row->latency_us;
    default:
        return 0;
    }
}

/* A row with its sort keys: by its container first. */
typedef struct ranked {
    top_row row;
    double container_key, key;
} ranked;

static int by_rank(const void *x, const void *y) {
    const ranked *a = x, *b = y;
    if (a->row.container_at != b->row.container_at) {
        bool first = a->row.container_at < b->row.container_at;
        return a->container_key > b->container_key ? -1 : a->container_key < b->container_key ? 1 : first ? -1 : 1;
    }
    bool a_whole = a->row.range.n == 0, b_whole = b->row.range.n == 0;
    if (a_whole != b_whole) {
        return a_whole ? -1 : 1;
    }
    return a->key > b->key ? -1 : a->key < b->key ? 1 : a->row.position < b->row.position ? -1 : 1;
}

void top_rows_sort(top_rows *rows, top_order order) {
    ranked *all = mem_alloc((rows->n + 1) * sizeof *all);
    double *container_keys = mem_zero((rows->containers + 1) * sizeof *container_keys);
    for (size_t i = 0; i < rows->n; i++) {
        if (rows->list[i].range.n == 0) {
            container_keys[rows->list[i].container_at] = key_of(&rows->list[i], order);
        }
    }
    for (size_t i = 0; i < rows->n; i++) {
        all[i] = (ranked){rows->list[i], container_keys[rows->list[i].container_at], key_of(&rows->list[i], order)};
    }
    qsort(all, rows->n, sizeof *all, by_rank);
    for (size_t i = 0; i < rows->n; i++) {
        rows->list[i] = all[i].row;
    }
    free(container_keys);
    free(all);
}

/* ---- cells ---- */

enum { CELL_BYTES = 64 };

static void add_bytes(buf *out, double bytes) {
    char text[CELL_BYTES];
    bytes_text(text, sizeof text, (uint64_t)bytes);
    buf_addf(out, "%s", text);
}

static void add_ms(buf *out, double us) {
    us > 0 ? buf_addf(out, us < 10000 ? "%.2f ms" : "%.0f ms", us / 1000) : buf_add_byte(out, '-');
}

static void add_some(buf *out, double value) {
    value > 0 ? text_add_number(out, value) : buf_add_byte(out, '-');
}

static void cell_ru(buf *out, const top_row *row) {
    add_some(out, row->ru);
}

static void cell_share(buf *out, const top_row *row) {
    row->share > 0 ? text_add_number(out, row->share) : buf_addf(out, "∞");
}

static void cell_throttled(buf *out, const top_row *row) {
    add_some(out, row->throttled);
}

static void cell_requests(buf *out, const top_row *row) {
    add_some(out, row->requests);
}

static void cell_items(buf *out, const top_row *row) {
    text_add_number(out, row->items);
}

static void cell_size(buf *out, const top_row *row) {
    add_bytes(out, row->bytes);
}

static void cell_latency(buf *out, const top_row *row) {
    add_ms(out, row->latency_us);
}

static void cell_latency_max(buf *out, const top_row *row) {
    add_ms(out, row->latency_max_us);
}

/* The columns after the name and the bar. On a narrow screen those with the highest `goes` are dropped first. */
typedef struct column {
    const char *title;
    size_t width;
    unsigned goes;
    void (*write)(buf *out, const top_row *row);
} column;

static const column columns[] = {
    {"RU/s", 9, 0, cell_ru},      {"of", 9, 3, cell_share},  {"429/s", 7, 0, cell_throttled}, {"req/s", 7, 4, cell_requests},
    {"items", 11, 5, cell_items}, {"size", 9, 2, cell_size}, {"latency", 9, 1, cell_latency}, {"longest", 9, 6, cell_latency_max},
};

enum {
    COLUMNS = sizeof columns / sizeof *columns,
    NAME_LEAST = 14,
    NAME_MOST = 32,
    BAR_LEAST = 5,
    BAR_MOST = 20,
    PERCENT = 7,
    KEY_LEAST = 8
};

typedef struct layout {
    size_t name, bar, key; /* key 0: no room for it */
    unsigned goes;         /* columns with a higher `goes` are not shown */
} layout;

static size_t width_of_columns(unsigned goes) {
    size_t width = 0;
    for (size_t i = 0; i < COLUMNS; i++) {
        width += columns[i].goes <= goes ? columns[i].width + 1 : 0;
    }
    return width;
}

/* Fits in the columns first; then the bar and the name grow; the hottest key gets the rest. */
static layout lay_out(size_t width) {
    layout l = {.name = NAME_LEAST, .bar = BAR_LEAST, .goes = 6};
    size_t least = NAME_LEAST + 1 + BAR_LEAST + PERCENT;
    while (l.goes > 0 && least + width_of_columns(l.goes) > width) {
        l.goes--;
    }
    size_t used = least + width_of_columns(l.goes), left = width > used ? width - used : 0;
    size_t key = left > KEY_LEAST ? KEY_LEAST + 1 : 0;
    left -= key;
    size_t more_bar = left / 3 < BAR_MOST - BAR_LEAST ? left / 3 : BAR_MOST - BAR_LEAST;
    left -= more_bar;
    size_t more_name = left < NAME_MOST - NAME_LEAST ? left : NAME_MOST - NAME_LEAST;
    left -= more_name;
    l.bar += more_bar;
    l.name += more_name;
    l.key = key ? key - 1 + left : 0;
    return l;
}

/* ---- the screen ---- */

#define BOLD "\x1b[1m"
#define DIM "\x1b[2m"
#define RED "\x1b[31m"
#define GREEN "\x1b[32m"
#define YELLOW "\x1b[33m"
#define REVERSE "\x1b[7m"
#define PLAIN "\x1b[0m"
#define LINE_END "\x1b[K\r\n"

static void style(buf *out, const top_screen *screen, const char *escape) {
    buf_add(out, escape, screen->colour ? strlen(escape) : 0);
}

static void add_bar(buf *out, const top_screen *screen, double percent, size_t width) {
    size_t full = (size_t)lround(fmin(fmax(percent, 0), 100) / 100 * (double)width);
    style(out, screen, percent >= 90 ? RED : percent >= 60 ? YELLOW : GREEN);
    for (size_t i = 0; i < width; i++) {
        if (i == full) {
            style(out, screen, DIM);
        }
        i < full ? buf_add_lit(out, "█") : buf_add_lit(out, "░");
    }
    style(out, screen, PLAIN);
    buf_addf(out, " %5.1f%%", percent);
}

/* Adds the API that made the container, unless it is SQL: "shop/orders (mongo)". */
static void add_container_name(buf *name, const top_row *row) {
    buf_add_slice(name, row->database);
    buf_add_byte(name, '/');
    buf_add_slice(name, row->container);
    if (row->api.n && !slice_eq(row->api, SLICE_LIT("sql"))) {
        buf_addf(name, " (%.*s)", slice_shown(row->api), row->api.p);
    }
}

static void add_name(buf *out, const top_row *row, size_t width) {
    buf name = buf_init(BUF_NO_LIMIT);
    if (row->range.n) {
        buf_add_lit(&name, "  ");
        buf_add_slice(&name, row->range);
    } else {
        add_container_name(&name, row);
    }
    text_add_left(out, buf_view(&name), width);
    buf_free(&name);
}

static void add_row(buf *out, const top_screen *screen, const layout *l, const top_row *row) {
    buf cell = buf_init(BUF_NO_LIMIT);
    style(out, screen, row->range.n ? "" : BOLD);
    add_name(out, row, l->name);
    style(out, screen, PLAIN);
    buf_add_byte(out, ' ');
    add_bar(out, screen, row->normalized, l->bar);
    for (size_t i = 0; i < COLUMNS; i++) {
        if (columns[i].goes <= l->goes) {
            buf_clear(&cell);
            columns[i].write(&cell, row);
            buf_add_byte(out, ' ');
            bool alarms = columns[i].write == cell_throttled && row->throttled > 0;
            style(out, screen, alarms ? RED : "");
            text_add_right(out, buf_view(&cell), columns[i].width);
            style(out, screen, alarms ? PLAIN : "");
        }
    }
    if (l->key) {
        buf_add_byte(out, ' ');
        text_add(out, row->hottest, l->key);
    }
    buf_add_lit(out, LINE_END);
    buf_free(&cell);
}

static void add_titles(buf *out, const top_screen *screen, const layout *l) {
    style(out, screen, REVERSE);
    text_add_left(out, SLICE_LIT("container, range"), l->name);
    buf_add_byte(out, ' ');
    text_add_left(out, SLICE_LIT("normalised RU"), l->bar + PERCENT);
    for (size_t i = 0; i < COLUMNS; i++) {
        if (columns[i].goes <= l->goes) {
            buf_add_byte(out, ' ');
            text_add_right(out, slice_str(columns[i].title), columns[i].width);
        }
    }
    if (l->key) {
        buf_add_byte(out, ' ');
        text_add_left(out, SLICE_LIT("hottest key"), l->key);
    }
    style(out, screen, PLAIN);
    buf_add_lit(out, LINE_END);
}

static void add_uptime(buf *out, double s) {
    unsigned long minutes = (unsigned long)(s / 60);
    if (minutes >= 24 * 60) {
        buf_addf(out, "%lu d %lu h", minutes / 1440, minutes % 1440 / 60);
    } else if (minutes >= 60) {
        buf_addf(out, "%lu h %lu min", minutes / 60, minutes % 60);
    } else {
        buf_addf(out, "%lu min %lu s", minutes, (unsigned long)s % 60);
    }
}

static void add_counts(buf *out, const top_server *server) {
    const struct {
        double n;
        const char *singular;
    } counts[] = {
        {server->databases, "database"}, {server->containers, "container"}, {server->ranges, "range"}, {server->connections, "connection"}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        buf_add_lit(out, "  ");
        text_add_count(out, counts[i].n, counts[i].singular);
    }
    buf_add_lit(out, "  ");
}

static void add_server(buf *out, const top_screen *screen, const top_server *server) {
    buf line = buf_init(BUF_NO_LIMIT);
    buf_addf(&line, "tesela top  %s  up ", screen->endpoint);
    add_uptime(&line, server->uptime_s);
    add_counts(&line, server);
    add_bytes(&line, server->memory_bytes);
    if (server->faults > 0) {
        buf_add_lit(&line, "  ");
        text_add_count(&line, server->faults, "fault");
        buf_add_lit(&line, " set");
    }
    text_add(out, buf_view(&line), screen->columns ? screen->columns - 1 : 0);
    buf_add_lit(out, LINE_END);
    buf_free(&line);
}

static const char *const orders[TOP_ORDERS] = {
    [TOP_BY_NAME] = "name", [TOP_BY_NORMALIZED] = "normalised", [TOP_BY_RU] = "RU", [TOP_BY_THROTTLED] = "429", [TOP_BY_ITEMS] = "items",
    [TOP_BY_SIZE] = "size", [TOP_BY_LATENCY] = "latency",
};

static void add_foot(buf *out, const top_screen *screen) {
    buf line = buf_init(BUF_NO_LIMIT);
    buf_addf(&line, "%s", screen->trouble ? screen->trouble : "by ");
    if (!screen->trouble) {
        buf_addf(&line, "%s   n name  p normalised  u RU  t 429  i items  s size  l latency   arrows scroll   q ends",
                 orders[screen->order]);
    }
    style(out, screen, screen->trouble ? RED : DIM);
    text_add(out, buf_view(&line), screen->columns ? screen->columns - 1 : 0);
    style(out, screen, PLAIN);
    buf_add_lit(out, "\x1b[K");
    buf_free(&line);
}

size_t top_lines_of_rows(const top_screen *screen) {
    return screen->lines > 3 ? screen->lines - 3 : 0;
}

void top_draw(buf *out, const top_screen *screen, const top_server *server, const top_rows *rows) {
    layout l = lay_out(screen->columns ? screen->columns - 1 : 0); /* leave the last column free: erasing to the line end would clear it */
    size_t room = top_lines_of_rows(screen);
    buf_add_lit(out, "\x1b[H");
    add_server(out, screen, server);
    add_titles(out, screen, &l);
    for (size_t i = 0; i < room; i++) {
        if (screen->scroll + i < rows->n) {
            add_row(out, screen, &l, &rows->list[screen->scroll + i]);
        } else {
            buf_add_lit(out, LINE_END);
        }
    }
    add_foot(out, screen);
    buf_add_lit(out, "\x1b[J");
}

/* ---- the table ---- */

/* Adds the share of the row and the percentage used; "-" if there is no limit, as with throttling off. */
static void add_limits(buf *out, const top_row *row) {
    char normalized[CELL_BYTES] = "-", share[CELL_BYTES] = "-";
    if (row->share > 0) {
        snprintf(normalized, sizeof normalized, "%.1f", row->normalized);
        snprintf(share, sizeof share, "%.2f", row->share);
    }
    buf_addf(out, " %7s %11.2f %11s", normalized, row->ru, share);
}

void top_write_table(buf *out, const top_rows *rows) {
    buf name = buf_init(BUF_NO_LIMIT);
    buf_addf(out, "%-40s %6s %7s %11s %11s %8s %8s %12s %14s %10s %10s  %s\n", "CONTAINER", "RANGE", "NORM%", "RU/S", "SHARE", "429/S",
             "REQ/S", "ITEMS", "BYTES", "AVG_US", "MAX_US", "HOTTEST");
    for (size_t i = 0; i < rows->n; i++) {
        const top_row *row = &rows->list[i];
        buf_clear(&name);
        add_container_name(&name, row);
        text_add_left(out, buf_view(&name), 40);
        buf_add_byte(out, ' ');
        text_add_right(out, row->range.n ? row->range : SLICE_LIT("all"), 6);
        add_limits(out, row);
        buf_addf(out, " %8.0f %8.0f %12.0f %14.0f %10.0f %10.0f  ", row->throttled, row->requests, row->items, row->bytes, row->latency_us,
                 row->latency_max_us);
        text_add(out, row->hottest.n ? row->hottest : SLICE_LIT("-"), 140);
        buf_add_byte(out, '\n');
    }
    buf_free(&name);
}
