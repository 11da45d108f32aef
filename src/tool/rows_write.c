/* Items as text: JSON lines, a JSON array, CSV. */
#include "base/limits.h"
#include "doc/json.h"
#include "doc/walk.h"
#include "tool/rows_int.h"

void rows_writer_open(rows_writer *w, rows_format format) {
    *w = (rows_writer){.format = format, .arena = arena_init()};
}

void rows_writer_close(rows_writer *w) {
    arena_free(&w->arena);
}

static size_t column_of(const rows_writer *w, slice name) {
    size_t i = 0;
    while (i < w->columns_n && !slice_eq(w->columns[i], name)) {
        i++;
    }
    return i;
}

static void add_column(rows_writer *w, slice name) {
    if (w->columns_n == ROWS_COLUMNS_MAX || column_of(w, name) < w->columns_n) {
        return;
    }
    char *p = arena_alloc(&w->arena, name.n + 1);
    if (name.n) {
        memcpy(p, name.p, name.n);
    }
    w->columns[w->columns_n++] = slice_of(p, name.n);
}

void rows_writer_columns(rows_writer *w, slice list) {
    while (list.n) {
        const char *comma = memchr(list.p, ',', list.n);
        slice name = slice_of(list.p, comma ? (size_t)(comma - list.p) : list.n);
        add_column(w, slice_trim(name));
        list = slice_skip(list, name.n + 1);
    }
}

/* Calls `each` for every value that is no object, with its dotted name. */
static void flatten(slice document, buf *name, unsigned depth, void (*each)(void *context, slice name, const doc_element *e),
                    void *context) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, document); doc_walk_next(&w, &e);) {
        size_t before = name->n;
        buf_addf(name, "%s", before ? "." : "");
        buf_add_slice(name, e.key);
        if (e.type == BSON_TYPE_DOCUMENT && depth < ROWS_NESTING_MAX) {
            flatten(e.value, name, depth + 1, each, context);
        } else {
            each(context, buf_view(name), &e);
        }
        name->n = before;
    }
}

static void learn_one(void *context, slice name, const doc_element *e) {
    (void)e;
    add_column(context, name);
}

void rows_writer_learn(rows_writer *w, slice bson) {
    buf name = buf_init(BUF_NO_LIMIT);
    flatten(bson, &name, 0, learn_one, w);
    buf_free(&name);
}

/* ---- CSV ---- */

static void add_field(buf *out, slice text, bool string) {
    bool quotes = string && (text.n == 0 || rows__looks_typed(text));
    for (size_t i = 0; i < text.n && !quotes; i++) {
        quotes = text.p[i] == '"' || text.p[i] == ',' || text.p[i] == '\n' || text.p[i] == '\r';
    }
    buf_addf(out, "%s", quotes ? "\"" : "");
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '"') {
            buf_add_byte(out, '"');
        }
        buf_add_byte(out, text.p[i]);
    }
    buf_addf(out, "%s", quotes ? "\"" : "");
}

/* Values that are no strings are written as in JSON. */
static void add_element(buf *out, const doc_element *e) {
    if (e->type == BSON_TYPE_UTF8) {
        add_field(out, doc_element_text(e), true);
        return;
    }
    bson_t one = BSON_INITIALIZER;
    bson_iter_t it;
    buf text = buf_init(BUF_NO_LIMIT);
    slice element = doc_element_bytes(e);
    if (bson_iter_init_from_data_at_offset(&it, (const uint8_t *)element.p - 4, element.n + 5, 4, (uint32_t)e->key.n)) {
        bson_append_iter(&one, "", 0, &it);
    }
    json_from_bson_array(&text, slice_of(bson_get_data(&one), one.len));
    slice inside = text.n >= 2 ? slice_of(text.p + 1, text.n - 2) : SLICE_EMPTY;
    add_field(out, inside, false);
    buf_free(&text);
    bson_destroy(&one);
}

typedef struct csv_row {
    rows_writer *w;
    doc_element found[ROWS_COLUMNS_MAX];
    bool there[ROWS_COLUMNS_MAX], cut;
} csv_row;

static void place(void *context, slice name, const doc_element *e) {
    csv_row *row = context;
    size_t at = column_of(row->w, name);
    if (at == row->w->columns_n) {
        row->cut = true;
        return;
    }
    row->found[at] = *e;
    row->there[at] = true;
}

static void add_csv(rows_writer *w, buf *out, slice bson) {
    csv_row row;
    buf name = buf_init(BUF_NO_LIMIT);
    row.w = w;
    row.cut = false;
    memset(row.there, 0, sizeof row.there);
    flatten(bson, &name, 0, place, &row);
    for (size_t i = 0; i < w->columns_n; i++) {
        buf_addf(out, "%s", i ? "," : "");
        if (row.there[i]) {
            add_element(out, &row.found[i]);
        }
    }
    buf_add_byte(out, '\n');
    w->cut += row.cut;
    buf_free(&name);
}

/* ---- all formats ---- */

void rows_begin(rows_writer *w, buf *out) {
    for (size_t i = 0; w->format == ROWS_CSV && i < w->columns_n; i++) {
        buf_addf(out, "%s", i ? "," : "");
        add_field(out, w->columns[i], false);
    }
    buf_addf(out, "%s", w->format == ROWS_CSV ? "\n" : w->format == ROWS_ARRAY ? "[" : "");
}

void rows_add(rows_writer *w, buf *out, slice bson) {
    if (w->format == ROWS_CSV) {
        add_csv(w, out, bson);
    } else {
        buf_addf(out, "%s", w->format == ROWS_ARRAY ? (w->rows ? ",\n" : "\n") : "");
        json_from_bson(out, bson);
        buf_addf(out, "%s", w->format == ROWS_LINES ? "\n" : "");
    }
    w->rows++;
}

void rows_end(rows_writer *w, buf *out) {
    if (w->format == ROWS_ARRAY) {
        buf_addf(out, "%s]\n", w->rows ? "\n" : "");
    }
}
