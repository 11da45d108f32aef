#include "query/like.h"

#include "text/text.h"

typedef struct range {
    uint32_t first, last;
} range;

/* A set of characters: a bitmap for ASCII, ranges for others. */
typedef struct set {
    bool negated;
    uint64_t ascii[2];
    range *ranges;
    size_t ranges_n;
} set;

typedef enum token_kind { TOKEN_TEXT, TOKEN_ANY, TOKEN_SET } token_kind;

typedef struct token {
    token_kind kind;
    slice text; /* TOKEN_TEXT: at least one character */
    const set *set;
} token;

/* A part of the pattern between two %. */
typedef struct segment {
    size_t first, n;   /* tokens */
    size_t characters; /* number of characters that it matches */
} segment;

struct query_like_pattern {
    token *tokens;
    size_t tokens_n;
    segment *segments; /* one more than there are %; some may be empty */
    size_t segments_n;
};

/* ---- compiling ---- */

typedef struct compiler {
    arena *arena;
    query_like_pattern *made;
    const char *at, *end;
    uint32_t escape; /* TEXT_INVALID: none */
    char *text;      /* space for the text of TOKEN_TEXT; never longer than the pattern */
    bool unclosed;   /* a '[' was not closed, so later ones are not either */
} compiler;

static segment *current(compiler *c) {
    return &c->made->segments[c->made->segments_n - 1];
}

static token *add_token(compiler *c, token_kind kind) {
    token *made = &c->made->tokens[c->made->tokens_n++];
    *made = (token){.kind = kind};
    current(c)->n++;
    return made;
}

/* Appends to the current run of plain characters, or begins one. */
static void add_plain(compiler *c, const char *p, size_t n) {
    segment *s = current(c);
    token *last = s->n ? &c->made->tokens[c->made->tokens_n - 1] : NULL;
    if (!last || last->kind != TOKEN_TEXT) {
        last = add_token(c, TOKEN_TEXT);
        last->text = slice_of(c->text, 0);
    }
    memcpy(c->text, p, n);
    c->text += n;
    last->text.n += n;
    s->characters++;
}

static void begin_segment(compiler *c) {
    c->made->segments[c->made->segments_n++] = (segment){.first = c->made->tokens_n};
}

/* The next character; *plain_out: it was escaped. */
static uint32_t next(compiler *c, bool *plain_out) {
    uint32_t character;
    c->at += text_decode(c->at, c->end, &character);
    *plain_out = character == c->escape && character != TEXT_INVALID && c->at < c->end;
    if (*plain_out) {
        c->at += text_decode(c->at, c->end, &character);
    }
    return character;
}

static void set_add(set *s, uint32_t first, uint32_t last) {
    for (uint32_t c = first; c <= last && c < 128; c++) {
        s->ascii[c / 64] |= (uint64_t)1 << c % 64;
    }
    if (last >= 128 && last != TEXT_INVALID && first <= last) {
        s->ranges[s->ranges_n++] = (range){first, last};
    }
}

/* After '[': the number of characters before the closing bracket; SIZE_MAX: there is none. */
static size_t set_length(compiler *c) {
    compiler ahead = *c;
    for (size_t n = 0; ahead.at < ahead.end; n++) {
        bool plain;
        if (next(&ahead, &plain) == ']' && !plain) {
            return n;
        }
    }
    c->unclosed = true;
    return SIZE_MAX;
}

/* Reads a set after '['. False, without reading: there is no closing bracket. */
static bool read_set(compiler *c) {
    size_t length = c->unclosed ? SIZE_MAX : set_length(c);
    if (length == SIZE_MAX) {
        return false;
    }
    set *s = arena_new(c->arena, set);
    s->ranges = arena_alloc(c->arena, (length + 1) * sizeof *s->ranges);
    if (*c->at == '^') {
        s->negated = true;
        c->at++;
    }
    for (bool plain;;) {
        uint32_t first = next(c, &plain), last = first;
        if (first == ']' && !plain) {
            break;
        }
        if (c->escape != '-' && c->at[0] == '-' && c->at[1] != ']') { /* a closing bracket exists, so at[1] is valid */
            c->at++;
            last = next(c, &plain);
        }
        set_add(s, first, last);
    }
    add_token(c, TOKEN_SET)->set = s;
    current(c)->characters++;
    return true;
}

static void read_one(compiler *c) {
    const char *from = c->at;
    bool plain;
    uint32_t character = next(c, &plain);
    if (plain) {
        uint32_t skipped;
        from += text_decode(from, c->end, &skipped);
    } else if (character == '%') {
        begin_segment(c);
        return;
    } else if (character == '_') {
        add_token(c, TOKEN_ANY);
        current(c)->characters++;
        return;
    } else if (character == '[' && read_set(c)) {
        return;
    }
    add_plain(c, from, (size_t)(c->at - from));
}

query_like_pattern *query_like_compile(arena *a, slice pattern, slice escape) {
    compiler c = {.arena = a, .escape = TEXT_INVALID};
    if (escape.n && (text_decode(escape.p, escape.p + escape.n, &c.escape) != escape.n || c.escape == TEXT_INVALID)) {
        return NULL;
    }
    c.made = arena_new(a, query_like_pattern);
    c.made->tokens = arena_alloc(a, (pattern.n + 1) * sizeof *c.made->tokens);
    c.made->segments = arena_alloc(a, (pattern.n + 1) * sizeof *c.made->segments);
    c.text = arena_alloc_aligned(a, pattern.n + 1, 1);
    c.at = pattern.n ? pattern.p : "";
    c.end = c.at + pattern.n;
    begin_segment(&c);
    while (c.at < c.end) {
        read_one(&c);
    }
    return c.made;
}

slice query_like_prefix(const query_like_pattern *p, bool *whole_out) {
    const segment *first = &p->segments[0];
    bool plain = first->n > 0 && p->tokens[0].kind == TOKEN_TEXT;
    *whole_out = p->segments_n == 1 && first->n == (plain ? 1 : 0);
    return plain ? p->tokens[0].text : SLICE_LIT("");
}

/* ---- matching ---- */

typedef struct matcher {
    const query_like_pattern *pattern;
    const char *end;
    uint64_t *steps;
    bool late; /* out of steps */
} matcher;

static void spend(matcher *m, uint64_t n) {
    if (m->steps) {
        *m->steps = *m->steps > n ? *m->steps - n : 0;
        m->late |= *m->steps == 0;
    }
}

static bool in_set(matcher *m, const set *s, uint32_t c) {
    bool found = false;
    if (c < 128) {
        found = s->ascii[c / 64] >> c % 64 & 1;
    } else {
        spend(m, s->ranges_n / 4);
        for (size_t i = 0; i < s->ranges_n && !found && c != TEXT_INVALID; i++) {
            found = c >= s->ranges[i].first && c <= s->ranges[i].last;
        }
    }
    return found != s->negated;
}

/* Matches a segment at p, and returns where it ends; NULL: no match. */
static const char *match_here(matcher *m, const segment *s, const char *p) {
    const token *tokens = m->pattern->tokens + s->first;
    for (size_t i = 0; i < s->n; i++) {
        const token *t = &tokens[i];
        if (t->kind == TOKEN_TEXT) {
            if ((size_t)(m->end - p) < t->text.n || memcmp(p, t->text.p, t->text.n) != 0) {
                spend(m, i / 2);
                return NULL;
            }
            p += t->text.n;
            continue;
        }
        uint32_t c;
        if (p == m->end) {
            return NULL;
        }
        p += text_decode(p, m->end, &c);
        if (t->kind == TOKEN_SET && !in_set(m, t->set, c)) {
            spend(m, i / 2);
            return NULL;
        }
    }
    spend(m, s->n / 2);
    return p;
}

/* The first place from p on where a segment could match; NULL: none. */
static const char *candidate(matcher *m, const segment *s, const char *p) {
    const token *first = &m->pattern->tokens[s->first];
    if (first->kind != TOKEN_TEXT) {
        return p < m->end ? p : NULL;
    }
    size_t found = text_find(slice_of(p, (size_t)(m->end - p)), first->text);
    const char *at = found == SIZE_MAX ? NULL : p + found;
    spend(m, (uint64_t)((at ? at : m->end) - p) / 64);
    return at;
}

/* The end of the segment's first match at p or later; NULL: none. */
static const char *find(matcher *m, const segment *s, const char *p) {
    if (s->n == 0) {
        return p;
    }
    while (!m->late && (p = candidate(m, s, p))) {
        const char *end = match_here(m, s, p);
        if (end) {
            return end;
        }
        uint32_t c;
        spend(m, 1);
        p += text_decode(p, m->end, &c);
    }
    return NULL;
}

/* Where the last n characters begin; NULL: there are fewer after p. */
static const char *last_characters(const char *p, const char *end, size_t n) {
    while (n > 0 && end > p) {
        const char *at = end - 1;
        while (at > p && end - at < 4 && ((unsigned char)*at & 0xC0) == 0x80) { /* a continuation byte */
            at--;
        }
        uint32_t c;
        end = at + text_decode(at, end, &c) == end ? at : end - 1;
        n--;
    }
    return n == 0 ? end : NULL;
}

bool query_like_match(const query_like_pattern *p, slice text, uint64_t *steps) {
    const char *at = text.n ? text.p : "";
    matcher m = {.pattern = p, .end = at + text.n, .steps = steps};
    const segment *last = &p->segments[p->segments_n - 1];
    spend(&m, 1);
    at = match_here(&m, &p->segments[0], at);
    if (p->segments_n == 1) {
        return at == m.end;
    }
    for (size_t i = 1; at && i + 1 < p->segments_n; i++) {
        at = find(&m, &p->segments[i], at);
    }
    const char *tail = at ? last_characters(at, m.end, last->characters) : NULL;
    spend(&m, last->characters / 8);
    return tail && match_here(&m, last, tail) == m.end && !m.late;
}

bool query_like(slice text, slice pattern, slice escape) {
    uint64_t steps = 10000000;
    arena a = arena_init();
    const query_like_pattern *p = query_like_compile(&a, pattern, escape);
    bool matches = p && query_like_match(p, text, &steps);
    arena_free(&a);
    return matches;
}
