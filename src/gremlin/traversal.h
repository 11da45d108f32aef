/* traversal.h — traversals as data: what a script or bytecode says, as a tree of steps.
 *
 * Text (gremlin_parse) and bytecode (graphson.h, graphbinary.h) make the same tree. Modulators are folded into the step that they modify:
 * as() becomes a label, by() a `gremlin_by`, from() and to() ends of an edge, property() after addV() a property of the new vertex,
 * times(), until() and emit() parts of repeat(). The tree is immutable after parsing and lives in the arena of the operation.
 *
 * The language is that of TinkerPop 3.7's gremlin-language grammar, and what the service has beside it: store(), executionProfile(),
 * strategies in builder form, pairs of partition key and id as ids. Everything else that Groovy has is refused with a message that
 * says what and where: no code is ever run. */
#pragma once

#include "base/op.h"
#include "gremlin/value.h"

/* Steps: name, and the arguments that it takes, one letter each; forms are separated by |, and a star repeats the letter before it.
 *   t traversal   s string   u string or null   a string, null or traversal   n whole number   x number   b boolean   m map   z null
 *   p value or predicate   q predicate   v anything   e enum   c Scope   T T   C Column   D Direction   K Cardinality   O Operator
 *   P Pop   R Order   d DT */
#define GREMLIN_STEPS(X)                                                                                                                   \
    X(V, "V", "v*")                                                                                                                        \
    X(E, "E", "v*")                                                                                                                        \
    X(ADD_V, "addV", "|s|t")                                                                                                               \
    X(ADD_E, "addE", "s|t")                                                                                                                \
    X(MERGE_V, "mergeV", "|m|t|z")                                                                                                         \
    X(MERGE_E, "mergeE", "|m|t|z")                                                                                                         \
    X(INJECT, "inject", "v*")                                                                                                              \
    X(CALL, "call", "|s|sm|st|smt")                                                                                                        \
    X(IO, "io", "s")                                                                                                                       \
    X(AGGREGATE, "aggregate", "s|cs")                                                                                                      \
    X(STORE, "store", "s")                                                                                                                 \
    X(ALL, "all", "p")                                                                                                                     \
    X(ANY, "any", "p")                                                                                                                     \
    X(NONE, "none", "|p")                                                                                                                  \
    X(DISCARD, "discard", "")                                                                                                              \
    X(AND, "and", "t*")                                                                                                                    \
    X(OR, "or", "t*")                                                                                                                      \
    X(AS, "as", "ss*")                                                                                                                     \
    X(AS_BOOL, "asBool", "")                                                                                                               \
    X(AS_DATE, "asDate", "")                                                                                                               \
    X(AS_NUMBER, "asNumber", "")                                                                                                           \
    X(AS_STRING, "asString", "|c")                                                                                                         \
    X(BARRIER, "barrier", "|n|e")                                                                                                          \
    X(BOTH, "both", "u*")                                                                                                                  \
    X(BOTH_E, "bothE", "u*")                                                                                                               \
    X(BOTH_V, "bothV", "")                                                                                                                 \
    X(BRANCH, "branch", "t|T")                                                                                                             \
    X(BY, "by", "|s|T|C|R|t|sR|TR|CR|tR")                                                                                                  \
    X(CAP, "cap", "ss*")                                                                                                                   \
    X(CHOOSE, "choose", "t|T|qt|qtt|tt|ttt")                                                                                               \
    X(COALESCE, "coalesce", "t*")                                                                                                          \
    X(COIN, "coin", "x")                                                                                                                   \
    X(COMBINE, "combine", "v")                                                                                                             \
    X(CONCAT, "concat", "a*")                                                                                                              \
    X(CONJOIN, "conjoin", "s")                                                                                                             \
    X(CONSTANT, "constant", "v")                                                                                                           \
    X(COUNT, "count", "|c")                                                                                                                \
    X(CYCLIC_PATH, "cyclicPath", "")                                                                                                       \
    X(DATE_ADD, "dateAdd", "dn")                                                                                                           \
    X(DATE_DIFF, "dateDiff", "v")                                                                                                          \
    X(DEDUP, "dedup", "s*|cs*")                                                                                                            \
    X(DIFFERENCE, "difference", "v")                                                                                                       \
    X(DISJUNCT, "disjunct", "v")                                                                                                           \
    X(DROP, "drop", "")                                                                                                                    \
    X(ELEMENT, "element", "")                                                                                                              \
    X(ELEMENT_MAP, "elementMap", "s*")                                                                                                     \
    X(EMIT, "emit", "|t|q")                                                                                                                \
    X(EXECUTION_PROFILE, "executionProfile", "")                                                                                           \
    X(FAIL, "fail", "|s")                                                                                                                  \
    X(FILTER, "filter", "t|q")                                                                                                             \
    X(FLAT_MAP, "flatMap", "t")                                                                                                            \
    X(FOLD, "fold", "|vO")                                                                                                                 \
    X(FORMAT, "format", "s")                                                                                                               \
    X(FROM, "from", "s|t|v")                                                                                                               \
    X(GROUP, "group", "|s")                                                                                                                \
    X(GROUP_COUNT, "groupCount", "|s")                                                                                                     \
    X(HAS, "has", "s|sp|ssp|Tp|st|Tt")                                                                                                     \
    X(HAS_ID, "hasId", "p*")                                                                                                               \
    X(HAS_KEY, "hasKey", "pp*")                                                                                                            \
    X(HAS_LABEL, "hasLabel", "pp*")                                                                                                        \
    X(HAS_NOT, "hasNot", "s")                                                                                                              \
    X(HAS_VALUE, "hasValue", "pp*")                                                                                                        \
    X(ID, "id", "")                                                                                                                        \
    X(IDENTITY, "identity", "")                                                                                                            \
    X(IN, "in", "u*")                                                                                                                      \
    X(IN_E, "inE", "u*")                                                                                                                   \
    X(IN_V, "inV", "")                                                                                                                     \
    X(INDEX, "index", "")                                                                                                                  \
    X(INTERSECT, "intersect", "v")                                                                                                         \
    X(IS, "is", "p")                                                                                                                       \
    X(KEY, "key", "")                                                                                                                      \
    X(LABEL, "label", "")                                                                                                                  \
    X(LENGTH, "length", "|c")                                                                                                              \
    X(LIMIT, "limit", "n|cn")                                                                                                              \
    X(LOCAL, "local", "t")                                                                                                                 \
    X(LOOPS, "loops", "|s")                                                                                                                \
    X(L_TRIM, "lTrim", "|c")                                                                                                               \
    X(MAP, "map", "t")                                                                                                                     \
    X(MATCH, "match", "tt*")                                                                                                               \
    X(MATH, "math", "s")                                                                                                                   \
    X(MAX, "max", "|c")                                                                                                                    \
    X(MEAN, "mean", "|c")                                                                                                                  \
    X(MERGE, "merge", "v")                                                                                                                 \
    X(MIN, "min", "|c")                                                                                                                    \
    X(NOT, "not", "t")                                                                                                                     \
    X(OPTION, "option", "t|vt|vm|vz")                                                                                                      \
    X(OPTIONAL, "optional", "t")                                                                                                           \
    X(ORDER, "order", "|c")                                                                                                                \
    X(OTHER_V, "otherV", "")                                                                                                               \
    X(OUT, "out", "u*")                                                                                                                    \
    X(OUT_E, "outE", "u*")                                                                                                                 \
    X(OUT_V, "outV", "")                                                                                                                   \
    X(PATH, "path", "")                                                                                                                    \
    X(PRODUCT, "product", "v")                                                                                                             \
    X(PROFILE, "profile", "|s")                                                                                                            \
    X(PROJECT, "project", "ss*")                                                                                                           \
    X(PROPERTIES, "properties", "s*")                                                                                                      \
    X(PROPERTY, "property", "m|Km|vvv*")                                                                                                   \
    X(PROPERTY_MAP, "propertyMap", "s*")                                                                                                   \
    X(RANGE, "range", "nn|cnn")                                                                                                            \
    X(REPEAT, "repeat", "t|st")                                                                                                            \
    X(REPLACE, "replace", "uu|cuu")                                                                                                        \
    X(REVERSE, "reverse", "")                                                                                                              \
    X(R_TRIM, "rTrim", "|c")                                                                                                               \
    X(SACK, "sack", "|O")                                                                                                                  \
    X(SAMPLE, "sample", "n|cn")                                                                                                            \
    X(SELECT, "select", "C|t|Pt|ss*|Pss*")                                                                                                 \
    X(SIDE_EFFECT, "sideEffect", "t")                                                                                                      \
    X(SIMPLE_PATH, "simplePath", "")                                                                                                       \
    X(SKIP, "skip", "n|cn")                                                                                                                \
    X(SPLIT, "split", "u|cu")                                                                                                              \
    X(SUBGRAPH, "subgraph", "s")                                                                                                           \
    X(SUBSTRING, "substring", "n|nn|cn|cnn")                                                                                               \
    X(SUM, "sum", "|c")                                                                                                                    \
    X(TAIL, "tail", "|n|c|cn")                                                                                                             \
    X(TIME_LIMIT, "timeLimit", "n")                                                                                                        \
    X(TIMES, "times", "n")                                                                                                                 \
    X(TO, "to", "s|t|Du*|v")                                                                                                               \
    X(TO_E, "toE", "Du*")                                                                                                                  \
    X(TO_LOWER, "toLower", "|c")                                                                                                           \
    X(TO_UPPER, "toUpper", "|c")                                                                                                           \
    X(TO_V, "toV", "D")                                                                                                                    \
    X(TREE, "tree", "|s")                                                                                                                  \
    X(TRIM, "trim", "|c")                                                                                                                  \
    X(UNFOLD, "unfold", "")                                                                                                                \
    X(UNION, "union", "t*")                                                                                                                \
    X(UNTIL, "until", "t|q")                                                                                                               \
    X(VALUE, "value", "")                                                                                                                  \
    X(VALUE_MAP, "valueMap", "s*|bs*")                                                                                                     \
    X(VALUES, "values", "s*")                                                                                                              \
    X(WHERE, "where", "t|q|sq")                                                                                                            \
    X(WITH, "with", "s|sv")

typedef enum gremlin_op {
#define X(op, name, takes) GREMLIN_##op##_STEP,
    GREMLIN_STEPS(X)
#undef X
        GREMLIN_OPS
} gremlin_op;

const char *gremlin_op_name(gremlin_op op);

typedef struct gremlin_step gremlin_step;

/* by(): what a step uses of each traverser. */
typedef enum gremlin_by_kind { BY_IDENTITY, BY_KEY, BY_TOKEN, BY_COLUMN, BY_TRAVERSAL } gremlin_by_kind;
typedef struct gremlin_by {
    gremlin_by_kind kind;
    slice key;                          /* BY_KEY */
    unsigned member;                    /* BY_TOKEN, BY_COLUMN */
    const gremlin_traversal *traversal; /* BY_TRAVERSAL */
    unsigned order;                     /* of order(): ORDER_ASC, … */
} gremlin_by;

/* option(): of choose() and branch() a choice and its traversal, of mergeV() and mergeE() a map. */
typedef struct gremlin_option {
    gremlin_value choice; /* a value, a predicate, a traversal, Pick or Merge */
    gremlin_value then;   /* a traversal or, for merges, a map */
} gremlin_option;

/* property(): key and value, each a constant or a traversal. */
typedef struct gremlin_setting {
    int cardinality; /* -1: the graph's default */
    gremlin_value key, value;
    size_t n;
    const gremlin_pair *metas;
} gremlin_setting;

/* has(): one test of an element. */
typedef struct gremlin_condition {
    enum { HAS_PROPERTY, HAS_TOKEN } kind;
    slice key;                          /* HAS_PROPERTY */
    unsigned token;                     /* HAS_TOKEN: T_ID, T_LABEL, T_KEY or T_VALUE */
    const gremlin_predicate *predicate; /* NULL: the property only has to exist */
    bool absent;                        /* hasNot(): it must not exist */
} gremlin_condition;

struct gremlin_step {
    gremlin_op op;
    size_t n;
    const gremlin_value *args;
    gremlin_labels labels; /* as() */
    size_t by_n;
    const gremlin_by *bys;
    size_t given_n;
    const gremlin_pair *given;
    size_t option_n;
    const gremlin_option *options;
    size_t setting_n;
    const gremlin_setting *settings; /* of addV, addE and property() */
    size_t condition_n;
    const gremlin_condition *conditions; /* has*(); of V, out() and others those that the planner moved here */
    gremlin_value from, to;              /* a label (string), an element, a traversal; null: none */
    const gremlin_traversal *until;      /* of repeat(); NULL: none */
    const gremlin_traversal *emit;
    bool emits;       /* emit(), with or without a condition */
    bool until_first; /* before repeat(): tested before the first round */
    bool emit_first;
    int64_t times; /* -1: none */
    int64_t limit; /* of V, E, out() …: the most that following steps take; -1: unknown */
};

typedef enum gremlin_terminal {
    TERMINAL_ALL, /* toList(), or none */
    TERMINAL_NEXT,
    TERMINAL_NEXT_N,
    TERMINAL_ITERATE,
    TERMINAL_HAS_NEXT,
    TERMINAL_TO_SET,
    TERMINAL_EXPLAIN,
} gremlin_terminal;

/* g.with…() */
typedef struct gremlin_source {
    size_t given_n;
    const gremlin_pair *given; /* with(): names and values, such as evaluationTimeout */
    gremlin_value sack;        /* withSack(): its first value */
    bool has_sack;
    gremlin_value sack_merge; /* Operator, or null */
    size_t side_n;
    const gremlin_pair *sides;          /* withSideEffect(): name to value */
    const gremlin_value *side_reducers; /* of each an Operator, by which aggregate() adds to it, or null */
    size_t strategy_n;
    const gremlin_strategy *const *strategies;
} gremlin_source;

/* A strategy by its short name, with its settings. ProjectionStrategy is for the front end. */
struct gremlin_strategy {
    slice name;
    size_t n;
    const gremlin_pair *settings;
};

/* NULL: none; `source` and the strategy may be NULL */
const gremlin_strategy *gremlin_strategy_find(const gremlin_source *source, slice name);
const gremlin_value *gremlin_strategy_setting(const gremlin_strategy *s, const char *key);

struct gremlin_traversal {
    size_t n;
    const gremlin_step *steps;
    const gremlin_source *source; /* NULL: anonymous */
    gremlin_terminal terminal;
    int64_t next_n;    /* TERMINAL_NEXT_N */
    bool needs_path;   /* a step of it needs all that a traverser has passed */
    bool has_labels;   /* a step of it has a label */
    bool needs_labels; /* a step of it needs what was labelled */
    bool has_barrier;  /* a step of it waits for all traversers */
    bool writes;       /* it, or a traversal in it, changes the graph */
};

/* A script: its statements run one after the other, and the results of the last are the script's. */
typedef struct gremlin_script {
    size_t n;
    const gremlin_traversal *const *traversals;
} gremlin_script;

typedef struct gremlin_limits {
    size_t script_bytes; /* text */
    size_t steps;        /* of a script, nested ones included */
    unsigned depth;      /* of nesting: traversals, lists, maps */
} gremlin_limits;

extern const gremlin_limits gremlin_limits_of_service; /* 64 KB, 400 steps */

/* Reads a script. `bindings`: a map from names to values, or null. The text, the bindings and the operation's arena must outlive the
 * script. On E_BAD_QUERY (or E_MEMORY) the operation's detail says what is wrong, and where: "line 1, column 7". */
MUST_CHECK err gremlin_parse(op *o, const gremlin_limits *limits, slice text, gremlin_value bindings, gremlin_script *script_out);

/* ---- building a traversal step by step; for the readers of bytecode ---- */

typedef struct gremlin_builder gremlin_builder;

gremlin_builder *gremlin_build(op *o, const gremlin_limits *limits);
/* A traversal under construction; finish the inner ones before the step that they are arguments of. */
typedef struct gremlin_draft gremlin_draft;
MUST_CHECK err gremlin_draft_begin(gremlin_builder *b, bool anonymous, gremlin_draft **draft_out);
MUST_CHECK err gremlin_draft_source(gremlin_builder *b, gremlin_draft *d, slice name, const gremlin_value *args,
                                    size_t n); /* withSack, … */
MUST_CHECK err gremlin_draft_step(gremlin_builder *b, gremlin_draft *d, slice name, const gremlin_value *args, size_t n);
MUST_CHECK err gremlin_draft_end(gremlin_builder *b, gremlin_draft *d, const gremlin_traversal **traversal_out);
bool gremlin_is_source_method(slice name); /* with, withSack, withStrategies, … */

/* A predicate by its name; `args` as its method has them. False if there is no such predicate or the arguments do not fit. */
bool gremlin_predicate_of(arena *a, slice name, const gremlin_value *args, size_t n, gremlin_value *predicate_out);

/* ---- looking at a traversal ---- */

void gremlin_show_traversal(buf *out, const gremlin_traversal *t); /* as text: [GraphStep(vertex,[]), …], for explain() */
