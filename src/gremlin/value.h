/* value.h — values of the Gremlin language: what a traversal takes, passes on and returns.
 *
 * A value is 16 bytes: its type, and the value itself or a pointer to its parts. The parts are immutable and live in an arena, so values
 * are copied freely and nothing is released one by one. One exception: an element whose properties were not read yet is completed in place
 * (run.h). Numbers keep their Java type, because TinkerPop's results depend on it: an int plus a long is a long.
 *
 * Three relations, as TinkerPop 3.7 defines them ("Gremlin Semantics"):
 *   equality       1 and 1L and 1.0 are equal; NaN equals nothing, itself included; elements are equal if kind and id are
 *   comparability  `lt` and its relatives: only values of one family compare, all others answer "no" (an error inside the predicate)
 *   orderability   a total order over everything, for order(): first by family, then within it; NaN comes after all numbers
 * Hashes agree with the equality that dedup() and group() use (gremlin_same), in which NaN equals itself.
 *
 * Any thread may read values; building them belongs to the owner of the arena. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"

typedef enum gremlin_type {
    GREMLIN_NULL,
    GREMLIN_BOOLEAN,
    GREMLIN_BYTE,
    GREMLIN_SHORT,
    GREMLIN_INT,
    GREMLIN_LONG,
    GREMLIN_BIGINT,
    GREMLIN_FLOAT,
    GREMLIN_DOUBLE,
    GREMLIN_DECIMAL,
    GREMLIN_CHAR,
    GREMLIN_STRING,
    GREMLIN_UUID,
    GREMLIN_DATE,
    GREMLIN_TIMESTAMP,
    GREMLIN_DURATION,
    GREMLIN_BINARY,
    GREMLIN_LIST,
    GREMLIN_SET,
    GREMLIN_BULKSET,
    GREMLIN_MAP,
    GREMLIN_TREE,
    GREMLIN_PATH,
    GREMLIN_VERTEX,
    GREMLIN_EDGE,
    GREMLIN_VERTEX_PROPERTY,
    GREMLIN_PROPERTY,
    GREMLIN_SUBGRAPH,
    GREMLIN_ENUM,
    GREMLIN_P,
    GREMLIN_TRAVERSAL,
    GREMLIN_TRAVERSER,
    GREMLIN_STRATEGY, /* of withStrategies(); never a result */
} gremlin_type;

typedef struct gremlin_list gremlin_list;
typedef struct gremlin_map gremlin_map;
typedef struct gremlin_path gremlin_path;
typedef struct gremlin_element gremlin_element;
typedef struct gremlin_property gremlin_property;
typedef struct gremlin_subgraph gremlin_subgraph;
typedef struct gremlin_predicate gremlin_predicate;
typedef struct gremlin_traversal gremlin_traversal;
typedef struct gremlin_strategy gremlin_strategy;
typedef struct gremlin_traverser gremlin_traverser;

typedef __int128 gremlin_bigint; /* a BigInteger of up to 127 bits; larger ones are refused where they are read */

typedef struct gremlin_wide { /* the parts of numbers that need more than 8 bytes */
    uint64_t low, high;       /* decimal: IEEE 754 decimal128 in Intel's BID encoding; bigint: two's complement */
} gremlin_wide;

typedef struct gremlin_duration {
    int64_t seconds;
    int32_t nanos; /* 0 to 999,999,999 */
} gremlin_duration;

typedef struct gremlin_value {
    uint8_t type;
    uint8_t family; /* enum: a gremlin_enum */
    uint32_t n;     /* string and binary: bytes; enum: the member */
    union {
        bool b;
        int64_t i; /* whole numbers up to long; char: the code point; date and timestamp: milliseconds since 1970 */
        double d;  /* float, double */
        const char *p;
        const uint8_t *uuid; /* 16 bytes */
        const gremlin_wide *wide;
        const gremlin_duration *duration;
        const gremlin_list *list; /* list, set, bulkset */
        const gremlin_map *map;   /* map, tree */
        const gremlin_path *path;
        gremlin_element *element; /* vertex, edge */
        const gremlin_property *property;
        const gremlin_subgraph *subgraph;
        const gremlin_predicate *predicate;
        const gremlin_traversal *traversal;
        const gremlin_strategy *strategy;
        const gremlin_traverser *traverser;
    };
} gremlin_value;

/* `depth` counts the levels of lists, maps and paths: 1 for a list of numbers. `weight` counts the values in them at all levels, one that
 * occurs twice twice: a list may be in another several times, so that a few lists in each other take long to walk. Traversals refuse values
 * deeper than GREMLIN_DEPTH_MAX and heavier than GREMLIN_WEIGHT_MAX. */
enum { GREMLIN_DEPTH_MAX = 200, GREMLIN_WEIGHT_MAX = 1 << 20 };

struct gremlin_list {
    size_t n;
    unsigned depth, weight;
    const gremlin_value *at;
    const int64_t *bulk; /* bulkset: how often each value is in it; NULL: once */
};

typedef struct gremlin_pair {
    gremlin_value key, value;
} gremlin_pair;

/* Keys may be of any type; the order is that of insertion. */
struct gremlin_map {
    size_t n;
    unsigned depth, weight;
    bool is_entry; /* one entry of a map, from unfold(): its keys are a key, not a set */
    const gremlin_pair *at;
};

typedef struct gremlin_labels {
    size_t n;
    const slice *at;
} gremlin_labels;

struct gremlin_path {
    size_t n;
    unsigned depth, weight;
    const gremlin_value *objects;
    const gremlin_labels *labels; /* one per object */
};

/* A vertex or an edge. `place` belongs to the graph: bytes with which it finds the element again, such as its partition key; elements are
 * equal if their ids and places are. Vertices that
 * were reached through an edge are not `loaded` until a step needs their properties. */
struct gremlin_element {
    bool is_edge;
    bool loaded;
    gremlin_value id;
    slice label;
    slice place;
    gremlin_element *out, *in; /* edge: its vertices */
    size_t n;
    const gremlin_property *properties; /* those of one key are neighbours */
};

/* A property of a vertex (with id and meta-properties), of an edge, or of a vertex property. */
struct gremlin_property {
    gremlin_value id;
    slice key;
    gremlin_value value;
    size_t n;
    const gremlin_property *metas;
    const gremlin_element *owner; /* NULL: a meta-property, or the owner is unknown */
};

struct gremlin_subgraph {
    gremlin_list vertices, edges;
};

struct gremlin_traverser {
    gremlin_value value;
    int64_t bulk;
};

/* ---- enums ---- */

typedef enum gremlin_enum {
    GREMLIN_T,
    GREMLIN_DIRECTION,
    GREMLIN_ORDER,
    GREMLIN_SCOPE,
    GREMLIN_POP,
    GREMLIN_COLUMN,
    GREMLIN_CARDINALITY,
    GREMLIN_OPERATOR,
    GREMLIN_MERGE,
    GREMLIN_BARRIER,
    GREMLIN_PICK,
    GREMLIN_DT, /* units of dateAdd() */
    GREMLIN_ENUMS
} gremlin_enum;

enum { T_ID, T_KEY, T_LABEL, T_VALUE };
enum { DIRECTION_OUT, DIRECTION_IN, DIRECTION_BOTH };
enum { ORDER_ASC, ORDER_DESC, ORDER_SHUFFLE };
enum { SCOPE_GLOBAL, SCOPE_LOCAL };
enum { POP_FIRST, POP_LAST, POP_ALL, POP_MIXED };
enum { COLUMN_KEYS, COLUMN_VALUES };
enum { CARDINALITY_SINGLE, CARDINALITY_LIST, CARDINALITY_SET };
enum {
    OPERATOR_SUM,
    OPERATOR_MINUS,
    OPERATOR_MULT,
    OPERATOR_DIV,
    OPERATOR_MIN,
    OPERATOR_MAX,
    OPERATOR_ASSIGN,
    OPERATOR_AND,
    OPERATOR_OR,
    OPERATOR_ADD_ALL,
    OPERATOR_SUM_LONG
};
enum { MERGE_ON_CREATE, MERGE_ON_MATCH, MERGE_OUT_V, MERGE_IN_V };
enum { PICK_ANY, PICK_NONE };
enum { DT_SECOND, DT_MINUTE, DT_HOUR, DT_DAY };

const char *gremlin_enum_name(gremlin_enum family);                    /* "T", "Direction", … as GraphSON and Groovy name it */
const char *gremlin_member_name(gremlin_enum family, unsigned member); /* "id", "OUT", …; NULL: no such member */
bool gremlin_member_find(gremlin_enum family, slice name, unsigned *member_out);
bool gremlin_enum_find(slice name, gremlin_enum *family_out);
/* A member by its bare name, as in `order().by(desc)`. Names that several families have go to the first of them. */
bool gremlin_bare_find(slice name, gremlin_value *value_out);

/* ---- predicates ---- */

typedef enum gremlin_p {
    P_EQ,
    P_NEQ,
    P_LT,
    P_LTE,
    P_GT,
    P_GTE,
    P_INSIDE,
    P_OUTSIDE,
    P_BETWEEN,
    P_WITHIN,
    P_WITHOUT,
    P_STARTING_WITH,
    P_NOT_STARTING_WITH,
    P_ENDING_WITH,
    P_NOT_ENDING_WITH,
    P_CONTAINING,
    P_NOT_CONTAINING,
    P_REGEX,
    P_NOT_REGEX,
    P_AND,
    P_OR,
    P_NOT,
    P_KINDS
} gremlin_p;

struct gremlin_predicate {
    gremlin_p kind;
    size_t n;
    const gremlin_value *values;                  /* what it compares with; of inside, outside and between two */
    const struct gremlin_predicate *left, *right; /* and, or: both; not: left */
    unsigned depth;                               /* of and, or, not: levels below it */
    const struct text_regex *regex;               /* compiled when it is built */
};

const char *gremlin_p_name(gremlin_p kind);

/* ---- making ---- */

static inline gremlin_value gremlin_null(void) {
    return (gremlin_value){0};
}
static inline gremlin_value gremlin_boolean(bool b) {
    return (gremlin_value){.type = GREMLIN_BOOLEAN, .b = b};
}
static inline gremlin_value gremlin_whole(gremlin_type type, int64_t i) { /* byte, short, int, long, char, date, timestamp */
    return (gremlin_value){.type = (uint8_t)type, .i = i};
}
static inline gremlin_value gremlin_int(int32_t i) {
    return gremlin_whole(GREMLIN_INT, i);
}
static inline gremlin_value gremlin_long(int64_t i) {
    return gremlin_whole(GREMLIN_LONG, i);
}
static inline gremlin_value gremlin_double(double d) {
    return (gremlin_value){.type = GREMLIN_DOUBLE, .d = d};
}
static inline gremlin_value gremlin_float(float d) {
    return (gremlin_value){.type = GREMLIN_FLOAT, .d = (double)d};
}
static inline gremlin_value gremlin_string(slice s) { /* does not copy; at most 4 GB */
    return (gremlin_value){.type = GREMLIN_STRING, .n = (uint32_t)s.n, .p = s.p};
}
static inline gremlin_value gremlin_member(gremlin_enum family, unsigned member) {
    return (gremlin_value){.type = GREMLIN_ENUM, .family = (uint8_t)family, .n = member};
}
static inline gremlin_value gremlin_of_element(gremlin_element *e) {
    return (gremlin_value){.type = e->is_edge ? GREMLIN_EDGE : GREMLIN_VERTEX, .element = e};
}
gremlin_value gremlin_uuid(arena *a, const uint8_t bytes[16]);
gremlin_value gremlin_decimal(arena *a, gremlin_wide bits);
gremlin_value gremlin_big(arena *a, gremlin_bigint number);
gremlin_value gremlin_duration_of(arena *a, int64_t seconds, int32_t nanos);
/* The lists and maps keep the given arrays, which must live as long. */
gremlin_value gremlin_list_of(arena *a, gremlin_type type, const gremlin_value *at, size_t n);
gremlin_value gremlin_map_of(arena *a, gremlin_type type, const gremlin_pair *at, size_t n);

unsigned gremlin_depth(gremlin_value v);                    /* 0: not a collection */
unsigned gremlin_weight(gremlin_value v);                   /* 1: not a collection; UINT_MAX: that or more */
unsigned gremlin_heavier(unsigned weight, gremlin_value v); /* the sum, UINT_MAX at most */

/* A list that grows in an arena: add, then gremlin_items_list. */
typedef struct gremlin_items {
    size_t n, cap;
    gremlin_value *at;
} gremlin_items;
void gremlin_items_add(arena *a, gremlin_items *items, gremlin_value v);
gremlin_value gremlin_items_list(arena *a, const gremlin_items *items, gremlin_type type);

typedef struct gremlin_pairs {
    size_t n, cap;
    gremlin_pair *at;
} gremlin_pairs;
void gremlin_pairs_add(arena *a, gremlin_pairs *pairs, gremlin_value key, gremlin_value value);
gremlin_value gremlin_pairs_map(arena *a, const gremlin_pairs *pairs, gremlin_type type);

/* ---- reading ---- */

static inline slice gremlin_text(gremlin_value v) { /* of a string or binary */
    return (slice){v.p, v.n};
}
static inline bool gremlin_is_text(gremlin_value v, const char *text) {
    return v.type == GREMLIN_STRING && slice_eq(gremlin_text(v), slice_str(text));
}
static inline bool gremlin_is_number(gremlin_value v) {
    return v.type >= GREMLIN_BYTE && v.type <= GREMLIN_DECIMAL;
}
static inline bool gremlin_is_whole(gremlin_value v) {
    return v.type >= GREMLIN_BYTE && v.type <= GREMLIN_LONG;
}
static inline bool gremlin_is_list(gremlin_value v) { /* list, set or bulkset */
    return v.type >= GREMLIN_LIST && v.type <= GREMLIN_BULKSET;
}
static inline bool gremlin_is_map(gremlin_value v) {
    return v.type == GREMLIN_MAP || v.type == GREMLIN_TREE;
}
static inline bool gremlin_is_element(gremlin_value v) {
    return v.type == GREMLIN_VERTEX || v.type == GREMLIN_EDGE;
}
static inline bool gremlin_is_member(gremlin_value v, gremlin_enum family) {
    return v.type == GREMLIN_ENUM && v.family == family;
}
double gremlin_as_double(gremlin_value number);
gremlin_bigint gremlin_as_big(gremlin_value number);                        /* truncated; 0 if it is not finite */
bool gremlin_as_long(gremlin_value number, int64_t *number_out);            /* false: not a whole number of 64 bits */
const gremlin_value *gremlin_map_get(gremlin_value map, gremlin_value key); /* NULL: none */
const char *gremlin_type_name(gremlin_type type);                           /* Java's short name: "Integer", "ArrayList", "Vertex" */

/* ---- relations ---- */

bool gremlin_equal(gremlin_value a, gremlin_value b); /* eq(): NaN equals nothing */
bool gremlin_same(gremlin_value a, gremlin_value b);  /* dedup(), keys of maps: NaN equals itself */
uint64_t gremlin_hash(gremlin_value v);               /* equal for values that are the same */
/* -1, 0, 1; false: the two do not compare. */
bool gremlin_compare(gremlin_value a, gremlin_value b, int *order_out);
int gremlin_order(gremlin_value a, gremlin_value b); /* total */

/* False also if the values do not compare: then neither the predicate nor its negation holds. */
bool gremlin_test(const gremlin_predicate *p, gremlin_value v);

/* ---- numbers ---- */

/* `a` and `b` are numbers. The result has the wider type of the two; whole numbers that overflow become wider, up to bigint. False: a
 * division by zero, or a bigint beyond 127 bits. */
typedef enum gremlin_arithmetic { GREMLIN_ADD, GREMLIN_SUBTRACT, GREMLIN_MULTIPLY, GREMLIN_DIVIDE } gremlin_arithmetic;
bool gremlin_calculate(arena *a, gremlin_arithmetic what, gremlin_value x, gremlin_value y, gremlin_value *result_out);
bool gremlin_decimal_read(slice text, gremlin_wide *bits_out);
size_t gremlin_decimal_write(gremlin_wide bits, char room[64]);
gremlin_wide gremlin_wide_of(gremlin_bigint number);
bool gremlin_big_read(slice digits, gremlin_bigint *number_out);
size_t gremlin_big_write(gremlin_bigint number, char room[64]);

/* ---- text ---- */

/* As Java's toString() shows it, which is what concat(), format() and error messages use: v[1], e[7][1-knows->2], [a, b], {k=v}. */
void gremlin_show(buf *out, gremlin_value v);
