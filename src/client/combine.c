#include "client/combine.h"

#include <stdlib.h>

/* uthash's default has unannotated switch fall-through, which clang rejects. */
#define HASH_FUNCTION(key, length, hash) ((hash) = (unsigned)hash_bytes(slice_of(key, length), 0))
#include <uthash.h>

#include "base/hash.h"
#include "base/memory.h"
#include "client/json.h"
#include "client/value.h"
#include "doc/json.h"

/* The most that one row or value may take as BSON, and members of a group. */
enum { ROW_BYTES_MAX = 32 << 20, SLOTS_MAX = 1024 };

/* ---- sets of values ---- */

typedef struct member {
    UT_hash_handle hh;
    char key[];
} member;

struct distinct {
    member *members;
    size_t held, memory;
    buf bson, key;
};

distinct *client__distinct_new(size_t memory) {
    distinct *d = mem_zero(sizeof *d);
    d->memory = memory;
    d->bson = buf_init(ROW_BYTES_MAX);
    d->key = buf_init(ROW_BYTES_MAX * 2u);
    return d;
}

void client__distinct_free(distinct *d) {
    if (d) {
        member *m, *next;
        HASH_ITER(hh, d->members, m, next) {
            HASH_DEL(d->members, m);
            free(m);
        }
        buf_free(&d->bson);
        buf_free(&d->key);
        free(d);
    }
}

static tesela_status too_much(tesela_error *error) {
    return client__fail(error, TESELA_LIMIT,
                        "The query's groups, distinct values or sorted rows take more memory than the cursor may use; make its condition "
                        "narrower, or allow more.");
}

tesela_status client__distinct_add(distinct *d, slice row, bool *new_out, tesela_error *error) {
    doc_element e;
    member *m;
    *new_out = false;
    if (!client__value_read(row, &d->bson, &e)) {
        return client__fail(error, TESELA_BAD_RESPONSE, "A row of the query is not JSON.");
    }
    buf_clear(&d->key);
    client__value_canonical(&d->key, &e);
    HASH_FIND(hh, d->members, d->key.p, d->key.n, m);
    if (m) {
        return TESELA_OK;
    }
    d->held += sizeof *m + d->key.n;
    if (d->held > d->memory || !buf_ok(&d->key)) {
        return too_much(error);
    }
    m = mem_alloc(sizeof *m + d->key.n);
    memcpy(m->key, d->key.p, d->key.n);
    HASH_ADD_KEYPTR(hh, d->members, m->key, d->key.n, m);
    *new_out = true;
    return TESELA_OK;
}

/* ---- one aggregate of one group ---- */

typedef struct slot {
    plan_aggregate aggregate;
    bool undefined; /* a range had values that the aggregate is not defined for */
    bool any;
    double sum, count;
    buf text; /* least, greatest or first value, or the elements of a list, as JSON */
    buf bson; /* the value, to compare with */
    distinct *set;
} slot;

typedef struct group {
    UT_hash_handle hh;
    size_t n;
    slot *slots;
    char **names; /* of the members of the result; NULL for SELECT VALUE */
    size_t key_n;
    char key[];
} group;

struct combiner {
    const query_plan *plan;
    size_t memory, held;
    group *groups;
    group **order;
    size_t n;
    buf bson, key;
};

static void add_sum(slot *s, slice item) {
    double number = json_number(item, 0);
    if (!item.n || !(*item.p == '-' || (*item.p >= '0' && *item.p <= '9'))) {
        s->undefined = true;
    } else {
        s->sum += number;
    }
    s->any = true;
}

static void add_average(slot *s, slice item) {
    slice sum = json_member(item, "sum");
    double count = json_number(json_member(item, "count"), 0);
    if (!sum.n && count > 0) {
        s->undefined = true;
    }
    s->sum += json_number(sum, 0);
    s->count += count;
    s->any = true;
}

static bool better(slot *s, slice item) {
    doc_element now, before;
    buf bson = buf_init(ROW_BYTES_MAX);
    if (!client__value_read(item, &bson, &now)) {
        buf_free(&bson);
        return false;
    }
    doc_walk w;
    bool wins = !s->bson.n;
    if (!wins && doc_walk_init(&w, buf_view(&s->bson)) && doc_walk_next(&w, &before)) {
        int c = client__value_compare(&now, &before);
        wins = s->aggregate == PLAN_MIN ? c < 0 : c > 0;
    }
    if (wins) {
        buf_free(&s->bson);
        s->bson = bson;
    } else {
        buf_free(&bson);
    }
    return wins;
}

/* `row` has item, and item2 with the number of values that the range had. */
static void add_extreme(slot *s, slice row) {
    slice item = json_member(row, "item"), item2 = json_member(row, "item2");
    if (item2.n && *item2.p == '{') {
        if (json_number(json_member(item2, "count"), 0) == 0) {
            return;
        }
        item = json_member(item2, s->aggregate == PLAN_MIN ? "min" : "max");
    }
    s->any = true;
    if (!item.n) {
        s->undefined = true;
    } else if (better(s, item)) {
        buf_clear(&s->text);
        buf_add_slice(&s->text, item);
    }
}

static tesela_status add_list(combiner *c, slot *s, slice item, tesela_error *error) {
    json_walk w;
    slice element;
    s->any = true;
    if (!json_enter(item, &w)) {
        return TESELA_OK;
    }
    while (json_next(&w, NULL, &element)) {
        bool new = true;
        if (s->aggregate == PLAN_SET) {
            s->set = s->set ? s->set : client__distinct_new(c->memory);
            tesela_status status = client__distinct_add(s->set, element, &new, error);
            if (status != TESELA_OK) {
                return status;
            }
        }
        if (new) {
            if (s->text.n) {
                buf_add_byte(&s->text, ',');
            }
            buf_add_slice(&s->text, element);
            c->held += element.n + 1;
        }
    }
    return TESELA_OK;
}

static tesela_status add_value(combiner *c, slot *s, slice row, tesela_error *error) {
    slice item = s->aggregate == PLAN_FIRST ? row : json_member(row, "item");
    switch (s->aggregate) {
    case PLAN_FIRST:
        if (!s->any) {
            buf_add_slice(&s->text, row);
            c->held += row.n;
            s->any = true;
        }
        return TESELA_OK;
    case PLAN_COUNT:
        s->sum += json_number(item, 0);
        s->any = true;
        return TESELA_OK;
    case PLAN_SUM:
        add_sum(s, item);
        return TESELA_OK;
    case PLAN_AVERAGE:
        add_average(s, item);
        return TESELA_OK;
    case PLAN_MIN:
    case PLAN_MAX:
        add_extreme(s, row);
        return TESELA_OK;
    case PLAN_LIST:
    case PLAN_SET:
        return add_list(c, s, item, error);
    }
    return TESELA_OK;
}

static bool write_slot(const slot *s, buf *out) {
    switch (s->aggregate) {
    case PLAN_COUNT:
    case PLAN_SUM:
        if (s->undefined) {
            return false;
        }
        json_add_double(out, s->sum);
        return true;
    case PLAN_AVERAGE:
        if (s->undefined || s->count == 0) {
            return false;
        }
        json_add_double(out, s->sum / s->count);
        return true;
    case PLAN_LIST:
    case PLAN_SET:
        buf_add_byte(out, '[');
        buf_add_slice(out, buf_view(&s->text));
        buf_add_byte(out, ']');
        return true;
    default:
        buf_add_slice(out, buf_view(&s->text));
        return s->text.n && !s->undefined;
    }
}

/* ---- groups ---- */

combiner *client__combiner_new(const query_plan *plan, size_t memory) {
    combiner *c = mem_zero(sizeof *c);
    c->plan = plan;
    c->memory = memory;
    c->bson = buf_init(ROW_BYTES_MAX);
    c->key = buf_init(ROW_BYTES_MAX * 2u);
    return c;
}

static void free_group(group *g) {
    for (size_t i = 0; i < g->n; i++) {
        buf_free(&g->slots[i].text);
        buf_free(&g->slots[i].bson);
        client__distinct_free(g->slots[i].set);
        if (g->names) {
            free(g->names[i]);
        }
    }
    free(g->slots);
    free(g->names);
    free(g);
}

void client__combiner_free(combiner *c) {
    if (c) {
        HASH_CLEAR(hh, c->groups);
        for (size_t i = 0; i < c->n; i++) {
            free_group(c->order[i]);
        }
        free(c->order);
        buf_free(&c->bson);
        buf_free(&c->key);
        free(c);
    }
}

static slot new_slot(plan_aggregate aggregate, size_t memory) {
    return (slot){.aggregate = aggregate, .text = buf_init(memory), .bson = buf_init(ROW_BYTES_MAX)};
}

static slot *add_slot(combiner *c, group *g, slice name, plan_aggregate aggregate) {
    g->slots = mem_resize(g->slots, (g->n + 1) * sizeof *g->slots);
    g->slots[g->n] = new_slot(aggregate, c->memory);
    if (name.n) {
        g->names = mem_resize(g->names, (g->n + 1) * sizeof *g->names);
        g->names[g->n] = mem_text(name.p, name.n);
    }
    c->held += sizeof(slot) + name.n;
    return &g->slots[g->n++];
}

/* The group of a row; a new one if there is none. */
static group *group_of(combiner *c, slice row) {
    doc_element e;
    group *g;
    slice items = json_member(row, "groupByItems");
    buf_clear(&c->key);
    if (items.n && client__value_read(items, &c->bson, &e)) {
        client__value_canonical(&c->key, &e);
    }
    const char *key = c->key.p ? c->key.p : "";
    HASH_FIND(hh, c->groups, key, c->key.n, g);
    if (!g) {
        g = mem_zero(sizeof *g + c->key.n);
        memcpy(g->key, key, c->key.n);
        g->key_n = c->key.n;
        HASH_ADD_KEYPTR(hh, c->groups, g->key, g->key_n, g);
        c->order = mem_resize(c->order, (c->n + 1) * sizeof(group *));
        c->order[c->n++] = g;
        c->held += sizeof *g + c->key.n;
    }
    return g;
}

static plan_aggregate aggregate_of(const query_plan *p, slice alias) {
    for (size_t i = 0; i < p->aliases_n; i++) {
        if (slice_eq(slice_str(p->aliases[i].alias), alias)) {
            return p->aliases[i].aggregate;
        }
    }
    return PLAN_FIRST;
}

/* NULL: the group has a value without a name, or too many names. */
static slot *slot_of(combiner *c, group *g, slice name) {
    if (g->n && !g->names) {
        return NULL;
    }
    for (size_t i = 0; i < g->n; i++) {
        if (slice_eq(slice_str(g->names[i]), name)) {
            return &g->slots[i];
        }
    }
    return g->n < SLOTS_MAX ? add_slot(c, g, name, aggregate_of(c->plan, name)) : NULL;
}

/* SELECT VALUE: one aggregate, or one value. */
static tesela_status add_single(combiner *c, group *g, slice value, tesela_error *error) {
    json_walk w;
    slice first;
    plan_aggregate aggregate = c->plan->aggregates_n ? c->plan->aggregates[0] : PLAN_FIRST;
    slot *s = g->n ? g->slots : add_slot(c, g, SLICE_EMPTY, aggregate);
    if (aggregate != PLAN_FIRST && json_enter(value, &w) && !w.object && json_next(&w, NULL, &first)) {
        value = first;
    }
    return value.n ? add_value(c, s, value, error) : TESELA_OK;
}

static tesela_status odd_rows(tesela_error *error) {
    return client__fail(error, TESELA_BAD_RESPONSE, "The rows of the query are not those that its plan tells.");
}

tesela_status client__combiner_add(combiner *c, slice row, tesela_error *error) {
    json_walk w;
    slice name, value, payload = *row.p == '{' ? json_member(row, "payload") : SLICE_EMPTY;
    bool bare = !payload.n && !c->plan->grouped;
    group *g = group_of(c, row);
    tesela_status status = TESELA_OK;
    if (c->plan->select_value || bare || !c->plan->aliases_n) {
        status = add_single(c, g, bare ? row : payload, error);
    } else if (json_enter(payload, &w) && w.object) {
        while (status == TESELA_OK && json_next(&w, &name, &value)) {
            slot *s = slot_of(c, g, name);
            status = s ? add_value(c, s, value, error) : odd_rows(error);
        }
    }
    return status != TESELA_OK ? status : c->held > c->memory ? too_much(error) : TESELA_OK;
}

size_t client__combiner_count(const combiner *c) {
    return c->n;
}

/* Aliases in the order of the statement, then others as they came. */
bool client__combiner_write(const combiner *c, size_t index, buf *out) {
    const group *g = c->order[index];
    if (!g->names) {
        return g->n && write_slot(g->slots, out);
    }
    char between = '{';
    for (size_t i = 0; i < g->n; i++) {
        buf value = buf_init(c->memory);
        if (write_slot(&g->slots[i], &value)) {
            buf_add_byte(out, between);
            buf_add_slice(out, slice_str(g->names[i]));
            buf_add_byte(out, ':');
            buf_add_slice(out, buf_view(&value));
            between = ',';
        }
        buf_free(&value);
    }
    buf_add_lit(out, "}");
    if (between == '{') {
        out->p[out->n - 1] = '{';
        buf_add_byte(out, '}');
    }
    return buf_ok(out);
}
