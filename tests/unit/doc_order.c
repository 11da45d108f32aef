/* The order of BSON values: comparison, spelling (ascending and descending) and reading back agree with an independent reference, in which
 * libbson reads the values and numbers are compared as big integers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "doc/order.h"
#include "random_typed.h"
#include "rounds.h"

/* ---- numbers, exactly ---- */

enum { BIG_WORDS = 1400 };

typedef struct big {
    uint32_t words[BIG_WORDS]; /* least significant first */
    size_t n;
} big;

static void big_multiply(big *b, uint32_t by) {
    uint64_t carry = 0;
    for (size_t i = 0; i < b->n; i++) {
        carry += (uint64_t)b->words[i] * by;
        b->words[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) {
        assert_true(b->n < BIG_WORDS);
        b->words[b->n++] = (uint32_t)carry;
    }
}

static void big_raise(big *b, uint32_t base, int times) {
    uint32_t step = base;
    int steps = 1;
    while ((uint64_t)step * base <= UINT32_MAX) {
        step *= base;
        steps++;
    }
    for (; times >= steps; times -= steps) {
        big_multiply(b, step);
    }
    for (; times > 0; times--) {
        big_multiply(b, base);
    }
}

static int big_compare(const big *a, const big *b) {
    if (a->n != b->n) {
        return a->n < b->n ? -1 : 1;
    }
    for (size_t i = a->n; i-- > 0;) {
        if (a->words[i] != b->words[i]) {
            return a->words[i] < b->words[i] ? -1 : 1;
        }
    }
    return 0;
}

/* sign × m × 2^twos × 5^fives, or NaN, or an infinity. */
typedef struct number {
    int sign;
    unsigned __int128 m;
    int twos, fives;
    bool nan, infinite;
} number;

static number number_of_double(double x) {
    int exponent = 0;
    double m = frexp(fabs(x), &exponent);
    if (isnan(x)) {
        return (number){.nan = true};
    }
    if (isinf(x)) {
        return (number){.sign = x < 0 ? -1 : 1, .infinite = true};
    }
    return (number){.sign = (x > 0) - (x < 0), .m = (uint64_t)ldexp(m, 53), .twos = exponent - 53};
}

/* A significand of more than 34 digits is 0 by IEEE 754, but libbson writes its first 34 digits. */
static bool has_too_many_digits(const bson_decimal128_t *d) {
    unsigned __int128 most = 1;
    for (int i = 0; i < 34; i++) {
        most *= 10;
    }
    return (d->high >> 61 & 3) != 3 && ((unsigned __int128)(d->high & 0x1FFFFFFFFFFFF) << 64 | d->low) >= most;
}

/* Parses libbson's text: -d.dddE±x */
static number number_of_decimal(const bson_decimal128_t *d) {
    char text[BSON_DECIMAL128_STRING];
    number n = {.sign = 1};
    if (has_too_many_digits(d)) {
        return (number){.sign = 0};
    }
    bson_decimal128_to_string(d, text);
    const char *p = text;
    if (*p == '-') {
        n.sign = -1;
        p++;
    }
    if (*p == 'N' || *p == 'I') {
        n.nan = *p == 'N';
        n.infinite = *p == 'I';
        return n;
    }
    int exponent = 0;
    for (bool point = false; *p && *p != 'E'; p++) {
        if (*p == '.') {
            point = true;
        } else {
            n.m = n.m * 10 + (unsigned)(*p - '0');
            exponent -= point;
        }
    }
    exponent += *p ? atoi(p + 1) : 0;
    n.sign = n.m ? n.sign : 0;
    n.twos = n.fives = exponent;
    return n;
}

static number number_of(const bson_iter_t *it) {
    bson_decimal128_t decimal;
    if (BSON_ITER_HOLDS_DOUBLE(it)) {
        return number_of_double(bson_iter_double(it));
    }
    if (BSON_ITER_HOLDS_DECIMAL128(it)) {
        bson_iter_decimal128(it, &decimal);
        return number_of_decimal(&decimal);
    }
    int64_t i = bson_iter_as_int64(it);
    return (number){.sign = (i > 0) - (i < 0), .m = i < 0 ? 0 - (uint64_t)i : (uint64_t)i};
}

static int less_of(int a, int b) {
    return a < b ? a : b;
}

static void big_make(big *b, const number *n, int twos, int fives) {
    b->n = 0;
    for (unsigned __int128 m = n->m; m; m >>= 32) {
        b->words[b->n++] = (uint32_t)m;
    }
    big_raise(b, 2, n->twos - twos);
    big_raise(b, 5, n->fives - fives);
}

static int reference_numbers(const number *a, const number *b) {
    static big x, y;
    if (a->nan || b->nan) {
        return b->nan - a->nan;
    }
    if (a->sign != b->sign || a->sign == 0) {
        return a->sign - b->sign;
    }
    if (a->infinite || b->infinite) {
        return a->sign * (a->infinite - b->infinite);
    }
    int twos = less_of(a->twos, b->twos), fives = less_of(a->fives, b->fives);
    big_make(&x, a, twos, fives);
    big_make(&y, b, twos, fives);
    return a->sign * big_compare(&x, &y);
}

/* ---- all values ---- */

static int bracket(const bson_iter_t *it, bool bools_alike) {
    static const bson_type_t order[] = {BSON_TYPE_MINKEY,    BSON_TYPE_UNDEFINED,  BSON_TYPE_NULL,     BSON_TYPE_BOOL,      BSON_TYPE_INT32,
                                        BSON_TYPE_UTF8,      BSON_TYPE_ARRAY,      BSON_TYPE_DOCUMENT, BSON_TYPE_BINARY,    BSON_TYPE_OID,
                                        BSON_TYPE_DATE_TIME, BSON_TYPE_TIMESTAMP,  BSON_TYPE_REGEX,    BSON_TYPE_DBPOINTER, BSON_TYPE_CODE,
                                        BSON_TYPE_SYMBOL,    BSON_TYPE_CODEWSCOPE, BSON_TYPE_MAXKEY};
    bson_type_t type = bson_iter_type(it);
    bool number = type == BSON_TYPE_INT64 || type == BSON_TYPE_DOUBLE || type == BSON_TYPE_DECIMAL128;
    for (int i = 0; i < (int)(sizeof order / sizeof *order); i++) {
        if (order[i] == (number ? BSON_TYPE_INT32 : type)) {
            return 2 * i + (type == BSON_TYPE_BOOL && !bools_alike && bson_iter_bool(it));
        }
    }
    fail();
    return 0;
}

static int bytes(const void *a, size_t an, const void *b, size_t bn) {
    int c = memcmp(a, b, an < bn ? an : bn);
    return c ? c : (an > bn) - (an < bn);
}

static int reference(const bson_iter_t *a, const bson_iter_t *b);

static int reference_documents(bson_iter_t *a, bson_iter_t *b, bool named) {
    for (;;) {
        bool more_a = bson_iter_next(a), more_b = bson_iter_next(b);
        if (!more_a || !more_b) {
            return more_a - more_b;
        }
        int c = named ? bracket(a, true) - bracket(b, true) : 0;
        c = c || !named ? c : strcmp(bson_iter_key(a), bson_iter_key(b));
        c = c ? c : reference(a, b);
        if (c) {
            return c;
        }
    }
}

static int reference_binary(const bson_iter_t *a, const bson_iter_t *b) {
    bson_subtype_t sa, sb;
    uint32_t na, nb;
    const uint8_t *pa, *pb;
    bson_iter_binary(a, &sa, &na, &pa);
    bson_iter_binary(b, &sb, &nb, &pb);
    int c = (na > nb) - (na < nb);
    c = c ? c : (int)sa - (int)sb;
    return c ? c : memcmp(pa, pb, na);
}

static int reference_scopes(const bson_iter_t *a, const bson_iter_t *b) {
    bson_t scope_a, scope_b;
    bson_iter_t ia, ib;
    uint32_t na, nb, la, lb;
    const uint8_t *pa, *pb;
    const char *code_a = bson_iter_codewscope(a, &na, &la, &pa), *code_b = bson_iter_codewscope(b, &nb, &lb, &pb);
    int c = bytes(code_a, na, code_b, nb);
    bson_init_static(&scope_a, pa, la);
    bson_init_static(&scope_b, pb, lb);
    bson_iter_init(&ia, &scope_a);
    bson_iter_init(&ib, &scope_b);
    return c ? c : reference_documents(&ia, &ib, true);
}

static int reference_pointers(const bson_iter_t *a, const bson_iter_t *b) {
    uint32_t na, nb;
    const char *pa, *pb;
    const bson_oid_t *oa, *ob;
    bson_iter_dbpointer(a, &na, &pa, &oa);
    bson_iter_dbpointer(b, &nb, &pb, &ob);
    int c = bytes(pa, na, pb, nb);
    return c ? c : memcmp(oa->bytes, ob->bytes, 12);
}

static int reference_texts(const bson_iter_t *a, const bson_iter_t *b) {
    uint32_t na, nb;
    const char *pa = BSON_ITER_HOLDS_UTF8(a)   ? bson_iter_utf8(a, &na)
                     : BSON_ITER_HOLDS_CODE(a) ? bson_iter_code(a, &na)
                                               : bson_iter_symbol(a, &na);
    const char *pb = BSON_ITER_HOLDS_UTF8(b)   ? bson_iter_utf8(b, &nb)
                     : BSON_ITER_HOLDS_CODE(b) ? bson_iter_code(b, &nb)
                                               : bson_iter_symbol(b, &nb);
    return bytes(pa, na, pb, nb);
}

static int reference_regex(const bson_iter_t *a, const bson_iter_t *b) {
    const char *options_a, *options_b;
    int c = strcmp(bson_iter_regex(a, &options_a), bson_iter_regex(b, &options_b));
    return c ? c : strcmp(options_a, options_b);
}

static int reference_timestamps(const bson_iter_t *a, const bson_iter_t *b) {
    uint32_t ta, ia, tb, ib;
    bson_iter_timestamp(a, &ta, &ia);
    bson_iter_timestamp(b, &tb, &ib);
    return ta != tb ? (ta < tb ? -1 : 1) : (ia > ib) - (ia < ib);
}

static int reference_of_type(const bson_iter_t *a, const bson_iter_t *b) {
    bson_iter_t ia, ib;
    number na, nb;
    switch (bson_iter_type(a)) {
    case BSON_TYPE_UTF8:
    case BSON_TYPE_CODE:
    case BSON_TYPE_SYMBOL:
        return reference_texts(a, b);
    case BSON_TYPE_ARRAY:
    case BSON_TYPE_DOCUMENT:
        bson_iter_recurse(a, &ia);
        bson_iter_recurse(b, &ib);
        return reference_documents(&ia, &ib, BSON_ITER_HOLDS_DOCUMENT(a));
    case BSON_TYPE_BINARY:
        return reference_binary(a, b);
    case BSON_TYPE_OID:
        return memcmp(bson_iter_oid(a)->bytes, bson_iter_oid(b)->bytes, 12);
    case BSON_TYPE_DATE_TIME:
        return (bson_iter_date_time(a) > bson_iter_date_time(b)) - (bson_iter_date_time(a) < bson_iter_date_time(b));
    case BSON_TYPE_TIMESTAMP:
        return reference_timestamps(a, b);
    case BSON_TYPE_REGEX:
        return reference_regex(a, b);
    case BSON_TYPE_DBPOINTER:
        return reference_pointers(a, b);
    case BSON_TYPE_CODEWSCOPE:
        return reference_scopes(a, b);
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
    case BSON_TYPE_DOUBLE:
    case BSON_TYPE_DECIMAL128:
        na = number_of(a);
        nb = number_of(b);
        return reference_numbers(&na, &nb);
    default:
        return 0;
    }
}

static int reference(const bson_iter_t *a, const bson_iter_t *b) {
    int c = bracket(a, false) - bracket(b, false);
    return c ? c : reference_of_type(a, b);
}

/* ---- the properties ---- */

static int sign(int c) {
    return (c > 0) - (c < 0);
}

typedef struct sample {
    bson_t *document;
    bson_iter_t it;
    doc_element element;
    buf up, down;
} sample;

static void sample_spell(sample *s) {
    doc_walk w;
    assert_true(doc_walk_init(&w, slice_of(bson_get_data(s->document), s->document->len)));
    assert_true(doc_walk_next(&w, &s->element));
    assert_true(bson_iter_init(&s->it, s->document) && bson_iter_next(&s->it));
    s->up = s->down = buf_init(BUF_NO_LIMIT);
    doc_order_spell(&s->up, &s->element, false);
    doc_order_spell(&s->down, &s->element, true);
    assert_true(buf_ok(&s->up) && buf_ok(&s->down) && s->up.n == s->down.n);
}

static void sample_free(sample *s) {
    bson_destroy(s->document);
    buf_free(&s->up);
    buf_free(&s->down);
}

static void explain(const sample *a, const sample *b) {
    char *ta = bson_as_canonical_extended_json(a->document, NULL), *tb = bson_as_canonical_extended_json(b->document, NULL);
    fail_msg("%s and %s", ta, tb);
}

static void check_pair(const sample *a, const sample *b) {
    int expected = sign(reference(&a->it, &b->it));
    int up = sign(slice_cmp(buf_view(&a->up), buf_view(&b->up))), down = sign(slice_cmp(buf_view(&a->down), buf_view(&b->down)));
    if (sign(doc_order_compare(&a->element, &b->element)) != expected || up != expected || down != -expected) {
        explain(a, b);
    }
    bool prefix = slice_starts(buf_view(&b->up), buf_view(&a->up));
    if (prefix != (expected == 0)) { /* otherwise the next part of a tuple would decide the order */
        explain(a, b);
    }
}

/* Reading a spelling gives an equal value and the right length, whatever follows it. */
static void check_read(const sample *s, bool descending) {
    const buf *spelled = descending ? &s->down : &s->up;
    buf bytes_after = buf_init(BUF_NO_LIMIT), document = buf_init(BUF_NO_LIMIT), again = buf_init(BUF_NO_LIMIT);
    bson_type_t type, measured_type;
    size_t n = 0, measured = 0;
    buf_add_slice(&bytes_after, buf_view(spelled));
    buf_add_lit(&bytes_after, "\0\1after");
    buf_add_lit(&document, "before");
    assert_true(doc_order_read(buf_view(&bytes_after), descending, &document, &type, &n));
    assert_true(doc_order_read(buf_view(&bytes_after), descending, NULL, &measured_type, &measured));
    assert_true(n == spelled->n && n == measured && type == measured_type);
    doc_element e = {.type = type, .value = slice_skip(buf_view(&document), 6)};
    assert_int_equal(doc_order_compare(&e, &s->element), 0);
    doc_order_spell(&again, &e, descending);
    assert_true(slice_eq(buf_view(&again), buf_view(spelled)));
    for (size_t cut = 0; cut < spelled->n; cut++) {
        assert_false(doc_order_read(slice_of(spelled->p, cut), descending, NULL, &type, &n));
    }
    buf_free(&bytes_after);
    buf_free(&document);
    buf_free(&again);
}

static void agrees_with_the_reference(void **state) {
    (void)state;
    enum { SAMPLES = 160 };
    static sample samples[SAMPLES];
    random_source r;
    for (unsigned seed = 1; seed <= ROUNDS(20); seed++) {
        random_seed(&r, seed);
        for (size_t i = 0; i < SAMPLES; i++) {
            samples[i].document = bson_new();
            i % 3 == 0 ? typed_number(&r, samples[i].document, "v") : typed_value(&r, samples[i].document, "v", 3);
            sample_spell(&samples[i]);
            check_read(&samples[i], false);
            check_read(&samples[i], true);
        }
        for (size_t i = 0; i < SAMPLES; i++) {
            for (size_t j = 0; j < SAMPLES; j++) {
                check_pair(&samples[i], &samples[j]);
            }
        }
        for (size_t i = 0; i < SAMPLES; i++) {
            sample_free(&samples[i]);
        }
    }
}

static void every_edge_number_against_every_other(void **state) {
    (void)state;
    enum { D = sizeof typed_doubles / sizeof *typed_doubles, I = sizeof typed_integers / sizeof *typed_integers };
    enum { N = sizeof typed_decimals / sizeof *typed_decimals, ALL = D + I + N };
    static sample samples[ALL];
    for (size_t i = 0; i < ALL; i++) {
        bson_t *b = samples[i].document = bson_new();
        bson_decimal128_t decimal;
        if (i < D) {
            bson_append_double(b, "v", -1, typed_doubles[i]);
        } else if (i < D + I) {
            bson_append_int64(b, "v", -1, typed_integers[i - D]);
        } else {
            assert_true(bson_decimal128_from_string(typed_decimals[i - D - I], &decimal));
            bson_append_decimal128(b, "v", -1, &decimal);
        }
        sample_spell(&samples[i]);
        check_read(&samples[i], false);
        check_read(&samples[i], true);
    }
    for (size_t i = 0; i < ALL; i++) {
        for (size_t j = 0; j < ALL; j++) {
            check_pair(&samples[i], &samples[j]);
        }
    }
    for (size_t i = 0; i < ALL; i++) {
        sample_free(&samples[i]);
    }
}

/* ---- types of values read back ---- */

static bson_type_t read_back(const char *json) {
    bson_error_t error;
    sample s = {.document = bson_new_from_json((const uint8_t *)json, -1, &error)};
    buf value = buf_init(BUF_NO_LIMIT);
    bson_type_t type;
    size_t n;
    assert_non_null(s.document);
    sample_spell(&s);
    assert_true(doc_order_read(buf_view(&s.up), false, &value, &type, &n));
    doc_element e = {.type = type, .value = buf_view(&value)};
    assert_int_equal(doc_order_compare(&e, &s.element), 0);
    buf_free(&value);
    sample_free(&s);
    return type;
}

static void numbers_come_back_in_the_narrowest_type(void **state) {
    (void)state;
    assert_int_equal(read_back("{\"v\":{\"$numberLong\":\"7\"}}"), BSON_TYPE_INT32);
    assert_int_equal(read_back("{\"v\":{\"$numberDouble\":\"-0\"}}"), BSON_TYPE_INT32);
    assert_int_equal(read_back("{\"v\":{\"$numberDecimal\":\"1.00\"}}"), BSON_TYPE_INT32);
    assert_int_equal(read_back("{\"v\":{\"$numberDouble\":\"2147483648\"}}"), BSON_TYPE_INT64);
    assert_int_equal(read_back("{\"v\":{\"$numberLong\":\"9007199254740993\"}}"), BSON_TYPE_INT64);
    assert_int_equal(read_back("{\"v\":{\"$numberDecimal\":\"-9223372036854775808\"}}"), BSON_TYPE_INT64);
    assert_int_equal(read_back("{\"v\":{\"$numberDecimal\":\"9223372036854775807\"}}"), BSON_TYPE_INT64);
    assert_int_equal(read_back("{\"v\":{\"$numberDecimal\":\"9223372036854775808\"}}"), BSON_TYPE_DOUBLE);
    assert_int_equal(read_back("{\"v\":{\"$numberDecimal\":\"0.5\"}}"), BSON_TYPE_DOUBLE);
    assert_int_equal(read_back("{\"v\":{\"$numberDecimal\":\"NaN\"}}"), BSON_TYPE_DOUBLE);
    assert_int_equal(read_back("{\"v\":{\"$numberDecimal\":\"0.1\"}}"), BSON_TYPE_DECIMAL128);
    assert_int_equal(read_back("{\"v\":{\"$numberDecimal\":\"9.999E+6144\"}}"), BSON_TYPE_DECIMAL128);
}

static void assert_unreadable(const char *bytes_given, size_t n) {
    buf value = buf_init(BUF_NO_LIMIT);
    bson_type_t type;
    size_t taken;
    buf_add_lit(&value, "kept");
    assert_false(doc_order_read(slice_of(bytes_given, n), false, &value, &type, &taken));
    assert_true(slice_eq(buf_view(&value), SLICE_LIT("kept")));
    buf_free(&value);
}
#define UNREADABLE(bytes) assert_unreadable(bytes, sizeof(bytes) - 1)

static void other_bytes_are_refused(void **state) {
    (void)state;
    UNREADABLE("");
    UNREADABLE("\x00");
    UNREADABLE("\x14");
    UNREADABLE("\xFF");
    UNREADABLE("\x06\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"); /* -0 */
    UNREADABLE("\x06\x00\x00\x00\x00\x00\x00\x00\x01\x00"); /* a NaN not spelled as 0 */
    UNREADABLE("\x06\xBF\xF0\x00\x00\x00\x00\x00\x00\x02"); /* neither 0 nor 1 */
    UNREADABLE("\x07"
               "a\x00\x02"); /* text with a wrong terminator */
    UNREADABLE("\x09\x05"
               "a\x00\x04\x00");                                        /* a member with the bracket of true instead of false */
    UNREADABLE("\x0A\x7F\xFF\xFF\xFF\x00");                             /* a length beyond the end */
    char rest[27] = "\x06\xBF\xF0\x00\x00\x00\x00\x00\x00\x01\x18\x39"; /* base 1 with a rest of 0 digits */
    assert_unreadable(rest, sizeof rest);
}

/* ---- depth ---- */

static sample nested(unsigned depth) {
    bson_t *inner = bson_new();
    for (unsigned i = 0; i < depth; i++) {
        bson_t *outer = bson_new();
        bson_append_document(outer, "a", -1, inner);
        bson_destroy(inner);
        inner = outer;
    }
    return (sample){.document = inner};
}

static void depth_is_bounded(void **state) {
    (void)state;
    sample good = nested(DOC_ORDER_DEPTH), deep = nested(DOC_ORDER_DEPTH + 1), deeper = nested(DOC_ORDER_DEPTH + 2);
    doc_walk w;
    buf out = buf_init(BUF_NO_LIMIT);
    sample_spell(&good);
    check_read(&good, false);
    assert_true(doc_walk_init(&w, slice_of(bson_get_data(deep.document), deep.document->len)) && doc_walk_next(&w, &deep.element));
    assert_true(doc_walk_init(&w, slice_of(bson_get_data(deeper.document), deeper.document->len)) && doc_walk_next(&w, &deeper.element));
    buf_add_lit(&out, "kept");
    doc_order_spell(&out, &deep.element, false);
    assert_false(buf_ok(&out));
    assert_true(slice_eq(buf_view(&out), SLICE_LIT("kept")));
    assert_true(doc_order_compare(&deep.element, &deep.element) == 0);
    assert_true(sign(doc_order_compare(&deep.element, &deeper.element)) == -sign(doc_order_compare(&deeper.element, &deep.element)));
    char bytes_given[4000];
    memset(bytes_given, DOC_BRACKET_ARRAY, sizeof bytes_given);
    assert_unreadable(bytes_given, sizeof bytes_given);
    buf_free(&out);
    sample_free(&good);
    bson_destroy(deep.document);
    bson_destroy(deeper.document);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_reference),
        cmocka_unit_test(every_edge_number_against_every_other),
        cmocka_unit_test(numbers_come_back_in_the_narrowest_type),
        cmocka_unit_test(other_bytes_are_refused),
        cmocka_unit_test(depth_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
