/* stage_lookup.c — $lookup: documents of another collection, by equality of fields, by a sub-pipeline, or by both.
 *
 * Local documents are gathered into a batch, and one find brings the foreign documents of all of them: {foreignField: {$in: […]}}, and what
 * the sub-pipeline begins with. The foreign documents are kept in memory (counted), with a table from their values to them. Then each local
 * document gets those that it matches, through the sub-pipeline if there is one.
 *
 *   GATHER ── batch full, or no more ──▶ FETCH ── find ended ──▶ JOIN ── batch done ──▶ GATHER */
#include <stdlib.h>

#include "mql/hash_table.h"
#include "mql/match_int.h"
#include "mql/stage_lookup.h"

enum { BATCH_DOCUMENTS = 1000, BATCH_BYTES = 4 * 1024 * 1024, AS_BYTES_MAX = 16 * 1024 * 1024 };

typedef enum phase { GATHER, FETCH, JOIN } phase;

/* A place in a list of foreign documents with the same value. */
typedef struct chained {
    uint32_t document, next; /* next + 1; 0: the list ends */
} chained;

typedef struct lookup_run {
    phase phase;
    bool started, ended; /* ended: no more local documents */
    mql__queue local;    /* the batch */
    size_t local_n;
    mql__foreign source;
    arena memory;   /* for data of the batch */
    slice *foreign; /* the documents that were found */
    size_t foreign_n, foreign_room;
    mql__table table; /* maps values to lists of foreign documents */
    uint32_t *lists;  /* the list of each table entry: link + 1 */
    size_t lists_room;
    chained *links;
    size_t links_n, links_room;
    buf current;   /* the local document that is being joined, with a sub-pipeline */
    mql_flow *sub; /* NULL: none is running */
    buf results;
    mql_builder builder;
} lookup_run;

/* Appends to an array in the batch's arena. */
#define GROW(s, array, n, room)                                                                                                            \
    do {                                                                                                                                   \
        if ((n) == (room)) {                                                                                                               \
            size_t more = (room) ? 2 * (room) : 64;                                                                                        \
            TRY(mql__arena_room(&(s)->memory, more * sizeof *(array)));                                                                    \
            void *bigger = arena_zero(&(s)->memory, more * sizeof *(array));                                                               \
            if (n) {                                                                                                                       \
                memcpy(bigger, (array), (n) * sizeof *(array));                                                                            \
            }                                                                                                                              \
            (array) = bigger;                                                                                                              \
            (room) = more;                                                                                                                 \
        }                                                                                                                                  \
    } while (0)

/* Calls back for each value at a path: elements of arrays, not the arrays. */
typedef struct values_visit {
    mql__visit visit;
    err (*value)(void *context, mql_value v);
    void *context;
    bool arrays; /* the arrays too */
} values_visit;

static err visit_value(mql__visit *v, mql_value value, int64_t position, bool *stop_out) {
    values_visit *of = (values_visit *)v;
    (void)position;
    *stop_out = false;
    return value.type == BSON_TYPE_ARRAY && !of->arrays ? OK : of->value(of->context, value);
}

static err each_value(mql_run *r, slice document, const slice *parts, size_t n, bool arrays, err (*value)(void *context, mql_value v),
                      void *context) {
    values_visit v = {{r, parts, n, false, visit_value}, value, context, arrays};
    bool stopped;
    return mql__visit_path(&v.visit, mql_document(document), &stopped);
}

/* ---- GATHER ---- */

static err gather(mql__runner *at, lookup_run *s, mql__status *status_out) {
    arena *a = mql__run_of(at)->arena;
    while (s->local_n < BATCH_DOCUMENTS && s->local.bytes.n < BATCH_BYTES && !s->ended) {
        arena_mark mark = arena_marked(a);
        slice document;
        TRY(mql__pull(at, status_out, &document));
        if (*status_out == MQL__BLOCKED) {
            return OK;
        }
        s->ended = *status_out == MQL__END;
        if (!s->ended) {
            TRY(mql__queue_push(&s->local, document));
            s->local_n++;
        }
        arena_release(a, mark);
    }
    *status_out = s->local_n ? MQL__DOCUMENT : MQL__END;
    return OK;
}

/* ---- FETCH ---- */

typedef struct in_list {
    mql__runner *at;
    mql__table seen;
    buf key;
    mql_builder *b;
    bool patterns; /* one of the values is a regular expression: $in would match it instead of comparing */
} in_list;

static err add_to_in(void *context, mql_value v) {
    in_list *in = context;
    uint32_t entry;
    bool added;
    buf_clear(&in->key);
    TRY(mql__value_key(mql__run_of(in->at), v, &in->key));
    TRY(mql__table_put(&in->seen, buf_view(&in->key), &entry, &added));
    in->patterns = in->patterns || v.type == BSON_TYPE_REGEX;
    if (added) {
        mql_add_next(in->b, mql_is_nullish(v) ? mql_null() : v);
    }
    return OK;
}

/* {foreignField: {$in: […]}} with the values of the batch; empty if it would not select correctly. */
static err equality_filter(mql__runner *at, lookup_run *s, slice *filter_out) {
    const mql__lookup_stage *l = at->stage->detail;
    buf out = buf_init_counted(BUF_NO_LIMIT, at->flow->budget);
    mql_builder b = mql_build(&out);
    in_list in = {.at = at, .key = buf_init_counted(BUF_NO_LIMIT, at->flow->budget), .b = &b};
    mql__table_init(&in.seen, &s->memory);
    mql_open(&b, l->foreign, BSON_TYPE_DOCUMENT);
    mql_open(&b, SLICE_LIT("$in"), BSON_TYPE_ARRAY);
    err e = OK;
    for (size_t i = 0; e == OK && i < s->local.bytes.n;) {
        slice document = slice_of(s->local.bytes.p + i, (size_t)doc_load_i32(s->local.bytes.p + i));
        e = each_value(mql__run_of(at), document, l->local_parts, l->local_n, false, add_to_in, &in);
        i += document.n;
    }
    mql_close(&b);
    mql_close(&b);
    if (e == OK && !mql_keep(&s->memory, &b, filter_out)) {
        e = mql__arena_error(&s->memory);
    }
    if (in.patterns) {
        *filter_out = SLICE_EMPTY;
    }
    buf_free(&in.key);
    buf_free(&out);
    return e;
}

static err begin_fetch(mql__runner *at, lookup_run *s) {
    const mql__lookup_stage *l = at->stage->detail;
    slice filter = SLICE_EMPTY;
    s->phase = FETCH;
    mql__table_init(&s->table, &s->memory);
    if (l->local.n) {
        TRY(equality_filter(at, s, &filter));
    }
    TRY(mql__both_filters(&s->memory, filter, l->filter, &filter));
    mql__foreign_begin(at, &s->source, &l->source, filter);
    return OK;
}

typedef struct indexing {
    mql__runner *at;
    lookup_run *run;
    buf key;
} indexing;

static err index_value(void *context, mql_value v) {
    indexing *x = context;
    lookup_run *s = x->run;
    uint32_t entry, document = (uint32_t)s->foreign_n - 1;
    bool added;
    buf_clear(&x->key);
    TRY(mql__value_key(mql__run_of(x->at), v, &x->key));
    TRY(mql__table_put(&s->table, buf_view(&x->key), &entry, &added));
    GROW(s, s->lists, (size_t)entry, s->lists_room);
    uint32_t head = added ? 0 : s->lists[entry];
    if (head && s->links[head - 1].document == document) {
        return OK;
    }
    GROW(s, s->links, s->links_n, s->links_room);
    s->links[s->links_n] = (chained){document, head};
    s->lists[entry] = (uint32_t)++s->links_n;
    return OK;
}

static err take_foreign(mql__runner *at, lookup_run *s, slice document) {
    const mql__lookup_stage *l = at->stage->detail;
    TRY(mql__arena_room(&s->memory, document.n));
    if (s->foreign_n == UINT32_MAX / 2) {
        return E_MEMORY;
    }
    GROW(s, s->foreign, s->foreign_n, s->foreign_room);
    s->foreign[s->foreign_n++] = arena_copy(&s->memory, document);
    if (!l->local.n) {
        return mql__arena_error(&s->memory);
    }
    indexing x = {at, s, buf_init_counted(BUF_NO_LIMIT, at->flow->budget)};
    err e = each_value(mql__run_of(at), document, l->foreign_parts, l->foreign_n, true, index_value, &x);
    buf_free(&x.key);
    return e;
}

static err fetch(mql__runner *at, lookup_run *s, mql__status *status_out) {
    for (;;) {
        slice document;
        TRY(mql__foreign_next(at, &s->source, status_out, &document));
        if (*status_out != MQL__DOCUMENT) {
            return OK;
        }
        TRY(take_foreign(at, s, document));
    }
}

/* ---- JOIN ---- */

typedef struct matching {
    mql__runner *at;
    lookup_run *run;
    buf key;
    uint32_t *found; /* positions of foreign documents, in the run's arena */
    size_t n, room;
} matching;

static err match_value(void *context, mql_value v) {
    matching *m = context;
    uint32_t entry;
    buf_clear(&m->key);
    TRY(mql__value_key(mql__run_of(m->at), v, &m->key));
    if (!mql__table_find(&m->run->table, buf_view(&m->key), &entry)) {
        return OK;
    }
    for (uint32_t at = m->run->lists[entry]; at; at = m->run->links[at - 1].next) {
        if (m->n == m->room) {
            arena *a = mql__run_of(m->at)->arena;
            size_t room = m->room ? 2 * m->room : 16;
            TRY(mql__arena_room(a, room * sizeof *m->found));
            uint32_t *more = arena_array(a, uint32_t, room);
            if (m->n) {
                memcpy(more, m->found, m->n * sizeof *more);
            }
            m->found = more;
            m->room = room;
        }
        TRY(mql_pay(mql__run_of(m->at), 1));
        m->found[m->n++] = m->run->links[at - 1].document;
    }
    return OK;
}

static int compare_u32(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Calls back for each foreign document that the local one matches, in their order. */
static err each_match(mql__runner *at, lookup_run *s, slice local, err (*found)(mql__runner *at, lookup_run *s, slice document)) {
    const mql__lookup_stage *l = at->stage->detail;
    if (!l->local.n) {
        for (size_t i = 0; i < s->foreign_n; i++) {
            TRY(found(at, s, s->foreign[i]));
        }
        return OK;
    }
    matching m = {at, s, buf_init_counted(BUF_NO_LIMIT, at->flow->budget), NULL, 0, 0};
    err e = each_value(mql__run_of(at), local, l->local_parts, l->local_n, false, match_value, &m);
    buf_free(&m.key);
    TRY(e);
    if (m.n) {
        qsort(m.found, m.n, sizeof *m.found, compare_u32);
    }
    for (size_t i = 0; i < m.n; i++) {
        if (i == 0 || m.found[i] != m.found[i - 1]) {
            TRY(found(at, s, s->foreign[m.found[i]]));
        }
    }
    return OK;
}

static err add_result(mql__runner *at, lookup_run *s, slice document) {
    const mql__lookup_stage *l = at->stage->detail;
    mql_add_next(&s->builder, mql_document(document));
    TRY(mql_pay(mql__run_of(at), 1 + document.n / 64));
    if (buf_ok(&s->results)) {
        return OK;
    }
    TRY(mql__arena_error(&s->memory));
    return mql_fail(mql__run_of(at)->op, 4568, "Total size of documents in %.*s matching pipeline's $lookup stage exceeds %d bytes",
                    slice_shown(l->from), l->from.p, AS_BYTES_MAX);
}

static err push_to_sub(mql__runner *at, lookup_run *s, slice document) {
    (void)at;
    return mql_flow_push(s->sub, document);
}

static void begin_results(mql__runner *at, lookup_run *s) {
    buf_clear(&s->results);
    s->results.max = AS_BYTES_MAX;
    s->results.budget = at->flow->budget;
    s->builder = mql_build(&s->results);
}

static err end_results(mql__runner *at, lookup_run *s, slice local, slice *document_out) {
    const mql__lookup_stage *l = at->stage->detail;
    return mql__document_with(mql__run_of(at), local, l->as, mql_array(mql_built(&s->builder)), document_out);
}

/* The sub-pipeline's variables, for the local document. Their bytes are in `current` or in the run's arena, so they are set at each step.
 */
static err bind_variables(mql__runner *at, lookup_run *s) {
    const mql__lookup_stage *l = at->stage->detail;
    mql_run *r = mql__run_of(at);
    r->root = mql_document(buf_view(&s->current));
    for (size_t i = 0; i < l->let_n; i++) {
        TRY(mql_evaluate(r, l->let[i].value, &r->variables[l->let[i].slot]));
    }
    return OK;
}

static err begin_sub(mql__runner *at, lookup_run *s, slice local) {
    const mql__lookup_stage *l = at->stage->detail;
    buf_clear(&s->current);
    s->current.max = BUF_NO_LIMIT;
    s->current.budget = at->flow->budget;
    buf_add_slice(&s->current, local);
    if (!buf_ok(&s->current)) {
        return budget_error(at->flow->budget);
    }
    s->sub = mql__sub_begin(at, l->pipeline);
    TRY(each_match(at, s, local, push_to_sub));
    mql_flow_end(s->sub);
    return OK;
}

static err run_sub(mql__runner *at, lookup_run *s, mql__status *status_out, slice *document_out) {
    TRY(bind_variables(at, s));
    for (;;) {
        slice document;
        bool hungry;
        TRY(mql__sub_next(at, s->sub, status_out, &document, &hungry));
        if (*status_out == MQL__BLOCKED) {
            return OK;
        }
        if (*status_out == MQL__END) {
            break;
        }
        TRY(add_result(at, s, document));
    }
    mql_flow_free(s->sub);
    s->sub = NULL;
    *status_out = MQL__DOCUMENT;
    return end_results(at, s, buf_view(&s->current), document_out);
}

/* One document of the batch; MQL__END at its end. */
static err join(mql__runner *at, lookup_run *s, mql__status *status_out, slice *document_out) {
    const mql__lookup_stage *l = at->stage->detail;
    slice local;
    if (!s->sub) {
        if (!mql__queue_pop(&s->local, &local)) {
            *status_out = MQL__END;
            return OK;
        }
        begin_results(at, s);
        if (!l->pipeline) {
            *status_out = MQL__DOCUMENT;
            TRY(each_match(at, s, local, add_result));
            return end_results(at, s, local, document_out);
        }
        TRY(begin_sub(at, s, local));
    }
    return run_sub(at, s, status_out, document_out);
}

static void end_batch(mql__runner *at, lookup_run *s) {
    arena_free(&s->memory);
    s->memory = arena_init_counted(at->flow->budget);
    mql__foreign_end(&s->source);
    s->foreign_n = s->foreign_room = s->links_n = s->links_room = s->lists_room = s->local_n = 0;
    s->foreign = NULL;
    s->links = NULL;
    s->lists = NULL;
    s->phase = GATHER;
}

static void begin(mql__runner *at, lookup_run *s) {
    s->started = true;
    s->memory = arena_init_counted(at->flow->budget);
    s->local.bytes = buf_init_counted(BUF_NO_LIMIT, at->flow->budget);
}

static err next_looked_up(mql__runner *at, mql__status *status_out, slice *document_out) {
    lookup_run *s = at->state;
    if (!s->started) {
        begin(at, s);
    }
    for (;;) {
        if (s->phase == GATHER) {
            TRY(gather(at, s, status_out));
            if (*status_out != MQL__DOCUMENT) {
                return OK;
            }
            TRY(begin_fetch(at, s));
        }
        if (s->phase == FETCH) {
            TRY(fetch(at, s, status_out));
            if (*status_out == MQL__BLOCKED) {
                return OK;
            }
            s->phase = JOIN;
        }
        TRY(join(at, s, status_out, document_out));
        if (*status_out != MQL__END) {
            return OK;
        }
        end_batch(at, s);
    }
}

static void end_lookup(mql__runner *at) {
    lookup_run *s = at->state;
    mql_flow_free(s->sub);
    mql__foreign_end(&s->source);
    buf_free(&s->local.bytes);
    buf_free(&s->current);
    buf_free(&s->results);
    arena_free(&s->memory);
}

static const mql__stage_kind rows[] = {
    {SLICE_LIT("$lookup"), MQL__STAGE_SERVICE, mql__parse_lookup, .next = next_looked_up, .state_bytes = sizeof(lookup_run),
     .end = end_lookup},
};
const mql__stage_kinds mql__lookup_stages = {rows, 1};
