/* What the core can use of a $filter: bounds of the keys, conditions for the index, and the exact test as a custom filter. */
#include "api/table/filter.h"

#include "api/table/entity.h"
#include "doc/path.h"
#include "query/filter.h"

enum { DEPTH_MAX = 24 /* below LIMIT_FIND_DEPTH */, STEPS_PER_COMPARISON = 20 };

/* ---- bounds of keys ---- */

static void raise_from(filter_bound *b, slice value, bool exclusive) {
    int c = b->given ? slice_cmp(value, b->value) : 1;
    if (c > 0 || (c == 0 && exclusive)) {
        *b = (filter_bound){true, exclusive, value};
    }
}

static void lower_to(filter_bound *b, slice value, bool exclusive) {
    int c = b->given ? slice_cmp(value, b->value) : -1;
    if (c < 0 || (c == 0 && exclusive)) {
        *b = (filter_bound){true, exclusive, value};
    }
}

static void bound_key(const filter *f, filter_bound *from, filter_bound *to) {
    if (f->op == FILTER_EQ || f->op == FILTER_GE || f->op == FILTER_GT) {
        raise_from(from, f->value.text, f->op == FILTER_GT);
    }
    if (f->op == FILTER_EQ || f->op == FILTER_LE || f->op == FILTER_LT) {
        lower_to(to, f->value.text, f->op == FILTER_LT);
    }
}

/* Goes through what must hold: the parts of "and". */
static void collect_keys(const filter *f, filter_keys *keys) {
    for (; f->kind == FILTER_AND; f = f->left) {
        collect_keys(f->right, keys);
    }
    if (f->kind != FILTER_COMPARE || f->value.type != EDM_STRING) {
        return;
    }
    if (slice_eq(f->name, SLICE_LIT("PartitionKey"))) {
        bound_key(f, &keys->partition_from, &keys->partition_to);
    } else if (slice_eq(f->name, SLICE_LIT("RowKey"))) {
        bound_key(f, &keys->row_from, &keys->row_to);
    }
}

filter_keys filter_keys_of(const filter *f) {
    filter_keys keys = {0};
    if (f) {
        collect_keys(f, &keys);
    }
    const filter_bound *from = &keys.partition_from, *to = &keys.partition_to;
    keys.one_partition = from->given && to->given && !from->exclusive && !to->exclusive && slice_eq(from->value, to->value);
    return keys;
}

/* ---- conditions ---- */

/* The value as entities store it; times lose what is below a millisecond. */
static void append_value(bson_t *to, const char *key, const edm_value *v) {
    unsigned rest;
    switch (v->type) {
    case EDM_STRING:
        bson_append_utf8(to, key, -1, v->text.p, (int)v->text.n);
        break;
    case EDM_INT32:
    case EDM_INT64:
        bson_append_int64(to, key, -1, v->number);
        break;
    case EDM_DOUBLE:
        bson_append_double(to, key, -1, v->real);
        break;
    case EDM_BOOLEAN:
        bson_append_bool(to, key, -1, v->number);
        break;
    case EDM_DATE_TIME:
        bson_append_date_time(to, key, -1, edm_ms_of(v->number, &rest));
        break;
    default:
        bson_append_binary(to, key, -1, v->type == EDM_GUID ? BSON_SUBTYPE_UUID : BSON_SUBTYPE_BINARY, (const uint8_t *)v->text.p,
                           (uint32_t)v->text.n);
    }
}

/* Whether an index can narrow the comparison down. Binaries are ordered by length first in the index, so only equality is the same. */
static bool is_indexable(const filter *f) {
    bool equal = f->op == FILTER_EQ;
    bool ordered = f->value.type == EDM_STRING || f->value.type == EDM_INT32 || f->value.type == EDM_INT64 || f->value.type == EDM_DOUBLE ||
                   f->value.type == EDM_DATE_TIME;
    return f->op != FILTER_NE && (equal || ordered);
}

/* The words of conditions by filter_operator. A time in milliseconds is at or after a later one's. */
static const char *condition_of(const filter *f) {
    static const char *const exact[FILTER_OPERATORS] = {"eq", NULL, "gt", "ge", "lt", "le"};
    static const char *const rounded[FILTER_OPERATORS] = {"eq", NULL, "ge", "ge", "le", "le"};
    return f->value.type == EDM_DATE_TIME ? rounded[f->op] : exact[f->op];
}

/* Whether a condition that every passing entity meets can be made of the filter: of both sides of "or", of one side of "and". */
static bool is_usable(const filter *f, unsigned depth) {
    bool any = false;
    if (depth > DEPTH_MAX) {
        return false;
    }
    if (f->kind == FILTER_COMPARE) {
        return is_indexable(f);
    }
    filter_kind kind = f->kind;
    for (; f->kind == kind && kind != FILTER_NOT; f = f->left) {
        bool right = is_usable(f->right, depth + 1);
        if (kind == FILTER_OR && !right) {
            return false;
        }
        any = any || right;
    }
    return kind == FILTER_NOT ? false : is_usable(f, depth + 1) || (kind == FILTER_AND && any);
}

static void append_comparison(bson_t *to, const filter *f) {
    bson_t path;
    bson_append_array_begin(to, "at", 2, &path);
    bson_append_utf8(&path, "0", 1, f->name.p, (int)f->name.n);
    bson_append_array_end(to, &path);
    append_value(to, condition_of(f), &f->value);
}

static void append_condition(bson_t *list, const filter *f, unsigned depth);

/* A chain of the same kind becomes one list. */
static void append_chain(bson_t *to, const filter *f, unsigned depth) {
    bson_t list;
    filter_kind kind = f->kind;
    bson_append_array_begin(to, kind == FILTER_AND ? "and" : "or", -1, &list);
    for (; f->kind == kind; f = f->left) {
        append_condition(&list, f->right, depth + 1);
    }
    append_condition(&list, f, depth + 1);
    bson_append_array_end(to, &list);
}

static void append_condition(bson_t *list, const filter *f, unsigned depth) {
    bson_t one;
    if (!is_usable(f, depth)) {
        return;
    }
    bson_append_document_begin(list, "0", 1, &one);
    if (f->kind == FILTER_COMPARE) {
        append_comparison(&one, f);
    } else {
        append_chain(&one, f, depth);
    }
    bson_append_document_end(list, &one);
}

/* The parts of "and", one by one. Within a partition all entities have the same PartitionKey. */
static void append_parts(bson_t *list, const filter *f, bool one_partition) {
    for (; f->kind == FILTER_AND; f = f->left) {
        append_parts(list, f->right, one_partition);
    }
    bool same = one_partition && f->kind == FILTER_COMPARE && slice_eq(f->name, SLICE_LIT("PartitionKey"));
    if (!same) {
        append_condition(list, f, 0);
    }
}

static void append_bound(bson_t *list, slice value, const char *word) {
    bson_t one, path;
    if (!value.p) {
        return;
    }
    bson_append_document_begin(list, "0", 1, &one);
    bson_append_array_begin(&one, "at", 2, &path);
    bson_append_utf8(&path, "0", 1, "PartitionKey", -1);
    bson_append_array_end(&one, &path);
    bson_append_utf8(&one, word, -1, value.p, (int)value.n);
    bson_append_document_end(list, &one);
}

static void append_text(bson_t *to, const char *name, slice value) {
    if (value.p) {
        bson_append_utf8(to, name, -1, value.p, (int)value.n);
    }
}

static void append_exact(bson_t *list, slice text, const access_sas *bounds) {
    bson_t one, with;
    bson_append_document_begin(list, "0", 1, &one);
    bson_append_int32(&one, "filter", -1, QUERY_FILTER_ODATA);
    bson_append_document_begin(&one, "with", -1, &with);
    append_text(&with, "text", text);
    if (bounds) {
        append_text(&with, "spk", bounds->from_partition);
        append_text(&with, "srk", bounds->from_row);
        append_text(&with, "epk", bounds->to_partition);
        append_text(&with, "erk", bounds->to_row);
    }
    bson_append_document_end(&one, &with);
    bson_append_document_end(list, &one);
}

slice filter_conditions(op *o, const filter *f, slice text, bool one_partition, const access_sas *bounds) {
    bson_t whole = BSON_INITIALIZER, list;
    if (!f && !bounds) {
        return SLICE_EMPTY;
    }
    bson_append_array_begin(&whole, "and", -1, &list);
    if (f) {
        append_parts(&list, f, one_partition);
    }
    if (bounds && !one_partition) {
        append_bound(&list, bounds->from_partition, "ge");
        append_bound(&list, bounds->to_partition, "le");
    }
    append_exact(&list, text, bounds);
    bson_append_array_end(&whole, &list);
    slice bytes = arena_copy(o->arena, slice_of(bson_get_data(&whole), whole.len));
    bson_destroy(&whole);
    return bytes;
}

bool filter_narrows(const filter *f) {
    bool narrows = false;
    for (; f->kind == FILTER_AND && !narrows; f = f->left) {
        narrows = filter_narrows(f->right);
    }
    bool key = f->kind == FILTER_COMPARE && (slice_eq(f->name, SLICE_LIT("PartitionKey")) || slice_eq(f->name, SLICE_LIT("RowKey")));
    return narrows || (!key && is_usable(f, 0));
}

bool filter_excludes(const filter *f, const filter_entity *entity) {
    bool excludes = false;
    for (; f->kind == FILTER_AND && !excludes; f = f->left) {
        excludes = filter_excludes(f->right, entity);
    }
    return excludes || (is_usable(f, 0) && !filter_passes(f, filter_entity_get, entity));
}

/* ---- the custom filter ---- */

typedef struct prepared {
    const filter *filter;
    uint64_t comparisons;
    access_sas bounds;
} prepared;

static slice text_of(slice document, const char *name) {
    doc_element e;
    return doc_find_member(document, slice_str(name), &e) && e.type == BSON_TYPE_UTF8 ? doc_element_text(&e) : SLICE_EMPTY;
}

static uint64_t count_comparisons(const filter *f) {
    uint64_t n = 0;
    for (; f && f->kind != FILTER_COMPARE; f = f->left) {
        n += f->right ? count_comparisons(f->right) : 0;
    }
    return n + (f != NULL);
}

static err prepare(op *o, const container *c, slice argument, const void **ready_out) {
    prepared *p = arena_new(o->arena, prepared);
    (void)c;
    *ready_out = p;
    p->bounds = (access_sas){.from_partition = text_of(argument, "spk"),
                             .from_row = text_of(argument, "srk"),
                             .to_partition = text_of(argument, "epk"),
                             .to_row = text_of(argument, "erk")};
    if (filter_parse(o, text_of(argument, "text"), &p->filter) != TABLE_FINE) {
        return E_BAD_REQUEST;
    }
    p->comparisons = count_comparisons(p->filter);
    return OK;
}

/* Each comparison looks for its property in the entity. */
static err passes(op *o, const query_filter_input *in, uint64_t *steps, bool *passes_out) {
    const prepared *p = in->ready;
    uint64_t work = (p->comparisons + 1) * (STEPS_PER_COMPARISON + in->body.n / 64);
    filter_entity e = {in->body, in->version, in->ts};
    (void)o;
    if (*steps < work) {
        *steps = 0;
        return E_QUERY_TOO_LONG;
    }
    *steps -= work;
    *passes_out = filter_accepts(p->filter, &p->bounds, &e);
    return OK;
}

void filter_register(void) {
    static const query_filter_kind kind = {.id = QUERY_FILTER_ODATA, .name = "odata", .prepare = prepare, .passes = passes};
    query_filter_register(&kind);
}
