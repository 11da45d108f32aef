/* CSV, both ways. */
#include "base/limits.h"
#include "doc/json.h"
#include "doc/walk.h"
#include "tool/rows_int.h"

/* ---- fields ---- */

typedef struct field {
    slice text; /* in the arena */
    bool quoted;
} field;

bool rows__looks_typed(slice text) {
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (slice_eq(text, slice_str(words[i]))) {
            return true;
        }
    }
    if (text.n == 0 || text.n > 40 || (text.p[0] != '-' && (text.p[0] < '0' || text.p[0] > '9'))) {
        return false;
    }
    char list[48];
    json_root root;
    int n = snprintf(list, sizeof list, "[%.*s]", (int)text.n, text.p);
    buf bson = buf_init(BUF_NO_LIMIT);
    bool number = !memchr(text.p, ',', text.n) && json_to_bson(slice_of(list, (size_t)n), NULL, &bson, &root, NULL) == OK;
    buf_free(&bson);
    return number;
}

static slice copy(arena *a, slice text) {
    char *p = arena_alloc(a, text.n + 1);
    if (text.n) {
        memcpy(p, text.p, text.n);
    }
    return slice_of(p, text.n);
}

/* Reads one field up to its comma or line break, which is in *end_out. False: it is too large, or a quote is not closed. */
static bool read_field(rows_reader *r, field *f, int *end_out) {
    int c = rows__byte(r);
    buf_clear(&r->field);
    f->quoted = c == '"';
    if (f->quoted) {
        for (c = rows__byte(r); c != EOF; c = rows__byte(r)) {
            int after = c == '"' ? rows__byte(r) : 0;
            if (c == '"' && after != '"') {
                c = after;
                break;
            }
            buf_add_byte(&r->field, (char)c);
        }
    }
    while (c != EOF && c != ',' && c != '\n') {
        if (!f->quoted || c != '\r') {
            buf_add_byte(&r->field, (char)c);
        }
        c = rows__byte(r);
    }
    if (!f->quoted && r->field.n && r->field.p[r->field.n - 1] == '\r') {
        r->field.n--;
    }
    *end_out = c;
    f->text = copy(&r->arena, buf_view(&r->field));
    return !r->field.overflow;
}

/* Reads a record of at most `max` fields; further ones are counted. 0: the end of the file. */
static size_t read_record(rows_reader *r, field *fields, size_t max, bool *good_out) {
    size_t n = 0;
    int end = ',';
    *good_out = true;
    int first = rows__byte(r);
    if (first == EOF) {
        return 0;
    }
    rows__unread(r, first);
    while (end == ',') {
        field f = {0};
        *good_out = read_field(r, &f, &end) && *good_out;
        if (n < max) {
            fields[n] = f;
        }
        n++;
    }
    return n;
}

/* ---- reading ---- */

bool rows__csv_head(rows_reader *r) {
    field fields[ROWS_COLUMNS_MAX];
    bool good;
    size_t n = read_record(r, fields, ROWS_COLUMNS_MAX, &good);
    if (n == 0 || n > ROWS_COLUMNS_MAX || !good) {
        rows__fail(r, ROWS_BROKEN, n == 0 ? "the file is empty: its first line must name the columns" : "too many columns, at most 1000");
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        slice name = fields[i].text;
        if (i == 0 && slice_starts(name, SLICE_LIT("\xEF\xBB\xBF"))) {
            name = slice_skip(name, 3);
        }
        if (!bson_utf8_validate(name.p, name.n, false)) {
            rows__fail(r, ROWS_BROKEN, "a column's name is not UTF-8");
            return false;
        }
        r->columns[i] = name;
    }
    r->columns_n = n;
    return true;
}

static void add_value(buf *out, const field *f) {
    if (!f->quoted && rows__looks_typed(f->text)) {
        buf_add_slice(out, f->text);
    } else {
        json_add_string(out, f->text);
    }
}

static slice segment_of(slice rest) {
    const char *dot = memchr(rest.p, '.', rest.n);
    return slice_of(rest.p, dot ? (size_t)(dot - rest.p) : rest.n);
}

/* Whether an earlier column below the prefix begins with this segment: then its object is written already. */
static bool is_written(const rows_reader *r, size_t before, slice prefix, slice segment) {
    for (size_t i = 0; i < before; i++) {
        slice rest = slice_skip(r->columns[i], prefix.n);
        if (slice_starts(r->columns[i], prefix) && rest.n > segment.n && slice_eq(segment_of(rest), segment)) {
            return true;
        }
    }
    return false;
}

static void add_object(const rows_reader *r, buf *out, const field *fields, slice prefix, unsigned depth) {
    const char *before = "{";
    for (size_t i = 0; i < r->columns_n; i++) {
        if (!slice_starts(r->columns[i], prefix)) {
            continue;
        }
        slice rest = slice_skip(r->columns[i], prefix.n), segment = depth < ROWS_NESTING_MAX ? segment_of(rest) : rest;
        bool nested = segment.n < rest.n;
        if (nested ? is_written(r, i, prefix, segment) : !fields[i].quoted && fields[i].text.n == 0) {
            continue;
        }
        buf_addf(out, "%s", before);
        before = ",";
        json_add_string(out, segment);
        buf_add_byte(out, ':');
        if (nested) {
            add_object(r, out, fields, slice_of(r->columns[i].p, prefix.n + segment.n + 1), depth + 1);
        } else {
            add_value(out, &fields[i]);
        }
    }
    buf_addf(out, "%s}", *before == '{' ? "{" : "");
}

static bool are_utf8(const field *fields, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!bson_utf8_validate(fields[i].text.p, fields[i].text.n, true)) {
            return false;
        }
    }
    return true;
}

rows_result rows__csv_next(rows_reader *r) {
    field fields[ROWS_COLUMNS_MAX];
    arena_mark mark = arena_marked(&r->arena);
    rows_result result = ROWS_ITEM;
    bool good;
    size_t n = read_record(r, fields, ROWS_COLUMNS_MAX, &good);
    if (n == 0) {
        result = ROWS_END;
    } else if (!good) {
        result = rows__fail(r, ROWS_BAD, "a field is larger than 2 MB");
    } else if (n == 1 && r->columns_n > 1 && fields[0].text.n == 0) {
        result = rows__fail(r, ROWS_BAD, "a blank line");
    } else if (n != r->columns_n) {
        result = ROWS_BAD;
        snprintf(r->why, sizeof r->why, "%zu fields, but the first line names %zu columns", n, r->columns_n);
    } else if (!are_utf8(fields, n)) {
        result = rows__fail(r, ROWS_BAD, "not UTF-8");
    } else {
        add_object(r, &r->row, fields, SLICE_EMPTY, 0);
    }
    arena_release(&r->arena, mark);
    return result;
}
