/* stage_facet.c — $facet: several sub-pipelines over the same documents; their results become the arrays of one document. */
#include "mql/stages.h"

typedef struct facet {
    slice name;
    const mql_pipeline *pipeline;
} facet;

typedef struct facets {
    facet *all;
    size_t n;
} facets;

enum { FACETS_MAX = 100 };

static err parse_facet(mql__stage_parser *p, const mql__stage_kind *kind, mql_value argument) {
    op *o = p->scope->op;
    facets *f = arena_new(o->arena, facets);
    doc_walk w;
    doc_element e;
    TRY(mql__is_document(o, argument, 40169, "the $facet specification must be a non-empty object, but found: "));
    size_t n = mql_length(argument);
    if (n == 0 || n > FACETS_MAX) {
        return mql_fail(o, 40169, "the $facet specification must be a non-empty object with at most %d fields", FACETS_MAX);
    }
    f->all = arena_array(o->arena, facet, n);
    for (doc_walk_init(&w, argument.bytes); doc_walk_next(&w, &e); f->n++) {
        if (e.type != BSON_TYPE_ARRAY) {
            return mql_fail(o, 40170, "arguments to $facet must be arrays, %.*s is type %s", slice_shown(e.key), e.key.p,
                            mql_type_name(e.type));
        }
        if (e.key.n == 0 || e.key.p[0] == '$' || memchr(e.key.p, '.', e.key.n)) {
            return mql_fail(o, 16410, "$facet field names may not be empty, start with '$' or contain '.': %.*s", slice_shown(e.key),
                            e.key.p);
        }
        f->all[f->n].name = e.key;
        TRY(mql__pipeline_parse(p->scope, e.value, MQL__IN_FACET, &f->all[f->n].pipeline));
    }
    return mql__add_stage(p, kind, argument, f);
}

/* ---- at work ---- */

typedef struct branch {
    mql_flow *flow;
    buf bytes; /* its results, as an array */
    mql_builder results;
    bool done;
} branch;

typedef struct facet_run {
    branch *branches;
    size_t feeding; /* the branch whose documents are being drained */
    bool draining, ended, told;
} facet_run;

static void begin(mql__runner *at, facet_run *s) {
    const facets *f = at->stage->detail;
    s->branches = arena_array(&at->flow->memory, branch, f->n);
    for (size_t i = 0; i < f->n; i++) {
        s->branches[i].flow = mql__sub_begin(at, f->all[i].pipeline);
        s->branches[i].bytes = mql__document_buf(mql__run_of(at));
        s->branches[i].bytes.budget = at->flow->budget;
        s->branches[i].results = mql_build(&s->branches[i].bytes);
    }
}

/* Takes the documents of a branch until it needs more input. *status_out: MQL__BLOCKED if it waits for a find. */
static err drain(mql__runner *at, branch *b, mql__status *status_out) {
    while (!b->done) {
        slice document;
        bool hungry;
        TRY(mql__sub_next(at, b->flow, status_out, &document, &hungry));
        if (*status_out == MQL__BLOCKED) {
            *status_out = hungry ? MQL__DOCUMENT : MQL__BLOCKED;
            return OK;
        }
        b->done = *status_out == MQL__END;
        if (!b->done) {
            mql_add_next(&b->results, mql_document(document));
        }
        if (!buf_ok(&b->bytes)) {
            TRY(mql__arena_error(mql__run_of(at)->arena));
            return mql_fail(mql__run_of(at)->op, 10334, "A result of $facet exceeds 16 MB");
        }
    }
    *status_out = MQL__DOCUMENT;
    return OK;
}

/* Gives one document, or the end, to all branches. */
static err feed(mql__runner *at, facet_run *s, mql__status *status_out) {
    const facets *f = at->stage->detail;
    for (; s->feeding < f->n; s->feeding++) {
        TRY(drain(at, &s->branches[s->feeding], status_out));
        if (*status_out == MQL__BLOCKED) {
            return OK;
        }
    }
    s->draining = false;
    return OK;
}

static err push_all(mql__runner *at, facet_run *s, slice document) {
    const facets *f = at->stage->detail;
    for (size_t i = 0; i < f->n; i++) {
        if (s->ended) {
            mql_flow_end(s->branches[i].flow);
        } else if (!s->branches[i].done) {
            TRY(mql_flow_push(s->branches[i].flow, document));
        }
    }
    s->feeding = 0;
    s->draining = true;
    return OK;
}

static err tell(mql__runner *at, facet_run *s, slice *document_out) {
    const facets *f = at->stage->detail;
    buf out = mql__document_buf(mql__run_of(at));
    mql_builder b = mql_build(&out);
    for (size_t i = 0; i < f->n; i++) {
        mql_add(&b, f->all[i].name, mql_array(mql_built(&s->branches[i].results)));
    }
    return mql__document_made(mql__run_of(at), &b, document_out);
}

static err next_facets(mql__runner *at, mql__status *status_out, slice *document_out) {
    facet_run *s = at->state;
    arena *a = mql__run_of(at)->arena;
    if (!s->branches) {
        begin(at, s);
    }
    while (!s->told) {
        if (s->draining) {
            TRY(feed(at, s, status_out));
            if (*status_out == MQL__BLOCKED) {
                return OK;
            }
        }
        if (s->ended) {
            s->told = true;
            *status_out = MQL__DOCUMENT;
            return tell(at, s, document_out);
        }
        arena_mark mark = arena_marked(a);
        TRY(mql__pull(at, status_out, document_out));
        if (*status_out == MQL__BLOCKED) {
            return OK;
        }
        s->ended = *status_out == MQL__END;
        TRY(push_all(at, s, *document_out));
        arena_release(a, mark);
    }
    *status_out = MQL__END;
    return OK;
}

static void end_facets(mql__runner *at) {
    facet_run *s = at->state;
    const facets *f = at->stage->detail;
    for (size_t i = 0; s->branches && i < f->n; i++) {
        mql_flow_free(s->branches[i].flow);
        buf_free(&s->branches[i].bytes);
    }
}

void mql__facet_pipelines(const mql__stage *s, void (*visit)(void *context, const mql_pipeline *p), void *context) {
    const facets *f = s->detail;
    for (size_t i = 0; i < f->n; i++) {
        visit(context, f->all[i].pipeline);
    }
}

static const mql__stage_kind rows[] = {
    {SLICE_LIT("$facet"), MQL__STAGE_SERVICE | MQL__STAGE_NO_FACET, parse_facet, .next = next_facets, .state_bytes = sizeof(facet_run),
     .end = end_facets},
};
const mql__stage_kinds mql__facet_stages = {rows, 1};
