#include "tool/source.h"

#include <errno.h>
#include <sys/stat.h>

#include "doc/json.h"
#include "doc/path.h"

bool source_open_file(source *s, const char *name, rows_format format, const journal *j) {
    struct stat about;
    bool standard = strcmp(name, "-") == 0;
    *s = (source){.file = standard ? stdin : fopen(name, "rb"), .text = buf_init(BUF_NO_LIMIT)};
    if (!s->file) {
        fprintf(stderr, "tesela: %s cannot be opened: %s.\n", name, strerror(errno));
        return false;
    }
    s->bytes = fstat(fileno(s->file), &about) == 0 && S_ISREG(about.st_mode) ? (double)about.st_size : 0;
    if (!rows_open(&s->rows, s->file, format)) {
        fprintf(stderr, "tesela: %s: %s.\n", name, s->rows.why);
        return false;
    }
    if (j->found && j->line && !rows_seek(&s->rows, j->offset, j->line)) {
        fprintf(stderr, "tesela: %s cannot be continued: %s.\n", name, strerror(errno));
        return false;
    }
    return true;
}

bool source_open_container(source *s, tesela_container *from, const journal *j) {
    tesela_error error;
    *s = (source){.text = buf_init(BUF_NO_LIMIT)};
    buf_add_slice(&s->continuation, buf_view(&j->continuation));
    buf_add_slice(&s->next, buf_view(&j->continuation));
    s->continuation.max = s->next.max = BUF_NO_LIMIT;
    s->number = j->line ? j->line - 1 : 0;
    buf text = buf_init(BUF_NO_LIMIT);
    buf_add_slice(&text, buf_view(&j->continuation));
    buf_add_byte(&text, '\0');
    bool good = tesela_items(from, 0, text.n > 1 ? text.p : NULL, &s->cursor, &error) == TESELA_OK;
    buf_free(&text);
    if (!good) {
        endpoint_tell("import", &error);
    }
    return good;
}

void source_close(source *s) {
    if (s->file) {
        rows_close(&s->rows);
    }
    if (s->file && s->file != stdin) {
        fclose(s->file);
    }
    tesela_cursor_close(s->cursor);
    buf_free(&s->continuation);
    buf_free(&s->next);
    buf_free(&s->text);
}

/* ---- rows ---- */

/* Appends the item without what the server adds, and with an id if it needs one. */
static void take_item(source *s, slice json) {
    static const char *const names[] = {"_rid", "_self", "_etag", "_attachments", "_ts"};
    slice drop[5];
    json_root root;
    doc_element id;
    buf bson = buf_init(BUF_NO_LIMIT);
    for (size_t i = 0; i < 5; i++) {
        drop[i] = slice_str(names[i]);
    }
    buf_clear(&s->text);
    if (json_to_bson(json, &(json_options){.drop = drop, .drop_n = 5}, &bson, &root, NULL) == OK) {
        bool comma = json_from_bson_open(&s->text, buf_view(&bson));
        if (s->number_ids && !doc_find_member(buf_view(&bson), SLICE_LIT("id"), &id)) {
            buf_addf(&s->text, "%s\"id\":\"%lu\"", comma ? "," : "", (unsigned long)s->number);
        }
        buf_add_byte(&s->text, '}');
    }
    buf_add_byte(&s->text, '\0');
    s->item = slice_of(s->text.p, s->text.n - 1);
    buf_free(&bson);
}

static rows_result next_of_file(source *s) {
    rows_result result = rows_next(&s->rows);
    s->number = s->rows.row_line;
    s->item = buf_view(&s->rows.row);
    snprintf(s->why, sizeof s->why, "%s", s->rows.why);
    if (result == ROWS_ITEM) {
        take_item(s, s->item);
    }
    return result;
}

static rows_result next_page(source *s) {
    tesela_error error = {0};
    s->page_first = s->number + 1;
    buf_clear(&s->continuation);
    buf_add_slice(&s->continuation, buf_view(&s->next));
    tesela_status status = tesela_cursor_page(s->cursor, &s->page_n, &error);
    s->page_at = 0;
    if (status != TESELA_OK) {
        snprintf(s->why, sizeof s->why, "%.250s", error.message);
        return status == TESELA_DONE ? ROWS_END : ROWS_BROKEN;
    }
    const char *next = tesela_cursor_continuation(s->cursor);
    buf_clear(&s->next);
    buf_add_slice(&s->next, next ? slice_str(next) : SLICE_EMPTY);
    return ROWS_ITEM;
}

static rows_result next_of_container(source *s) {
    while (s->page_at == s->page_n) {
        rows_result result = next_page(s);
        if (result != ROWS_ITEM) {
            return result;
        }
    }
    size_t n;
    const char *row = tesela_cursor_row(s->cursor, s->page_at++, &n);
    s->number++;
    take_item(s, slice_of(row, n));
    return ROWS_ITEM;
}

rows_result source_next(source *s) {
    return s->cursor ? next_of_container(s) : next_of_file(s);
}

void source_position(const source *s, uint64_t *offset_out, uint64_t *line_out) {
    *offset_out = s->cursor ? 0 : s->rows.row_offset;
    *line_out = s->cursor ? s->page_first : s->number;
}
