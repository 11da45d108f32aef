#include "client/sessions.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/memory.h"

enum { TOKEN_BYTES_MAX = 4096, TOKENS_MAX = 65536, REGIONS_MAX = 64 };

typedef struct token {
    char *range, *text;
} token;

typedef struct owner {
    struct owner *next;
    char *name, *rid;
    token *tokens;
    size_t n, cap;
    buf joined; /* of all tokens, as requests have it */
    bool stale; /* `joined` is of before */
} owner;

struct sessions {
    pthread_mutex_t lock;
    owner *owners;
};

sessions *client__sessions_new(void) {
    sessions *s = mem_zero(sizeof *s);
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

static void clear(owner *o) {
    for (size_t i = 0; i < o->n; i++) {
        free(o->tokens[i].range);
        free(o->tokens[i].text);
    }
    o->n = 0;
    o->stale = true;
}

void client__sessions_free(sessions *s) {
    if (!s) {
        return;
    }
    for (owner *o = s->owners, *next; o; o = next) {
        next = o->next;
        clear(o);
        buf_free(&o->joined);
        free(o->tokens);
        free(o->name);
        free(o->rid);
        free(o);
    }
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static owner *find(sessions *s, slice name) {
    owner *o = s->owners;
    while (o && !slice_eq(slice_str(o->name), name)) {
        o = o->next;
    }
    return o;
}

/* ---- one token: version#global#region=local… ---- */

typedef struct vector {
    int64_t version, global;
    size_t n;
    struct {
        slice region;
        int64_t local;
    } regions[REGIONS_MAX];
} vector;

static slice cut(slice *rest, char at) {
    const char *p = rest->n ? memchr(rest->p, at, rest->n) : NULL;
    slice part = p ? slice_of(rest->p, (size_t)(p - rest->p)) : *rest;
    *rest = slice_skip(*rest, part.n + (p != NULL));
    return part;
}

static bool parse(slice text, vector *v) {
    slice rest = text;
    v->n = 0;
    if (!slice_to_i64(cut(&rest, '#'), &v->version) || !rest.n || !slice_to_i64(cut(&rest, '#'), &v->global)) {
        return false;
    }
    while (rest.n) {
        slice pair = cut(&rest, '#'), region = cut(&pair, '=');
        if (v->n == REGIONS_MAX || !slice_to_i64(pair, &v->regions[v->n].local)) {
            return false;
        }
        v->regions[v->n++].region = region;
    }
    return true;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

bool client__session_merge_tokens(slice a, slice b, buf *out) {
    vector x, y;
    if (!parse(a, &x) || !parse(b, &y)) {
        buf_add_slice(out, b);
        return false;
    }
    const vector *base = x.version > y.version ? &x : &y, *other = base == &x ? &y : &x;
    buf_addf(out, "%lld#%lld", (long long)base->version, (long long)larger(x.global, y.global));
    for (size_t i = 0; i < base->n; i++) {
        int64_t local = base->regions[i].local;
        for (size_t j = 0; j < other->n; j++) {
            if (slice_eq(other->regions[j].region, base->regions[i].region)) {
                local = larger(local, other->regions[j].local);
            }
        }
        buf_addf(out, "#%.*s=%lld", (int)base->regions[i].region.n, base->regions[i].region.p, (long long)local);
    }
    return true;
}

/* ---- owners ---- */

static token *token_of(owner *o, slice range) {
    for (size_t i = 0; i < o->n; i++) {
        if (slice_eq(slice_str(o->tokens[i].range), range)) {
            return &o->tokens[i];
        }
    }
    if (o->n == TOKENS_MAX) {
        return NULL;
    }
    if (o->n == o->cap) {
        o->cap = o->cap ? o->cap * 2 : 4;
        o->tokens = mem_resize(o->tokens, o->cap * sizeof *o->tokens);
    }
    o->tokens[o->n] = (token){.range = mem_text(range.p, range.n)};
    return &o->tokens[o->n++];
}

static void merge_one(owner *o, slice one) {
    slice text = one, range = cut(&text, ':');
    token *t = text.n && text.n <= TOKEN_BYTES_MAX ? token_of(o, range) : NULL;
    if (!t || (t->text && slice_eq(slice_str(t->text), text))) {
        return;
    }
    buf merged = buf_init(TOKEN_BYTES_MAX * 2);
    if (t->text) {
        client__session_merge_tokens(slice_str(t->text), text, &merged);
    } else {
        buf_add_slice(&merged, text);
    }
    free(t->text);
    t->text = mem_text(merged.p, merged.n);
    o->stale = true;
    buf_free(&merged);
}

void client__sessions_merge(sessions *s, slice name, slice rid, slice tokens) {
    pthread_mutex_lock(&s->lock);
    owner *o = find(s, name);
    if (!o) {
        o = mem_zero(sizeof *o);
        o->name = mem_text(name.p, name.n);
        o->rid = mem_text(rid.p, rid.n);
        o->joined = buf_init(BUF_NO_LIMIT);
        o->next = s->owners;
        s->owners = o;
    } else if (rid.n && !slice_eq(slice_str(o->rid), rid)) {
        if (*o->rid) {
            clear(o);
        }
        free(o->rid);
        o->rid = mem_text(rid.p, rid.n);
    }
    while (tokens.n) {
        merge_one(o, cut(&tokens, ','));
    }
    pthread_mutex_unlock(&s->lock);
}

static void join(owner *o) {
    buf_clear(&o->joined);
    for (size_t i = 0; i < o->n; i++) {
        if (o->tokens[i].text) {
            buf_add(&o->joined, ",", o->joined.n > 0);
            buf_add_slice(&o->joined, slice_str(o->tokens[i].range));
            buf_add_byte(&o->joined, ':');
            buf_add_slice(&o->joined, slice_str(o->tokens[i].text));
        }
    }
    o->stale = false;
}

void client__sessions_write(sessions *s, slice name, buf *out) {
    pthread_mutex_lock(&s->lock);
    owner *o = find(s, name);
    if (o && o->stale) {
        join(o);
    }
    if (o) {
        buf_add_slice(out, buf_view(&o->joined));
    }
    pthread_mutex_unlock(&s->lock);
}

void client__sessions_forget(sessions *s, slice name) {
    pthread_mutex_lock(&s->lock);
    owner *o = find(s, name);
    if (o) {
        clear(o);
    }
    pthread_mutex_unlock(&s->lock);
}
