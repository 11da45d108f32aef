#include "api/sql/continuation.h"

#include "doc/json.h"
#include "doc/path.h"

/* ---- reading ---- */

typedef struct reading {
    const sql_scope *scope;
    item_cursor *cursor;
} reading;

static bool read_token(slice token, const rid *container, uint64_t *after_out) {
    rid r;
    *after_out = 0;
    if (token.n == 0) {
        return true;
    }
    if (!slice_starts(token, SLICE_LIT("+RID:~")) && !slice_starts(token, SLICE_LIT("-RID:~"))) {
        return false;
    }
    slice rest = slice_skip(token, 6);
    const char *hash = memchr(rest.p, '#', rest.n);
    if (rid_parse(slice_of(rest.p, hash ? (size_t)(hash - rest.p) : rest.n), &r) != RID_DOCUMENT) {
        return false;
    }
    rid of = rid_container_of(&r);
    *after_out = rid_number(&r);
    return rid_equal(&of, container);
}

static bool read_bound(slice document, const char *name, epk *epk_out) {
    bson_iter_t it;
    doc_path path = {.steps = (slice[]){SLICE_LIT("range"), slice_str(name)}, .steps_n = 2};
    return doc_find(document, &path, &it) && BSON_ITER_HOLDS_UTF8(&it) && epk_parse(doc_text(&it), epk_out);
}

/* {"token":…,"range":{"min":…,"max":…}}; "then" is read elsewhere */
static bool read_stretch(const reading *r, slice document, item_stretch *stretch) {
    bson_iter_t token;
    return doc_find_key(document, SLICE_LIT("token"), &token) && BSON_ITER_HOLDS_UTF8(&token) &&
           read_token(doc_text(&token), &r->scope->container, &stretch->after) && read_bound(document, "min", &stretch->min) &&
           read_bound(document, "max", &stretch->max) && epk_cmp(&stretch->min, &stretch->max) < 0;
}

/* Adds the part of the stretch that lies within the scope. False: it is out of order, or there are too many. */
static bool add_stretch(const reading *r, item_stretch stretch) {
    item_cursor *c = r->cursor;
    stretch.min = epk_cmp(&stretch.min, &r->scope->min) < 0 ? r->scope->min : stretch.min;
    stretch.max = epk_cmp(&r->scope->end, &stretch.max) < 0 ? r->scope->end : stretch.max;
    if (epk_cmp(&stretch.min, &stretch.max) >= 0) {
        return true;
    }
    if (c->n == ITEM_STRETCHES_MAX || (c->n && epk_cmp(&stretch.min, &c->stretches[c->n - 1].max) < 0)) {
        return false;
    }
    c->stretches[c->n++] = stretch;
    return true;
}

static bool read_list(const reading *r, bson_iter_t *then) {
    bson_iter_t it;
    item_stretch stretch;
    bool good = BSON_ITER_HOLDS_ARRAY(then) && bson_iter_recurse(then, &it);
    while (good && bson_iter_next(&it)) {
        uint32_t n = 0;
        const uint8_t *p = NULL;
        if (BSON_ITER_HOLDS_DOCUMENT(&it)) {
            bson_iter_document(&it, &n, &p);
        }
        good = n && read_stretch(r, slice_of(p, n), &stretch) && add_stretch(r, stretch);
    }
    return good;
}

static bool read_object(const reading *r, slice document) {
    item_stretch stretch;
    bson_iter_t then;
    if (!read_stretch(r, document, &stretch) || !add_stretch(r, stretch)) {
        return false;
    }
    return doc_find_key(document, SLICE_LIT("then"), &then) ? read_list(r, &then)
                                                            : add_stretch(r, (item_stretch){.min = stretch.max, .max = r->scope->end});
}

static err read_wrapped(const reading *r, slice text) {
    buf bson = buf_init(4 * CONTINUATION_BYTES_MAX);
    json_root root;
    bool good = json_to_bson(text, NULL, &bson, &root, NULL) == OK && root == JSON_OBJECT && read_object(r, buf_view(&bson));
    buf_free(&bson);
    return good ? OK : E_BAD_CONTINUATION;
}

err sql_continuation_read(slice text, const sql_scope *scope, item_cursor *cursor) {
    item_stretch all = {.min = scope->min, .max = scope->end};
    cursor->n = 0;
    if (text.n > CONTINUATION_BYTES_MAX) {
        return E_BAD_CONTINUATION;
    }
    if (text.n && text.p[0] == '{' && !cursor->partition) {
        return read_wrapped(&(reading){scope, cursor}, text);
    }
    if (!read_token(text, &scope->container, &all.after) || (text.n && !scope->plain)) {
        return E_BAD_CONTINUATION;
    }
    cursor->stretches[0] = all;
    cursor->n = epk_cmp(&all.min, &all.max) < 0 || cursor->partition;
    return OK;
}

/* ---- writing ---- */

typedef struct writing {
    const sql_scope *scope;
    const item_cursor *cursor;
    size_t count;
} writing;

static void write_token(const writing *w, buf *out, uint64_t after) {
    if (after) {
        rid r = rid_child(w->scope->container, RID_DOCUMENT, after);
        buf_add_lit(out, "+RID:~");
        rid_write(out, &r);
        buf_addf(out, "#RT:1#TRC:%zu#ISV:2#IEO:65567#QCF:8", w->count);
    }
}

/* Without the closing brace. */
static void write_stretch(const writing *w, buf *out, const item_stretch *stretch) {
    buf_add_lit(out, "{\"token\":\"");
    write_token(w, out, stretch->after);
    buf_add_lit(out, "\",\"range\":{\"min\":\"");
    epk_write(out, &stretch->min);
    buf_add_lit(out, "\",\"max\":\"");
    epk_write(out, &stretch->max);
    buf_add_lit(out, "\"}");
}

/* True if the cursor is one stretch followed by nothing or by the whole rest of the scope, which the shorter forms can express. */
static bool is_simple(const writing *w) {
    const item_cursor *c = w->cursor;
    const epk *end = &w->scope->end;
    const item_stretch *first = c->stretches, *second = first + 1;
    bool rest = c->n == 2 && second->after == 0 && epk_cmp(&first->max, &second->min) == 0 && epk_cmp(&second->max, end) == 0;
    return rest || (c->n == 1 && epk_cmp(&first->max, end) == 0);
}

void sql_continuation_write(buf *out, const sql_scope *scope, const item_cursor *c, size_t count) {
    writing w = {scope, c, count};
    bool simple = is_simple(&w);
    if (c->partition || (scope->plain && simple && c->n == 1 && epk_cmp(&c->stretches[0].min, &scope->min) == 0)) {
        write_token(&w, out, c->stretches[0].after);
    } else {
        write_stretch(&w, out, &c->stretches[0]);
        buf_add_slice(out, simple ? SLICE_EMPTY : SLICE_LIT(",\"then\":["));
        for (size_t i = 1; i < c->n && !simple; i++) {
            buf_add_slice(out, i > 1 ? SLICE_LIT(",") : SLICE_EMPTY);
            write_stretch(&w, out, &c->stretches[i]);
            buf_add_byte(out, '}');
        }
        buf_add_slice(out, simple ? SLICE_LIT("}") : SLICE_LIT("]}"));
    }
}
