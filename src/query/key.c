#include "query/key.h"

err query_key_of_item(const query_key *k, op *o, arena *a, slice body, slice *key_out) {
    TRY(mql_index_key(k->pattern, o, a, body, k->last, key_out));
    if (k->prefix.n && key_out->n) {
        char *joined = arena_array(a, char, k->prefix.n + key_out->n);
        memcpy(joined, k->prefix.p, k->prefix.n);
        memcpy(joined + k->prefix.n, key_out->p, key_out->n);
        *key_out = slice_of(joined, k->prefix.n + key_out->n);
    }
    return OK;
}

query_value query__eval_key(query_runner *r, const query_expr *e) {
    const query_item *item = r->item ? r->item->item : NULL;
    slice key = SLICE_EMPTY;
    err code = item ? query_key_of_item(e->key, r->op, r->context.arena, item->body, &key) : OK;
    return code != OK ? query_fail_value(r, code) : key.n ? value_string(key) : value_undefined();
}

typedef struct seeking {
    const query_key *key;
    size_t n; /* keys seen */
    bool found, found_alone;
} seeking;

static bool is_within(const query_key_span *spans, size_t n, slice key) {
    bool found = false;
    for (size_t i = 0; i < n && !found; i++) {
        const query_key_span *s = &spans[i];
        found = s->point ? slice_eq(key, s->from) : slice_cmp(key, s->from) >= 0 && (!s->to.n || slice_cmp(key, s->to) < 0);
    }
    return found;
}

static err look_at(void *context, slice key) {
    seeking *s = context;
    s->n++;
    s->found = s->found || is_within(s->key->spans, s->key->spans_n, key);
    s->found_alone = s->found_alone || is_within(s->key->alone, s->key->alone_n, key);
    return OK;
}

query_value query__eval_within(query_runner *r, const query_expr *e) {
    const query_item *item = r->item ? r->item->item : NULL;
    seeking s = {.key = e->key};
    err code = item ? mql_index_keys(e->key->pattern, r->op, r->context.arena, item->body, look_at, &s) : OK;
    return code != OK ? query_fail_value(r, code) : value_bool(e->key->alone_n && s.n == 1 ? s.found_alone : s.found);
}
