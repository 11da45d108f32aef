/* expression_int.h — within mql/: the tree of an expression, the rows of the table of operators, and what the operators share.
 *
 * Each kind of operators has its file, expression_<kind>.c, which ends with its rows; expression_table.c joins them to one table. */
#pragma once

#include "mql/expression.h"
#include "mql/show.h"

/* ---- the tree ---- */

typedef enum mql__kind { MQL__CONSTANT, MQL__PATH, MQL__ARRAY, MQL__OBJECT, MQL__OPERATOR } mql__kind;

/* Where a path begins. */
typedef enum mql__source {
    MQL__ROOT,
    MQL__SLOT, /* a variable that $let, $map, … or the command defined */
    MQL__NOW,
    MQL__CLUSTER_TIME,
    MQL__USER_ROLES
} mql__source;

typedef struct mql__operator mql__operator;

struct mql_expression {
    mql__kind kind;
    mql__source source; /* MQL__PATH */
    mql_value constant; /* MQL__CONSTANT */
    slice path;         /* MQL__PATH: dotted, after the variable; empty: the variable itself */
    const slice *steps; /* MQL__PATH: the path's components. MQL__OBJECT: the names of the members */
    size_t steps_n;
    const mql__operator *operator; /* MQL__OPERATOR */
    const mql_expression **args;   /* arguments, elements, or members; NULL: an optional argument that was left out */
    size_t n;
    size_t slot;          /* MQL__SLOT: the variable. Operators that bind variables: the first of them */
    const void *prepared; /* computed by the operator from constant arguments, at parsing */
};

typedef struct mql_name {
    slice name;
    size_t slot;
    size_t visible; /* number of names in scope, including this one */
    const struct mql_name *next;
} mql_name;

enum { MQL__VISIBLE_MAX = 500 }; /* names are looked up one by one */

/* ---- operators ---- */

/* A call of an operator. */
typedef struct mql__call {
    mql_run *run;
    const mql_expression *e;
    mql_value *args; /* the values of the arguments; missing if left out. NULL for lazy operators, which evaluate them as needed */
    size_t n;
} mql__call;

typedef err (*mql__function)(const mql__call *c, mql_value *value_out);

/* MongoDB phrases errors about named arguments differently for each operator. These are the phrasings: */
typedef enum mql__phrasing {
    MQL__SUPPORTS,  /* $x only supports an object as its argument. Unrecognized argument to $x: f. Missing 'f' parameter to $x */
    MQL__PARAMETER, /* the same, with: Unrecognized parameter to $x: f */
    MQL__REQUIRES,  /* $x requires an object as an argument, found: t. $x found an unknown argument: f. $x requires 'f' to be specified */
    MQL__SETS,      /* the same, with: $x only supports an object as its argument */
    MQL__FOUND,     /* the same, with: $x only supports an object as an argument, found t. $x requires an 'f' field */
    MQL__EXPECTS,   /* the same, with: $x expects an object of named arguments but found: t. $x requires 'f' parameter */
    MQL__CONVERTS,  /* the same, with: Missing 'f' parameter to $x */
} mql__phrasing;

enum { MQL__NAMED_MAX = 11 };

/* Named arguments become the operator's arguments in the order of the list. */
typedef struct mql__named {
    mql__phrasing phrasing;
    int no_object, unknown; /* codes */
    struct {
        const char *name;
        int missing; /* error code if the argument is missing; 0: it is optional */
    } arguments[MQL__NAMED_MAX];
} mql__named;

/* Parses an operator whose arguments are not just a list of expressions; fills in the node's arguments. */
typedef err (*mql__parse_function)(mql_scope *s, mql_expression *node, mql_value argument);

enum {
    MQL__SERVICE = 1,  /* Azure's service has it */
    MQL__LAZY = 2,     /* evaluates its arguments itself */
    MQL__NULLS = 4,    /* null if an argument is null, undefined or missing */
    MQL__VOLATILE = 8, /* never folded: not a function of its arguments alone */
    MQL__ANY = 255     /* `most`: no limit */
};

struct mql__operator {
    const char *name;    /* with its $ */
    uint8_t least, most; /* number of arguments, unless `named` or `parse` */
    uint8_t flags;
    uint8_t eager; /* how many arguments are evaluated before the call, the rest by mql__argument as needed; 0: all, unless it is lazy */
    mql__function function;
    const mql__named *named;
    mql__parse_function parse;
    int variant; /* for functions that serve several operators */
};

typedef struct mql__operators {
    const mql__operator *rows;
    size_t n;
} mql__operators;

#define MQL__OPERATORS(array)                                                                                                              \
    { (array), sizeof(array) / sizeof *(array) }

extern const mql__operators mql__accumulator_operators, mql__arithmetic_operators, mql__array_operators, mql__bits_operators,
    mql__compare_operators, mql__control_operators, mql__convert_operators, mql__date_operators, mql__date_arithmetic_operators,
    mql__date_text_operators, mql__hash_operators, mql__object_operators, mql__pattern_operators, mql__set_operators, mql__string_operators,
    mql__substring_operators, mql__math_operators, mql__variable_operators;

/* The row of an operator by its name with $; NULL: there is none. */
const mql__operator *mql__operator_find(slice name);
/* The rows one after the other, for tests and documents; NULL: no more. */
const mql__operator *mql__operator_at(size_t position);

/* ---- parsing ---- */

/* Parses an argument that may be an array of expressions, or one expression. */
MUST_CHECK err mql__parse_list(mql_scope *s, mql_expression *node, mql_value argument);
MUST_CHECK err mql__parse_named(mql_scope *s, mql_expression *node, const mql__named *named, mql_value argument);
/* Collects named arguments without parsing them, into values in the order of the list; missing: left out. */
MUST_CHECK err mql__take_named(mql_scope *s, const char *name, const mql__named *named, mql_value argument,
                               mql_value values[MQL__NAMED_MAX]);
/* Declares a variable. It is visible until the caller restores the scope's names (mql_scope.names). */
MUST_CHECK err mql__bind(mql_scope *s, slice name, size_t *slot_out);
MUST_CHECK err mql__check_variable_name(op *o, slice name);
MUST_CHECK err mql__check_field_name(op *o, slice name);

/* ---- evaluation ---- */

#define mql__fail(c, code, ...) mql_fail((c)->run->op, (code), __VA_ARGS__)

static inline const char *mql__name(const mql__call *c) {
    return c->e->operator->name;
}

/* Evaluates an argument of a lazy operator; missing if it was left out. */
MUST_CHECK err mql__argument(const mql__call *c, size_t position, mql_value *value_out);

/* OK, or why the result is too large: MongoDB's error for more than 16 MB, or the budget's. */
MUST_CHECK err mql__check_room(mql_run *r, size_t bytes);
MUST_CHECK err mql__text_result(const mql__call *c, slice text, mql_value *value_out);
MUST_CHECK err mql__integer_result(const mql__call *c, int64_t number, mql_value *value_out); /* int32 if it fits, otherwise int64 */

/* ---- building arrays and documents ----
 *
 *   mql__maker m = mql__make(run);
 *   err e = …  mql__make_next(&m, value) …
 *   return mql__made(run, &m, BSON_TYPE_ARRAY, e, value_out);     frees the buffer, also if e is an error
 */
typedef struct mql__maker {
    buf bytes;
    uint32_t n; /* elements so far */
} mql__maker;

mql__maker mql__make(mql_run *r);
void mql__make_next(mql__maker *m, mql_value v); /* a missing value adds nothing */
void mql__make_member(mql__maker *m, slice key, mql_value v);
MUST_CHECK err mql__made(mql_run *r, mql__maker *m, bson_type_t type, err so_far, mql_value *value_out);

/* Elements of an array as an array of values, in the run's arena. Pays for them. */
MUST_CHECK err mql__elements(mql_run *r, mql_value array, mql_value **elements_out, size_t *n_out);

/* Compares as the run's collation says. */
int mql__compare(const mql_run *r, mql_value a, mql_value b);
/* About how many steps it takes to read a value once. */
static inline uint64_t mql__reading(mql_value v) {
    return 1 + v.bytes.n / 64;
}

/* An integer of 32 bits, of any number type; false if the value is none. */
static inline bool mql__as_int32(mql_value v, int32_t *integer_out) {
    int64_t integer;
    bool fits = mql_as_integer(v, &integer) && integer == (int32_t)integer;
    *integer_out = fits ? (int32_t)integer : 0;
    return fits;
}

/* Arguments 2 and 3 of $indexOfArray, $indexOfBytes and $indexOfCP: start and end, at most `length`. */
MUST_CHECK err mql__bounds(const mql__call *c, size_t length, size_t *from_out, size_t *to_out);

/* A value and its original position, for stable sorting. */
typedef struct mql__ranked {
    mql_value value;
    size_t at;
} mql__ranked;

/* The elements of an array in ascending order; equal ones stay in the array's order. In the run's arena. */
MUST_CHECK err mql__sorted(mql_run *r, mql_value array, mql__ranked **sorted_out, size_t *n_out);

typedef struct mql__member {
    slice key;
    mql_value value;
    size_t at; /* set by mql__object_of */
} mql__member;

/* A document of members. Of members with the same name the last value counts, in the place of the first. Reorders `members`. */
MUST_CHECK err mql__object_of(mql_run *r, mql__member *members, size_t n, mql_value *value_out);
/* Appends a document's members. The array must have room for mql_length of it. */
size_t mql__members(mql_value document, mql__member *members);

/* The operands of an operator that is also an accumulator: its arguments, or the elements if its one argument is an array. */
MUST_CHECK err mql__operands(const mql__call *c, mql_value **operands_out, size_t *n_out);

/* A value as text, as string operators see it: null, undefined and missing are "", dates are in ISO 8601. 16007 for other types. */
MUST_CHECK err mql__coerce_text(const mql__call *c, mql_value v, slice *text_out);

/* Bytes of the UTF-8 character at `at`, never beyond the end. */
static inline size_t mql__character(slice text, size_t at) {
    unsigned char c = (unsigned char)text.p[at];
    size_t n = c < 0xC0 ? 1 : c < 0xE0 ? 2 : c < 0xF0 ? 3 : 4;
    return n < text.n - at ? n : text.n - at;
}
static inline bool mql__is_continuation(slice text, size_t at) { /* inside a UTF-8 character */
    return at < text.n && ((unsigned char)text.p[at] & 0xC0) == 0x80;
}

/* The first place of `part` in `text` at `from` or later, by bytes; SIZE_MAX: none. */
size_t mql__find_text(slice text, slice part, size_t from);
