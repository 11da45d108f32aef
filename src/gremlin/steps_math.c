/* steps_math.c — math(): arithmetic on doubles. `_` is the traverser's value, other names are labels; each takes the next by().
 *
 *   sum      product (('+' | '-') product)*
 *   product  power (('*' | '/' | '%') power)*
 *   power    unary ('^' power)?
 *   unary    ('-' | '+') unary | number | name | name '(' sum ')' | '(' sum ')'
 *
 * The text is read once for each traverser; the first time, to list its variables, with no values. */
#include <math.h>
#include <stdlib.h>

#include "gremlin/steps_int.h"

enum { MATH_DEPTH_MAX = 64, MATH_VARIABLES_MAX = 32 };

typedef struct formula {
    slice text;
    size_t at;
    unsigned depth;
    bool failed;
    size_t n; /* variables, in the order of their first use */
    slice names[MATH_VARIABLES_MAX];
    const double *values; /* NULL: only the names are wanted */
} formula;

static double sum(formula *x);

static char peek(formula *x) {
    while (x->at < x->text.n && x->text.p[x->at] == ' ') {
        x->at++;
    }
    return x->at < x->text.n ? x->text.p[x->at] : 0;
}

static bool eat(formula *x, char c) {
    if (c == 0 || peek(x) != c) {
        return false;
    }
    x->at++;
    return true;
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static double signum(double d) {
    return d > 0 ? 1 : d < 0 ? -1 : d;
}

static const struct {
    const char *name;
    double (*call)(double);
} functions[] = {{"abs", fabs},  {"acos", acos},     {"asin", asin},   {"atan", atan},   {"cbrt", cbrt}, {"ceil", ceil},   {"cos", cos},
                 {"cosh", cosh}, {"exp", exp},       {"expm1", expm1}, {"floor", floor}, {"log", log},   {"log10", log10}, {"log1p", log1p},
                 {"log2", log2}, {"signum", signum}, {"sin", sin},     {"sinh", sinh},   {"sqrt", sqrt}, {"tan", tan},     {"tanh", tanh}};

static double call(formula *x, slice name) {
    double argument = sum(x);
    x->failed |= !eat(x, ')');
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (slice_eq(name, slice_str(functions[i].name))) {
            return functions[i].call(argument);
        }
    }
    x->failed = true;
    return 0;
}

static double variable(formula *x, slice name) {
    for (size_t i = 0; i < x->n; i++) {
        if (slice_eq(name, x->names[i])) {
            return x->values ? x->values[i] : 0;
        }
    }
    if (x->n == MATH_VARIABLES_MAX || x->values) {
        x->failed = true;
        return 0;
    }
    x->names[x->n++] = name;
    return 0;
}

static double name_or_call(formula *x) {
    size_t from = x->at;
    while (x->at < x->text.n && (is_letter(x->text.p[x->at]) || is_digit(x->text.p[x->at]))) {
        x->at++;
    }
    slice name = slice_of(x->text.p + from, x->at - from);
    if (eat(x, '(')) {
        return call(x, name);
    }
    return slice_eq(name, SLICE_LIT("pi")) ? acos(-1) : slice_eq(name, SLICE_LIT("e")) ? exp(1) : variable(x, name);
}

static double number(formula *x) {
    char room[64], *end;
    size_t n = x->text.n - x->at < sizeof room - 1 ? x->text.n - x->at : sizeof room - 1;
    memcpy(room, x->text.p + x->at, n);
    room[n] = 0;
    double d = strtod(room, &end);
    x->failed |= end == room;
    x->at += (size_t)(end - room);
    return d;
}

static double unary(formula *x) {
    char c = peek(x);
    double d = 0;
    if (++x->depth > MATH_DEPTH_MAX || x->failed) {
        x->failed = true;
    } else if (eat(x, '-')) {
        d = -unary(x);
    } else if (eat(x, '+')) {
        d = unary(x);
    } else if (eat(x, '(')) {
        d = sum(x);
        x->failed |= !eat(x, ')');
    } else {
        x->failed |= !is_letter(c) && !is_digit(c) && c != '.';
        d = x->failed ? 0 : is_letter(c) ? name_or_call(x) : number(x);
    }
    x->depth--;
    return d;
}

static double power(formula *x) {
    double base = unary(x);
    if (!eat(x, '^') || ++x->depth > MATH_DEPTH_MAX) {
        return base;
    }
    double exponent = power(x);
    x->depth--;
    return pow(base, exponent);
}

static double product(formula *x) {
    double d = power(x);
    for (;;) {
        if (eat(x, '*')) {
            d *= power(x);
        } else if (eat(x, '/')) {
            d /= power(x);
        } else if (eat(x, '%')) {
            d = fmod(d, power(x));
        } else {
            return d;
        }
    }
}

static double sum(formula *x) {
    double d = product(x);
    for (;;) {
        if (eat(x, '+')) {
            d += product(x);
        } else if (eat(x, '-')) {
            d -= product(x);
        } else {
            return d;
        }
    }
}

static formula read_names(const gremlin_step *step) {
    formula x = {.text = gremlin_text(step->args[0])};
    (void)sum(&x);
    x.failed |= peek(&x) != 0;
    return x;
}

static void list_variables(gremlin_run *m, state *s, const traverser *t) {
    formula x = read_names(s->step);
    for (size_t i = 0; i < x.n; i++) {
        gremlin_value v = t->value;
        bool found = slice_eq(x.names[i], SLICE_LIT("_")) || gremlin__select(m, t, x.names[i], POP_LAST, &v);
        gremlin__subject_by(s, t, v, found ? gremlin__by(s->step, i) : NULL);
        subjects_at(s)[subjects_n(s) - 1].missing = !found;
    }
}

static status variables_of(gremlin_run *m, const subject *at, size_t n, double *values, bool *whole_out) {
    *whole_out = true;
    for (size_t j = 0; j < n; j++) {
        if (at[j].missing || !at[j].productive || at[j].out.type == GREMLIN_NULL) {
            *whole_out = false;
            return DONE;
        }
        if (!gremlin_is_number(at[j].out)) {
            return gremlin__fail(m, E_BAD_QUERY, "math() needs numbers, but got a value of the type %s",
                                 gremlin_type_name((gremlin_type)at[j].out.type));
        }
        values[j] = gremlin_as_double(at[j].out);
    }
    return DONE;
}

status gremlin__step_math(gremlin_run *m, flow *f, state *s) {
    formula x = read_names(s->step);
    if (x.failed) {
        return gremlin__fail(m, E_BAD_QUERY, "math() cannot read the expression '%.*s'", slice_shown(x.text), x.text.p);
    }
    status st = gremlin__with_subjects(m, f, s, list_variables);
    for (size_t i = 0; st == DONE && i < batch_n(s); i++) {
        double values[MATH_VARIABLES_MAX];
        bool whole;
        st = variables_of(m, subjects_at(s) + i * x.n, x.n, values, &whole);
        x.values = values;
        x.at = 0;
        double result = sum(&x);
        if (st == DONE && whole) {
            gremlin__emit_value(m, f, s, &batch_at(s)[i], gremlin_double(result));
        }
    }
    return st;
}
