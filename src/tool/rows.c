#include "tool/rows.h"

#include <errno.h>

#include "base/limits.h"
#include "doc/json.h"
#include "tool/rows_int.h"

bool rows_format_of(const char *text, const char *file, rows_format *format_out) {
    static const char *const names[] = {[ROWS_LINES] = "jsonl", [ROWS_ARRAY] = "json", [ROWS_CSV] = "csv"};
    const char *dot = strrchr(file, '.');
    const char *name = text ? text : dot ? dot + 1 : "jsonl";
    *format_out = ROWS_LINES;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            *format_out = (rows_format)i;
            return true;
        }
    }
    return !text;
}

int rows__byte(rows_reader *r) {
    int c = getc_unlocked(r->file);
    r->offset += c != EOF;
    r->line += c == '\n';
    return c;
}

void rows__unread(rows_reader *r, int c) {
    if (c != EOF) {
        ungetc(c, r->file);
        r->offset--;
        r->line -= c == '\n';
    }
}

rows_result rows__fail(rows_reader *r, rows_result result, const char *why) {
    snprintf(r->why, sizeof r->why, "%s", why);
    return result;
}

static void start_row(rows_reader *r) {
    buf_clear(&r->row);
    r->row_offset = r->offset;
    r->row_line = r->line;
}

bool rows_open(rows_reader *r, FILE *file, rows_format format) {
    *r = (rows_reader){.format = format, .file = file, .line = 1, .row = buf_init(LIMIT_ITEM_BYTES), .arena = arena_init()};
    r->field = buf_init(LIMIT_ITEM_BYTES);
    return format != ROWS_CSV || rows__csv_head(r);
}

void rows_close(rows_reader *r) {
    buf_free(&r->row);
    buf_free(&r->field);
    arena_free(&r->arena);
}

bool rows_seek(rows_reader *r, uint64_t offset, uint64_t line) {
    r->offset = offset;
    r->line = line;
    r->inside = true;
    return fseeko(r->file, (off_t)offset, SEEK_SET) == 0;
}

/* ---- JSON ---- */

/* Whether the row is an object that a server can read. */
static rows_result check_object(rows_reader *r) {
    json_root root;
    json_error why = {0};
    if (r->row.overflow) {
        return rows__fail(r, ROWS_BAD, "an item may have 2 MB");
    }
    buf_clear(&r->field);
    buf bson = buf_init((size_t)4 * LIMIT_ITEM_BYTES);
    err code = json_to_bson(buf_view(&r->row), NULL, &bson, &root, &why);
    buf_free(&bson);
    if (code != OK) {
        snprintf(r->why, sizeof r->why, "not JSON: %s, at byte %zu", why.reason ? why.reason : "too large", why.offset);
        return ROWS_BAD;
    }
    return root == JSON_OBJECT ? ROWS_ITEM : rows__fail(r, ROWS_BAD, "an item must be an object");
}

static bool is_blank(int c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static rows_result next_line(rows_reader *r) {
    int c;
    do {
        start_row(r);
        while ((c = rows__byte(r)) != EOF && c != '\n') {
            buf_add_byte(&r->row, (char)c);
        }
    } while (c != EOF && slice_trim(buf_view(&r->row)).n == 0 && !r->row.overflow);
    return c == EOF && slice_trim(buf_view(&r->row)).n == 0 ? ROWS_END : check_object(r);
}

static int skip_blanks(rows_reader *r) {
    int c = rows__byte(r);
    while (is_blank(c)) {
        c = rows__byte(r);
    }
    return c;
}

/* Takes bytes until the value's brackets are closed. Its inside is checked afterwards. */
static bool take_value(rows_reader *r, int c) {
    unsigned depth = 0;
    bool text = false, escaped = false;
    for (; c != EOF; c = rows__byte(r)) {
        if (!text && depth == 0 && r->row.n && (c == ',' || c == ']' || is_blank(c))) {
            rows__unread(r, c);
            return true;
        }
        buf_add_byte(&r->row, (char)c);
        if (text) {
            text = escaped || c != '"';
            escaped = !escaped && c == '\\';
        } else if (c == '"') {
            text = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            depth -= depth > 0;
        }
    }
    return false;
}

static rows_result next_element(rows_reader *r) {
    int c = skip_blanks(r);
    if (!r->inside && c != '[') {
        return c == EOF ? ROWS_END : rows__fail(r, ROWS_BROKEN, "the file is not a JSON array");
    }
    if (!r->inside) {
        r->inside = true;
        c = skip_blanks(r);
    } else if (c == ',') {
        c = skip_blanks(r);
    }
    if (c == ']') {
        return ROWS_END;
    }
    rows__unread(r, c);
    start_row(r);
    if (!take_value(r, rows__byte(r))) {
        return rows__fail(r, ROWS_BROKEN, "the JSON array does not end");
    }
    return check_object(r);
}

rows_result rows_next(rows_reader *r) {
    rows_result result = r->format == ROWS_LINES ? next_line(r) : r->format == ROWS_ARRAY ? next_element(r) : ROWS_END;
    if (r->format == ROWS_CSV) {
        start_row(r);
        result = rows__csv_next(r);
        result = result == ROWS_ITEM ? check_object(r) : result;
    }
    if (ferror(r->file)) {
        return rows__fail(r, ROWS_BROKEN, strerror(errno));
    }
    return result;
}
