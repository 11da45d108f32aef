/* ProjectionStrategy, of the service: system properties of items as properties of elements.
 *
 *     g.withStrategies(ProjectionStrategy.build().IncludeSystemProperties('_ts', '_etag').create()).V('1')
 *
 * With `_etag` among them an element is written only if it is still as the traversal has read it. */
#include "api/gremlin/graph.h"
#include "item/transaction.h"
#include "query/value.h"

enum { SHOWN_TS, SHOWN_ETAG, SHOWN_RID, SHOWN_SELF, SHOWN_ATTACHMENTS, SHOWN_SYSTEM, SHOWN_IN = SHOWN_SYSTEM, SHOWN_OUT, SHOWN_NAMES };

static const char *const names[SHOWN_NAMES] = {
    [SHOWN_TS] = "_ts",
    [SHOWN_ETAG] = "_etag",
    [SHOWN_RID] = "_rid",
    [SHOWN_SELF] = "_self",
    [SHOWN_ATTACHMENTS] = "_attachments",
    [SHOWN_IN] = "inVPartition", /* of edges only: these two */
    [SHOWN_OUT] = "outVPartition",
};

/* ---- the strategy ---- */

static err take_name(op *o, gremlin_value name, unsigned *shown) {
    for (unsigned i = 0; i < SHOWN_NAMES; i++) {
        if (gremlin_is_text(name, names[i])) {
            *shown |= 1u << i;
            return OK;
        }
    }
    return op_fail(o, E_BAD_QUERY,
                   "IncludeSystemProperties() takes '_ts', '_etag', '_rid', '_self', '_attachments', 'inVPartition' and 'outVPartition'.");
}

static err take_setting(op *o, const gremlin_pair *setting, unsigned *shown) {
    gremlin_value v = setting->value;
    if (!gremlin_is_text(setting->key, "IncludeSystemProperties")) {
        return op_fail(o, E_BAD_QUERY, "ProjectionStrategy has one method, IncludeSystemProperties(…).");
    }
    for (size_t i = 0; gremlin_is_list(v) && i < v.list->n; i++) {
        TRY(take_name(o, v.list->at[i], shown));
    }
    return gremlin_is_list(v) ? OK : take_name(o, v, shown);
}

static err shown_of(op *o, const gremlin_source *source, unsigned *shown_out) {
    const gremlin_strategy *strategy = gremlin_strategy_find(source, SLICE_LIT("ProjectionStrategy"));
    *shown_out = 0;
    for (size_t i = 0; strategy && i < strategy->n; i++) {
        TRY(take_setting(o, &strategy->settings[i], shown_out));
    }
    return OK;
}

err gremlin_projection_check(gremlin_eval *q) {
    unsigned shown;
    for (size_t i = 0; i < q->script.n; i++) {
        TRY(shown_of(&q->op, q->script.traversals[i]->source, &shown));
    }
    return OK;
}

void gremlin_projection_begin(gremlin_graph *g) {
    gremlin_eval *q = g->q;
    (void)shown_of(&q->op, q->script.traversals[q->statement]->source, &g->shown); /* it was checked */
}

bool gremlin_projection_shows(const gremlin_graph *g, slice key) {
    for (unsigned i = 0; g->shown && i < SHOWN_NAMES; i++) {
        if ((g->shown >> i & 1) && slice_eq(key, slice_str(names[i]))) {
            return true;
        }
    }
    return false;
}

/* ---- elements ---- */

static bool has(const gremlin_element *e, slice key) {
    for (size_t i = 0; i < e->n; i++) {
        if (slice_eq(e->properties[i].key, key)) {
            return true;
        }
    }
    return false;
}

static void add(gremlin_graph *g, gremlin_element *e, const char *name, gremlin_value v) {
    slice key = slice_str(name);
    if (!has(e, key)) {
        document_add_flat(gremlin_graph_elements(g), e, key, v);
    }
}

/* A new item of an atomic script has its number, which is a part of these, only when the script ends. */
static bool needs_number(unsigned which) {
    return which == SHOWN_RID || which == SHOWN_SELF;
}

static void add_system(gremlin_graph *g, gremlin_element *e, const item_head *head) {
    query_item item = {.number = head->number, .version = item_version(head), .ts = head->ts};
    memcpy(item.container_rid, g->q->container->rid, sizeof item.container_rid);
    query_value whole = value_of_item(&item);
    for (unsigned i = 0; i < SHOWN_SYSTEM; i++) {
        if ((g->shown >> i & 1) && (head->number < ITEM_PROVISIONAL || !needs_number(i))) {
            query_value v = value_member(&g->memory, &whole, slice_str(names[i]));
            add(g, e, names[i], v.type == TYPE_STRING ? gremlin_string(v.bytes) : gremlin_long(v.integer));
        }
    }
}

static void add_place(gremlin_graph *g, gremlin_element *e, unsigned which, slice place) {
    gremlin_value v;
    if ((g->shown >> which & 1) && document_place_value(&g->memory, g->q->container, place, &v)) {
        add(g, e, names[which], v);
    }
}

void gremlin_projection_add(gremlin_graph *g, gremlin_element *e, const item_head *head) {
    if (!g->shown || !e) {
        return;
    }
    add_system(g, e, head);
    if (e->is_edge) {
        add_place(g, e, SHOWN_IN, e->in->place);
        add_place(g, e, SHOWN_OUT, e->out->place);
    }
}

slice gremlin_projection_etag(const gremlin_graph *g, const gremlin_element *e) {
    bool guards = g->shown >> SHOWN_ETAG & 1;
    for (size_t i = 0; guards && i < e->n; i++) {
        if (slice_eq(e->properties[i].key, slice_str(names[SHOWN_ETAG])) && e->properties[i].value.type == GREMLIN_STRING) {
            return gremlin_text(e->properties[i].value);
        }
    }
    return SLICE_EMPTY;
}
