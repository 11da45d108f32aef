/* Writing: new elements, properties, drops. A batch is one commit of which each element counts by itself, in order. */
#include "api/gremlin/graph.h"

enum { EDGES_OF_PAGE = 500 };

/* ---- commits ---- */

bool gremlin_write_is_gone(const item_op *one, err code) {
    return code == E_NOT_FOUND && one->kind != ITEM_CREATE && !one->if_match.n;
}

static err result_of(gremlin_graph *g) {
    op *o = &g->q->op;
    for (size_t i = 0; i < g->ops_n; i++) {
        const item_op *one = &g->ops[i];
        if (one->code == OK || gremlin_write_is_gone(one, one->code)) {
            continue;
        }
        memcpy(o->detail, one->op.detail, one->op.detail_n);
        o->detail_n = one->op.detail_n;
        o->retry_after_ms = one->op.retry_after_ms;
        return one->code;
    }
    return OK;
}

static void committed(call *c) {
    gremlin_eval *q = (gremlin_eval *)c;
    gremlin_graph *g = q->graph;
    err code = c->code != OK ? c->code : result_of(g);
    for (size_t i = 0; code == OK && g->written && i < g->ops_n; i++) {
        g->written(g, i);
    }
    call_commit_give(&q->call.commit);
    if (code != OK) {
        gremlin_graph_fail(g, code);
        return;
    }
    q->op.admitted = true;
    g->after(g);
}

static void submit(gremlin_graph *g, bool stops, void (*written)(gremlin_graph *, size_t), void (*after)(gremlin_graph *)) {
    gremlin_eval *q = g->q;
    if (g->ops_n == 0) {
        after(g);
        return;
    }
    g->written = written;
    g->after = after;
    if (q->atomic) {
        gremlin_atomic_write(g);
        return;
    }
    call_commit_init(&q->call.commit, &q->front->core, &q->frame->client, &q->op, q->container, committed);
    q->call.commit.ops = g->ops;
    q->call.commit.n = g->ops_n;
    q->call.commit.stops_at_failure = stops;
    call_commit_submit(&q->call.commit);
}

static void done(gremlin_graph *g) {
    gremlin_graph_done(g, SLICE_EMPTY);
}

static void begin_ops(gremlin_graph *g, size_t n) {
    g->ops = arena_array(&g->memory, item_op, n);
    g->targets = arena_array(&g->memory, size_t, n);
    g->ops_n = 0;
}

static item_op *add_op(gremlin_graph *g, item_kind kind, size_t target) {
    item_op *one = &g->ops[g->ops_n];
    op_init(&one->op, &g->memory, g->q->op.now_s);
    one->kind = kind;
    g->targets[g->ops_n++] = target;
    return one;
}

/* The element as it is now. */
static void take_result(gremlin_graph *g, size_t i) {
    gremlin_element *e = NULL;
    slice body = g->ops[i].kind == ITEM_CREATE ? g->ops[i].body : g->ops[i].result;
    if (g->ops[i].code == OK && body.n) {
        e = document_read(gremlin_graph_elements(g), g->q->container, body);
        gremlin_projection_add(g, e, &g->ops[i].after);
    }
    if (e) {
        gremlin_graph_found(g, g->targets[i], e);
    }
}

/* ---- new elements ---- */

static const gremlin_write *write_of(const gremlin_target *t, slice key) {
    for (size_t i = t->n; i > 0; i--) {
        if (slice_eq(t->writes[i - 1].key, key)) {
            return &t->writes[i - 1];
        }
    }
    return NULL;
}

/* By T.id, or by a property `id`, as on the service; else a new UUID. */
static err id_of(gremlin_graph *g, const gremlin_target *t, slice *id_out) {
    const gremlin_write *w = write_of(t, SLICE_LIT("id"));
    gremlin_value id = t->id.type == GREMLIN_NULL && w ? w->value : t->id;
    if (id.type == GREMLIN_NULL) {
        char *guid = arena_alloc(&g->memory, 37);
        edit_guid(&g->q->random, guid);
        *id_out = slice_of(guid, 36);
        return OK;
    }
    return document_id(&g->memory, id, id_out) ? OK : op_fail(&g->q->op, E_BAD_REQUEST, "An id must be a string or a number.");
}

static void add_key_member(gremlin_graph *g, buf *out, slice name, slice place) {
    gremlin_value v;
    if (document_place_value(&g->memory, g->q->container, place, &v)) {
        v.type == GREMLIN_NULL ? member_null(out, name) : (void)member_value(out, name, v);
    }
}

static void add_end(gremlin_graph *g, buf *out, const gremlin_element *v, const char *id_name, const char *label_name) {
    slice id = SLICE_EMPTY;
    (void)document_id(&g->memory, v->id, &id);
    member_text(out, slice_str(id_name), id);
    member_text(out, slice_str(label_name), v->label);
}

static err add_own_members(gremlin_graph *g, const gremlin_target *t, buf *out) {
    op *o = &g->q->op;
    const container *c = g->q->container;
    slice id;
    TRY(id_of(g, t, &id));
    if (!t->label.n || memchr(t->label.p, '\0', t->label.n)) {
        return op_fail(o, E_BAD_REQUEST, "A label must not be empty, and has no zero bytes.");
    }
    member_text(out, SLICE_LIT("id"), id);
    member_text(out, SLICE_LIT("label"), t->label);
    if (!g->ask->edges) {
        bool keyed = !c->key.n || write_of(t, document_key_name(c));
        return keyed ? OK
                     : op_fail(o, E_BAD_REQUEST, "Cannot add a vertex where the partition key property has value 'null': set '%.*s'.",
                               slice_shown(document_key_name(c)), document_key_name(c).p);
    }
    member_bool(out, SLICE_LIT("_isEdge"), true);
    add_key_member(g, out, document_key_name(c), t->out->place);
    add_end(g, out, t->out, "_vertexId", "_vertexLabel");
    add_end(g, out, t->in, "_sink", "_sinkLabel");
    add_key_member(g, out, SLICE_LIT("_sinkPartition"), t->in->place);
    return OK;
}

/* An edge may repeat the partition key of its source, and nothing else there. */
static err check_edge_key(gremlin_graph *g, const gremlin_target *t, slice body) {
    const container *c = g->q->container;
    document_parts parts;
    if (!g->ask->edges || !c->key.n) {
        return OK;
    }
    document_take_apart(c, body, &parts);
    if (slice_eq(document_place(&g->memory, c, &parts), t->out->place)) {
        return OK;
    }
    return op_fail(&g->q->op, E_BAD_REQUEST, "An edge lies in the partition of the vertex that it leaves: '%.*s' must have that value.",
                   slice_shown(document_key_name(c)), document_key_name(c).p);
}

static err take_body(gremlin_graph *g, const buf *own, slice *body_out) {
    if (!buf_ok(own)) {
        return E_TOO_LARGE;
    }
    bool fits = arena_fits(&g->memory, own->n);
    *body_out = fits ? arena_copy(&g->memory, buf_view(own)) : SLICE_EMPTY;
    return fits ? OK : E_MEMORY;
}

static err change_body(gremlin_graph *g, const gremlin_target *t, item_edit_budget *budget, const buf *own, buf *argument,
                       slice *body_out) {
    gremlin_eval *q = g->q;
    size_t at = edit_begin(argument);
    TRY(edit_add_writes(&q->op, q->container, t, g->ask->edges, &q->random, argument));
    edit_end(argument, at);
    if (!buf_ok(own) || !buf_ok(argument)) {
        return E_TOO_LARGE;
    }
    return edit_apply(&q->op, buf_view(own), buf_view(argument), budget, body_out);
}

static err make_body(gremlin_graph *g, const gremlin_target *t, item_edit_budget *budget, buf *own, buf *argument, slice *body_out) {
    gremlin_eval *q = g->q;
    size_t at = member_begin(own);
    bool plain = edit_is_plain(t);
    TRY(add_own_members(g, t, own));
    if (g->ask->edges && q->container->key.n && write_of(t, document_key_name(q->container))) {
        member_bool(own, SLICE_LIT("_isPkEdgeProperty"), true);
    }
    TRY(plain ? edit_add_plain(&q->op, q->container, t, g->ask->edges, &q->random, own) : OK);
    member_close(own, at);
    TRY(plain ? take_body(g, own, body_out) : change_body(g, t, budget, own, argument, body_out));
    return check_edge_key(g, t, *body_out);
}

static err add_target(gremlin_graph *g, size_t i, item_edit_budget *budget) {
    gremlin_eval *q = g->q;
    const gremlin_target *t = &g->ask->targets[i];
    buf own = buf_init(LIMIT_EDITED_BYTES), argument = buf_init(LIMIT_EDITED_BYTES);
    item_op *one = add_op(g, ITEM_CREATE, i);
    err code = make_body(g, t, budget, &own, &argument, &one->body);
    buf_free(&own);
    buf_free(&argument);
    TRY(code);
    TRY(item_check_body(&q->op, q->container, NULL, one));
    document_parts parts;
    document_take_apart(q->container, one->body, &parts);
    slice place = document_place(&g->memory, q->container, &parts);
    return gremlin_graph_allows(g, ACCESS_INSERT, &place);
}

/* The bodies are made on the loop: all of them together take the steps of one write at most. */
void gremlin_write_add(gremlin_graph *g) {
    item_edit_budget budget = {.steps = LIMIT_EDIT_STEPS_MAX};
    err code = OK;
    begin_ops(g, g->ask->target_n);
    for (size_t i = 0; code == OK && i < g->ask->target_n; i++) {
        code = add_target(g, i, &budget);
    }
    if (code != OK) {
        gremlin_graph_fail(g, code);
        return;
    }
    submit(g, true, take_result, done);
}

/* ---- properties ---- */

static err element_key(gremlin_graph *g, const gremlin_element *e, unsigned verbs, item_key *key_out) {
    slice id;
    if (!document_id(&g->memory, e->id, &id)) {
        return E_NOT_FOUND;
    }
    TRY(gremlin_graph_allows(g, verbs, &e->place));
    return document_key(&g->q->op, g->q->container, e->place, id, key_out);
}

static bool same_element(const gremlin_element *a, const gremlin_element *b) {
    return gremlin_equal(a->id, b->id) && slice_eq(a->place, b->place);
}

/* The etag of the element when it was read; not of one that an earlier operation of the batch changes. */
static slice etag_of(const gremlin_graph *g, const gremlin_element *e) {
    slice etag = gremlin_projection_etag(g, e);
    for (size_t i = 0; etag.n && i + 1 < g->ops_n; i++) {
        if (same_element(g->ask->targets[g->targets[i]].element, e)) {
            return SLICE_EMPTY;
        }
    }
    return etag;
}

static err add_edit(gremlin_graph *g, size_t i, bool drops) {
    gremlin_eval *q = g->q;
    const gremlin_target *t = &g->ask->targets[i];
    buf argument = buf_init(LIMIT_EDITED_BYTES);
    item_op *one = add_op(g, ITEM_EDIT, i);
    err code = element_key(g, t->element, ACCESS_UPDATE, &one->key);
    one->if_match = etag_of(g, t->element);
    size_t at = edit_begin(&argument);
    if (code == OK && drops) {
        edit_add_drop(q->container, t, &argument);
    } else if (code == OK) {
        code = edit_add_writes(&q->op, q->container, t, t->element->is_edge, &q->random, &argument);
    }
    edit_end(&argument, at);
    code = code == OK && !buf_ok(&argument) ? E_TOO_LARGE : code;
    if (code == OK) {
        one->edit = (item_edit){.kind = ITEM_EDIT_GREMLIN, .argument = arena_copy(&g->memory, buf_view(&argument))};
    }
    buf_free(&argument);
    g->ops_n -= code == E_NOT_FOUND;
    return code == E_NOT_FOUND ? OK : code;
}

void gremlin_write_set(gremlin_graph *g) {
    err code = OK;
    begin_ops(g, g->ask->target_n);
    for (size_t i = 0; code == OK && i < g->ask->target_n; i++) {
        code = add_edit(g, i, false);
    }
    if (code != OK) {
        gremlin_graph_fail(g, code);
        return;
    }
    submit(g, false, take_result, done);
}

/* ---- drops ---- */

static err add_delete(gremlin_graph *g, size_t i) {
    item_op *one = add_op(g, ITEM_DELETE, i);
    err code = element_key(g, g->ask->targets[i].element, ACCESS_DELETE, &one->key);
    one->if_match = etag_of(g, g->ask->targets[i].element);
    g->ops_n -= code == E_NOT_FOUND;
    return code == E_NOT_FOUND ? OK : code;
}

static void drop_targets(gremlin_graph *g) {
    err code = OK;
    begin_ops(g, g->ask->target_n);
    for (size_t i = 0; code == OK && i < g->ask->target_n; i++) {
        code = g->ask->targets[i].property ? add_edit(g, i, true) : add_delete(g, i);
    }
    if (code != OK) {
        gremlin_graph_fail(g, code);
        return;
    }
    submit(g, false, NULL, done);
}

static void take_doomed(gremlin_graph *g, slice body) {
    gremlin_eval *q = g->q;
    item_key key;
    size_t n;
    document_parts parts;
    const container *c = q->container;
    document_take_apart(c, body, &parts);
    if (!gremlin_read_owner(g, &parts, &n)) {
        return;
    }
    slice place = document_place(&g->memory, c, &parts), id = arena_copy(&g->memory, parts.id);
    if (document_key(&q->op, c, place, id, &key) == OK) {
        buf_add(&g->dropping, &key, sizeof key);
    }
}

static void next_edges(gremlin_graph *g);

static void edges_dropped(gremlin_graph *g) {
    buf_clear(&g->dropping);
    if (g->position.n == 0) {
        if (g->entering) {
            drop_targets(g);
            return;
        }
        g->entering = true;
    }
    next_edges(g);
}

static void doomed_read(gremlin_graph *g) {
    const item_key *keys = (const item_key *)(const void *)g->dropping.p;
    size_t n = g->dropping.n / sizeof *keys;
    buf_clear(&g->position);
    buf_add_slice(&g->position, g->next);
    if (!buf_ok(&g->dropping) || !buf_ok(&g->position)) {
        gremlin_graph_fail(g, E_MEMORY);
        return;
    }
    begin_ops(g, n);
    for (size_t i = 0; i < n; i++) {
        add_op(g, ITEM_DELETE, 0)->key = keys[i];
    }
    submit(g, false, NULL, edges_dropped);
}

/* A page of edges is found and deleted, and its memory freed, before the next one. */
static void next_edges(gremlin_graph *g) {
    arena_release(&g->memory, g->mark);
    g->take = take_doomed;
    g->read = doomed_read;
    gremlin_read_edges(g, g->entering, buf_view(&g->position), EDGES_OF_PAGE);
}

void gremlin_write_drop(gremlin_graph *g) {
    gremlin_element **vertices = arena_array(&g->memory, gremlin_element *, g->ask->target_n + 1);
    size_t n = 0;
    for (size_t i = 0; i < g->ask->target_n; i++) {
        const gremlin_target *t = &g->ask->targets[i];
        if (!t->property && !t->element->is_edge) {
            vertices[n++] = t->element;
        }
    }
    if (n == 0) {
        drop_targets(g);
        return;
    }
    err code = gremlin_graph_allows(g, ACCESS_READ | ACCESS_DELETE, NULL);
    if (code != OK) {
        gremlin_graph_fail(g, code);
        return;
    }
    gremlin_graph_want(g, vertices, n);
    buf_clear(&g->position);
    g->mark = arena_marked(&g->memory);
    next_edges(g);
}
