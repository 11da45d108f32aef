/* ast.h — the syntax tree of a query, in an arena; not changed after binding.
 *
 * The language is the service's SQL (docs/query.md). Every node has its place in the text, for errors and for rewrites that keep the
 * original wording. Names are slices of the text; string literals and escaped names are decoded into the arena. */
#pragma once

#include "base/arena.h"
#include "query/value.h"

/* A span of the query text: bytes [start, end). An expression's span excludes the parentheses around it. */
typedef struct query_span {
    uint32_t start, end;
} query_span;

typedef struct query_expr query_expr;
typedef struct query_select query_select;

typedef enum query_kind {
    EXPR_LITERAL,   /* undefined, null, true, false, numbers, strings */
    EXPR_PARAMETER, /* @name */
    EXPR_NAME,      /* an alias of FROM: c, r, root */
    EXPR_MEMBER,    /* inner.name, inner["name"] with a literal name */
    EXPR_INDEX,     /* inner[expression], inner[3] */
    EXPR_UNARY,
    EXPR_BINARY,
    EXPR_CONDITIONAL, /* a ? b : c */
    EXPR_COALESCE,    /* a ?? b */
    EXPR_BETWEEN,     /* items: value, low, high */
    EXPR_IN,          /* items: value, then the list */
    EXPR_LIKE,        /* items: value, pattern[, escape] */
    EXPR_CALL,        /* name(items); `udf` says whether it is udf.name */
    EXPR_ARRAY,       /* [items] */
    EXPR_OBJECT,      /* {names: items} */
    EXPR_SUBQUERY,    /* (SELECT …): a scalar */
    EXPR_EXISTS,      /* EXISTS(SELECT …) */
    EXPR_ARRAY_OF,    /* ARRAY(SELECT …) */
    EXPR_ALL,         /* ALL(SELECT …), FIRST(SELECT …), LAST(SELECT …) */
    EXPR_FIRST,
    EXPR_LAST,
    EXPR_FILTER, /* not from the parser, as the two below: a registered filter (query/filter.h) that is applied to the item */
    EXPR_KEY,    /* the item's first or last key (query/key.h), as a string */
    EXPR_WITHIN  /* whether the item has a key within some spans */
} query_kind;

typedef enum query_operator {
    OP_PLUS,
    OP_MINUS,
    OP_NOT,
    OP_BIT_NOT, /* the four above: unary + - NOT ~ */
    OP_MULTIPLY,
    OP_DIVIDE,
    OP_MODULO,
    OP_ADD,
    OP_SUBTRACT,
    OP_CONCAT,
    OP_SHIFT_LEFT,
    OP_SHIFT_RIGHT,
    OP_SHIFT_RIGHT_ZERO,
    OP_BIT_AND,
    OP_BIT_XOR,
    OP_BIT_OR,
    OP_EQUAL,
    OP_NOT_EQUAL,
    OP_LESS,
    OP_LESS_EQUAL,
    OP_GREATER,
    OP_GREATER_EQUAL, /* the six above: = != (or <>) < <= > >= */
    OP_AND,
    OP_OR
} query_operator;

struct query_expr {
    query_kind kind;
    query_span span;
    query_operator op;  /* EXPR_UNARY, EXPR_BINARY */
    bool negated;       /* NOT IN, NOT LIKE, NOT BETWEEN */
    bool udf;           /* EXPR_CALL: a user-defined function (UDF) */
    uint8_t site;       /* UDF: number of the call site, in text order from 0 */
    bool quoted;        /* EXPR_MEMBER: written inner["name"]; rewrites keep that form */
    uint16_t depth;     /* height of the tree below, 1 for a leaf; at most QUERY_DEPTH_MAX */
    slice name;         /* EXPR_NAME, EXPR_PARAMETER (with its @), EXPR_MEMBER, EXPR_CALL */
    query_value value;  /* EXPR_LITERAL */
    query_expr **items; /* operands in text order; EXPR_MEMBER and EXPR_INDEX: items[0] is the inner expression */
    size_t items_n;
    const slice *names;                /* EXPR_OBJECT: names of the items */
    query_select *select;              /* subqueries */
    const struct query_filter *filter; /* EXPR_FILTER */
    const struct query_key *key;       /* EXPR_KEY, EXPR_WITHIN */

    /* set by binding (query/bind.h) */
    int slot;       /* EXPR_NAME: source; EXPR_PARAMETER: index of the parameter, -1: not given; UDF: index in query.udfs */
    int aggregate;  /* EXPR_CALL of an aggregate: index in the select's aggregates, else -1 */
    unsigned group; /* in a select with GROUP BY: index of the group value that this is, plus one; else 0 */
    const struct query_function *function; /* EXPR_CALL, but not aggregates and UDFs */
    uint8_t setting;                       /* EXPR_CALL: search_distance or search_language that the container sets for the first
                                              argument */
    const query_select *computed;          /* EXPR_MEMBER of an item: the select of a computed property; NULL: a path of the document */
    const void *prepared;                  /* compiled form of a literal pattern, list or path */
};

/* One column of SELECT. */
typedef struct query_column {
    query_expr *expr;
    slice alias; /* AS name, else the last name of a path, else "$1", "$2", … counting such columns; empty for VALUE */
    bool alias_given;
} query_column;

typedef enum query_source_kind {
    SOURCE_ROOT,    /* FROM c, FROM c.children AS x, JOIN c.address: `from` is a path below the item or below an earlier source */
    SOURCE_ITEMS,   /* x IN collection: each element */
    SOURCE_SUBQUERY /* JOIN (SELECT …) AS x, FROM (SELECT …) x: each row */
} query_source_kind;

typedef struct query_source {
    query_source_kind kind;
    query_span span;
    slice alias; /* as written, or the last name of the path; empty if there is none: FROM c.list[0], FROM (SELECT …) */
    bool alias_given;
    query_expr *from;     /* ROOT and ITEMS: a name with members and literal indexes below it; for x IN (SELECT …) an EXPR_SUBQUERY, whose
                             elements are iterated; for x IN f(…) an EXPR_CALL; NULL (not from the parser) for the item itself */
    query_select *select; /* SUBQUERY */
} query_source;

typedef struct query_order {
    query_expr *expr;
    bool descending;
    bool direction_given; /* ASC or DESC was written; rewrites keep that */
} query_order;

/* TOP, OFFSET and LIMIT take a number or a parameter. */
typedef struct query_count {
    bool given;
    query_expr *expr;
    query_span span;
} query_count;

struct query_select {
    query_span span;
    bool distinct, star, value; /* DISTINCT, SELECT *, SELECT VALUE */
    query_count top, offset, limit;
    query_column *columns;
    size_t columns_n;
    query_span columns_span; /* span of the columns, or of * */
    query_source *sources;   /* FROM and its JOINs, in order; empty for SELECT 1 */
    size_t sources_n;
    query_expr *where;
    query_span where_span; /* span of the condition, without WHERE */
    query_expr **group;
    size_t group_n;
    query_order *order;
    size_t order_n;
    bool order_by_rank;  /* ORDER BY RANK f(…): each `order` expression is an EXPR_CALL */
    uint16_t depth;      /* the depth of its deepest expression, plus one */
    query_select *outer; /* the enclosing select, or NULL */

    /* set by binding */
    int first_slot;          /* slot of its first source */
    query_expr **aggregates; /* calls of aggregates that belong to this select */
    size_t aggregates_n;
    bool shows_rows; /* grouped, and a column has a subquery, which may use any property of a group's first row */
};

typedef struct query_ast {
    slice text;
    query_select *select;
    unsigned slots; /* number of sources in all selects */
    unsigned depth; /* height of the tree; at most QUERY_DEPTH_MAX */
    unsigned joins, udf_calls;
} query_ast;

/* The span of a name that is a slice of the text: of a call, a source or a parameter. */
static inline query_span query_name_span(const query_ast *ast, slice name) {
    uint32_t start = (uint32_t)(name.p - ast->text.p);
    return (query_span){start, start + (uint32_t)name.n};
}
