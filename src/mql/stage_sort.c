/* stage_sort.c — $sort and $sortByCount. If a $limit follows, $sort keeps only as many documents as are wanted.
 *
 * With a limit k, documents are gathered until there are 2k + 1000 of them; then they are sorted and the first k are copied to a fresh
 * arena. So memory stays proportional to k, and time is n log k. */
#include <stdlib.h>

#include "mql/pipeline_int.h"
#include "mql/stages.h"

/* ---- parsing ---- */

static err parse_sort(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    mql__sort_stage *s = arena_new(o->arena, mql__sort_stage);
    TRY(mql__is_document(o, argument, 15973, "the $sort key specification must be an object"));
    if (mql_length(argument) == 0) {
        return mql_fail(o, 15976, "$sort stage must have at least one sort key");
    }
    s->limit = UINT64_MAX;
    TRY(mql_sort_parse(o, argument.bytes, &s->sort));
    return mql__add_stage(p, kind, argument, s);
}

/* {$sortByCount: e} is {$group: {_id: e, count: {$sum: 1}}}, {$sort: {count: -1}}. */
static err parse_sort_by_count(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    (void)kind;
    bool path = mql_is_text(argument) && slice_starts(mql_as_text(argument), SLICE_LIT("$"));
    if (!path && argument.type != BSON_TYPE_DOCUMENT) {
        return argument.type == BSON_TYPE_UTF8
                   ? mql_fail(o, 40148, "the sortByCount field must be defined as a $-prefixed path or an expression inside an object")
                   : mql_fail(o, 40149, "the sortByCount field must be specified as a string or as an object");
    }
    doc_walk w;
    doc_element e;
    if (!path && (!doc_walk_init(&w, argument.bytes) || !doc_walk_next(&w, &e) || !slice_starts(e.key, SLICE_LIT("$")))) {
        return mql_fail(o, 40147, "the sortByCount field must be defined as a $-prefixed path or an expression inside an object");
    }
    buf out = buf_init_counted(BUF_NO_LIMIT, o->arena->budget);
    mql_builder b = mql_build(&out);
    mql_add(&b, SLICE_LIT("_id"), argument);
    mql_open(&b, SLICE_LIT("count"), BSON_TYPE_DOCUMENT);
    mql_add(&b, SLICE_LIT("$sum"), mql_int32(o->arena, 1));
    mql_close(&b);
    slice group, sort;
    bool kept = mql_keep(o->arena, &b, &group);
    buf_clear(&out);
    b = mql_build(&out);
    mql_add(&b, SLICE_LIT("count"), mql_int32(o->arena, -1));
    kept = mql_keep(o->arena, &b, &sort) && kept;
    buf_free(&out);
    if (!kept) {
        return mql__arena_error(o->arena);
    }
    TRY(mql__parse_stage(p, SLICE_LIT("$group"), mql_document(group)));
    return mql__parse_stage(p, SLICE_LIT("$sort"), mql_document(sort));
}

/* ---- at work ---- */

typedef struct entry {
    slice document, key;
    uint64_t ordinal;
} entry;

typedef struct sorter {
    bool started, sorted;
    arena memory; /* for entries, documents and keys */
    entry *entries;
    size_t n, room, given;
    uint64_t ordinal;
    slice bar; /* the key of the last document that is wanted so far; empty: not known */
} sorter;

typedef struct order {
    const mql_sort *sort;
    const mql_collation *collation;
} order;

static int compare_entries(const void *a, const void *b, void *context) {
    const entry *x = a, *y = b;
    const order *o = context;
    int by = mql_sort_compare(o->sort, o->collation, x->key, y->key);
    return by ? by : (x->ordinal > y->ordinal) - (x->ordinal < y->ordinal);
}

static err sort_entries(mql__runner *at, sorter *s) {
    const mql__sort_stage *of = at->stage->detail;
    mql_run *r = mql__run_of(at);
    order o = {&of->sort, r->collation};
    uint64_t logarithm = 1;
    for (size_t n = s->n; n > 1; n /= 2) {
        logarithm++;
    }
    TRY(mql_pay(r, s->n * logarithm * 4));
    if (!budget_take(at->flow->budget, s->n * sizeof *s->entries)) { /* what qsort_r takes */
        return budget_error(at->flow->budget);
    }
    if (s->n) {
        qsort_r(s->entries, s->n, sizeof *s->entries, compare_entries, &o);
    }
    budget_give(at->flow->budget, s->n * sizeof *s->entries);
    return OK;
}

static err make_room(sorter *s, size_t room) {
    TRY(mql__arena_room(&s->memory, room * sizeof *s->entries));
    entry *more = arena_array(&s->memory, entry, room);
    if (s->n) {
        memcpy(more, s->entries, s->n * sizeof *more);
    }
    s->entries = more;
    s->room = room;
    return OK;
}

static err keep(sorter *s, slice document, slice key, uint64_t ordinal) {
    TRY(mql__arena_room(&s->memory, document.n + key.n));
    s->entries[s->n++] = (entry){arena_copy(&s->memory, document), arena_copy(&s->memory, key), ordinal};
    return mql__arena_error(&s->memory);
}

/* Sorts, and keeps the first `limit` in a fresh arena. */
static err prune(mql__runner *at, sorter *s, uint64_t limit) {
    TRY(sort_entries(at, s));
    arena old = s->memory;
    entry *entries = s->entries;
    size_t n = s->n < limit ? s->n : limit, room = s->room;
    s->memory = arena_init_counted(at->flow->budget);
    s->n = 0;
    err e = make_room(s, room);
    for (size_t i = 0; e == OK && i < n; i++) {
        e = keep(s, entries[i].document, entries[i].key, entries[i].ordinal);
    }
    arena_free(&old);
    s->bar = e == OK && s->n == limit ? s->entries[s->n - 1].key : SLICE_EMPTY;
    return e;
}

static err take(mql__runner *at, sorter *s, slice document) {
    const mql__sort_stage *of = at->stage->detail;
    slice key;
    TRY(mql_pay(mql__run_of(at), 16));
    TRY(mql_sort_key(mql__run_of(at), &of->sort, document, &key));
    if (s->bar.n && mql_sort_compare(&of->sort, mql__run_of(at)->collation, key, s->bar) >= 0) {
        return OK;
    }
    bool bounded = of->limit < UINT32_MAX;
    if (bounded && s->n >= 2 * of->limit + 1000) {
        TRY(prune(at, s, of->limit));
    }
    if (s->n == s->room) {
        TRY(make_room(s, s->room ? 2 * s->room : 64));
    }
    return keep(s, document, key, s->ordinal++);
}

static err next_sorted(mql__runner *at, mql__status *status_out, slice *document_out) {
    sorter *s = at->state;
    arena *a = mql__run_of(at)->arena;
    if (!s->started) {
        s->memory = arena_init_counted(at->flow->budget);
        s->started = true;
    }
    while (!s->sorted) {
        arena_mark mark = arena_marked(a);
        TRY(mql__pull(at, status_out, document_out));
        if (*status_out == MQL__BLOCKED) {
            return OK;
        }
        s->sorted = *status_out == MQL__END;
        TRY(s->sorted ? sort_entries(at, s) : take(at, s, *document_out));
        arena_release(a, mark);
    }
    const mql__sort_stage *of = at->stage->detail;
    *status_out = s->given < s->n && s->given < of->limit ? MQL__DOCUMENT : MQL__END;
    if (*status_out == MQL__DOCUMENT) {
        *document_out = s->entries[s->given++].document;
    }
    return OK;
}

static void end_sort(mql__runner *at) {
    sorter *s = at->state;
    arena_free(&s->memory);
}

static const mql__stage_kind rows[] = {
    {SLICE_LIT("$sort"), MQL__STAGE_SERVICE, parse_sort, .next = next_sorted, .state_bytes = sizeof(sorter), .end = end_sort},
    {SLICE_LIT("$sortByCount"), MQL__STAGE_SERVICE, parse_sort_by_count, .next = NULL},
};
const mql__stage_kinds mql__sort_stages = {rows, sizeof rows / sizeof *rows};
