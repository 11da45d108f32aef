#include "mql/stage_foreign.h"

#include "mql/stages.h"

/* ---- parsing ---- */

/* A view's pipeline does not see the variables of those who use it. */
static err parse_view(mql_scope *s, slice stages, mql__from *from) {
    const struct mql_name *names = s->names;
    s->names = NULL;
    err code = mql__pipeline_parse(s, stages, MQL__IN_LOOKUP, &from->view);
    s->names = names;
    from->filter = code == OK ? mql__leading_filter(from->view) : SLICE_EMPTY;
    return code;
}

err mql__from_parse(mql_scope *s, slice name, mql__from *from) {
    slice stages = SLICE_EMPTY;
    *from = (mql__from){.collection = name};
    if (s->views && name.n) {
        TRY(s->views->find(s->views, s->op, name, &from->collection, &stages));
    }
    return stages.n ? parse_view(s, stages, from) : OK;
}

/* ---- reading ---- */

void mql__foreign_begin(mql__runner *at, mql__foreign *f, const mql__from *from, slice filter) {
    mql__ask_begin(at, &f->ask, from->collection, from->view ? from->filter : filter);
    f->ask.ended = from->collection.n == 0; /* the pipeline has its own $documents */
    f->view = from->view ? mql__sub_begin(at, from->view) : NULL;
}

/* A document of a sub-pipeline, which is fed by `feed` as it gets hungry. */
static err next_of(mql__runner *at, mql__foreign *f, mql_flow *sub, err (*feed)(mql__runner *, mql__foreign *, mql__status *, slice *),
                   mql__status *status_out, slice *document_out) {
    bool hungry;
    for (;;) {
        TRY(mql__sub_next(at, sub, status_out, document_out, &hungry));
        if (*status_out != MQL__BLOCKED || !hungry) {
            return OK;
        }
        slice found;
        TRY(feed(at, f, status_out, &found));
        if (*status_out == MQL__BLOCKED) {
            return OK;
        }
        if (*status_out == MQL__END) {
            mql_flow_end(sub);
        } else {
            TRY(mql_flow_push(sub, found));
        }
    }
}

static err next_asked(mql__runner *at, mql__foreign *f, mql__status *status_out, slice *document_out) {
    return mql__ask_next(at, &f->ask, status_out, document_out);
}

err mql__foreign_next(mql__runner *at, mql__foreign *f, mql__status *status_out, slice *document_out) {
    return f->view ? next_of(at, f, f->view, next_asked, status_out, document_out) : next_asked(at, f, status_out, document_out);
}

err mql__foreign_through(mql__runner *at, mql__foreign *f, mql_flow *sub, mql__status *status_out, slice *document_out) {
    return next_of(at, f, sub, mql__foreign_next, status_out, document_out);
}

void mql__foreign_end(mql__foreign *f) {
    mql_flow_free(f->view);
    f->view = NULL;
    mql__ask_end(&f->ask);
}
