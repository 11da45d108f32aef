/* steps_text.c — steps on strings: toUpper, trim, split and others, asString, asNumber, asBool, concat, format. */
#include <stdlib.h>

#include "gremlin/steps_int.h"
#include "gremlin/text_int.h"
#include "text/text.h"

static gremlin_value text_value(slice s) {
    return gremlin_string(s);
}

static slice arg_text(const gremlin_step *step, size_t i) {
    const gremlin_value *v = &step->args[has_scope(step) + i];
    return v->type == GREMLIN_STRING ? gremlin_text(*v) : SLICE_EMPTY;
}

static slice replaced(gremlin_run *m, slice s, slice from, slice to) {
    buf out = buf_init_counted(BUF_NO_LIMIT, m->op->budget);
    while (from.n && buf_ok(&out)) {
        size_t at = text_find(s, from);
        if (at == SIZE_MAX) {
            break;
        }
        buf_add(&out, s.p, at);
        buf_add_slice(&out, to);
        s = slice_skip(s, at + from.n);
    }
    buf_add_slice(&out, s);
    slice text = buf_ok(&out) ? arena_copy(&m->heap, buf_view(&out)) : SLICE_EMPTY;
    buf_free(&out);
    return text;
}

static void split_characters(gremlin_run *m, slice s, gremlin_items *items) {
    for (size_t at = 0; at < s.n;) {
        uint32_t c;
        size_t n = text_decode(s.p + at, s.p + s.n, &c);
        gremlin_items_add(&m->heap, items, text_value(slice_of(s.p + at, n)));
        at += n;
    }
}

/* split(null): at white space; split(''): into characters. */
static gremlin_value split(gremlin_run *m, slice s, const gremlin_value *separator) {
    gremlin_items items = {0};
    if (separator->type == GREMLIN_STRING && separator->n == 0) {
        split_characters(m, s, &items);
        return gremlin_items_list(&m->heap, &items, GREMLIN_LIST);
    }
    bool blank = separator->type != GREMLIN_STRING;
    slice at_text = blank ? SLICE_LIT(" ") : gremlin_text(*separator);
    for (;;) {
        size_t at = text_find(s, at_text);
        slice part = at == SIZE_MAX ? s : slice_of(s.p, at);
        if (part.n || !blank) {
            gremlin_items_add(&m->heap, &items, text_value(part));
        }
        if (at == SIZE_MAX) {
            return gremlin_items_list(&m->heap, &items, GREMLIN_LIST);
        }
        s = slice_skip(s, at + at_text.n);
    }
}

/* Negative positions count from the end, as in Python. */
static gremlin_value substring(gremlin_run *m, const gremlin_step *step, slice s) {
    const gremlin_value *args = step->args + has_scope(step);
    int64_t n = (int64_t)text_units(s), start = args[0].i, end = step->n - has_scope(step) > 1 ? args[1].i : n;
    start = start < 0 ? start + n : start;
    end = end < 0 ? end + n : end;
    start = start < 0 ? 0 : start > n ? n : start;
    end = end > n ? n : end;
    return text_value(end > start ? text_part(&m->heap, s, (size_t)start, (size_t)(end - start)) : SLICE_EMPTY);
}

static gremlin_value on_text(gremlin_run *m, const gremlin_step *step, slice s) {
    switch (step->op) {
    case GREMLIN_TO_UPPER_STEP:
        return text_value(text_upper(&m->heap, s));
    case GREMLIN_TO_LOWER_STEP:
        return text_value(text_lower(&m->heap, s));
    case GREMLIN_TRIM_STEP:
        return text_value(text_trim(&m->heap, s, NULL, TEXT_BOTH));
    case GREMLIN_L_TRIM_STEP:
        return text_value(text_trim(&m->heap, s, NULL, TEXT_LEFT));
    case GREMLIN_R_TRIM_STEP:
        return text_value(text_trim(&m->heap, s, NULL, TEXT_RIGHT));
    case GREMLIN_LENGTH_STEP:
        return gremlin_int((int32_t)text_units(s));
    case GREMLIN_REVERSE_STEP:
        return text_value(text_reverse(&m->heap, s));
    case GREMLIN_REPLACE_STEP:
        return text_value(replaced(m, s, arg_text(step, 0), arg_text(step, 1)));
    case GREMLIN_SPLIT_STEP:
        return split(m, s, &step->args[has_scope(step)]);
    default:
        return substring(m, step, s);
    }
}

/* ---- conversions ---- */

static bool number_of(gremlin_run *m, slice s, gremlin_value *out) {
    gremlin_bigint big;
    char room[64], *end;
    s = slice_trim(s);
    if (gremlin_big_read(s, &big)) {
        *out = big >= INT32_MIN && big <= INT32_MAX   ? gremlin_int((int32_t)big)
               : big >= INT64_MIN && big <= INT64_MAX ? gremlin_long((int64_t)big)
                                                      : gremlin_big(&m->heap, big);
        return true;
    }
    if (s.n == 0 || s.n >= sizeof room) {
        return false;
    }
    memcpy(room, s.p, s.n);
    room[s.n] = 0;
    *out = gremlin_double(strtod(room, &end));
    return *end == 0;
}

static bool as_bool(gremlin_value v, gremlin_value *out) {
    slice s = v.type == GREMLIN_STRING ? slice_trim(gremlin_text(v)) : SLICE_EMPTY;
    bool yes = slice_eq_nocase(s, SLICE_LIT("true")), no = slice_eq_nocase(s, SLICE_LIT("false"));
    if (gremlin_is_number(v)) {
        *out = gremlin_boolean(gremlin_as_double(v) != 0);
        return true;
    }
    *out = v.type == GREMLIN_BOOLEAN ? v : gremlin_boolean(yes);
    return v.type == GREMLIN_BOOLEAN || yes || no;
}

static status bad_type(gremlin_run *m, const gremlin_step *step, gremlin_value v) {
    return gremlin__fail(m, E_BAD_QUERY, "The %s() step can only take string as argument, but got a value of the type %s",
                         gremlin_op_name(step->op), gremlin_type_name((gremlin_type)v.type));
}

static status convert(gremlin_run *m, const gremlin_step *step, gremlin_value v, gremlin_value *out) {
    bool done = true;
    if (step->op == GREMLIN_AS_STRING_STEP) {
        *out = v.type == GREMLIN_NULL ? v : text_value(gremlin__shown(m, v));
    } else if (step->op == GREMLIN_AS_BOOL_STEP) {
        done = as_bool(v, out);
    } else {
        done = gremlin_is_number(v) || (v.type == GREMLIN_STRING && number_of(m, gremlin_text(v), out));
        *out = gremlin_is_number(v) ? v : *out;
    }
    slice shown = done ? SLICE_EMPTY : gremlin__shown(m, v);
    return done ? DONE
                : gremlin__fail(m, E_BAD_QUERY, "Can't parse '%.*s' with %s()", slice_shown(shown), shown.p, gremlin_op_name(step->op));
}

static status on_value(gremlin_run *m, const gremlin_step *step, gremlin_value v, gremlin_value *out) {
    gremlin_op op = step->op;
    if (op == GREMLIN_AS_STRING_STEP || op == GREMLIN_AS_NUMBER_STEP || op == GREMLIN_AS_BOOL_STEP) {
        return convert(m, step, v, out);
    }
    *out = v;
    if (v.type == GREMLIN_NULL) {
        return DONE;
    }
    if (v.type != GREMLIN_STRING || !text_is_valid(gremlin_text(v))) {
        return bad_type(m, step, v);
    }
    *out = on_text(m, step, gremlin_text(v));
    return DONE;
}

static status on_list(gremlin_run *m, const gremlin_step *step, gremlin_value v, gremlin_value *out) {
    gremlin_items items = {0}, results = {0};
    gremlin__items_of(m, v, &items);
    for (size_t i = 0; i < items.n; i++) {
        gremlin_value one;
        if (on_value(m, step, items.at[i], &one) == FAILED) {
            return FAILED;
        }
        gremlin_items_add(&m->heap, &results, one);
    }
    *out = gremlin_items_list(&m->heap, &results, v.type == GREMLIN_SET ? GREMLIN_SET : GREMLIN_LIST);
    return DONE;
}

static gremlin_value reversed(gremlin_run *m, gremlin_value v) {
    gremlin_items items = {0}, results = {0};
    gremlin__items_of(m, v, &items);
    for (size_t i = items.n; i-- > 0;) {
        gremlin_items_add(&m->heap, &results, items.at[i]);
    }
    return gremlin_items_list(&m->heap, &results, GREMLIN_LIST);
}

status gremlin__step_text(gremlin_run *m, flow *f, state *s) {
    for (size_t i = 0; i < batch_n(s); i++) {
        gremlin_value v = batch_at(s)[i].value, out = gremlin_null();
        status st = DONE;
        if (s->step->op == GREMLIN_REVERSE_STEP && (gremlin_is_list(v) || v.type == GREMLIN_PATH)) {
            out = reversed(m, v);
        } else {
            st = is_local(s->step) && gremlin_is_list(v) ? on_list(m, s->step, v, &out) : on_value(m, s->step, v, &out);
        }
        if (st == FAILED) {
            return FAILED;
        }
        gremlin__emit_value(m, f, s, &batch_at(s)[i], out);
    }
    return DONE;
}

/* ---- concat(), format() ---- */

static void list_concat(gremlin_run *m, state *s, const traverser *t) {
    (void)m;
    for (size_t i = 0; i < s->step->n; i++) {
        if (s->step->args[i].type == GREMLIN_TRAVERSAL) {
            gremlin__subject_traversal(s, t, s->step->args[i].traversal);
        } else {
            gremlin__subject_by(s, t, s->step->args[i], NULL);
        }
    }
}

static slice kept_text(gremlin_run *m, buf *out) {
    slice text = buf_ok(out) ? arena_copy(&m->heap, buf_view(out)) : SLICE_EMPTY;
    buf_free(out);
    return text;
}

status gremlin__step_concat(gremlin_run *m, flow *f, state *s) {
    status st = gremlin__with_subjects(m, f, s, list_concat);
    for (size_t i = 0; st == DONE && i < batch_n(s); i++) {
        gremlin_value v = batch_at(s)[i].value;
        bool any = v.type != GREMLIN_NULL;
        buf out = buf_init_counted(BUF_NO_LIMIT, m->op->budget);
        if (any && v.type != GREMLIN_STRING) {
            buf_free(&out);
            return bad_type(m, s->step, v);
        }
        buf_add_slice(&out, any ? gremlin_text(v) : SLICE_EMPTY);
        for (size_t j = 0; j < s->step->n; j++) {
            gremlin_value part = subjects_at(s)[i * s->step->n + j].out;
            any |= part.type != GREMLIN_NULL;
            if (part.type != GREMLIN_NULL) {
                gremlin_show(&out, part);
            }
        }
        slice text = kept_text(m, &out);
        gremlin__emit_value(m, f, s, &batch_at(s)[i], any ? text_value(text) : gremlin_null());
    }
    return st;
}

/* The next %{name} of a format; false: there is none. */
static bool next_name(slice *rest, slice *before_out, slice *name_out) {
    size_t at = text_find(*rest, SLICE_LIT("%{"));
    size_t end = at == SIZE_MAX ? SIZE_MAX : text_find(slice_skip(*rest, at), SLICE_LIT("}"));
    if (end == SIZE_MAX) {
        return false;
    }
    *before_out = slice_of(rest->p, at);
    *name_out = slice_of(rest->p + at + 2, end - 2);
    *rest = slice_skip(*rest, at + end + 1);
    return true;
}

/* %{_} is what the next by() gives, %{name} a property or a label. */
static void list_format(gremlin_run *m, state *s, const traverser *t) {
    slice rest = gremlin_text(s->step->args[0]), before, name;
    for (size_t by = 0; next_name(&rest, &before, &name);) {
        gremlin_value v = t->value;
        bool found = true;
        const gremlin_by *how = NULL;
        if (slice_eq(name, SLICE_LIT("_"))) {
            how = gremlin__by(s->step, by++);
        } else {
            found = gremlin__property_value(t->value, name, &v) || gremlin__select(m, t, name, POP_LAST, &v);
        }
        gremlin__subject_by(s, t, v, how);
        subjects_at(s)[subjects_n(s) - 1].missing = !found;
    }
}

status gremlin__step_format(gremlin_run *m, flow *f, state *s) {
    status st = gremlin__with_subjects(m, f, s, list_format);
    const subject *at = subjects_at(s);
    for (size_t i = 0; st == DONE && i < batch_n(s); i++) {
        slice rest = gremlin_text(s->step->args[0]), before, name;
        buf out = buf_init_counted(BUF_NO_LIMIT, m->op->budget);
        bool whole = true;
        for (; next_name(&rest, &before, &name); at++) {
            buf_add_slice(&out, before);
            gremlin_show(&out, at->out);
            whole &= at->productive && !at->missing;
        }
        buf_add_slice(&out, rest);
        slice text = kept_text(m, &out);
        if (whole) {
            gremlin__emit_value(m, f, s, &batch_at(s)[i], text_value(text));
        }
    }
    return st;
}

/* ---- dates ---- */

static status as_date(gremlin_run *m, gremlin_value v, gremlin_value *out) {
    slice s = v.type == GREMLIN_STRING ? gremlin_text(v) : SLICE_EMPTY;
    *out = v.type == GREMLIN_DATE ? v : gremlin_whole(GREMLIN_DATE, gremlin_is_whole(v) ? v.i : 0);
    if (v.type == GREMLIN_DATE || gremlin_is_whole(v) || (s.n && gremlin__read_date(&m->heap, s, out) == OK)) {
        return DONE;
    }
    return gremlin__fail(m, E_BAD_QUERY, "Can't parse %s '%.*s' as Date.", gremlin_type_name((gremlin_type)v.type), slice_shown(s), s.p);
}

static status date_add(gremlin_run *m, const gremlin_step *step, gremlin_value v, gremlin_value *out) {
    static const int64_t unit_ms[] = {[DT_SECOND] = 1000, [DT_MINUTE] = 60000, [DT_HOUR] = 3600000, [DT_DAY] = 86400000};
    int64_t ms;
    if (v.type != GREMLIN_DATE || __builtin_mul_overflow(step->args[1].i, unit_ms[step->args[0].n], &ms) ||
        __builtin_add_overflow(v.i, ms, &ms)) {
        return gremlin__fail(m, E_BAD_QUERY, "dateAdd() needs a date, and a result that is one");
    }
    *out = gremlin_whole(GREMLIN_DATE, ms);
    return DONE;
}

static void list_other_date(gremlin_run *m, state *s, const traverser *t) {
    gremlin_value other = s->step->op == GREMLIN_DATE_DIFF_STEP ? s->step->args[0] : gremlin_null();
    (void)m;
    if (other.type == GREMLIN_TRAVERSAL) {
        gremlin__subject_traversal(s, t, other.traversal);
    } else {
        gremlin__subject_by(s, t, other, NULL);
    }
}

status gremlin__step_dates(gremlin_run *m, flow *f, state *s) {
    status st = gremlin__with_subjects(m, f, s, list_other_date);
    for (size_t i = 0; st == DONE && i < batch_n(s); i++) {
        gremlin_value v = batch_at(s)[i].value, other = subjects_at(s)[i].out, out = gremlin_null();
        if (s->step->op == GREMLIN_AS_DATE_STEP) {
            st = as_date(m, v, &out);
        } else if (s->step->op == GREMLIN_DATE_ADD_STEP) {
            st = date_add(m, s->step, v, &out);
        } else if (v.type != GREMLIN_DATE || (other.type != GREMLIN_DATE && other.type != GREMLIN_NULL)) {
            st = gremlin__fail(m, E_BAD_QUERY, "dateDiff() needs two dates");
        } else {
            out = gremlin_long((v.i - (other.type == GREMLIN_DATE ? other.i : 0)) / 1000);
        }
        if (st == DONE) {
            gremlin__emit_value(m, f, s, &batch_at(s)[i], out);
        }
    }
    return st;
}
