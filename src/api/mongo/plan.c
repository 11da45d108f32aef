#include "api/mongo/plan.h"

#include "api/mongo/filter_kind.h"
#include "api/mongo/mongo_int.h"
#include "api/mongo/plan_index.h"

enum { DEPTH_MAX = 8 };

/* What the indexes can do of a filter: $and and $or of conditions on indexed fields. */
typedef struct planner {
    op *op;
    const mongo_planner *indexes;
    mql_builder *b;
} planner;

static bool is_useful(const planner *p, const mql_node *n, unsigned depth);

/* Whether the index can evaluate something of every branch; otherwise the disjunction needs all items. */
static bool is_useful_or(const planner *p, const mql_node *n, unsigned depth) {
    bool useful = n->first != NULL && depth < DEPTH_MAX;
    for (const mql_node *m = n->first; useful && m; m = m->next) {
        useful = is_useful(p, m, depth + 1);
    }
    return useful;
}

static bool is_useful(const planner *p, const mql_node *n, unsigned depth) {
    bool useful = mongo_planner_is_useful(p->indexes, n);
    for (const mql_node *m = n->kind == MQL_AND && depth < DEPTH_MAX ? n->first : NULL; m && !useful; m = m->next) {
        useful = is_useful(p, m, depth + 1);
    }
    return useful || (n->kind == MQL_OR && is_useful_or(p, n, depth));
}

static void add_conditions(planner *p, const mql_node *n, unsigned depth);

static void add_or(planner *p, const mql_node *n, unsigned depth) {
    mql_open_next(p->b, BSON_TYPE_DOCUMENT);
    mongo_open_array(p->b, "or");
    for (const mql_node *m = n->first; m; m = m->next) {
        mql_open_next(p->b, BSON_TYPE_DOCUMENT);
        mongo_open_array(p->b, "and");
        add_conditions(p, m, depth + 1);
        mql_close(p->b);
        mql_close(p->b);
    }
    mql_close(p->b);
    mql_close(p->b);
}

/* The conditions of an $and are taken together; within it, an $and or $or may have some too. */
static void add_conditions(planner *p, const mql_node *n, unsigned depth) {
    if (!is_useful(p, n, depth)) {
        return;
    }
    mongo_planner_add(p->indexes, p->b, n);
    for (const mql_node *m = n->kind == MQL_AND ? n->first : NULL; m; m = m->next) {
        if (m->kind == MQL_AND || m->kind == MQL_OR) {
            add_conditions(p, m, depth + 1);
        }
    }
    if (n->kind == MQL_OR) {
        add_or(p, n, depth);
    }
}

static void add_filter(planner *p, const mongo_find *f, bool implied) {
    mql_open_next(p->b, BSON_TYPE_DOCUMENT);
    mongo_add_int(p->b, "filter", QUERY_FILTER_MONGO);
    mongo_add_document(p->b, "with", mongo_filter_argument(p->op->arena, f));
    if (implied) {
        mongo_add_bool(p->b, "implied", true);
    }
    mql_close(p->b);
}

/* ---- keys ---- */

/* The value that a member of the filter requires: {path: value} or {path: {$eq: value}}. */
static bool value_of(const doc_element *e, mql_value *value_out) {
    doc_element inner;
    doc_walk w;
    *value_out = mql_of(e);
    if (e->type == BSON_TYPE_DOCUMENT && doc_walk_init(&w, e->value) && doc_walk_next(&w, &inner) && inner.key.n && inner.key.p[0] == '$') {
        *value_out = mql_of(&inner);
        return slice_eq(inner.key, SLICE_LIT("$eq")) && !doc_walk_next(&w, &inner);
    }
    return e->type != BSON_TYPE_REGEX && e->type != BSON_TYPE_UNDEFINED;
}

/* The same for a path: at the filter's top level, and in $and up to `depth`. */
static bool required_value(slice filter, slice path, unsigned depth, mql_value *value_out) {
    doc_element e, each;
    doc_walk w;
    uint64_t passed = 0;
    if (doc_find_member_counted(filter, path, &e, &passed) && value_of(&e, value_out)) {
        return true;
    }
    if (!depth || !doc_find_member_counted(filter, SLICE_LIT("$and"), &e, &passed) || e.type != BSON_TYPE_ARRAY) {
        return false;
    }
    bool found = false;
    for (doc_walk_init(&w, e.value); !found && doc_walk_next(&w, &each);) {
        found = each.type == BSON_TYPE_DOCUMENT && required_value(each.value, path, depth - 1, value_out);
    }
    return found;
}

static bool is_only_member(slice document, const doc_element *e) {
    return e->key.p == document.p + 4 + 1 && e->value.p + e->value.n + 1 == document.p + document.n;
}

static slice dotted_of(arena *a, const doc_path *path) {
    buf out = buf_init(BUF_NO_LIMIT);
    for (size_t i = 0; i < path->steps_n; i++) {
        buf_add(&out, ".", i > 0);
        buf_add_slice(&out, path->steps[i]);
    }
    slice text = arena_copy(a, buf_view(&out));
    buf_free(&out);
    return text;
}

static bool partition_of(op *o, const container *c, slice filter, unsigned depth, pkey *partition_out) {
    partition_out->n = c->key.n;
    for (size_t i = 0; i < c->key.n; i++) {
        mql_value v;
        if (!c->key.typed || !required_value(filter, dotted_of(o->arena, &c->key.paths[i]), depth, &v) || v.type == BSON_TYPE_ARRAY) {
            return false;
        }
        partition_out->values[i] = (pkey_value){.type = PKEY_TYPED, .bson = (uint8_t)v.type, .text = v.bytes};
    }
    return true;
}

bool mongo_plan_point(op *o, const container *c, slice filter, item_key *key_out, bool *alone_out) {
    mql_value id;
    pkey partition;
    doc_element member;
    uint64_t passed = 0;
    if (c->row.n != 1 || !doc_find_member_counted(filter, SLICE_LIT("_id"), &member, &passed) || !value_of(&member, &id) ||
        id.type == BSON_TYPE_ARRAY || !partition_of(o, c, filter, 0, &partition)) {
        return false;
    }
    doc_element e = {.type = id.type, .value = id.bytes};
    char room[LIMIT_ROW_BYTES];
    buf row = {.p = room, .cap = sizeof room, .max = sizeof room};
    row_add(&row, &c->row, 0, &e);
    bool good = buf_ok(&row);
    slice bytes = good ? arena_copy(o->arena, buf_view(&row)) : SLICE_EMPTY;
    *alone_out = c->key.n ? mql_length(mql_document(filter)) == 1 + (size_t)c->key.n : is_only_member(filter, &member);
    good = good && item_check_key(o, c, c->key.n ? &partition : NULL, bytes, key_out) == OK;
    o->detail_n = 0;
    return good;
}

err mongo_key_of(op *o, const container *c, slice document, item_key *key_out) {
    item_op item = {.kind = ITEM_CREATE, .body = document};
    doc_element e;
    for (size_t i = 0; i < c->key.n; i++) {
        if (!doc_find_element(document, &c->key.paths[i], &e)) {
            return op_fail_as(o, E_BAD_REQUEST, CODE_SHARD_KEY_NOT_FOUND, "The document does not contain the shard key '%.*s'.",
                              slice_shown(c->key.paths[i].text), c->key.paths[i].text.p);
        }
    }
    TRY(item_check_body(o, c, NULL, &item));
    *key_out = item.key;
    return OK;
}

/* ---- the plan ---- */

static err plan_filter(op *o, const mongo_planner *indexes, const mql_match *match, mongo_find *f) {
    buf out = buf_init(LIMIT_FIND_BYTES);
    mql_builder b = mql_build(&out);
    planner p = {.op = o, .indexes = indexes, .b = &b};
    bool decided = f->counts || f->each.n;
    mongo_open_array(&b, "and");
    decided ? mongo_planner_add_deciding(indexes, &b, mql_match_root(match)) : add_conditions(&p, mql_match_root(match), 0);
    add_filter(&p, f, decided);
    mql_close(&b);
    f->where = mongo_built_copy(o->arena, &b, &out);
    return f->where.n ? OK : op_fail_as(o, E_BAD_REQUEST, CODE_BAD_VALUE, "The filter is too large.");
}

static bool is_natural(slice sort) {
    return mongo_member(sort, "$natural").type != BSON_TYPE_EOD;
}

static err plan_order(op *o, const mongo_planner *indexes, const mql_match *match, mongo_find *f) {
    mql_sort sort;
    if (!f->sort.n || is_natural(f->sort)) {
        return OK;
    }
    TRY(mql_sort_parse(o, f->sort, &sort));
    f->order = mongo_planner_order(indexes, match ? mql_match_root(match) : NULL, &sort);
    return OK;
}

err mongo_plan(op *o, const container *c, const mql_match *match, mongo_find *f) {
    pkey partition;
    mongo_planner *indexes;
    match = f->filter.n ? match : NULL;
    f->counts = f->count_only && !match; /* the core knows how many there are */
    if (!match && !f->sort.n && mql_is_missing(f->hint) && !f->value_path.n) {
        return OK;
    }
    if (match && c->key.n && !f->collation.n && partition_of(o, c, f->filter, DEPTH_MAX, &partition)) {
        f->one_partition = item_check_key(o, c, &partition, SLICE_EMPTY, &f->partition) == OK;
        o->detail_n = 0;
    }
    TRY(mongo_planner_begin(o, c, f, &indexes));
    const mql_node *near = match ? mql_match_conjunct(match, MQL_NEAR) : NULL;
    if (!near || !mongo_planner_is_useful(indexes, near)) { /* without an index each ring would read everything */
        f->near_most = 0;
    }
    TRY(mongo_planner_decide(indexes, match ? mql_match_root(match) : NULL, f));
    TRY(match ? plan_filter(o, indexes, match, f) : OK);
    return plan_order(o, indexes, match, f);
}
