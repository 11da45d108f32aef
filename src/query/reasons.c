#include "query/reasons.h"

#include "doc/json.h"

static const struct {
    const char *id, *text;
} reasons[] = {[REASON_NONE] = {"", ""},
#define X(name, id, text) [REASON_##name] = {id, text},
               QUERY_REASONS(X)
#undef X
};

void query_reason_words(buf *out, const query_reason *r) {
    slice text = slice_str(reasons[r->id].text);
    if (r->side.n) {
        buf_addf(out, "a side of the %.*s is not answered: ", (int)r->side.n, r->side.p);
    }
    while (text.n) {
        if (slice_starts(text, SLICE_LIT("{name}"))) {
            buf_add_slice(out, r->name);
            text = slice_skip(text, 6);
        } else if (slice_starts(text, SLICE_LIT("{n}"))) {
            buf_add_u64(out, r->n);
            text = slice_skip(text, 3);
        } else {
            buf_add_byte(out, text.p[0]);
            text = slice_skip(text, 1);
        }
    }
}

void query_reason_json(buf *out, const query_reason *r) {
    buf_addf(out, "{\"id\":\"%s\"", reasons[r->id].id);
    if (r->name.n) {
        buf_add_lit(out, ",\"name\":");
        json_add_string(out, r->name);
    }
    if (r->n) {
        buf_add_lit(out, ",\"n\":");
        buf_add_u64(out, r->n);
    }
    if (r->side.n) {
        buf_addf(out, ",\"side\":\"%.*s\"", (int)r->side.n, r->side.p);
    }
    buf_add_byte(out, '}');
}
