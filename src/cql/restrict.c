/* restrict.c — checks WHERE against a table, by the rules of Cassandra's StatementRestrictions. */
#include "cql/restrict.h"

#include "cql/restrict_int.h"

#define NEEDS_FILTERING                                                                                                                    \
    "Cannot execute this query as it might involve data filtering and thus may have unpredictable performance. If you want to execute "    \
    "this query despite the performance unpredictability, use ALLOW FILTERING"

/* What is known of one column while the relations are read. */
typedef struct column_state {
    const cql_relation *equal;    /* = or IN */
    const cql_relation *bound[2]; /* lower, upper; the column is the first of the relation */
    uint32_t filters;             /* CONTAINS, CONTAINS KEY, elements */
} column_state;

typedef struct analysis {
    op *op;
    const cql_restrict_input *in;
    const cql_table *table;
    cql_restrictions *out;
    column_state *states; /* one for each column of the table */
    cql_filter *filters;
    uint32_t filters_n;
} analysis;

const cql_column *cql_table_column(const cql_table *table, slice name) {
    for (uint32_t i = 0; i < table->n; i++) {
        if (slice_eq(table->columns[i].name, name)) {
            return &table->columns[i];
        }
    }
    return NULL;
}

static const char *purpose_text(const analysis *a) {
    static const char *const texts[] = {"SELECT", "UPDATE", "DELETE"};
    return texts[a->in->purpose];
}

static column_state *state_of(const analysis *a, const cql_column *c) {
    return &a->states[c - a->table->columns];
}

static err fail_relation(op *o, const char *message, const cql_relation *r) {
    buf text = buf_init(600);
    cql_relation_write(&text, r);
    err code = op_fail(o, E_BAD_REQUEST, "%s%.*s", message, (int)text.n, text.p);
    buf_free(&text);
    return code;
}

#define SHOWN(s) slice_shown(s), (s).p

/* ---- one relation by itself ---- */

static err find_columns(analysis *a, const cql_relation *r, const cql_column ***columns_out) {
    const cql_column **columns = arena_array(a->op->arena, const cql_column *, r->columns_n + 1);
    for (uint32_t i = 0; i < r->columns_n; i++) {
        columns[i] = cql_table_column(a->table, r->columns[i]);
        if (!columns[i]) {
            return op_fail(a->op, E_BAD_REQUEST, "Undefined column name %.*s in table %.*s.%.*s", SHOWN(r->columns[i]),
                           SHOWN(a->table->keyspace), SHOWN(a->table->name));
        }
    }
    *columns_out = columns;
    return OK;
}

static err check_token(analysis *a, const cql_relation *r, const cql_column **columns) {
    op *o = a->op;
    bool ordered = r->columns_n == a->table->partition_n;
    if (!ordered) {
        return op_fail(o, E_BAD_REQUEST, "The token() function must be applied to all partition key components or none of them");
    }
    for (uint32_t i = 0; i < r->columns_n; i++) {
        ordered = ordered && columns[i]->kind == CQL_COLUMN_PARTITION && columns[i]->position == i;
    }
    if (!ordered) {
        buf names = buf_init(500);
        for (uint32_t i = 0; i < a->table->partition_n; i++) {
            buf_addf(&names, "%s%.*s", i ? ", " : "", SHOWN(a->table->columns[i].name));
        }
        err code =
            op_fail(o, E_BAD_REQUEST, "The token function arguments must be in the partition key order: %.*s", (int)names.n, names.p);
        buf_free(&names);
        return code;
    }
    if (a->in->purpose != CQL_FOR_SELECT) {
        return op_fail(o, E_BAD_REQUEST, "The token function cannot be used in WHERE clauses for %s statements", purpose_text(a));
    }
    return r->op == CQL_EQ || cql__is_slice(r->op) ? OK : fail_relation(o, "Unsupported restriction: ", r);
}

static err check_tuple(analysis *a, const cql_relation *r, const cql_column **columns) {
    for (uint32_t i = 0; i < r->columns_n; i++) {
        if (columns[i]->kind != CQL_COLUMN_CLUSTERING) {
            return op_fail(a->op, E_BAD_REQUEST,
                           "Multi-column relations can only be applied to clustering columns but was applied to: %.*s",
                           SHOWN(columns[i]->name));
        }
        if (i && columns[i]->position == columns[i - 1]->position) {
            return op_fail(a->op, E_BAD_REQUEST, "Column \"%.*s\" appeared twice in a relation", SHOWN(columns[i]->name));
        }
        if (i && columns[i]->position != columns[i - 1]->position + 1) {
            return fail_relation(a->op, "Clustering columns must appear in the PRIMARY KEY order in multi-column relations: ", r);
        }
    }
    return r->op == CQL_EQ || r->op == CQL_IN || cql__is_slice(r->op) ? OK : fail_relation(a->op, "Unsupported restriction: ", r);
}

static err check_element(analysis *a, const cql_relation *r, const cql_column *c) {
    if (c->type->kind == CQL_LIST) {
        return op_fail(a->op, E_BAD_REQUEST, "Indexes on list entries (%.*s[index] = value) are not supported.", SHOWN(c->name));
    }
    if (c->type->kind != CQL_MAP) {
        return op_fail(a->op, E_BAD_REQUEST, "Column %.*s cannot be used as a map", SHOWN(c->name));
    }
    if (c->type->frozen) {
        return op_fail(a->op, E_BAD_REQUEST, "Map-entry equality predicates on frozen map column %.*s are not supported", SHOWN(c->name));
    }
    return r->op == CQL_EQ ? OK : op_fail(a->op, E_BAD_REQUEST, "Only EQ relations are supported on map entries");
}

static err check_multicell(analysis *a, const cql_relation *r, const cql_column *c) {
    slice type = cql_type_text(a->op->arena, c->type);
    if (c->type->kind == CQL_UDT) {
        return op_fail(a->op, E_BAD_REQUEST, "Non-frozen UDT column '%.*s' (%.*s) cannot be restricted by any relation", SHOWN(c->name),
                       SHOWN(type));
    }
    return op_fail(a->op, E_BAD_REQUEST, "Collection column '%.*s' (%.*s) cannot be restricted by a '%s' relation", SHOWN(c->name),
                   SHOWN(type), cql_operator_text(r->op));
}

static err check_column(analysis *a, const cql_relation *r, const cql_column *c) {
    op *o = a->op;
    switch (r->op) {
    case CQL_NE:
        return fail_relation(o, "Unsupported \"!=\" relation: ", r);
    case CQL_IS_NOT_NULL:
        return fail_relation(o, "Unsupported restriction: ", r);
    case CQL_LIKE: {
        buf text = buf_init(600);
        cql_relation_write(&text, r);
        err code = op_fail(o, E_BAD_REQUEST, "LIKE restriction is only supported on properly indexed columns. %.*s is not valid.",
                           (int)text.n, text.p);
        buf_free(&text);
        return code;
    }
    case CQL_CONTAINS:
        return cql_type_is_collection(c->type)
                   ? OK
                   : op_fail(o, E_BAD_REQUEST, "Cannot use CONTAINS on non-collection column %.*s", SHOWN(c->name));
    case CQL_CONTAINS_KEY:
        return c->type->kind == CQL_MAP ? OK : op_fail(o, E_BAD_REQUEST, "Cannot use CONTAINS KEY on non-map column %.*s", SHOWN(c->name));
    default:
        break;
    }
    if (cql_type_is_multicell(c->type)) {
        return check_multicell(a, r, c);
    }
    if (cql__is_slice(r->op) && cql_type_has_duration(c->type)) {
        return c->type->kind == CQL_DURATION ? op_fail(o, E_BAD_REQUEST, "Slice restrictions are not supported on duration columns")
                                             : op_fail(o, E_BAD_REQUEST, "Slice restrictions are not supported on %s containing durations",
                                                       c->type->kind == CQL_TUPLE ? "tuples"
                                                       : c->type->kind == CQL_UDT ? "UDTs"
                                                                                  : "collections");
    }
    return OK;
}

/* ---- merging relations of the same column ---- */

static err merge_bound(analysis *a, const cql_relation *r, const cql_column *c) {
    column_state *s = state_of(a, c);
    int side = cql__is_lower(r->op) ? 0 : 1;
    const cql_relation *other = s->bound[1 - side];
    if (s->equal) {
        return op_fail(a->op, E_BAD_REQUEST, "%.*s cannot be restricted by more than one relation if it includes an Equal", SHOWN(c->name));
    }
    if (s->bound[side]) {
        return op_fail(a->op, E_BAD_REQUEST, "More than one restriction was found for the %s bound on %.*s", side ? "end" : "start",
                       SHOWN(c->name));
    }
    if (other && (other->kind == CQL_RELATION_TUPLE) != (r->kind == CQL_RELATION_TUPLE)) {
        return op_fail(a->op, E_BAD_REQUEST,
                       "Column \"%.*s\" cannot be restricted by both a tuple notation inequality and a single column inequality (%.*s)",
                       SHOWN(c->name), SHOWN(c->name));
    }
    s->bound[side] = r;
    return OK;
}

static err merge_equal(analysis *a, const cql_relation *r, const cql_column *c) {
    column_state *s = state_of(a, c);
    if (s->equal || s->bound[0] || s->bound[1]) {
        bool in = r->op == CQL_IN || (s->equal && s->equal->op == CQL_IN);
        return op_fail(a->op, E_BAD_REQUEST, "%.*s cannot be restricted by more than one relation if it includes a%s", SHOWN(c->name),
                       in ? " IN" : "n Equal");
    }
    s->equal = r;
    return OK;
}

static bool served_by_index(const cql_relation *r, const cql_column *c) {
    if (r->kind == CQL_RELATION_ELEMENT) {
        return c->indexed & CQL_INDEXED_ENTRIES;
    }
    switch (r->op) {
    case CQL_EQ:
        return cql_type_is_collection(c->type) ? c->indexed & CQL_INDEXED_FULL : c->indexed & CQL_INDEXED_VALUES;
    case CQL_CONTAINS:
        return c->indexed & CQL_INDEXED_VALUES;
    case CQL_CONTAINS_KEY:
        return c->indexed & CQL_INDEXED_KEYS;
    default:
        return false;
    }
}

static void add_filter(analysis *a, const cql_relation *r, const cql_column *c) {
    a->filters[a->filters_n++] = (cql_filter){r, c, r->kind != CQL_RELATION_TUPLE && served_by_index(r, c)};
}

static err merge(analysis *a, const cql_relation *r, const cql_column **columns) {
    bool cellwise = r->kind == CQL_RELATION_ELEMENT || r->op == CQL_CONTAINS || r->op == CQL_CONTAINS_KEY;
    if (r->kind == CQL_RELATION_TOKEN) {
        int side = cql__is_lower(r->op) ? 0 : 1;
        if (a->out->token[side] || (r->op == CQL_EQ && a->out->token[0])) {
            return op_fail(a->op, E_BAD_REQUEST, "More than one restriction was found for the %s bound on the partition key token",
                           side ? "end" : "start");
        }
        a->out->token[side] = r;
        a->out->token[1 - side] = r->op == CQL_EQ ? r : a->out->token[1 - side];
        return OK;
    }
    if (cellwise) {
        state_of(a, columns[0])->filters++;
        add_filter(a, r, columns[0]);
        return OK;
    }
    if (cql__is_slice(r->op)) {
        return merge_bound(a, r, columns[0]);
    }
    for (uint32_t i = 0; i < r->columns_n; i++) {
        TRY(merge_equal(a, r, columns[i]));
    }
    return OK;
}

static err read_relation(analysis *a, const cql_relation *r) {
    const cql_column **columns = NULL;
    if (r->kind == CQL_RELATION_FUNCTION) {
        cql_receiver time = {r->columns[0], cql_type_of(CQL_TIMESTAMP)};
        if (!slice_eq(r->columns[0], SLICE_LIT("cosmos_changefeed_start_time")) || a->in->purpose != CQL_FOR_SELECT ||
            a->out->change_feed) {
            return op_fail(a->op, E_BAD_REQUEST, "Unknown function '%.*s'", SHOWN(r->columns[0]));
        }
        a->out->change_feed = r;
        return r->op == CQL_EQ ? cql_term_prepare(a->op, a->in->types, r->value, &time, a->in->markers)
                               : fail_relation(a->op, "Unsupported restriction: ", r);
    }
    TRY(find_columns(a, r, &columns));
    switch (r->kind) {
    case CQL_RELATION_TOKEN:
        TRY(check_token(a, r, columns));
        break;
    case CQL_RELATION_TUPLE:
        TRY(check_tuple(a, r, columns));
        break;
    case CQL_RELATION_ELEMENT:
        TRY(check_element(a, r, columns[0]));
        break;
    default:
        TRY(check_column(a, r, columns[0]));
    }
    TRY(cql__relation_prepare(a->op, a->in->types, r, columns, a->in->markers));
    return merge(a, r, columns);
}

/* ---- the partition key ---- */

static bool is_restricted(const column_state *s) {
    return s->equal || s->bound[0] || s->bound[1] || s->filters;
}

/* Whether an index of the table serves one of the relations, on any column. */
static bool has_index(const analysis *a) {
    for (uint32_t i = 0; i < a->table->n; i++) {
        const column_state *s = &a->states[i];
        if (s->equal && s->equal->kind == CQL_RELATION_COLUMN && served_by_index(s->equal, &a->table->columns[i])) {
            return true;
        }
    }
    for (uint32_t i = 0; i < a->filters_n; i++) {
        if (a->filters[i].index) {
            return true;
        }
    }
    return false;
}

/* All relations of a column become filters. CONTAINS and its kind are filters already. */
static err filter_column(analysis *a, const cql_column *c) {
    const column_state *s = state_of(a, c);
    const cql_relation *relations[] = {s->equal, s->bound[0], s->bound[1]};
    for (int i = 0; i < 3; i++) {
        const cql_relation *r = relations[i];
        if (r && r->kind == CQL_RELATION_TUPLE && r->op == CQL_EQ) {
            if (slice_eq(r->columns[0], c->name)) { /* once for all its columns */
                add_filter(a, r, c);
            }
            continue;
        }
        if (r && r->kind == CQL_RELATION_TUPLE) {
            return op_fail(a->op, E_BAD_REQUEST, "Multi-column slice restrictions cannot be used for filtering.");
        }
        if (r) {
            add_filter(a, r, c);
        }
    }
    return OK;
}

static err write_partition(analysis *a) {
    buf missing = buf_init(500);
    err code = OK;
    for (uint32_t i = 0; i < a->table->partition_n; i++) {
        const column_state *s = &a->states[i];
        if (!is_restricted(s)) {
            buf_addf(&missing, "%s%.*s", missing.n ? ", " : "", SHOWN(a->table->columns[i].name));
        } else if (!s->equal) {
            code = op_fail(
                a->op, E_BAD_REQUEST,
                "Only EQ and IN relation are supported on the partition key (unless you use the token() function) for %s statements",
                purpose_text(a));
        }
    }
    if (missing.n) {
        code = op_fail(a->op, E_BAD_REQUEST, "Some partition key parts are missing: %.*s", (int)missing.n, missing.p);
    }
    buf_free(&missing);
    return code;
}

static err restrict_partition(analysis *a, bool index) {
    cql_restrictions *r = a->out;
    uint32_t restricted = 0, equal = 0;
    for (uint32_t i = 0; i < a->table->partition_n; i++) {
        const column_state *s = &a->states[i];
        restricted += is_restricted(s);
        equal += s->equal != NULL;
        r->partition_in |= s->equal && s->equal->op == CQL_IN;
    }
    if (r->token[0] || r->token[1]) {
        return restricted
                   ? op_fail(a->op, E_BAD_REQUEST, "Columns \"%.*s\" cannot be restricted by both a normal relation and a token relation",
                             SHOWN(a->table->columns[0].name))
                   : OK;
    }
    if (a->in->purpose != CQL_FOR_SELECT) {
        TRY(write_partition(a));
    }
    r->whole_partition_key = equal == a->table->partition_n;
    if (restricted && !r->whole_partition_key) {
        if (!a->in->allow_filtering && !index) {
            return op_fail(a->op, E_BAD_REQUEST, NEEDS_FILTERING);
        }
        if (r->partition_in) {
            return op_fail(a->op, E_BAD_REQUEST, "IN restrictions are not supported when the query involves filtering");
        }
    }
    for (uint32_t i = 0; i < a->table->partition_n; i++) {
        if (r->whole_partition_key) {
            r->partition[i] = a->states[i].equal;
        } else {
            TRY(filter_column(a, &a->table->columns[i]));
        }
    }
    return OK;
}

/* ---- clustering columns ---- */

static const cql_column *clustering_column(const analysis *a, uint32_t i) {
    return &a->table->columns[a->table->partition_n + i];
}

/* How many columns the bounds of a column cover, from it on: a tuple has several. */
static uint32_t bound_width(const column_state *s) {
    uint32_t lower = s->bound[0] ? s->bound[0]->columns_n : 0, upper = s->bound[1] ? s->bound[1]->columns_n : 0;
    return lower > upper ? lower : upper;
}

static err fail_missing(analysis *a) {
    buf missing = buf_init(500);
    for (uint32_t i = 0; i < a->table->clustering_n; i++) {
        const cql_column *c = clustering_column(a, i);
        if (!state_of(a, c)->equal) {
            buf_addf(&missing, "%s%.*s", missing.n ? ", " : "", SHOWN(c->name));
        }
    }
    err code = op_fail(a->op, E_BAD_REQUEST, "Some clustering keys are missing: %.*s", (int)missing.n, missing.p);
    buf_free(&missing);
    return code;
}

/* The relations after the prefix and its slice are left to filters; without ALLOW FILTERING or an index that is refused. */
static err filter_clustering(analysis *a, uint32_t from, bool index) {
    bool slice = a->out->slice[0] || a->out->slice[1];
    for (uint32_t i = 0; i < a->table->clustering_n; i++) {
        const cql_column *c = clustering_column(a, i);
        const column_state *s = state_of(a, c);
        bool refused = !a->in->allow_filtering && !index;
        if (s->filters && refused) {
            return op_fail(a->op, E_BAD_REQUEST,
                           "Clustering columns can only be restricted with CONTAINS with a secondary index or filtering");
        }
        if (i < from || !is_restricted(s)) {
            continue;
        }
        if (refused && slice) {
            return op_fail(a->op, E_BAD_REQUEST,
                           "Clustering column \"%.*s\" cannot be restricted (preceding column \"%.*s\" is restricted by a non-EQ relation)",
                           SHOWN(c->name), SHOWN(clustering_column(a, a->out->clustering_n)->name));
        }
        if (refused) {
            return op_fail(a->op, E_BAD_REQUEST,
                           "PRIMARY KEY column \"%.*s\" cannot be restricted as preceding column \"%.*s\" is not restricted",
                           SHOWN(c->name), SHOWN(clustering_column(a, from)->name));
        }
        TRY(filter_column(a, c));
    }
    return OK;
}

/* The columns restricted by = and IN from the first one on. A tuple is whole: it begins where the prefix has come to. */
static void restrict_prefix(analysis *a) {
    cql_restrictions *r = a->out;
    while (r->clustering_n < a->table->clustering_n) {
        const cql_relation *equal = state_of(a, clustering_column(a, r->clustering_n))->equal;
        if (!equal) {
            return;
        }
        r->clustering_in |= equal->op == CQL_IN;
        for (uint32_t i = 0; i < equal->columns_n; i++) {
            r->clustering[r->clustering_n++] = equal;
        }
    }
}

/* The bounds of the column after the prefix. `end_out` is the first column that they do not cover. */
static err restrict_slice(analysis *a, uint32_t *end_out) {
    cql_restrictions *r = a->out;
    uint32_t at = r->clustering_n;
    *end_out = at;
    if (at == a->table->clustering_n) {
        return OK;
    }
    const column_state *s = state_of(a, clustering_column(a, at));
    r->slice[0] = s->bound[0];
    r->slice[1] = s->bound[1];
    *end_out = at + bound_width(s);
    for (uint32_t i = at + 1; i < *end_out; i++) {
        if (is_restricted(state_of(a, clustering_column(a, i)))) {
            return op_fail(a->op, E_BAD_REQUEST,
                           "Column \"%.*s\" cannot be restricted by two inequalities not starting with the same column",
                           SHOWN(clustering_column(a, i)->name));
        }
    }
    return OK;
}

/* UPDATE names whole rows, or only the partition if it sets static columns only. */
static err check_update(analysis *a) {
    bool any = false, slices = false;
    for (uint32_t i = 0; i < a->table->clustering_n; i++) {
        const column_state *s = state_of(a, clustering_column(a, i));
        any |= is_restricted(s);
        slices |= bound_width(s) > 0;
    }
    if (slices) {
        return op_fail(a->op, E_BAD_REQUEST, "Slice restrictions are not supported on the clustering columns in UPDATE statements");
    }
    if (a->in->selects_static_only) {
        return any ? op_fail(a->op, E_BAD_REQUEST,
                             "Invalid restrictions on clustering columns since the UPDATE statement modifies only static columns")
                   : OK;
    }
    return a->out->clustering_n < a->table->clustering_n ? fail_missing(a) : OK;
}

static err restrict_clustering(analysis *a, bool index) {
    cql_restrictions *r = a->out;
    uint32_t end;
    restrict_prefix(a);
    if (a->in->purpose == CQL_FOR_UPDATE) {
        TRY(check_update(a));
    }
    TRY(restrict_slice(a, &end));
    r->static_only = r->clustering_n == 0 && end == 0;
    return filter_clustering(a, end, index);
}

/* ---- other columns, and the whole ---- */

static err restrict_others(analysis *a, bool index) {
    uint32_t first = a->table->partition_n + a->table->clustering_n;
    for (uint32_t i = first; i < a->table->n; i++) {
        const cql_column *c = &a->table->columns[i];
        const column_state *s = &a->states[i];
        if (!is_restricted(s)) {
            continue;
        }
        if (a->in->purpose != CQL_FOR_SELECT) {
            return op_fail(a->op, E_BAD_REQUEST, "Non PRIMARY KEY columns found in where clause: %.*s ", SHOWN(c->name));
        }
        if (s->equal && s->equal->op == CQL_IN) {
            return op_fail(a->op, E_BAD_REQUEST, "IN predicates on non-primary-key columns (%.*s) is not yet supported", SHOWN(c->name));
        }
        if (!index && !a->in->allow_filtering) {
            return op_fail(a->op, E_BAD_REQUEST, NEEDS_FILTERING);
        }
        TRY(filter_column(a, c));
    }
    return OK;
}

/* How many clustering columns the keys restrict: those of the prefix, and those of the slice after it. */
static uint32_t restricted_clustering(const analysis *a) {
    const cql_restrictions *r = a->out;
    uint32_t lower = r->slice[0] ? r->slice[0]->columns_n : 0, upper = r->slice[1] ? r->slice[1]->columns_n : 0;
    return r->clustering_n + (lower > upper ? lower : upper);
}

/* Without the partition, an index finds the rows of a clustering column. True: one of the columns has one. */
static bool find_by_clustering(analysis *a) {
    bool found = false;
    for (uint32_t i = 0; i < a->out->clustering_n; i++) {
        const cql_relation *r = a->out->clustering[i];
        const cql_column *c = clustering_column(a, i);
        if (r->kind == CQL_RELATION_COLUMN && served_by_index(r, c)) {
            add_filter(a, r, c);
            found = true;
        }
    }
    return found;
}

/* An index serves one relation. Those of indexed clustering columns count, like all that the keys do not cover; a prefix of others does not
 * (StatementRestrictions.needFiltering). */
static err check_filtering(analysis *a) {
    cql_restrictions *r = a->out;
    uint32_t indexed = 0, counted = a->filters_n;
    bool rows_without_key = !r->whole_partition_key && restricted_clustering(a);
    if (a->in->purpose == CQL_FOR_SELECT && rows_without_key && find_by_clustering(a)) {
        counted += restricted_clustering(a);
    }
    for (uint32_t i = 0; i < a->filters_n; i++) {
        indexed += a->filters[i].index;
    }
    r->uses_index = indexed > 0;
    r->needs_filtering = counted > (r->uses_index ? 1u : 0u) || (rows_without_key && !r->uses_index);
    if (a->in->purpose == CQL_FOR_SELECT && r->needs_filtering && !a->in->allow_filtering) {
        return op_fail(a->op, E_BAD_REQUEST, NEEDS_FILTERING);
    }
    if (r->uses_index && r->partition_in) {
        return op_fail(a->op, E_BAD_REQUEST, "Select on indexed columns and with IN clause for the PRIMARY KEY are not supported");
    }
    return OK;
}

static err check_distinct(analysis *a) {
    for (uint32_t i = 0; a->in->distinct && i < a->table->n; i++) {
        cql_column_kind kind = a->table->columns[i].kind;
        if (is_restricted(&a->states[i]) && (kind == CQL_COLUMN_CLUSTERING || kind == CQL_COLUMN_REGULAR)) {
            return op_fail(a->op, E_BAD_REQUEST,
                           "SELECT DISTINCT with WHERE clause only supports restriction by partition key and/or static columns.");
        }
    }
    return OK;
}

err cql_restrict(op *o, const cql_restrict_input *input, cql_restrictions *restrictions_out) {
    const cql_table *table = input->table;
    *restrictions_out = (cql_restrictions){.table = table};
    restrictions_out->partition = arena_array(o->arena, const cql_relation *, table->partition_n + 1);
    restrictions_out->clustering = arena_array(o->arena, const cql_relation *, table->clustering_n + 1);
    size_t filters = input->where_n + (size_t)1;
    if (!arena_fits(o->arena, filters * sizeof(cql_filter))) {
        return budget_error(o->budget);
    }
    analysis a = {.op = o, .in = input, .table = table, .out = restrictions_out, .filters = arena_array(o->arena, cql_filter, filters)};
    a.states = arena_array(o->arena, column_state, table->n + 1);
    for (uint32_t i = 0; i < input->where_n; i++) {
        TRY(read_relation(&a, &input->where[i]));
    }
    bool index = input->purpose == CQL_FOR_SELECT && has_index(&a);
    TRY(check_distinct(&a));
    TRY(restrict_partition(&a, index));
    TRY(restrict_clustering(&a, index));
    TRY(restrict_others(&a, index));
    restrictions_out->filters = a.filters;
    err code = check_filtering(&a);
    restrictions_out->filters_n = a.filters_n;
    return code;
}
