#include "api/table/xml.h"

#include "doc/path.h"

enum { DEPTH_MAX = 8, NAME_MAX_BYTES = 64 };

typedef struct reader {
    op *op;
    slice rest;
} reader;

static bool take(reader *r, const char *word) {
    bool there = slice_starts(r->rest, slice_str(word));
    r->rest = slice_skip(r->rest, there ? strlen(word) : 0);
    return there;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_blanks(reader *r) {
    while (r->rest.n && is_blank(r->rest.p[0])) {
        r->rest = slice_skip(r->rest, 1);
    }
}

/* Skips to after the word. False: it does not come. */
static bool skip_past(reader *r, const char *word) {
    while (r->rest.n && !slice_starts(r->rest, slice_str(word))) {
        r->rest = slice_skip(r->rest, 1);
    }
    return take(r, word);
}

/* Blanks, comments and the prolog. */
static bool skip_between(reader *r) {
    bool good = true;
    for (skip_blanks(r); good && (slice_starts(r->rest, SLICE_LIT("<?")) || slice_starts(r->rest, SLICE_LIT("<!--"))); skip_blanks(r)) {
        good = skip_past(r, r->rest.p[1] == '?' ? "?>" : "-->");
    }
    return good;
}

static bool take_name(reader *r, slice *name_out) {
    size_t n = 0;
    while (n < r->rest.n && n <= NAME_MAX_BYTES &&
           ((unsigned)((r->rest.p[n] | 0x20) - 'a') < 26u || (n && r->rest.p[n] >= '0' && r->rest.p[n] <= '9'))) {
        n++;
    }
    *name_out = slice_of(r->rest.p, n);
    r->rest = slice_skip(r->rest, n);
    return n > 0 && n <= NAME_MAX_BYTES;
}

/* Writes the character that "&lt;" and others stand for. */
static bool take_entity(reader *r, buf *out) {
    static const struct {
        const char *name;
        char c;
    } entities[] = {{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&apos;", '\''}};
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++) {
        if (take(r, entities[i].name)) {
            buf_add_byte(out, entities[i].c);
            return true;
        }
    }
    return false;
}

static bool take_text(reader *r, bson_t *parent, slice name) {
    buf text = buf_init(BUF_NO_LIMIT);
    bool good = true;
    while (good && r->rest.n && r->rest.p[0] != '<') {
        if (r->rest.p[0] == '&') {
            good = take_entity(r, &text);
        } else {
            buf_add_byte(&text, r->rest.p[0]);
            r->rest = slice_skip(r->rest, 1);
        }
    }
    slice trimmed = slice_trim(buf_view(&text));
    good = good && bson_utf8_validate(trimmed.n ? trimmed.p : "", trimmed.n, false) &&
           bson_append_utf8(parent, name.p, (int)name.n, trimmed.n ? trimmed.p : "", (int)trimmed.n);
    buf_free(&text);
    return good;
}

static bool take_element(reader *r, bson_t *parent, unsigned depth);

static bool take_children(reader *r, bson_t *parent, slice name, unsigned depth) {
    bson_t inner;
    bool good = true;
    bson_append_document_begin(parent, name.p, (int)name.n, &inner);
    while (good && !slice_starts(r->rest, SLICE_LIT("</"))) {
        good = take_element(r, &inner, depth + 1) && skip_between(r);
    }
    bson_append_document_end(parent, &inner);
    return good;
}

static bool take_content(reader *r, bson_t *parent, slice name, unsigned depth) {
    slice from = r->rest;
    if (!skip_between(r)) {
        return false;
    }
    if (slice_starts(r->rest, SLICE_LIT("<")) && !slice_starts(r->rest, SLICE_LIT("</"))) {
        return take_children(r, parent, name, depth);
    }
    r->rest = slice_starts(r->rest, SLICE_LIT("<")) ? r->rest : from; /* blanks at the ends of a text are trimmed with it */
    return take_text(r, parent, name);
}

/* <Name …>content</Name> or <Name/> */
static bool take_element(reader *r, bson_t *parent, unsigned depth) {
    slice name, closing;
    if (depth > DEPTH_MAX || !take(r, "<") || !take_name(r, &name)) {
        return false;
    }
    const char *end = r->rest.n ? memchr(r->rest.p, '>', r->rest.n) : NULL;
    if (!end || (r->rest.p[0] != '>' && r->rest.p[0] != '/' && !is_blank(r->rest.p[0]))) {
        return false;
    }
    bool is_empty = end > r->rest.p && end[-1] == '/';
    r->rest = slice_skip(r->rest, (size_t)(end - r->rest.p) + 1);
    if (is_empty) {
        return bson_append_utf8(parent, name.p, (int)name.n, "", 0);
    }
    return take_content(r, parent, name, depth) && take(r, "</") && take_name(r, &closing) && slice_eq(name, closing) && take(r, ">");
}

table_error xml_read(op *o, slice text, slice *bson_out) {
    reader r = {.op = o, .rest = text};
    bson_t whole = BSON_INITIALIZER;
    take(&r, "\xEF\xBB\xBF"); /* a byte order mark */
    bool good = skip_between(&r) && take_element(&r, &whole, 0) && skip_between(&r) && r.rest.n == 0;
    *bson_out = good ? arena_copy(o->arena, slice_of(bson_get_data(&whole), whole.len)) : SLICE_EMPTY;
    bson_destroy(&whole);
    return good ? TABLE_FINE : TABLE_INVALID_XML;
}

/* ---- writing ---- */

static void write_text(buf *out, slice text) {
    for (size_t i = 0; i < text.n; i++) {
        switch (text.p[i]) {
        case '<':
            buf_add_lit(out, "&lt;");
            break;
        case '>':
            buf_add_lit(out, "&gt;");
            break;
        case '&':
            buf_add_lit(out, "&amp;");
            break;
        default:
            buf_add_byte(out, text.p[i]);
        }
    }
}

static void write_members(buf *out, slice bson, unsigned depth) {
    doc_walk w;
    doc_element e;
    for (doc_walk_init(&w, bson); depth <= DEPTH_MAX && doc_walk_next(&w, &e);) {
        buf_addf(out, "<%.*s>", (int)e.key.n, e.key.p);
        if (e.type == BSON_TYPE_DOCUMENT) {
            write_members(out, e.value, depth + 1);
        } else if (e.type == BSON_TYPE_UTF8) {
            write_text(out, doc_element_text(&e));
        }
        buf_addf(out, "</%.*s>", (int)e.key.n, e.key.p);
    }
}

void xml_write(buf *out, slice bson) {
    buf_add_lit(out, "<?xml version=\"1.0\" encoding=\"utf-8\"?>");
    write_members(out, bson, 0);
}

slice xml_child(slice bson, const char *name) {
    doc_element e;
    return bson.n && doc_find_member(bson, slice_str(name), &e) && e.type == BSON_TYPE_DOCUMENT ? e.value : SLICE_EMPTY;
}

slice xml_text(slice bson, const char *name) {
    doc_element e;
    return bson.n && doc_find_member(bson, slice_str(name), &e) && e.type == BSON_TYPE_UTF8 ? doc_element_text(&e) : SLICE_EMPTY;
}
