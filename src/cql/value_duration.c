/* value_duration.c — durations: months, days and nanoseconds, which are not converted into each other.
 *
 * On the wire they are three signed variable-length integers: zig-zag, then as many leading 1 bits in the first byte as bytes follow. */
#include "cql/lexer.h"
#include "cql/value_int.h"

/* ---- the wire ---- */

static bool take_vint(slice *rest, int64_t *number_out) {
    if (rest->n == 0) {
        return false;
    }
    unsigned char first = (unsigned char)rest->p[0];
    unsigned more = 0;
    while (more < 8 && (first & (0x80u >> more))) {
        more++;
    }
    if (rest->n < 1 + (size_t)more) {
        return false;
    }
    uint64_t bits = more >= 7 ? 0 : first & (0x7Fu >> more);
    for (unsigned i = 1; i <= more; i++) {
        bits = bits << 8 | (unsigned char)rest->p[i];
    }
    *rest = slice_skip(*rest, 1 + (size_t)more);
    *number_out = (int64_t)(bits >> 1) ^ -(int64_t)(bits & 1);
    return true;
}

static size_t put_vint(char *into, int64_t number) {
    uint64_t bits = (uint64_t)number << 1 ^ (uint64_t)(number >> 63);
    unsigned more = 0;
    while (more < 8 && (more == 7 ? bits >> 56 : bits >> (7 * (more + 1)))) {
        more++;
    }
    for (unsigned i = more; i > 0; i--) {
        into[i] = (char)(bits >> (8 * (more - i)));
    }
    unsigned high = more < 8 ? (unsigned)(bits >> (8 * more)) : 0;
    into[0] = (char)((0xFF00u >> more & 0xFFu) | (more < 7 ? high : 0));
    return 1 + more;
}

bool cql__duration_of(cql_value v, cql__duration *duration_out) {
    int64_t months, days, ns;
    slice rest = v.bytes;
    if (cql_value_is_null(v) || !take_vint(&rest, &months) || !take_vint(&rest, &days) || !take_vint(&rest, &ns) || rest.n ||
        months != (int32_t)months || days != (int32_t)days) {
        return false;
    }
    *duration_out = (cql__duration){(int32_t)months, (int32_t)days, ns};
    return true;
}

cql_value cql__duration_value(arena *a, const cql__duration *d) {
    char *p = arena_alloc_aligned(a, 27, 1);
    size_t n = put_vint(p, d->months);
    n += put_vint(p + n, d->days);
    n += put_vint(p + n, d->ns);
    return cql_value_of(slice_of(p, n));
}

/* ---- text ---- */

typedef struct sum { /* with room to find what is too large */
    uint64_t months, days, ns;
} sum;

static const struct unit {
    const char *word;
    uint64_t months, days, ns;
} units[] = {
    {"mo", 1, 0, 0}, {"ms", 0, 0, 1000000}, {"us", 0, 0, 1000},         {"\xC2\xB5s", 0, 0, 1000}, {"ns", 0, 0, 1},         {"y", 12, 0, 0},
    {"w", 0, 7, 0},  {"d", 0, 1, 0},        {"h", 0, 0, 3600000000000}, {"m", 0, 0, 60000000000},  {"s", 0, 0, 1000000000},
};

static bool add_unit(sum *s, uint64_t number, const struct unit *u) {
    uint64_t more;
    return !__builtin_mul_overflow(number, u->months, &more) && !__builtin_add_overflow(s->months, more, &s->months) &&
           !__builtin_mul_overflow(number, u->days, &more) && !__builtin_add_overflow(s->days, more, &s->days) &&
           !__builtin_mul_overflow(number, u->ns, &more) && !__builtin_add_overflow(s->ns, more, &s->ns);
}

static bool take_digits(slice *rest, uint64_t *number_out) {
    size_t n = 0;
    while (n < rest->n && rest->p[n] >= '0' && rest->p[n] <= '9') {
        n++;
    }
    bool ok = slice_to_u64(slice_of(rest->p, n), number_out);
    *rest = slice_skip(*rest, n);
    return ok && n;
}

static const struct unit *unit_at(slice rest) {
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t n = strlen(units[i].word);
        if (rest.n >= n && slice_eq_nocase(slice_of(rest.p, n), slice_of(units[i].word, n))) {
            return &units[i];
        }
    }
    return NULL;
}

static bool read_units(slice rest, sum *s) {
    while (rest.n) {
        uint64_t number;
        const struct unit *u;
        if (!take_digits(&rest, &number) || !(u = unit_at(rest)) || !add_unit(s, number, u)) {
            return false;
        }
        rest = slice_skip(rest, strlen(u->word));
    }
    return true;
}

/* P1Y2M3DT4H5M6S and P3W: M means months before T. */
static bool read_iso(slice rest, sum *s) {
    bool time = false;
    while (rest.n) {
        uint64_t number;
        if (rest.p[0] == 'T') {
            time = true;
            rest = slice_skip(rest, 1);
        }
        if (!take_digits(&rest, &number) || rest.n == 0) {
            return false;
        }
        slice word = rest.p[0] == 'M' && !time ? SLICE_LIT("mo") : slice_of(rest.p, 1);
        const struct unit *u = unit_at(word);
        if (!u || !add_unit(s, number, u)) {
            return false;
        }
        rest = slice_skip(rest, 1);
    }
    return true;
}

/* P0001-02-03T04:05:06 */
static bool read_alternative(slice text, sum *s) {
    static const struct {
        size_t at, n;
        const char *unit;
    } parts[] = {{1, 4, "y"}, {6, 2, "mo"}, {9, 2, "d"}, {12, 2, "h"}, {15, 2, "m"}, {18, 2, "s"}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        uint64_t number;
        if (!slice_to_u64(slice_of(text.p + parts[i].at, parts[i].n), &number) || !add_unit(s, number, unit_at(slice_str(parts[i].unit)))) {
            return false;
        }
    }
    return true;
}

bool cql__read_duration(slice text, cql__duration *duration_out) {
    bool negative = text.n && text.p[0] == '-';
    sum s = {0};
    slice rest = slice_skip(text, negative);
    bool ok;
    if (rest.n && rest.p[0] == 'P') {
        ok = cql_is_duration_iso(rest) && (memchr(rest.p, '-', rest.n) ? read_alternative(rest, &s) : read_iso(slice_skip(rest, 1), &s));
    } else {
        ok = rest.n && read_units(rest, &s);
    }
    if (!ok || s.months > INT32_MAX || s.days > INT32_MAX || s.ns > INT64_MAX) {
        return false;
    }
    int sign = negative ? -1 : 1;
    *duration_out = (cql__duration){(int32_t)s.months * sign, (int32_t)s.days * sign, (int64_t)s.ns * sign};
    return true;
}

static uint64_t write_part(buf *out, uint64_t number, uint64_t of, const char *unit) {
    if (number >= of) {
        buf_add_u64(out, number / of);
        buf_add_slice(out, slice_str(unit));
    }
    return number % of;
}

void cql__write_duration(buf *out, const cql__duration *d) {
    bool negative = d->months < 0 || d->days < 0 || d->ns < 0;
    uint64_t months = (uint64_t)(d->months < 0 ? -(int64_t)d->months : d->months);
    uint64_t days = (uint64_t)(d->days < 0 ? -(int64_t)d->days : d->days);
    uint64_t ns = d->ns < 0 ? -(uint64_t)d->ns : (uint64_t)d->ns;
    buf_add_slice(out, negative ? SLICE_LIT("-") : SLICE_EMPTY);
    size_t before = out->n;
    write_part(out, write_part(out, months, 12, "y"), 1, "mo");
    write_part(out, days, 1, "d");
    ns = write_part(out, ns, 3600000000000, "h");
    ns = write_part(out, ns, 60000000000, "m");
    ns = write_part(out, ns, 1000000000, "s");
    ns = write_part(out, ns, 1000000, "ms");
    ns = write_part(out, ns, 1000, "us");
    write_part(out, ns, 1, "ns");
    if (out->n == before && buf_ok(out)) {
        buf_add_lit(out, "0ns"); /* a literal needs a unit */
    }
}
