/* stage_group.c — $group: a hash table from keys to groups, each with one tally per accumulator. */
#include "mql/accumulator.h"
#include "mql/hash_table.h"
#include "mql/stages.h"

/* ---- parsing ---- */

static err parse_field(mql_scope *s, const doc_element *e, mql__output *field) {
    op *o = s->op;
    int n = slice_shown(e->key);
    if (memchr(e->key.p, '.', e->key.n)) {
        return mql_fail(o, 40235, "The field name '%.*s' cannot contain '.'", n, e->key.p);
    }
    if (slice_starts(e->key, SLICE_LIT("$"))) {
        return mql_fail(o, 40236, "The field name '%.*s' cannot be an operator name", n, e->key.p);
    }
    if (e->type != BSON_TYPE_DOCUMENT) {
        return mql_fail(o, 40234, "The field '%.*s' must be an accumulator object", n, e->key.p);
    }
    if (mql_length(mql_of(e)) != 1) {
        return mql_fail(o, 40238, "The field '%.*s' must specify one accumulator", n, e->key.p);
    }
    field->name = e->key;
    return mql_accumulator_parse(s, mql_of(e), &field->accumulator);
}

err mql__parse_outputs(mql_scope *s, slice fields, mql__outputs *outputs) {
    doc_walk w;
    doc_element e;
    size_t n = mql_length(mql_document(fields));
    TRY(mql__arena_room(s->op->arena, n * sizeof *outputs->all));
    outputs->all = arena_array(s->op->arena, mql__output, n + 1);
    for (doc_walk_init(&w, fields); doc_walk_next(&w, &e);) {
        if (!slice_eq(e.key, SLICE_LIT("_id"))) {
            TRY(parse_field(s, &e, &outputs->all[outputs->n++]));
        }
    }
    return OK;
}

typedef struct group {
    const mql_expression *key;
    mql__outputs outputs;
} group;

static err parse_group(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    group *g = arena_new(o->arena, group);
    TRY(mql__is_document(o, argument, 15947, "a group's fields must be specified in an object"));
    mql_value key = mql_member(argument, SLICE_LIT("_id"));
    TRY(mql__parse_outputs(p->scope, argument.bytes, &g->outputs));
    if (mql_is_missing(key)) {
        return mql_fail(o, 15955, "a group specification must include an _id");
    }
    TRY(mql_expression_parse(p->scope, key, &g->key));
    return mql__add_stage(p, kind, argument, g);
}

static void note_path(void *context, slice path) {
    (void)path;
    *(bool *)context = true;
}

static bool reads_outputs(const group *g) {
    bool reads = false;
    for (size_t i = 0; i < g->outputs.n; i++) {
        mql_accumulator_paths(g->outputs.all[i].accumulator, note_path, &reads);
    }
    return reads;
}

bool mql__group_counts_only(const mql__stage *s) {
    const group *g = s->detail;
    mql_value constant;
    return mql_expression_constant(g->key, &constant) && !reads_outputs(g);
}

/* {_id: "$path", …} whose accumulators read nothing of the documents. */
slice mql__group_path(const mql__stage *s) {
    mql_value key = mql_member(s->argument, SLICE_LIT("_id"));
    slice text = mql_is_text(key) ? mql_as_text(key) : SLICE_EMPTY;
    bool plain = text.n > 1 && text.p[0] == '$' && text.p[1] != '$';
    return plain && !reads_outputs(s->detail) ? slice_skip(text, 1) : SLICE_EMPTY;
}

/* ---- tallies of one group ---- */

mql_tally **mql__tallies_begin(arena *memory, const mql__outputs *outputs) {
    mql_tally **tallies = arena_array(memory, mql_tally *, outputs->n + 1);
    for (size_t i = 0; i < outputs->n; i++) {
        tallies[i] = mql_tally_begin(memory, outputs->all[i].accumulator);
    }
    return tallies;
}

void mql__tallies_free(mql_tally **tallies, const mql__outputs *outputs) {
    for (size_t i = 0; i < outputs->n; i++) {
        mql_tally_free(tallies[i]);
    }
}

err mql__tallies_add(mql_run *r, mql_tally **tallies, const mql__outputs *outputs, uint64_t times) {
    for (size_t i = 0; i < outputs->n; i++) {
        TRY(mql_tally_add_times(r, tallies[i], times));
    }
    return OK;
}

err mql__tallies_document(mql_run *r, mql_value id, mql_tally **tallies, const mql__outputs *outputs, slice *document_out) {
    buf out = mql__document_buf(r);
    mql_builder b = mql_build(&out);
    mql_add(&b, SLICE_LIT("_id"), mql_is_missing(id) ? mql_null() : id);
    for (size_t i = 0; i < outputs->n; i++) {
        mql_value v;
        err e = mql_tally_value(r, tallies[i], &v);
        if (e != OK) {
            buf_free(&out);
            return e;
        }
        mql_add(&b, outputs->all[i].name, v);
    }
    return mql__document_made(r, &b, document_out);
}

/* ---- at work ---- */

typedef struct one {
    mql_value key;
    mql_tally **tallies;
} one;

typedef struct group_run {
    bool started, ended;
    arena memory;
    mql__table table;
    one *groups;
    size_t n, room, given;
    buf key;
} group_run;

static void begin(mql__runner *at, group_run *s) {
    s->started = true;
    s->memory = arena_init_counted(at->flow->budget);
    s->key = buf_init_counted(BUF_NO_LIMIT, at->flow->budget);
    mql__table_init(&s->table, &s->memory);
}

static err add_group(mql__runner *at, group_run *s, mql_value key) {
    const group *g = at->stage->detail;
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        TRY(mql__arena_room(&s->memory, room * sizeof *s->groups));
        one *more = arena_array(&s->memory, one, room);
        if (s->n) {
            memcpy(more, s->groups, s->n * sizeof *more);
        }
        s->groups = more;
        s->room = room;
    }
    TRY(mql__arena_room(&s->memory, key.bytes.n));
    s->groups[s->n] = (one){{key.type, arena_copy(&s->memory, key.bytes)}, NULL};
    s->groups[s->n].tallies = mql__tallies_begin(&s->memory, &g->outputs);
    s->n++;
    return mql__arena_error(&s->memory);
}

static err take(mql__runner *at, group_run *s, slice document) {
    const group *g = at->stage->detail;
    mql_run *r = mql__run_of(at);
    mql_value key;
    uint32_t entry;
    bool added;
    r->root = mql_document(document);
    TRY(mql_evaluate(r, g->key, &key));
    buf_clear(&s->key);
    TRY(mql__value_key(r, key, &s->key));
    TRY(mql__table_put(&s->table, buf_view(&s->key), &entry, &added));
    if (added) {
        TRY(add_group(at, s, key));
    }
    return mql__tallies_add(r, s->groups[entry].tallies, &g->outputs, mql__times_of(at));
}

static err next_group(mql__runner *at, mql__status *status_out, slice *document_out) {
    group_run *s = at->state;
    const group *g = at->stage->detail;
    mql_run *r = mql__run_of(at);
    if (!s->started) {
        begin(at, s);
    }
    while (!s->ended) {
        arena_mark mark = arena_marked(r->arena);
        TRY(mql__pull(at, status_out, document_out));
        if (*status_out == MQL__BLOCKED) {
            return OK;
        }
        s->ended = *status_out == MQL__END;
        if (!s->ended) {
            TRY(take(at, s, *document_out));
        }
        arena_release(r->arena, mark);
    }
    *status_out = s->given < s->n ? MQL__DOCUMENT : MQL__END;
    if (*status_out == MQL__END) {
        return OK;
    }
    const one *next = &s->groups[s->given++];
    return mql__tallies_document(r, next->key, next->tallies, &g->outputs, document_out);
}

static void end_group(mql__runner *at) {
    group_run *s = at->state;
    const group *g = at->stage->detail;
    for (size_t i = 0; i < s->n; i++) {
        mql__tallies_free(s->groups[i].tallies, &g->outputs);
    }
    buf_free(&s->key);
    arena_free(&s->memory);
}

static const mql__stage_kind rows[] = {
    {SLICE_LIT("$group"), MQL__STAGE_SERVICE, parse_group, .next = next_group, .state_bytes = sizeof(group_run), .end = end_group},
};
const mql__stage_kinds mql__group_stages = {rows, 1};
