/* value.c — making values, and the names of types and enums. */
#include "gremlin/value.h"

#include <limits.h>
#include <stdio.h>

#include "base/hex.h"

/* ---- enums ---- */

static const char *const t_names[] = {"id", "key", "label", "value", NULL};
static const char *const direction_names[] = {"OUT", "IN", "BOTH", NULL};
static const char *const order_names[] = {"asc", "desc", "shuffle", NULL};
static const char *const scope_names[] = {"global", "local", NULL};
static const char *const pop_names[] = {"first", "last", "all", "mixed", NULL};
static const char *const column_names[] = {"keys", "values", NULL};
static const char *const cardinality_names[] = {"single", "list", "set", NULL};
static const char *const operator_names[] = {"sum", "minus", "mult", "div", "min", "max", "assign", "and", "or", "addAll", "sumLong", NULL};
static const char *const merge_names[] = {"onCreate", "onMatch", "outV", "inV", NULL};
static const char *const barrier_names[] = {"normSack", NULL};
static const char *const pick_names[] = {"any", "none", NULL};
static const char *const dt_names[] = {"second", "minute", "hour", "day", NULL};

static const struct {
    const char *name;
    const char *const *members;
} enums[GREMLIN_ENUMS] = {
    [GREMLIN_T] = {"T", t_names},
    [GREMLIN_DIRECTION] = {"Direction", direction_names},
    [GREMLIN_ORDER] = {"Order", order_names},
    [GREMLIN_SCOPE] = {"Scope", scope_names},
    [GREMLIN_POP] = {"Pop", pop_names},
    [GREMLIN_COLUMN] = {"Column", column_names},
    [GREMLIN_CARDINALITY] = {"Cardinality", cardinality_names},
    [GREMLIN_OPERATOR] = {"Operator", operator_names},
    [GREMLIN_MERGE] = {"Merge", merge_names},
    [GREMLIN_BARRIER] = {"Barrier", barrier_names},
    [GREMLIN_PICK] = {"Pick", pick_names},
    [GREMLIN_DT] = {"DT", dt_names},
};

const char *gremlin_enum_name(gremlin_enum family) {
    return enums[family].name;
}

const char *gremlin_member_name(gremlin_enum family, unsigned member) {
    for (unsigned i = 0; enums[family].members[i]; i++) {
        if (i == member) {
            return enums[family].members[i];
        }
    }
    return NULL;
}

/* Names that are accepted beside the members' own. */
static const struct {
    gremlin_enum family;
    const char *name;
    unsigned member;
} other_names[] = {
    {GREMLIN_DIRECTION, "from", DIRECTION_OUT},
    {GREMLIN_DIRECTION, "to", DIRECTION_IN},
    {GREMLIN_ORDER, "incr", ORDER_ASC},
    {GREMLIN_ORDER, "decr", ORDER_DESC},
    {GREMLIN_T, "id_", T_ID},
    {GREMLIN_CARDINALITY, "list_", CARDINALITY_LIST},
    {GREMLIN_CARDINALITY, "set_", CARDINALITY_SET},
};

bool gremlin_member_find(gremlin_enum family, slice name, unsigned *member_out) {
    for (unsigned i = 0; enums[family].members[i]; i++) {
        if (slice_is(name, enums[family].members[i])) {
            *member_out = i;
            return true;
        }
    }
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++) {
        if (other_names[i].family == family && slice_is(name, other_names[i].name)) {
            *member_out = other_names[i].member;
            return true;
        }
    }
    return false;
}

bool gremlin_enum_find(slice name, gremlin_enum *family_out) {
    for (gremlin_enum family = 0; family < GREMLIN_ENUMS; family++) {
        if (slice_is(name, enums[family].name)) {
            *family_out = family;
            return true;
        }
    }
    return false;
}

bool gremlin_bare_find(slice name, gremlin_value *value_out) {
    unsigned member;
    for (gremlin_enum family = 0; family < GREMLIN_ENUMS; family++) {
        if (gremlin_member_find(family, name, &member)) {
            *value_out = gremlin_member(family, member);
            return true;
        }
    }
    return false;
}

/* ---- names ---- */

static const char *const p_names[P_KINDS] = {
    [P_EQ] = "eq",
    [P_NEQ] = "neq",
    [P_LT] = "lt",
    [P_LTE] = "lte",
    [P_GT] = "gt",
    [P_GTE] = "gte",
    [P_INSIDE] = "inside",
    [P_OUTSIDE] = "outside",
    [P_BETWEEN] = "between",
    [P_WITHIN] = "within",
    [P_WITHOUT] = "without",
    [P_STARTING_WITH] = "startingWith",
    [P_NOT_STARTING_WITH] = "notStartingWith",
    [P_ENDING_WITH] = "endingWith",
    [P_NOT_ENDING_WITH] = "notEndingWith",
    [P_CONTAINING] = "containing",
    [P_NOT_CONTAINING] = "notContaining",
    [P_REGEX] = "regex",
    [P_NOT_REGEX] = "notRegex",
    [P_AND] = "and",
    [P_OR] = "or",
    [P_NOT] = "not",
};

const char *gremlin_p_name(gremlin_p kind) {
    return p_names[kind];
}

static const char *const type_names[] = {
    [GREMLIN_NULL] = "null",
    [GREMLIN_BOOLEAN] = "Boolean",
    [GREMLIN_BYTE] = "Byte",
    [GREMLIN_SHORT] = "Short",
    [GREMLIN_INT] = "Integer",
    [GREMLIN_LONG] = "Long",
    [GREMLIN_BIGINT] = "BigInteger",
    [GREMLIN_FLOAT] = "Float",
    [GREMLIN_DOUBLE] = "Double",
    [GREMLIN_DECIMAL] = "BigDecimal",
    [GREMLIN_CHAR] = "Character",
    [GREMLIN_STRING] = "String",
    [GREMLIN_UUID] = "UUID",
    [GREMLIN_DATE] = "Date",
    [GREMLIN_TIMESTAMP] = "Timestamp",
    [GREMLIN_DURATION] = "Duration",
    [GREMLIN_BINARY] = "ByteBuffer",
    [GREMLIN_LIST] = "List",
    [GREMLIN_SET] = "Set",
    [GREMLIN_BULKSET] = "BulkSet",
    [GREMLIN_MAP] = "Map",
    [GREMLIN_TREE] = "Tree",
    [GREMLIN_PATH] = "Path",
    [GREMLIN_VERTEX] = "Vertex",
    [GREMLIN_EDGE] = "Edge",
    [GREMLIN_VERTEX_PROPERTY] = "VertexProperty",
    [GREMLIN_PROPERTY] = "Property",
    [GREMLIN_SUBGRAPH] = "Graph",
    [GREMLIN_ENUM] = "Enum",
    [GREMLIN_P] = "P",
    [GREMLIN_TRAVERSAL] = "Traversal",
    [GREMLIN_TRAVERSER] = "Traverser",
    [GREMLIN_STRATEGY] = "TraversalStrategy",
};

const char *gremlin_type_name(gremlin_type type) {
    return type_names[type];
}

/* ---- making ---- */

gremlin_value gremlin_uuid(arena *a, const uint8_t bytes[16]) {
    return (gremlin_value){.type = GREMLIN_UUID, .uuid = (const uint8_t *)arena_copy(a, slice_of(bytes, 16)).p};
}

static gremlin_value wide_value(arena *a, gremlin_type type, gremlin_wide bits) {
    gremlin_wide *wide = arena_new(a, gremlin_wide);
    *wide = bits;
    return (gremlin_value){.type = (uint8_t)type, .wide = wide};
}

gremlin_value gremlin_decimal(arena *a, gremlin_wide bits) {
    return wide_value(a, GREMLIN_DECIMAL, bits);
}

gremlin_value gremlin_big(arena *a, gremlin_bigint number) {
    return wide_value(a, GREMLIN_BIGINT, gremlin_wide_of(number));
}

gremlin_value gremlin_duration_of(arena *a, int64_t seconds, int32_t nanos) {
    gremlin_duration *duration = arena_new(a, gremlin_duration);
    *duration = (gremlin_duration){seconds, nanos};
    return (gremlin_value){.type = GREMLIN_DURATION, .duration = duration};
}

unsigned gremlin_depth(gremlin_value v) {
    return gremlin_is_list(v) ? v.list->depth : gremlin_is_map(v) ? v.map->depth : v.type == GREMLIN_PATH ? v.path->depth : 0;
}

unsigned gremlin_weight(gremlin_value v) {
    return gremlin_is_list(v) ? v.list->weight : gremlin_is_map(v) ? v.map->weight : v.type == GREMLIN_PATH ? v.path->weight : 1;
}

unsigned gremlin_heavier(unsigned weight, gremlin_value v) {
    unsigned sum;
    return __builtin_add_overflow(weight, gremlin_weight(v), &sum) ? UINT_MAX : sum;
}

static unsigned deeper(unsigned depth, gremlin_value v) {
    unsigned own = gremlin_depth(v);
    return own > depth ? own : depth;
}

gremlin_value gremlin_list_of(arena *a, gremlin_type type, const gremlin_value *at, size_t n) {
    gremlin_list *list = arena_new(a, gremlin_list);
    unsigned depth = 0, weight = 1;
    for (size_t i = 0; i < n; i++) {
        depth = deeper(depth, at[i]);
        weight = gremlin_heavier(weight, at[i]);
    }
    *list = (gremlin_list){.n = n, .depth = depth + 1, .weight = weight, .at = at};
    return (gremlin_value){.type = (uint8_t)type, .list = list};
}

gremlin_value gremlin_map_of(arena *a, gremlin_type type, const gremlin_pair *at, size_t n) {
    gremlin_map *map = arena_new(a, gremlin_map);
    unsigned depth = 0, weight = 1;
    for (size_t i = 0; i < n; i++) {
        depth = deeper(deeper(depth, at[i].key), at[i].value);
        weight = gremlin_heavier(gremlin_heavier(weight, at[i].key), at[i].value);
    }
    *map = (gremlin_map){.n = n, .depth = depth + 1, .weight = weight, .at = at};
    return (gremlin_value){.type = (uint8_t)type, .map = map};
}

/* Room for one more entry of `size` bytes: a new array of twice the length. If the budget has no room for it the old one is filled from its
 * start again; the budget is then exceeded, and the traversal ends before anyone sees that. */
static void *grown(arena *a, void *at, size_t *n, size_t *cap, size_t size) {
    if (*n < *cap) {
        return at;
    }
    size_t more = *cap ? *cap * 2 : 4;
    if (!arena_fits(a, more * size)) {
        *n = 0;
        return at;
    }
    void *room = arena_alloc(a, more * size);
    if (*n) {
        memcpy(room, at, *n * size);
    }
    *cap = more;
    return room;
}

void gremlin_items_add(arena *a, gremlin_items *items, gremlin_value v) {
    items->at = grown(a, items->at, &items->n, &items->cap, sizeof v);
    items->at[items->n++] = v;
}

gremlin_value gremlin_items_list(arena *a, const gremlin_items *items, gremlin_type type) {
    return gremlin_list_of(a, type, items->at, items->n);
}

void gremlin_pairs_add(arena *a, gremlin_pairs *pairs, gremlin_value key, gremlin_value value) {
    pairs->at = grown(a, pairs->at, &pairs->n, &pairs->cap, sizeof *pairs->at);
    pairs->at[pairs->n++] = (gremlin_pair){key, value};
}

gremlin_value gremlin_pairs_map(arena *a, const gremlin_pairs *pairs, gremlin_type type) {
    return gremlin_map_of(a, type, pairs->at, pairs->n);
}

/* ---- reading ---- */

const gremlin_value *gremlin_map_get(gremlin_value map, gremlin_value key) {
    for (size_t i = 0; i < map.map->n; i++) {
        if (gremlin_same(map.map->at[i].key, key)) {
            return &map.map->at[i].value;
        }
    }
    return NULL;
}
