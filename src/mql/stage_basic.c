/* stage_basic.c — $match, $limit, $skip, $count and $sample. */
#include <stdlib.h>

#include "base/memory.h"
#include "mql/pipeline_int.h"
#include "mql/show.h"

/* ---- $match ---- */

static err parse_match(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    const mql_match *m;
    TRY(mql__is_document(p->scope->op, argument, 15959, "the match filter must be an expression in an object"));
    TRY(mql_match_parse(p->scope, argument.bytes, &m));
    return mql__add_stage(p, kind, argument, m);
}

static err map_match(mql_run *r, const mql__stage *s, slice document, slice *document_out) {
    bool matches = false;
    TRY(mql_matches(r, s->detail, &matches, NULL));
    *document_out = matches ? document : SLICE_EMPTY;
    return OK;
}

/* ---- $limit and $skip ---- */

typedef struct counter {
    uint64_t seen;
} counter;

/* A number of documents: integral, not negative, within int64. */
static err parse_number(op *o, const mql__stage_kind *kind, mql_value argument, int code, uint64_t *number_out) {
    int64_t number = 0;
    int n = (int)kind->name.n;
    const char *shown = mql__show(o->arena, argument), *name = kind->name.p;
    if (!mql_is_number(argument)) {
        return mql_fail(o, code, "invalid argument to %.*s stage: Expected a number in: %.*s: %s", n, name, n, name, shown);
    }
    if (!mql_as_integer(argument, &number)) {
        return mql_fail(o, code, "invalid argument to %.*s stage: Expected an integer: %.*s: %s", n, name, n, name, shown);
    }
    if (number < 0) {
        return mql_fail(o, code, "invalid argument to %.*s stage: Expected a non-negative number in: %.*s: %s", n, name, n, name, shown);
    }
    *number_out = (uint64_t)number;
    return OK;
}

static err add_number(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument, uint64_t number) {
    uint64_t *kept = arena_new(p->scope->op->arena, uint64_t);
    *kept = number;
    return mql__add_stage(p, kind, argument, kept);
}

static err parse_limit(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    uint64_t limit;
    TRY(parse_number(p->scope->op, kind, argument, 5107201, &limit));
    return limit ? add_number(p, kind, argument, limit) : mql_fail(p->scope->op, 15958, "the limit must be positive");
}

static err parse_skip(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    uint64_t skip;
    TRY(parse_number(p->scope->op, kind, argument, 5107200, &skip));
    return add_number(p, kind, argument, skip);
}

uint64_t mql__stage_number(const mql__stage *s) {
    return *(const uint64_t *)s->detail;
}

static err next_limited(mql__runner *at, mql__status *status_out, slice *document_out) {
    counter *c = at->state;
    if (c->seen == mql__stage_number(at->stage)) {
        *status_out = MQL__END;
        return OK;
    }
    TRY(mql__pull(at, status_out, document_out));
    c->seen += *status_out == MQL__DOCUMENT;
    return OK;
}

static err next_skipped(mql__runner *at, mql__status *status_out, slice *document_out) {
    counter *c = at->state;
    arena *a = mql__run_of(at)->arena;
    for (;;) {
        arena_mark mark = arena_marked(a);
        TRY(mql__pull(at, status_out, document_out));
        if (*status_out != MQL__DOCUMENT || c->seen == mql__stage_number(at->stage)) {
            return OK;
        }
        c->seen++;
        arena_release(a, mark);
    }
}

/* ---- $count ---- */

static err parse_count(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    if (!mql_is_text(argument)) {
        return mql_fail(o, 40156, "the count field must be a non-empty string");
    }
    slice name = mql_as_text(argument);
    if (name.n == 0) {
        return mql_fail(o, 40157, "the count field must be a non-empty string");
    }
    if (name.p[0] == '$') {
        return mql_fail(o, 40158, "the count field cannot be a $-prefixed path");
    }
    if (memchr(name.p, 0, name.n)) {
        return mql_fail(o, 40159, "the count field cannot contain a null byte");
    }
    if (memchr(name.p, '.', name.n)) {
        return mql_fail(o, 40160, "the count field cannot contain '.'");
    }
    return mql__add_stage(p, kind, argument, NULL);
}

typedef struct counted {
    uint64_t seen;
    bool told;
} counted;

static err next_counted(mql__runner *at, mql__status *status_out, slice *document_out) {
    counted *c = at->state;
    mql_run *r = mql__run_of(at);
    for (; !c->told; c->seen += mql__times_of(at)) {
        arena_mark mark = arena_marked(r->arena);
        TRY(mql__pull(at, status_out, document_out));
        arena_release(r->arena, mark);
        if (*status_out == MQL__BLOCKED) {
            return OK;
        }
        if (*status_out == MQL__END) {
            break;
        }
    }
    *status_out = c->told || c->seen == 0 ? MQL__END : MQL__DOCUMENT;
    c->told = true;
    if (*status_out == MQL__END) {
        return OK;
    }
    buf out = mql__document_buf(r);
    mql_builder b = mql_build(&out);
    mql_add(&b, mql_as_text(at->stage->argument),
            c->seen <= INT32_MAX ? mql_int32(r->arena, (int32_t)c->seen) : mql_int64(r->arena, (int64_t)c->seen));
    return mql__document_made(r, &b, document_out);
}

/* ---- $sample: reservoir sampling ---- */

static err parse_sample(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    doc_walk w;
    doc_element e;
    int64_t size = -1;
    TRY(mql__is_document(o, argument, 28745, "the $sample stage specification must be an object"));
    for (doc_walk_init(&w, argument.bytes); doc_walk_next(&w, &e);) {
        if (!slice_eq(e.key, SLICE_LIT("size"))) {
            return mql_fail(o, 28748, "unrecognized option to $sample: %.*s", slice_shown(e.key), e.key.p);
        }
        if (!mql_is_number(mql_of(&e))) {
            return mql_fail(o, 28746, "size argument to $sample must be a number");
        }
        double number = mql_as_double(mql_of(&e));
        if (!(number >= 0)) {
            return mql_fail(o, 28747, "size argument to $sample must not be negative");
        }
        size = number < 0x1p62 ? (int64_t)number : INT64_MAX;
    }
    return size < 0 ? mql_fail(o, 28749, "$sample stage must specify a size") : add_number(p, kind, argument, (uint64_t)size);
}

typedef struct sample {
    uint64_t seen;
    slice *chosen; /* allocated separately; counted */
    size_t n, room, given;
    bool filled;
    random_source random;
} sample;

static void drop(mql_flow *f, slice *document) {
    if (document->p) {
        budget_give(f->budget, document->n);
        free((void *)(uintptr_t)document->p);
        *document = SLICE_EMPTY;
    }
}

static err keep(mql_flow *f, slice document, slice *kept) {
    if (!budget_take(f->budget, document.n)) {
        return budget_error(f->budget);
    }
    drop(f, kept);
    char *p = mem_alloc(document.n);
    memcpy(p, document.p, document.n);
    *kept = slice_of(p, document.n);
    return OK;
}

static err sample_one(mql__runner *at, sample *s, slice document) {
    uint64_t size = mql__stage_number(at->stage), place = s->seen++;
    if (size == 0) {
        return OK;
    }
    if (place >= size) {
        place = random_below(&s->random, place + 1);
        return place < size ? keep(at->flow, document, &s->chosen[place]) : OK;
    }
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        TRY(mql__arena_room(&at->flow->memory, room * sizeof *s->chosen));
        slice *more = arena_array(&at->flow->memory, slice, room);
        if (s->n) {
            memcpy(more, s->chosen, s->n * sizeof *more);
        }
        s->chosen = more;
        s->room = room;
    }
    return keep(at->flow, document, &s->chosen[s->n++]);
}

static void shuffle(sample *s) {
    for (size_t i = s->n; i > 1; i--) {
        size_t other = random_below(&s->random, i);
        slice swap = s->chosen[i - 1];
        s->chosen[i - 1] = s->chosen[other];
        s->chosen[other] = swap;
    }
}

static err next_sampled(mql__runner *at, mql__status *status_out, slice *document_out) {
    sample *s = at->state;
    arena *a = mql__run_of(at)->arena;
    if (!s->seen && !s->filled) {
        random_source *given = mql__run_of(at)->random;
        if (given) {
            random_seed(&s->random, random_u64(given));
        } else {
            random_seed_system(&s->random);
        }
    }
    while (!s->filled) {
        arena_mark mark = arena_marked(a);
        TRY(mql__pull(at, status_out, document_out));
        if (*status_out == MQL__BLOCKED) {
            return OK;
        }
        s->filled = *status_out == MQL__END;
        if (s->filled) {
            shuffle(s);
        } else {
            TRY(sample_one(at, s, *document_out));
        }
        arena_release(a, mark);
    }
    *status_out = s->given < s->n ? MQL__DOCUMENT : MQL__END;
    if (*status_out == MQL__DOCUMENT) {
        *document_out = s->chosen[s->given++];
    }
    return OK;
}

static void end_sample(mql__runner *at) {
    sample *s = at->state;
    for (size_t i = 0; i < s->n; i++) {
        drop(at->flow, &s->chosen[i]);
    }
}

static const mql__stage_kind rows[] = {
    {SLICE_LIT("$match"), MQL__STAGE_SERVICE, parse_match, .map = map_match},
    {SLICE_LIT("$limit"), MQL__STAGE_SERVICE, parse_limit, .next = next_limited, .state_bytes = sizeof(counter)},
    {SLICE_LIT("$skip"), MQL__STAGE_SERVICE, parse_skip, .next = next_skipped, .state_bytes = sizeof(counter)},
    {SLICE_LIT("$count"), MQL__STAGE_SERVICE, parse_count, .next = next_counted, .state_bytes = sizeof(counted)},
    {SLICE_LIT("$sample"), MQL__STAGE_SERVICE, parse_sample, .next = next_sampled, .state_bytes = sizeof(sample), .end = end_sample},
};
const mql__stage_kinds mql__basic_stages = {rows, sizeof rows / sizeof *rows};
