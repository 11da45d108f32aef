/* The index and a scan give the same rows in the same order, page by page.
 *
 * Random items of random shapes are in a container with several ranges, one logical partition large enough for its own index. Random
 * queries run over the container, a range, a part of a range, or a partition, each with the index and without it (query_ask.scans).
 * Meanwhile ranges are split, moved and merged, items replaced and deleted, and indexes built for other policies. A failure prints its
 * seed; SEEDS=from-to runs others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "query_pages.h"
#include "rounds.h"

enum { SMALL_ITEMS = 160, LARGE_ITEMS = 620, PARTITIONS = 12, PAGES_MAX = 10, SEEDS = 4 };

static unsigned ids; /* used so far */
static bool typed;   /* items have values of non-JSON types */
static struct {
    uint64_t queries, pages, rows, narrowed; /* narrowed: queries for which the index saved items */
    uint64_t hurried, gave_up;
} sums;

/* ---- values, in a form that JSON and the query language share ---- */

static const char x64[] = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

static void add_string(buf *out) {
    static const char *const words[] = {"", "a", "ab", "abc", "abd", "b", "é", "A", "a\\u0000", "a\\u0000b", "x_y", "x%y"};
    buf_add_byte(out, '"');
    if (roll(5)) {
        const char *word = words[roll(sizeof words / sizeof *words)];
        buf_add(out, word, strlen(word));
    } else { /* around the longest string that the index holds in full */
        buf_add(out, x64, 60 + roll(5));
        buf_addf(out, "%.*s", (int)roll(5), "abab");
    }
    buf_add_byte(out, '"');
}

static void add_number(buf *out) {
    switch (roll(8)) {
    case 0:
        buf_addf(out, "%d.5", (int)roll(6));
        break;
    case 1: /* integers that doubles cannot distinguish */
        buf_addf(out, "90071992547409%u", 90 + (unsigned)roll(9));
        break;
    case 2:
        buf_addf(out, "%s", roll(2) ? "1e300" : "-1e300");
        break;
    default:
        buf_addf(out, "%d", (int)roll(12) - 4);
    }
}

/* As Extended JSON. For the types of the last few, the index only knows that a value is there. */
static const char *const typed_values[] = {
    "{\"$oid\":\"000000000000000000000001\"}",
    "{\"$oid\":\"00ff00000000000000000001\"}",
    "{\"$oid\":\"ff0000000000000000000002\"}",
    "{\"$date\":\"1970-01-01T00:00:00Z\"}",
    "{\"$date\":\"2026-11-16T14:30:00.123Z\"}",
    "{\"$date\":\"2026-11-16T14:30:00.124Z\"}",
    "{\"$date\":{\"$numberLong\":\"-5\"}}",
    "{\"$date\":{\"$numberLong\":\"-2000000000000\"}}",
    "{\"$date\":{\"$numberLong\":\"9223372036854775807\"}}",
    "{\"$numberDecimal\":\"1\"}",
    "{\"$numberDecimal\":\"1.00\"}",
    "{\"$numberDecimal\":\"0.1\"}",
    "{\"$numberDecimal\":\"-2.5\"}",
    "{\"$numberDecimal\":\"1E+6000\"}",
    "{\"$numberDecimal\":\"NaN\"}",
    "{\"$numberDecimal\":\"-Infinity\"}",
    "{\"$binary\":{\"base64\":\"\",\"subType\":\"00\"}}",
    "{\"$binary\":{\"base64\":\"AAE=\",\"subType\":\"00\"}}",
    "{\"$binary\":{\"base64\":\"AAI=\",\"subType\":\"00\"}}",
    "{\"$binary\":{\"base64\":\"AAECAwQFBgcICQoLDA0ODw==\",\"subType\":\"04\"}}",
    "{\"$binary\":{\"base64\":\"AAECAwQFBgcICQoLDA0OEA==\",\"subType\":\"04\"}}",
    "{\"$binary\":{\"base64\":\"eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eGFh\",\"subType\":"
    "\"80\"}}",
    "{\"$binary\":{\"base64\":\"eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eGFi\",\"subType\":"
    "\"80\"}}",
    "{\"$timestamp\":{\"t\":0,\"i\":1}}",
    "{\"$timestamp\":{\"t\":4294967295,\"i\":0}}",
    "{\"$regularExpression\":{\"pattern\":\"^a\",\"options\":\"\"}}",
    "{\"$regularExpression\":{\"pattern\":\"^a\",\"options\":\"i\"}}",
    "{\"$regularExpression\":{\"pattern\":\"^ab\",\"options\":\"\"}}",
    "{\"$regularExpression\":{\"pattern\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\",\"options\":\"i\"}}",
    "{\"$regularExpression\":{\"pattern\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\",\"options\":\"\"}}",
    "{\"$code\":\"f()\"}",
    "{\"$symbol\":\"f()\"}",
    "{\"$minKey\":1}",
    "{\"$maxKey\":1}",
    "{\"$code\":\"f()\",\"$scope\":{\"x\":1}}",
    "{\"$dbPointer\":{\"$ref\":\"a\",\"$id\":{\"$oid\":\"000000000000000000000001\"}}}",
    "{\"$undefined\":true}",
};

static void add_typed(buf *out) {
    buf_addf(out, "%s", typed_values[roll(sizeof typed_values / sizeof *typed_values)]);
}

static void add_scalar(buf *out) {
    static const char *const others[] = {"null", "true", "false"};
    uint64_t kind = roll(10);
    if (typed && roll(3)) {
        add_typed(out);
    } else if (kind < 5) {
        add_number(out);
    } else if (kind < 8) {
        add_string(out);
    } else {
        buf_addf(out, "%s", others[roll(3)]);
    }
}

static void add_value(buf *out) {
    static const char *const others[] = {"[]", "[1]", "[1,2]", "[\"a\"]", "{}", "{\"x\":1}", "{\"x\":\"a\"}", "{\"y\":[1]}"};
    if (roll(8)) {
        add_scalar(out);
    } else {
        buf_addf(out, "%s", others[roll(sizeof others / sizeof *others)]);
    }
}

/* ---- shapes and texts ---- */

/* Close to a few places, so that shapes intersect: a pole, the 180th meridian, a town. */
static void add_shape(buf *out) {
    static const double places[][2] = {{0, 89}, {179.5, -17}, {2.3, 48.8}};
    const double *at = places[roll(3)];
    double size = roll(2) ? 1 : 0.1, x[3], y[3];
    for (int i = 0; i < 3; i++) {
        x[i] = at[0] + size * (double)roll(10);
        x[i] = x[i] > 180 ? x[i] - 360 : x[i];
        y[i] = at[1] + size * 0.1 * (double)roll(10);
    }
    switch (roll(4)) {
    case 0:
        buf_addf(out, "{\"type\":\"LineString\",\"coordinates\":[[%g,%g],[%g,%g]]}", x[0], y[0], x[1], y[1]);
        break;
    case 1:
        buf_addf(out, "{\"type\":\"Polygon\",\"coordinates\":[[[%g,%g],[%g,%g],[%g,%g],[%g,%g]]]}", x[0], y[0], x[1], y[1], x[2], y[2],
                 x[0], y[0]);
        break;
    default:
        buf_addf(out, "{\"type\":\"Point\",\"coordinates\":[%g,%g]}", x[0], y[0]);
    }
}

static void add_words(buf *out) {
    static const char *const words[] = {"river", "rivers", "The", "running", "run", "Häuser", "haus", "of", "stone", "Stones"};
    buf_add_byte(out, '"');
    for (uint64_t i = 0, n = roll(5); i < n; i++) {
        buf_addf(out, "%s%s", i ? roll(3) ? " " : ", " : "", words[roll(10)]);
    }
    buf_add_byte(out, '"');
}

/* ---- items ---- */

static void add_list(buf *out, bool objects) {
    uint64_t n = roll(4);
    buf_add_byte(out, '[');
    for (uint64_t i = 0; i < n; i++) {
        buf_add(out, ",", i > 0);
        if (objects) {
            buf_add_lit(out, "{\"v\":");
            add_scalar(out);
            if (roll(2)) {
                buf_add_lit(out, ",\"w\":");
                add_scalar(out);
            }
            buf_add_byte(out, '}');
        } else {
            add_value(out);
        }
    }
    buf_add_byte(out, ']');
}

static void add_members(buf *out) {
    static const char *const names[] = {"a", "b", "n", "s"};
    for (size_t i = 0; i < 4; i++) {
        if (roll(4)) {
            buf_addf(out, ",\"%s\":", names[i]);
            (i == 2 ? add_number : i == 3 ? add_string : add_value)(out);
        }
    }
    if (roll(2)) {
        buf_add_lit(out, ",\"o\":{\"x\":");
        add_value(out);
        buf_addf(out, "%s", roll(2) ? ",\"y\":true}" : "}");
    }
    if (roll(2)) {
        buf_add_lit(out, ",\"t\":");
        add_list(out, false);
    }
    if (roll(2)) {
        buf_add_lit(out, ",\"k\":");
        add_list(out, true);
    }
    if (roll(2)) {
        buf_add_lit(out, ",\"p\":");
        roll(20) ? add_shape(out) : add_value(out);
    }
    if (roll(2)) {
        buf_add_lit(out, ",\"w\":");
        roll(20) ? add_words(out) : add_value(out);
    }
    if (roll(200) == 0) { /* too many terms to be indexed */
        buf_add_lit(out, ",\"many\":[0");
        for (int i = 1; i <= INDEX_TERMS_MAX; i++) {
            buf_addf(out, ",%d", i);
        }
        buf_add_byte(out, ']');
    }
    if (roll(40) == 0) { /* a property that few other items have */
        buf_addf(out, ",\"only%u\":1", (unsigned)roll(1000));
    }
}

static void partition_of(unsigned id, char name[16]) {
    if (id % (SMALL_ITEMS + LARGE_ITEMS) < LARGE_ITEMS) {
        snprintf(name, 16, "large");
    } else {
        snprintf(name, 16, "p%u", id % PARTITIONS);
    }
}

static void put(unsigned id) {
    buf body = buf_init(BUF_NO_LIMIT);
    char partition[16];
    partition_of(id, partition);
    buf_addf(&body, "{\"id\":\"i%u\",\"pk\":\"%s\"", id, partition);
    add_members(&body);
    buf_add_lit(&body, "}");
    buf_add_byte(&body, 0);
    h.extended = typed && roll(5); /* otherwise plain objects in Extended JSON form */
    assert_int_equal(harness_write(&h, c, ITEM_UPSERT, NULL, NULL, body.p), OK);
    buf_free(&body);
}

/* Without `replaces` no item changes. A page that skipped an item which then changes to match might return it or not, depending on the way
 * of reading. */
static void write_some(bool replaces) {
    for (int i = 0; i < 12; i++) {
        unsigned id = (unsigned)roll(ids);
        char partition[16], key[32], name[32];
        if (roll(3)) {
            put(replaces && roll(4) ? id : ids++);
            continue;
        }
        partition_of(id, partition);
        snprintf(key, sizeof key, "[\"%s\"]", partition);
        snprintf(name, sizeof name, "i%u", id);
        err code = harness_write(&h, c, ITEM_DELETE, key, name, NULL);
        assert_true(code == OK || code == E_NOT_FOUND);
    }
    if (roll(3) == 0) {
        h.clock.wall_ms += 1000;
    }
}

/* ---- queries ---- */

static const char *a_path(void) {
    static const char *const paths[] = {"c.a",  "c.b",  "c.n",   "c.s",      "c.o.x",  "c.o.y",   "c.o",    "c.t",
                                        "c.pk", "c.id", "c._ts", "c[\"a\"]", "c._rid", "c._etag", "c._self"};
    return paths[roll(roll(4) ? 5 : sizeof paths / sizeof *paths)];
}

static void add_literal(buf *out) {
    static const char *const others[] = {"undefined",
                                         "1 + 1",
                                         "UPPER(\"a\")",
                                         "1799999999",
                                         "1800000000",
                                         "\"large\"",
                                         "\"i7\"",
                                         "\"AQAAAIEAAAAHAAAAAAIAAA==\"",
                                         "\"\\\"00000007-0000-0d00-0000-6b49d2000000\\\"\""};
    if (roll(12)) {
        add_value(out);
    } else {
        buf_addf(out, "%s", others[roll(sizeof others / sizeof *others)]);
    }
}

static void add_comparison(buf *out, const char *path) {
    static const char *const operators[] = {"=", "=", "=", "<", "<=", ">", ">=", "!="};
    const char *operator= operators[roll(8)];
    if (roll(6)) {
        buf_addf(out, "%s %s ", path, operator);
        add_literal(out);
    } else {
        add_literal(out);
        buf_addf(out, " %s %s", operator, path);
    }
}

static void add_in(buf *out, const char *path) {
    uint64_t n = 1 + roll(4);
    buf_addf(out, "%s %sIN (", path, roll(8) ? "" : "NOT ");
    for (uint64_t i = 0; i < n; i++) {
        buf_add(out, ", ", i ? 2 : 0);
        add_literal(out);
    }
    buf_add_byte(out, ')');
}

static void add_between(buf *out, const char *path) {
    void (*add)(buf *) = roll(2) ? add_number : roll(2) ? add_string : add_value;
    buf_addf(out, "(%s BETWEEN ", path);
    add(out);
    buf_add_lit(out, " AND ");
    add(out);
    buf_add_byte(out, ')');
}

static void add_beginning(buf *out, const char *path) {
    static const char *const patterns[] = {"ab%", "a%", "a", "x!_%' ESCAPE '!", "%b", "a_c", "[ab]%", "", "xxxxxxxx%"};
    if (roll(2)) {
        buf_addf(out, "%s %sLIKE '%s'", path, roll(8) ? "" : "NOT ", patterns[roll(sizeof patterns / sizeof *patterns)]);
        return;
    }
    buf_addf(out, "%s(%s, ", roll(3) ? "STARTSWITH" : "StringEquals", path);
    add_string(out);
    buf_addf(out, "%s)", roll(4) ? "" : roll(2) ? ", true" : ", false");
}

static void add_type(buf *out, const char *path) {
    static const char *const tests[] = {"IS_DEFINED", "IS_NULL",  "IS_BOOL",   "IS_NUMBER",
                                        "IS_STRING",  "IS_ARRAY", "IS_OBJECT", "IS_PRIMITIVE"};
    buf_addf(out, "%s%s(%s)", roll(4) ? "" : "NOT ", tests[roll(8)], path);
}

static void add_elements(buf *out) {
    switch (roll(6)) {
    case 0:
        buf_add_lit(out, "ARRAY_CONTAINS(c.t, ");
        add_literal(out);
        break;
    case 1:
        buf_add_lit(out, "ARRAY_CONTAINS(c.k, {\"v\":");
        add_scalar(out);
        buf_addf(out, "}%s", roll(2) ? ", true" : "");
        break;
    case 2:
        buf_add_lit(out, "EXISTS(SELECT VALUE x FROM x IN c.t WHERE ");
        add_comparison(out, "x");
        break;
    case 3:
        buf_add_lit(out, "EXISTS(SELECT VALUE x FROM x IN c.k WHERE ");
        add_comparison(out, "x.v");
        buf_add_lit(out, " AND ");
        add_comparison(out, roll(2) ? "x.w" : a_path());
        break;
    case 4:
        buf_add_lit(out, "(");
        add_comparison(out, roll(2) ? "c.t[0]" : "c.k[1].v");
        break;
    default:
        buf_addf(out, "CONTAINS(%s, 'b'", a_path());
    }
    buf_add_byte(out, ')');
}

static void add_near(buf *out) {
    static const char *const calls[] = {"ST_WITHIN", "ST_INTERSECTS", "ST_DISTANCE", "ST_DISTANCE"};
    size_t call = roll(4);
    bool turned = roll(4) == 0;
    buf_addf(out, "(%s(%s", calls[call], turned ? "" : "c.p, ");
    add_shape(out);
    buf_addf(out, "%s)", turned ? ", c.p" : "");
    if (call == 2) {
        buf_addf(out, " %s %u", roll(6) ? roll(2) ? "<" : "<=" : ">", 10u + (unsigned)roll(20000));
    } else if (call == 3) {
        buf_addf(out, " BETWEEN %u AND %u", (unsigned)roll(2000), (unsigned)roll(100000));
    }
    buf_add_byte(out, ')');
}

static void add_full_text(buf *out) {
    static const char *const calls[] = {"FullTextContains", "FullTextContainsAll", "FullTextContainsAny"};
    size_t call = roll(3);
    buf_addf(out, "%s(c.w", calls[call]);
    for (uint64_t i = 0, n = call ? 1 + roll(3) : 1; i < n; i++) {
        bool loosely = roll(6) == 0;
        buf_addf(out, loosely ? ", {\"term\": " : ", ");
        add_words(out);
        buf_addf(out, loosely ? ", \"distance\": 1}" : "");
    }
    buf_add_byte(out, ')');
}

static void add_condition(buf *out, unsigned depth, const char *element) {
    const char *path = element && roll(3) == 0 ? element : a_path();
    uint64_t kind = roll(depth ? 12 : 8);
    switch (kind) {
    case 0:
        add_in(out, path);
        return;
    case 1:
        add_between(out, path);
        return;
    case 2:
        add_beginning(out, roll(2) ? "c.s" : path);
        return;
    case 3:
        add_type(out, path);
        return;
    case 4:
        add_elements(out);
        return;
    case 5:
        if (roll(3)) {
            (roll(2) ? add_near : add_full_text)(out);
        } else {
            buf_addf(out, "%s", roll(2) ? "c.o.y" : path);
        }
        return;
    case 6:
    case 7:
        add_comparison(out, path);
        return;
    default:
        buf_add_lit(out, "(");
        add_condition(out, depth - 1, element);
        buf_addf(out, ") %s (", kind < 10 ? "AND" : kind == 10 ? "OR" : "AND NOT");
        add_condition(out, depth - 1, element);
        buf_add_lit(out, ")");
    }
}

static void add_order(buf *out) {
    static const char *const several[] = {
        "c.a, c.b",
        "c.a DESC, c.b DESC",
        "c.n, c.s DESC",
        "c.n DESC, c.s",
        "c.o.x DESC, c.n DESC, c.id",
        "c.o.x, c.n, c.id DESC",
        "c.n, c.s",
        "c.s DESC, c.a, c.pk",
        "c.n, c._ts",
        "c.n DESC, c._ts DESC",
        "c._ts, c.s DESC",
        "c._etag, c.n",
    };
    if (roll(3)) {
        buf_addf(out, " ORDER BY %s%s", a_path(), roll(2) ? "" : " DESC");
    } else {
        buf_addf(out, " ORDER BY %s", several[roll(sizeof several / sizeof *several)]);
    }
}

/* GROUP BY of one path, of several, or of other expressions; from entries alone, or from items. Returns the GROUP BY expressions. */
static const char *make_groups(buf *out) {
    static const char *const sums_of[] = {"COUNT(1)", "COUNT(1)", "SUM(c.n)", "MAX(c.id)", "MIN(c.s)", "MAKELIST(c.id)"};
    static char by[64];
    snprintf(by, sizeof by, roll(5) ? "%s" : "{\"k\": %s}", a_path());
    if (roll(3) == 0) {
        snprintf(by + strlen(by), sizeof by - strlen(by), ", %s", roll(2) ? "c.n" : "LENGTH(c.id)");
    }
    buf_addf(out, "SELECT VALUE [%s, %s]", by, sums_of[roll(6)]);
    return by;
}

static void make_distinct(buf *out) {
    static const char *const others[] = {"c.s", "c.n AS m", "c.o", "LENGTH(c.id) AS l"};
    if (roll(3)) {
        buf_addf(out, "SELECT DISTINCT %s%s", roll(2) ? "VALUE " : "", a_path());
        return;
    }
    buf_addf(out, "SELECT DISTINCT %s AS k%u", a_path(), (unsigned)roll(3));
    for (uint64_t i = roll(4); i < 4; i += 1 + roll(3)) {
        buf_addf(out, ", %s", others[i]);
    }
}

/* Appends a query and a terminating zero. */
static void make_query(buf *out) {
    static const char *const shown[] = {"VALUE c.id", "VALUE c", "c.id, c.a, c.b", "c.id, c.n, c.s, c.o.x", "*"};
    static const char *const sources[] = {"c", "c JOIN t IN c.t", "c JOIN k IN c.k", "c JOIN k IN c.k JOIN t IN c.t"};
    static const char *const elements[] = {NULL, "t", "k.v", "k.w"};
    uint64_t kind = roll(12), from = roll(4) ? 0 : roll(4);
    const char *element = elements[from], *grouped = NULL;
    bool top = false;
    out->n = 0;
    if (kind == 0) {
        static const char *const sums_of[] = {"COUNT(1)", "COUNT(1)", "COUNT(%s)", "MIN(%s)", "MAX(%s)", "SUM(%s)", "AVG(%s)"};
        const char *path = a_path(), *format = sums_of[roll(7)], *at = strstr(format, "%s");
        buf_addf(out, "SELECT VALUE %.*s%s%s FROM %s", (int)(at ? at - format : (long)strlen(format)), format, at ? path : "",
                 at ? ")" : "", sources[from]);
    } else if (kind == 1) {
        grouped = make_groups(out);
        buf_addf(out, " FROM %s", sources[from]);
    } else if (kind == 2) {
        make_distinct(out);
        buf_addf(out, " FROM %s", sources[from]);
    } else {
        top = roll(8) == 0;
        buf_addf(out, "SELECT %s", !top ? "" : roll(2) ? "TOP 7 " : "TOP 1 ");
        buf_addf(out, "%s FROM %s", element ? "VALUE [c.id, t]" : shown[roll(5)], sources[from]);
        if (element) { /* use the alias of the elements */
            const char *t = strstr(sources[from], " k ") ? "k" : "t";
            out->p[out->n - strlen(sources[from]) - strlen(" FROM ") - 2] = *t;
        }
    }
    if (roll(12)) {
        buf_add_lit(out, " WHERE ");
        add_condition(out, 2, element);
    }
    if (kind == 1) {
        buf_addf(out, " GROUP BY %s", grouped);
    } else if (kind > 2 && roll(2)) {
        add_order(out);
    }
    if (kind > 0 && roll(8) == 0 && !memmem(out->p, out->n, "TOP ", 4)) {
        buf_addf(out, " OFFSET %d LIMIT %d", (int)roll(roll(3) ? 6 : 500), 1 + (int)roll(20));
    }
    buf_add_byte(out, 0);
}

/* ---- running them (query_pages.h) ---- */

static scope make_scope(void) {
    scope s = {.min = epk_min(), .max = epk_max()};
    const partition_map *map = c->space->newest->map;
    const partition_range *range = &map->ranges[roll(map->n)];
    switch (roll(8)) {
    case 0: {
        partition_of((unsigned)roll(ids), s.partition);
        break;
    }
    case 1:
    case 2:
        snprintf(s.partition, sizeof s.partition, "large");
        break;
    case 3:
        s.min = range->min;
        s.max = range->max;
        break;
    case 4: /* as after a split that the client does not know of */
        if (map->n > 1) {
            s.max = map->ranges[map->n - 1].min;
            s.min.bytes[0] = (char)roll(64);
            s.min.n = 1;
        }
        break;
    }
    return s;
}

static void build_a_little(void) {
    bool ended;
    if (harness_part(c)->building) {
        assert_int_equal(harness_build(&h, c, 50, false, &ended), OK);
        if (ended) {
            assert_int_equal(harness_build(&h, c, 50, true, &ended), OK);
        }
    }
}

static void change_something(bool ordered) {
    switch (roll(3)) {
    case 0:
        write_some(ordered);
        break;
    case 1:
        change_tiles();
        break;
    default:
        build_a_little();
    }
}

static int by_row(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Groups and distinct values have no guaranteed order without ORDER BY: rows are compared sorted. */
static slice sorted_rows(buf *out) {
    json_root root;
    buf text = buf_init(BUF_NO_LIMIT), bson = buf_init(BUF_NO_LIMIT);
    char *rows[2000];
    size_t n = 0;
    bson_iter_t each;
    bson_t list;
    buf_addf(&text, "{\"rows\":[%.*s]}", (int)out->n, out->n ? out->p : "");
    assert_int_equal(json_to_bson(buf_view(&text), NULL, &bson, &root, NULL), OK);
    assert_true(bson_init_static(&list, (const uint8_t *)bson.p, bson.n));
    assert_true(bson_iter_init_find(&each, &list, "rows"));
    bson_iter_t it = each;
    assert_true(bson_iter_recurse(&it, &each));
    while (bson_iter_next(&each) && n < 2000) {
        query_value v = value_of_iter(&each);
        text.n = 0;
        value_write(&text, &v);
        rows[n++] = arena_text(&h.arena, buf_view(&text));
    }
    qsort(rows, n, sizeof *rows, by_row);
    text.n = 0;
    for (size_t i = 0; i < n; i++) {
        buf_addf(&text, "%s\n", rows[i]);
    }
    slice sorted = arena_copy(&h.arena, buf_view(&text));
    buf_free(&text);
    buf_free(&bson);
    return sorted;
}

static bool same_rows(run *found, run *scanned, bool unordered) {
    return slice_eq(buf_view(&found->out), buf_view(&scanned->out)) ||
           (unordered && slice_eq(sorted_rows(&found->out), sorted_rows(&scanned->out)));
}

static bool is_unordered(const query *q) {
    return (q->select->group_n || q->select->distinct) && q->select->order_n == 0;
}

static void compare_runs(run *found, run *scanned, const char *text, const scope *s, size_t page) {
    if (found->code != scanned->code || found->more != scanned->more || !same_rows(found, scanned, is_unordered(&found->query))) {
        fail_msg("seed %lu: %s\npartition '%s', page %zu: by the index (%s, %s)\n%.*s\nwithout it (%s, %s)\n%.*s", (unsigned long)seed,
                 text, s->partition, page, err_lookup(found->code)->name, found->more ? "more" : "the end", (int)found->out.n, found->out.p,
                 err_lookup(scanned->code)->name, scanned->more ? "more" : "the end", (int)scanned->out.n, scanned->out.p);
    }
}

/* ---- groups and distinct values with pages that run out of time ---- */

/* Results so far are carried from page to page; the rows are those of one page with enough time. */
static void try_in_a_hurry(const char *text, scope *s) {
    buf rows = buf_init(BUF_NO_LIMIT), expected = buf_init(BUF_NO_LIMIT);
    run r, whole;
    start_run(&r, s, text);
    start_run(&whole, s, text);
    sums.pages += run_to_the_end(&whole, 2000, true, false, &expected);
    sums.pages += run_to_the_end(&r, roll(2) ? 2000 : 1 + roll(20), roll(2), true, &rows);
    sums.hurried++;
    sums.gave_up += r.code != OK;
    bool same = slice_eq(sorted_rows(&rows), sorted_rows(&expected));
    if (r.code != OK ? r.code != E_QUERY_TOO_LONG : !same) {
        fail_msg("seed %lu: %s\npartition '%s': in a hurry (%s)\n%.*s\nwith time\n%.*s", (unsigned long)seed, text, s->partition,
                 err_lookup(r.code)->name, (int)rows.n, rows.p, (int)expected.n, expected.p);
    }
    buf_free(&r.out);
    buf_free(&whole.out);
    buf_free(&rows);
    buf_free(&expected);
}

/* `changes`: ranges, items or indexes change between two pages. */
static void try_query(bool changes) {
    buf text = buf_init(BUF_NO_LIMIT);
    run found, scanned;
    make_query(&text);
    scope s = make_scope();
    start_run(&found, &s, text.p);
    start_run(&scanned, &s, text.p);
    size_t rows_max = is_unordered(&found.query) && roll(2) ? 2000 : roll(3) ? 1 + roll(9) : roll(2) ? 40 : 1000;
    for (size_t page = 1; page <= PAGES_MAX && scanned.more; page++) {
        run_page(&found, rows_max, false);
        run_page(&scanned, rows_max, true);
        compare_runs(&found, &scanned, text.p, &s, page);
        sums.pages++;
        if (changes && scanned.more) {
            change_something(found.query.select->order_n > 0);
        }
    }
    if (!changes && (found.query.aggregates || found.query.select->distinct) && found.query.select->order_n == 0) {
        try_in_a_hurry(text.p, &s);
    }
    sums.queries++;
    sums.rows += scanned.rows;
    sums.narrowed += found.read < scanned.read;
    buf_free(&text);
    buf_free(&found.out);
    buf_free(&scanned.out);
}

static void try_queries(unsigned n, bool changes) {
    for (unsigned i = 0; i < ROUNDS(n); i++) {
        try_query(changes);
    }
    harness_check(&h, c);
}

/* ---- a whole run ---- */

#define COMPOSITES                                                                                                                         \
    "\"compositeIndexes\":[[{\"path\":\"/a\"},{\"path\":\"/b\"}],[{\"path\":\"/n\"},{\"path\":\"/s\",\"order\":\"descending\"}],"          \
    "[{\"path\":\"/o/x\",\"order\":\"descending\"},{\"path\":\"/n\",\"order\":\"descending\"},{\"path\":\"/"                               \
    "id\",\"order\":\"ascending\"}],"                                                                                                      \
    "[{\"path\":\"/n\"},{\"path\":\"/_ts\"}],"                                                                                             \
    "[{\"path\":\"/_etag\"},{\"path\":\"/n\"}]]"

#define TEXTS(language)                                                                                                                    \
    ",\"fullTextPolicy\":{\"defaultLanguage\":\"" language "\",\"fullTextPaths\":[{\"path\":\"/w\"}]},\"indexingPolicy\":{"                \
    "\"fullTextIndexes\":[{\"path\":\"/w\"}],\"spatialIndexes\":[{\"path\":"

static const char *const policies[] = {
    KEY TEXTS("en-US") "\"/p/?\"}]," COMPOSITES "}}",
    KEY TEXTS("de-DE") "\"/*\"}]}}",
    KEY ",\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/a/?\"},{\"path\":\"/t/[]/?\"},{\"path\":\"/o/*\"}],"
        "\"excludedPaths\":[{\"path\":\"/*\"}]," COMPOSITES "}}",
    KEY ",\"indexingPolicy\":{\"includedPaths\":[{\"path\":\"/*\"}],\"excludedPaths\":[{\"path\":\"/a/?\"},{\"path\":\"/k/*\"},"
        "{\"path\":\"/o/x/?\"},{\"path\":\"/\\\"_etag\\\"/?\"}]}}",
    KEY ",\"indexingPolicy\":{\"indexingMode\":\"none\"}}",
};

static void set_policy(size_t i) {
    assert_int_equal(harness_replace_container(&h, "d", "c", policies[i]), OK);
    container_give(c);
    c = harness_found(&h, "d", "c");
}

static void one_life(void) {
    random_seed(&dice, seed);
    harness_open(&h);
    ids = 0;
    size_t policy = seed % 4;
    c = harness_container(&h, policies[policy], 3000);
    while (ids < SMALL_ITEMS + LARGE_ITEMS) {
        put(ids++);
        if (roll(100) == 0) {
            h.clock.wall_ms += 1000;
        }
    }
    try_queries(40, false);
    for (int round = 0; round < 6; round++) {
        write_some(true);
        change_tiles();
        try_queries(16, false);
        try_queries(8, true);
    }
    for (int round = 0; round < 3; round++) {
        set_policy((policy + 1 + roll(4)) % 5);
        try_queries(6, false);
        try_queries(8, true);
        if (roll(2)) {
            harness_build_all(&h, c);
        }
        try_queries(6, false);
    }
    container_give(c);
    harness_restart(&h);
    c = harness_found(&h, "d", "c");
    try_queries(10, true);
    container_give(c);
    harness_close(&h);
}

static void rows_are_the_same(void **state) {
    (void)state;
    log_set_level(LOG_WARN);
    unsigned long from = 1, to = SEEDS;
    const char *wanted = getenv("SEEDS");
    if (wanted) {
        assert_int_equal(sscanf(wanted, "%lu-%lu", &from, &to), 2);
    }
    for (seed = from; seed <= to; seed++) {
        for (int pass = 0; pass < 2; pass++) { /* under a sanitizer only one of the two, in turn: a seed is also a policy */
            typed = pass;
            if (!SANITIZED || wanted || seed % 2 == (uint64_t)pass) {
                one_life();
            }
        }
    }
    typed = h.extended = false;
    printf("%lu queries, %lu pages, %lu rows; by the index fewer items were read for %lu; %lu in a hurry, of which %lu gave up\n",
           (unsigned long)sums.queries, (unsigned long)sums.pages, (unsigned long)sums.rows, (unsigned long)sums.narrowed,
           (unsigned long)sums.hurried, (unsigned long)sums.gave_up);
    assert_true(sums.narrowed * 6 > sums.queries);
    assert_true(sums.gave_up * 10 < sums.hurried); /* those were too large to be carried, and cannot be merged */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
