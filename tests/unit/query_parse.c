/* What the parser accepts, shown by the printed tree; what it rejects, with the code and the location.
 *
 * In rejected texts, «…» marks the location; the marks are removed before parsing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "doc/json.h"
#include "parse_harness.h"

/* ---- accepted ---- */

typedef struct accepted {
    const char *text;
    const char *printed; /* NULL: the same text */
} accepted;

static void check_accepted(const accepted *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char *expected = cases[i].printed ? cases[i].printed : cases[i].text;
        buf first = buf_init(BUF_NO_LIMIT);
        buf second = buf_init(BUF_NO_LIMIT);
        query_print_select(&first, parsed(cases[i].text));
        if (!slice_eq(buf_view(&first), slice_str(expected))) {
            fail_msg("%s\n  expected %s\n  printed  %.*s", cases[i].text, expected, (int)first.n, first.p);
        }
        query_print_select(&second, parsed_slice(buf_view(&first)));
        assert_true(slice_eq(buf_view(&first), buf_view(&second)));
        buf_free(&first);
        buf_free(&second);
    }
}

#define CHECK_ACCEPTED(cases) check_accepted(cases, sizeof cases / sizeof *cases)

static void select_clauses(void **state) {
    (void)state;
    static const accepted cases[] = {
        {"SELECT *", NULL},
        {"select * from c", "SELECT * FROM c"},
        {"SeLeCt\n\t*\r\nfRoM c", "SELECT * FROM c"},
        {"SELECT * FROM c -- all of them", "SELECT * FROM c"},
        {"-- first\nSELECT -- second\n* FROM c", "SELECT * FROM c"},
        {"SELECT DISTINCT * FROM c", NULL},
        {"SELECT TOP 5 * FROM c", NULL},
        {"SELECT TOP @n * FROM c", NULL},
        {"SELECT TOP 3.0 * FROM c", "SELECT TOP 3 * FROM c"},
        {"SELECT DISTINCT TOP 3 c.category FROM c", NULL},
        {"SELECT DISTINCT TOP 3 VALUE c.category FROM c", NULL},
        {"SELECT VALUE 1", NULL},
        {"SELECT VALUE c FROM c", NULL},
        {"SELECT DISTINCT VALUE c.a FROM c", NULL},
        {"SELECT 1, 2, 3", NULL},
        {"SELECT 1 AS a, 2, 3 AS b", NULL},
        {"SELECT c.a AS b FROM c", NULL},
        {"SELECT c.a b FROM c", "SELECT c.a AS b FROM c"},
        {"SELECT c.a AS \"b\" FROM c", "SELECT c.a AS b FROM c"},
        {"SELECT c.a 'b' FROM c", "SELECT c.a AS b FROM c"},
        {"SELECT c.a AS 'order' FROM c", "SELECT c.a AS \"order\" FROM c"},
        {"SELECT c.a AS 'two words' FROM c", "SELECT c.a AS \"two words\" FROM c"},
        {"SELECT c.a AS '' FROM c", "SELECT c.a AS \"\" FROM c"},
        {"SELECT c.x LET FROM c", "SELECT c.x AS LET FROM c"},
        {"SELECT c.x AS RANK FROM c", NULL},
        {"SELECT c.x AS ALL FROM c", NULL},
        {"SELECT c.x AS first, c.y AS last FROM c", NULL},
        {"SELECT c, c.a, c[\"b\"], c.list[0] FROM c", NULL},
        {"SELECT {\"a\": 1}", NULL},
        {"SELECT {a: c.a, 'b': 1} FROM c", "SELECT {\"a\": c.a, \"b\": 1} FROM c"},
        {"SELECT [c.a, 1] FROM c", NULL},
        {"SELECT ALL, ALL.ALL, ALL(1, 2)", NULL},
        {"SELECT COUNT(1) AS n, MAX(c.a) FROM c", NULL},
        {"SELECT (SELECT VALUE 1) AS one", NULL},
        {"SELECT c.name ?? \"none\" AS name FROM c", "SELECT (c.name ?? \"none\") AS name FROM c"},
        {"SELECT p.onSale ? (p.price * 0.85) : p.price AS total FROM products p",
         "SELECT (p.onSale ? (p.price * 0.85) : p.price) AS total FROM products AS p"},
    };
    CHECK_ACCEPTED(cases);
}

static void from_clauses(void **state) {
    (void)state;
    static const accepted cases[] = {
        {"SELECT * FROM Families f", "SELECT * FROM Families AS f"},
        {"SELECT * FROM Families AS f", NULL},
        {"SELECT * FROM c.children", NULL},
        {"SELECT * FROM c.children ch", "SELECT * FROM c.children AS ch"},
        {"SELECT * FROM Families.children[0] c", "SELECT * FROM Families.children[0] AS c"},
        {"SELECT * FROM c['a b'].d AS x", "SELECT * FROM c[\"a b\"].d AS x"},
        {"SELECT * FROM c[\"a\"]", NULL},
        {"SELECT * FROM c[0][1][\"x\"]", NULL},
        {"SELECT VALUE t FROM t IN c.tags", NULL},
        {"SELECT VALUE t FROM t in c", "SELECT VALUE t FROM t IN c"},
        {"SELECT VALUE t FROM t IN c.list[0][\"tags\"]", NULL},
        {"SELECT * FROM c JOIN t IN c.tags", NULL},
        {"SELECT * FROM c JOIN t IN c.tags JOIN u IN t.x JOIN v IN u", NULL},
        {"SELECT * FROM c JOIN c.address", NULL},
        {"SELECT * FROM c JOIN c.address a", "SELECT * FROM c JOIN c.address AS a"},
        {"SELECT * FROM (SELECT * FROM c)", NULL},
        {"SELECT * FROM (SELECT * FROM c) x", "SELECT * FROM (SELECT * FROM c) AS x"},
        {"SELECT * FROM (SELECT * FROM c) AS x", NULL},
        {"SELECT VALUE x FROM x IN (SELECT VALUE c.tags)", NULL},
        {"SELECT c.id, t FROM c JOIN (SELECT VALUE t FROM t IN c.tags WHERE t.key IN (1, 2)) AS t",
         "SELECT c.id, t FROM c JOIN (SELECT VALUE t FROM t IN c.tags WHERE (t.key IN (1, 2))) AS t"},
        {"SELECT * FROM c JOIN x IN ObjectToArray(c.things, \"k\")", NULL},
        {"SELECT * FROM c JOIN x IN (SELECT VALUE ObjectToArray(c.things))", NULL},
        {"SELECT * FROM rank", NULL},
        {"SELECT * FROM let AS rank", NULL},
        {"SELECT * FROM ALL IN (SELECT VALUE 1)", NULL},
        {"SELECT * FROM ALL.ALL", NULL},
    };
    CHECK_ACCEPTED(cases);
}

static void other_clauses(void **state) {
    (void)state;
    static const accepted cases[] = {
        {"SELECT * WHERE true", NULL},
        {"SELECT * FROM c WHERE c.a", NULL},
        {"SELECT * FROM c WHERE (((c.a)))", "SELECT * FROM c WHERE c.a"},
        {"SELECT c.a FROM c GROUP BY c.a", NULL},
        {"SELECT c.a, c.b, COUNT(1) AS n FROM c GROUP BY c.a, c.b", NULL},
        {"SELECT VALUE {\"a\": c.a} FROM c GROUP BY {\"a\": c.a}", NULL},
        {"SELECT UPPER(c.n) AS n FROM c GROUP BY UPPER(c.n)", NULL},
        {"SELECT * FROM c ORDER BY c.a", NULL},
        {"SELECT * FROM c ORDER BY c.a asc", "SELECT * FROM c ORDER BY c.a ASC"},
        {"SELECT * FROM c ORDER BY c.a DESC", NULL},
        {"SELECT * FROM c ORDER BY c.a, c.b DESC, c[\"c\"] ASC", NULL},
        {"SELECT * FROM c ORDER BY VectorDistance(c.v, [1, 2.5, -3])", NULL},
        {"SELECT * FROM c ORDER BY RANK FullTextScore(c.text, \"a\", \"b\")", NULL},
        {"SELECT * FROM c ORDER BY rank RRF(FullTextScore(c.t, 'a'), VectorDistance(c.v, @v))",
         "SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.t, \"a\"), VectorDistance(c.v, @v))"},
        {"SELECT * FROM c ORDER BY RANK F(1) DESC, G(2) ASC, udf.H(3), LEFT(4)", NULL},
        {"SELECT * FROM rank ORDER BY rank.a", NULL},
        {"SELECT * FROM rank ORDER BY rank", NULL},
        {"SELECT * FROM c ORDER BY RANK(c.a)", NULL},
        {"SELECT * FROM rank ORDER BY rank DESC", NULL},
        {"SELECT * FROM rank ORDER BY rank, rank.a", NULL},
        {"SELECT * FROM c OFFSET 0 LIMIT 10", NULL},
        {"SELECT * FROM c OFFSET @skip LIMIT @take", NULL},
        {"SELECT * FROM c OFFSET 0xE LIMIT 0x1e", "SELECT * FROM c OFFSET 14 LIMIT 30"},
        {"SELECT * FROM c OFFSET 99999999999999999999 LIMIT 1", "SELECT * FROM c OFFSET 100000000000000000000 LIMIT 1"},
        {"SELECT DISTINCT TOP 2 c.a FROM c JOIN t IN c.t WHERE c.b GROUP BY c.a ORDER BY c.a OFFSET 1 LIMIT 2", NULL},
        {"SELECT * FROM (SELECT * FROM c ORDER BY c.a OFFSET 1 LIMIT 2) AS x ORDER BY x.a", NULL},
    };
    CHECK_ACCEPTED(cases);
}

static void literals(void **state) {
    (void)state;
    static const accepted cases[] = {
        {"SELECT VALUE undefined", NULL},
        {"SELECT VALUE null", NULL},
        {"SELECT VALUE true", NULL},
        {"SELECT VALUE false", NULL},
        {"SELECT VALUE 42", NULL},
        {"SELECT VALUE -42", NULL},
        {"SELECT VALUE - 42", "SELECT VALUE -42"},
        {"SELECT VALUE -(42)", "SELECT VALUE -42"},
        {"SELECT VALUE - -42", "SELECT VALUE 42"},
        {"SELECT VALUE +42", "SELECT VALUE (+ 42)"},
        {"SELECT VALUE -0", "SELECT VALUE 0"},
        {"SELECT VALUE 1.50", "SELECT VALUE 1.5"},
        {"SELECT VALUE 1E2", "SELECT VALUE 100"},
        {"SELECT VALUE .5", "SELECT VALUE 0.5"},
        {"SELECT VALUE 1e21", "SELECT VALUE 1e+21"},
        {"SELECT VALUE 1e-7", NULL},
        {"SELECT VALUE 0xFF", "SELECT VALUE 255"},
        {"SELECT VALUE 9223372036854775807", NULL},
        {"SELECT VALUE -9223372036854775808", NULL},
        {"SELECT VALUE 18446744073709551615", "SELECT VALUE 18446744073709552000"},
        {"SELECT VALUE 'it\\'s'", "SELECT VALUE \"it's\""},
        {"SELECT VALUE \"\\u00e9\\n\\\"\\\\\"", "SELECT VALUE \"é\\n\\\"\\\\\""},
        {"SELECT VALUE @p", NULL},
        {"SELECT VALUE []", NULL},
        {"SELECT VALUE [[], [1], {}]", NULL},
        {"SELECT VALUE {}", NULL},
        {"SELECT VALUE {\"a\": {\"b\": [1, 2]}, \"\": null}", NULL},
        {"SELECT VALUE {a: 1, b: 2}", "SELECT VALUE {\"a\": 1, \"b\": 2}"},
        {"SELECT VALUE {\"a\": 1, \"a\": 2}", NULL},
        {"SELECT VALUE {'value': c.id}", "SELECT VALUE {\"value\": c.id}"},
        {"SELECT VALUE TRUE", NULL}, /* a name, since keywords of values are lower case */
    };
    CHECK_ACCEPTED(cases);
}

static void paths(void **state) {
    (void)state;
    static const accepted cases[] = {
        {"SELECT VALUE c.a.b.c", NULL},
        {"SELECT VALUE c . a\n.b", "SELECT VALUE c.a.b"},
        {"SELECT VALUE c['a']", "SELECT VALUE c[\"a\"]"},
        {"SELECT VALUE c[\"order\"][\"price($)\"]", NULL},
        {"SELECT VALUE c[0]", NULL},
        {"SELECT VALUE c.list[2 + 2]", "SELECT VALUE c.list[(2 + 2)]"},
        {"SELECT VALUE c[@p][c.a]", NULL},
        {"SELECT VALUE c.a[\"b\"].d[1].e", NULL},
        {"SELECT VALUE c._ts", NULL},
        {"SELECT VALUE c.rank.let.all.first.last", NULL},
        {"SELECT VALUE {\"x\": 1}.x", NULL},
        {"SELECT VALUE [1, 2][0]", NULL},
        {"SELECT VALUE \"text\"[0]", NULL},
        {"SELECT VALUE (5)[\"x\"]", NULL},
        {"SELECT VALUE (-5).x", NULL},
        {"SELECT VALUE 5[\"x\"]", "SELECT VALUE (5)[\"x\"]"},
        {"SELECT VALUE -5[\"x\"]", "SELECT VALUE (- (5)[\"x\"])"},
        {"SELECT VALUE (c.a ?? c.b).x", NULL},
        {"SELECT VALUE (SELECT VALUE c).x", NULL},
        {"SELECT VALUE f(1).x[0]", NULL},
        {"SELECT VALUE @p.x", NULL},
        {"SELECT VALUE null.x", NULL},
    };
    CHECK_ACCEPTED(cases);
}

static void operators(void **state) {
    (void)state;
    static const accepted cases[] = {
        {"SELECT VALUE 1 / 2 * 3 % 4", "SELECT VALUE (((1 / 2) * 3) % 4)"},
        {"SELECT VALUE 1 + 2 - 3 + 4", "SELECT VALUE (((1 + 2) - 3) + 4)"},
        {"SELECT VALUE 1 + 2 * 3 - 4 / 5", "SELECT VALUE ((1 + (2 * 3)) - (4 / 5))"},
        {"SELECT VALUE (1 + 2) * 3", "SELECT VALUE ((1 + 2) * 3)"},
        {"SELECT VALUE 1 < 2 <= 3 > 4 >= 5", "SELECT VALUE ((((1 < 2) <= 3) > 4) >= 5)"},
        {"SELECT VALUE 1 = 2 != 3 <> 4", "SELECT VALUE (((1 = 2) != 3) != 4)"},
        {"SELECT VALUE 1 > 2 = false", "SELECT VALUE ((1 > 2) = false)"},
        {"SELECT VALUE 1 = 2 > 3", "SELECT VALUE ((1 = 2) > 3)"},
        {"SELECT VALUE 1 | 2 + 3", "SELECT VALUE ((1 | 2) + 3)"},
        {"SELECT VALUE 1 + 2 | 3", "SELECT VALUE ((1 + 2) | 3)"},
        {"SELECT VALUE 1 & 2 + 3", "SELECT VALUE ((1 & 2) + 3)"},
        {"SELECT VALUE 1 | 2 ^ 3 & 4", "SELECT VALUE (((1 | 2) ^ 3) & 4)"},
        {"SELECT VALUE 1 + 2 * 3 | 4", "SELECT VALUE ((1 + (2 * 3)) | 4)"},
        {"SELECT VALUE 1 << 2 + 3", "SELECT VALUE (1 << (2 + 3))"},
        {"SELECT VALUE 1 << 2 >> 3 >>> 4", "SELECT VALUE (((1 << 2) >> 3) >>> 4)"},
        {"SELECT VALUE 1 < 2 << 3", "SELECT VALUE ((1 < 2) << 3)"},
        {"SELECT VALUE 100>>2", "SELECT VALUE (100 >> 2)"},
        {"SELECT VALUE 'a' || 'b' || 'c'", "SELECT VALUE ((\"a\" || \"b\") || \"c\")"},
        {"SELECT VALUE 'a' || 1 + 2 = 'b'", "SELECT VALUE ((\"a\" || (1 + 2)) = \"b\")"},
        {"SELECT VALUE ~1 + 2", "SELECT VALUE ((~ 1) + 2)"},
        {"SELECT VALUE ~~1", "SELECT VALUE (~ (~ 1))"},
        {"SELECT VALUE -c.a * 2", "SELECT VALUE ((- c.a) * 2)"},
        {"SELECT VALUE 1 - -2", "SELECT VALUE (1 - -2)"},
        {"SELECT VALUE 1-2", "SELECT VALUE (1 - 2)"},
        {"SELECT VALUE 1 -2", "SELECT VALUE (1 - 2)"},
        {"SELECT VALUE c.ab-cd", "SELECT VALUE (c.ab - cd)"},
        {"SELECT VALUE NOT c.a", "SELECT VALUE (NOT c.a)"},
        {"SELECT VALUE NOT NOT c.a", "SELECT VALUE (NOT (NOT c.a))"},
        {"SELECT VALUE NOT c.a = 1", "SELECT VALUE ((NOT c.a) = 1)"},
        {"SELECT VALUE NOT (c.a = 1)", "SELECT VALUE (NOT (c.a = 1))"},
        {"SELECT VALUE NOT c.a AND c.b", "SELECT VALUE ((NOT c.a) AND c.b)"},
        {"SELECT VALUE NOT c.a IN (1)", "SELECT VALUE ((NOT c.a) IN (1))"},
        {"SELECT VALUE a AND b OR c AND d", "SELECT VALUE ((a AND b) OR (c AND d))"},
        {"SELECT VALUE a OR b AND c OR d", "SELECT VALUE ((a OR (b AND c)) OR d)"},
        {"SELECT VALUE a AND b AND c AND d", "SELECT VALUE (((a AND b) AND c) AND d)"},
        {"SELECT VALUE a AND (b AND c)", "SELECT VALUE (a AND (b AND c))"},
        {"SELECT VALUE c.a = 1 AND c.b > 2", "SELECT VALUE ((c.a = 1) AND (c.b > 2))"},
        {"SELECT VALUE 1 AND 2 | 3 AND 4", "SELECT VALUE ((1 AND (2 | 3)) AND 4)"},
        {"SELECT VALUE 1 || 2 OR 3 || 4", "SELECT VALUE ((1 || 2) OR (3 || 4))"},
        {"SELECT VALUE a ?? b ?? c", "SELECT VALUE (a ?? (b ?? c))"},
        {"SELECT VALUE 1 + 2 ?? 3", "SELECT VALUE ((1 + 2) ?? 3)"},
        {"SELECT VALUE 1 ?? 2 = 3", "SELECT VALUE (1 ?? (2 = 3))"},
        {"SELECT VALUE true AND false ?? true", "SELECT VALUE ((true AND false) ?? true)"},
        {"SELECT VALUE NOT 1 ?? 2", "SELECT VALUE ((NOT 1) ?? 2)"},
        {"SELECT VALUE a ? b : c", "SELECT VALUE (a ? b : c)"},
        {"SELECT VALUE a ? b : c ? d : e", "SELECT VALUE (a ? b : (c ? d : e))"},
        {"SELECT VALUE a ? b ? c : d : e", "SELECT VALUE (a ? (b ? c : d) : e)"},
        {"SELECT VALUE 1 ? 2 ?? 3 : 4", "SELECT VALUE (1 ? (2 ?? 3) : 4)"},
        {"SELECT VALUE a ?? b ? c : d ?? e", "SELECT VALUE ((a ?? b) ? c : (d ?? e))"},
        {"SELECT VALUE a OR b ? 1 : 2 + 3", "SELECT VALUE ((a OR b) ? 1 : (2 + 3))"},
        {"SELECT VALUE a?b:c", "SELECT VALUE (a ? b : c)"},
        {"SELECT VALUE a??b", "SELECT VALUE (a ?? b)"},
        {"SELECT VALUE ((2 + 11 % 7) - 2) / 2", "SELECT VALUE (((2 + (11 % 7)) - 2) / 2)"},
    };
    CHECK_ACCEPTED(cases);
}

static void predicates(void **state) {
    (void)state;
    static const accepted cases[] = {
        {"SELECT * FROM c WHERE c.a IN (1)", "SELECT * FROM c WHERE (c.a IN (1))"},
        {"SELECT * FROM c WHERE c.a IN (1, 'a', c.b, @p, null, [1])", "SELECT * FROM c WHERE (c.a IN (1, \"a\", c.b, @p, null, [1]))"},
        {"SELECT * FROM c WHERE c.a NOT IN (1, 2)", "SELECT * FROM c WHERE (c.a NOT IN (1, 2))"},
        {"SELECT * FROM c WHERE c.a IN (1 ? 2 : 3, 4 ?? 5)", "SELECT * FROM c WHERE (c.a IN ((1 ? 2 : 3), (4 ?? 5)))"},
        {"SELECT * FROM c WHERE c.a + 1 IN (2)", "SELECT * FROM c WHERE ((c.a + 1) IN (2))"},
        {"SELECT * FROM c WHERE c.a IN (1) AND c.b IN (2) OR c.d", "SELECT * FROM c WHERE (((c.a IN (1)) AND (c.b IN (2))) OR c.d)"},
        {"SELECT * FROM c WHERE c.a LIKE '%x_'", "SELECT * FROM c WHERE (c.a LIKE \"%x_\")"},
        {"SELECT * FROM c WHERE c.a NOT LIKE @p", "SELECT * FROM c WHERE (c.a NOT LIKE @p)"},
        {"SELECT * FROM c WHERE c.a LIKE '%20^%%' ESCAPE '^'", "SELECT * FROM c WHERE (c.a LIKE \"%20^%%\" ESCAPE \"^\")"},
        {"SELECT * FROM c WHERE c.a NOT LIKE 'a!%' ESCAPE '!'", "SELECT * FROM c WHERE (c.a NOT LIKE \"a!%\" ESCAPE \"!\")"},
        {"SELECT * FROM c WHERE c.a LIKE c.prefix || '%'", "SELECT * FROM c WHERE (c.a LIKE (c.prefix || \"%\"))"},
        {"SELECT * FROM c WHERE c.a LIKE 'x' AND c.b LIKE 'y'", "SELECT * FROM c WHERE ((c.a LIKE \"x\") AND (c.b LIKE \"y\"))"},
        {"SELECT * FROM c WHERE c.a BETWEEN 1 AND 2", "SELECT * FROM c WHERE (c.a BETWEEN 1 AND 2)"},
        {"SELECT * FROM c WHERE c.a NOT BETWEEN 'a' AND 'b'", "SELECT * FROM c WHERE (c.a NOT BETWEEN \"a\" AND \"b\")"},
        {"SELECT * FROM c WHERE c.a BETWEEN 1 | 2 AND 3 + 4", "SELECT * FROM c WHERE (c.a BETWEEN (1 | 2) AND (3 + 4))"},
        {"SELECT * FROM c WHERE (c.a BETWEEN 1 AND 2) AND c.b = 3", "SELECT * FROM c WHERE ((c.a BETWEEN 1 AND 2) AND (c.b = 3))"},
        {"SELECT * FROM c WHERE c.b = 3 AND c.a BETWEEN 1 AND 2", "SELECT * FROM c WHERE ((c.b = 3) AND (c.a BETWEEN 1 AND 2))"},
        {"SELECT * FROM c WHERE c.x OR c.b = 3 AND c.a BETWEEN 1 AND 2",
         "SELECT * FROM c WHERE (c.x OR ((c.b = 3) AND (c.a BETWEEN 1 AND 2)))"},
        {"SELECT * FROM c WHERE NOT c.a BETWEEN 1 AND 2", "SELECT * FROM c WHERE ((NOT c.a) BETWEEN 1 AND 2)"},
        {"SELECT c.a BETWEEN 1 AND 2 ?? false FROM c", "SELECT ((c.a BETWEEN 1 AND 2) ?? false) FROM c"},
        {"SELECT c.a BETWEEN 1 AND 2 ? 'in' : 'out' FROM c", "SELECT ((c.a BETWEEN 1 AND 2) ? \"in\" : \"out\") FROM c"},
        {"SELECT c.a BETWEEN 1 AND 2, 3 FROM c", "SELECT (c.a BETWEEN 1 AND 2), 3 FROM c"},
    };
    CHECK_ACCEPTED(cases);
}

static void calls_and_subqueries(void **state) {
    (void)state;
    static const accepted cases[] = {
        {"SELECT VALUE PI()", NULL},
        {"SELECT VALUE abs(-1)", NULL},
        {"SELECT VALUE STARTSWITH(c.a, \"b\", true)", NULL},
        {"SELECT VALUE LEFT(c.a, 1) || right(c.a, 2)", "SELECT VALUE (LEFT(c.a, 1) || right(c.a, 2))"},
        {"SELECT VALUE Count(1)", NULL},
        {"SELECT VALUE udf.f(c.a, 2)", NULL},
        {"SELECT VALUE udf . f ( )", "SELECT VALUE udf.f()"},
        {"SELECT VALUE udf.ALL(1)", NULL},
        {"SELECT VALUE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 1)",
         "SELECT VALUE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE (t = 1))"},
        {"SELECT VALUE NOT EXISTS (SELECT VALUE 1)", "SELECT VALUE (NOT EXISTS(SELECT VALUE 1))"},
        {"SELECT VALUE ARRAY(SELECT DISTINCT VALUE t.a FROM t IN c.tags)", NULL},
        {"SELECT VALUE array (SELECT 1)", "SELECT VALUE ARRAY(SELECT 1)"},
        {"SELECT VALUE ALL(SELECT VALUE t FROM t IN c.tags)", NULL},
        {"SELECT VALUE first(SELECT VALUE 1)", "SELECT VALUE FIRST(SELECT VALUE 1)"},
        {"SELECT VALUE Last (SELECT VALUE 1)", "SELECT VALUE LAST(SELECT VALUE 1)"},
        {"SELECT VALUE first((SELECT VALUE 1))", NULL},
        {"SELECT VALUE COUNT((SELECT VALUE 1))", NULL},
        {"SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN c.tags)", NULL},
        {"SELECT (SELECT *), ((SELECT 1))", "SELECT (SELECT *), (SELECT 1)"},
        {"SELECT 1 + (SELECT VALUE 2) AS three", "SELECT (1 + (SELECT VALUE 2)) AS three"},
        {"SELECT f.id, ARRAY(SELECT VALUE c.n FROM c IN f.kids) as names FROM f",
         "SELECT f.id, ARRAY(SELECT VALUE c.n FROM c IN f.kids) AS names FROM f"},
    };
    CHECK_ACCEPTED(cases);
}

/* The forms that the .NET SDK writes for LINQ, and EF Core for its queries. */
static void queries_written_by_programs(void **state) {
    (void)state;
    static const accepted cases[] = {
        {"SELECT VALUE root FROM root WHERE ((root[\"a\"] = 1) AND (root[\"b\"] > \"x\")) ORDER BY root[\"c\"] ASC", NULL},
        {"SELECT VALUE root FROM root", NULL},
        {"SELECT VALUE {\"name\": root[\"name\"], \"n\": (root[\"n\"] + 1)} FROM root", NULL},
        {"SELECT VALUE root FROM root WHERE (NOT root[\"flag\"])", NULL},
        {"SELECT VALUE root FROM root WHERE (root[\"id\"] IN (\"a\", \"b\"))", NULL},
        {"SELECT VALUE root FROM root WHERE (IS_DEFINED(root[\"a\"]) AND (NOT IS_NULL(root[\"a\"])))", NULL},
        {"SELECT VALUE COUNT(1) FROM root WHERE STARTSWITH(root[\"a\"], \"b\")", NULL},
        {"SELECT VALUE child0 FROM root JOIN child0 IN root[\"children\"] WHERE (child0[\"grade\"] > 3)", NULL},
        {"SELECT VALUE root FROM root JOIN (SELECT VALUE EXISTS(SELECT VALUE v0 FROM root JOIN v0 IN root[\"c\"] WHERE (v0 = 1))) AS v1 "
         "WHERE v1",
         NULL},
        {"SELECT VALUE [root[\"a\"], (root[\"b\"] ? 1 : 2)] FROM root OFFSET 5 LIMIT 10", NULL},
        {"SELECT TOP 3 VALUE root FROM root ORDER BY root[\"a\"] DESC, root[\"b\"] ASC", NULL},
        {"SELECT VALUE c\nFROM root c\nWHERE ((c[\"$type\"] = \"Order\") AND (c[\"id\"] = @__id_0))\nOFFSET 0 LIMIT 2",
         "SELECT VALUE c FROM root AS c WHERE ((c[\"$type\"] = \"Order\") AND (c[\"id\"] = @__id_0)) OFFSET 0 LIMIT 2"},
        {"SELECT c[\"Name\"] AS Name, c[\"Id\"] AS Value0 FROM root c", "SELECT c[\"Name\"] AS Name, c[\"Id\"] AS Value0 FROM root AS c"},
        {"SELECT VALUE a FROM a IN (SELECT VALUE c[\"Ints\"])", NULL},
        {"SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c AS payload\nFROM c\nWHERE ((c.b = 1) AND (true))\nORDER BY c.a",
         "SELECT c._rid, [{\"item\": c.a}] AS orderByItems, c AS payload FROM c WHERE ((c.b = 1) AND true) ORDER BY c.a"},
        {"SELECT VALUE [{\"item\": COUNT(1)}]\nFROM c", "SELECT VALUE [{\"item\": COUNT(1)}] FROM c"},
        {"SELECT VALUE [{\"item\": {\"sum\": SUM(c.a), \"count\": COUNT(c.a)}}] FROM c", NULL},
        {"SELECT [{\"item\": c.t}] AS groupByItems, {\"t\": c.t, \"n\": {\"item\": COUNT(1)}} AS payload FROM c GROUP BY c.t", NULL},
    };
    CHECK_ACCEPTED(cases);
}

/* ---- rejected ---- */

/* Removes the marks; *place_out is the span between them. */
static slice unmarked(const char *marked, query_span *place_out) {
    const char *from = strstr(marked, "«");
    const char *to = strstr(marked, "»");
    assert_true(from && to && from < to);
    size_t mark = strlen("«");
    slice text = arena_printf(&memory, "%.*s%.*s%s", (int)(from - marked), marked, (int)(to - from - (ptrdiff_t)mark), from + mark,
                              to + strlen("»"));
    place_out->start = (uint32_t)(from - marked);
    place_out->end = (uint32_t)(to - marked - (ptrdiff_t)mark);
    return text;
}

/* The message is `kind` and the marked token, or `kind` alone if the location is the end of the text. */
static void check_refused(const char *marked, const char *code, const char *kind) {
    query_span place;
    query_ast *ast = NULL;
    slice text = unmarked(marked, &place);
    slice token = text.n ? slice_of(text.p + place.start, place.end - place.start) : SLICE_EMPTY;
    op_init(&o, &memory, 0);
    if (query_parse(&o, &memory, text, &ast) != E_BAD_QUERY) {
        fail_msg("accepted: %.*s", (int)text.n, text.p);
    }
    assert_null(ast);
    buf json = buf_init(BUF_NO_LIMIT);
    place = query_location(text, place);
    buf_addf(&json, "{\"errors\":[{\"severity\":\"Error\",\"location\":{\"start\":%u,\"end\":%u},\"code\":\"%s\",\"message\":", place.start,
             place.end, code);
    json_add_string(&json, token.n ? arena_printf(&memory, "Syntax error, %s '%.*s'.", kind, (int)token.n, token.p)
                                   : arena_printf(&memory, "Syntax error, %s.", kind));
    buf_add_lit(&json, "}]}");
    if (!slice_eq(buf_view(&json), slice_of(o.detail, o.detail_n))) {
        fail_msg("%s\n  expected %.*s\n  is       %.*s", marked, (int)json.n, json.p, (int)o.detail_n, o.detail);
    }
    buf_free(&json);
}

static void tokens_out_of_place(void **state) {
    (void)state;
    static const char *const cases[] = {
        "«selectttt» * FROM c",
        "«SELECTVALUE» 1",
        "«{» \"query\": 1}",
        "«.»",
        "SELECT «.»",
        "SELECT «FROM» c",
        "SELECT * «FORM» c",
        "SELECT *«,» c.id FROM c",
        "SELECT VALUE «*» FROM c",
        "SELECT VALUE 1«,» 2",
        "SELECT VALUE 1 «as» x",
        "SELECT VALUE 1 «x»",
        "SELECT VALUE «SELECT» 1",
        "SELECT 1, «FROM» c",
        "SELECT c.id as «value» FROM c",
        "SELECT c.id «value» FROM c",
        "SELECT c.«value» FROM c",
        "SELECT * FROM c WHERE c.«Group» = \"API\"",
        "SELECT * FROM c where c.«order».orderid = \"12345\"",
        "SELECT c.«desc» FROM c",
        "SELECT c.«end» FROM c",
        "SELECT c.«null» FROM c",
        "SELECT c.«udf» FROM c",
        "SELECT ROW_NUMBER() «OVER»(ORDER BY a) FROM c",
        "SELECT r.«*» FROM r",
        "SELECT {«value»: 1}",
        "SELECT {«23»: 42}",
        "SELECT {\"a\" «1»}",
        "SELECT {\"a\": 1, «}»",
        "SELECT {«,»}",
        "SELECT [1, «]»",
        "SELECT [«,»]",
        "SELECT (1«]»",
        "SELECT («)»",
        "SELECT TOP «*» FROM c",
        "SELECT TOP «-»1 * FROM c",
        "SELECT TOP «'a'» * FROM c",
        "SELECT TOP «(»5) * FROM c",
        "SELECT TOP 5 «DISTINCT» c.a FROM c",
        "SELECT DISTINCT «DISTINCT» c.a FROM c",
        "SELECT * FROM «1»",
        "SELECT * FROM «@p»",
        "SELECT * FROM «'c'»",
        "SELECT * FROM c AS «1»",
        "SELECT * FROM c AS «select»",
        "SELECT * FROM c«,» d",
        "SELECT * FROM c x «y»",
        "SELECT * FROM c«.5»",
        "SELECT * FROM c[«@p»]",
        "SELECT * FROM c[1 «+» 2]",
        "SELECT * FROM c[«-»1]",
        "SELECT * FROM x IN c.tags «y»",
        "SELECT * FROM x IN c.tags «AS» y",
        "SELECT * FROM x IN «1»",
        "SELECT * FROM (SELECT 1 x «y»)",
        "SELECT * FROM («c»)",
        "SELECT * FROM c JOIN «WHERE» true",
        "SELECT * FROM c «INNER» JOIN t IN c.tags",
        "SELECT * FROM c WHERE «FROM»",
        "SELECT * FROM c WHERE true«,» true",
        "SELECT * FROM c WHERE c.a =«=» 1",
        "SELECT * FROM c WHERE c.a = «=» 1",
        "SELECT * FROM c WHERE c.a «IS» null",
        "SELECT * FROM c WHERE (root.created > 6«,»35430269777489E+17)",
        "SELECT * FROM c WHERE c.ab«:»cd",
        "SELECT * FROM c WHERE c.ab«{»cd}",
        "SELECT * FROM c WHERE c.ab«(»cd)",
        "SELECT * FROM c WHERE true «WHERE» false",
        "SELECT * FROM c GROUP «c».a",
        "SELECT * FROM c GROUP BY «ORDER» BY c.a",
        "SELECT * FROM c ORDER BY c.a «GROUP» BY c.a",
        "SELECT * FROM c ORDER BY c.a, «DESC»",
        "SELECT * FROM c ORDER BY c.a DESC «ASC»",
        "SELECT * FROM c ORDER «c».a",
        "SELECT * FROM c ORDER BY RANK c«.»score",
        "SELECT * FROM c ORDER BY RANK «1»",
        "SELECT * FROM c ORDER BY RANK F(1), «2»",
        "SELECT * FROM c ORDER BY RANKS «F»(1)",
        "SELECT * FROM c «LIMIT» 10",
        "SELECT * FROM c OFFSET «LIMIT» 10",
        "SELECT * FROM c OFFSET «-»1 LIMIT 10",
        "SELECT * FROM c OFFSET 1 LIMIT «-»1",
        "SELECT * FROM c OFFSET «3.14» LIMIT 10",
        "SELECT * FROM c OFFSET «1e2» LIMIT 10",
        "SELECT * FROM c OFFSET 0 LIMIT «2.»",
        "SELECT * FROM c OFFSET 1 «ROWS»",
        "SELECT * FROM c OFFSET «c».a LIMIT 1",
        "SELECT * FROM c OFFSET 1 LIMIT 2 «3»",
        "SELECT * FROM c OFFSET 1 LIMIT 2 «ORDER» BY c.a",
        "SELECT VALUE c.a «c».b",
        "SELECT VALUE «AND» 1",
        "SELECT VALUE 1 AND «AND» 2",
        "SELECT VALUE «/» 1",
        "SELECT VALUE 1 * «/» 1",
        "SELECT VALUE «?» 1 : 2",
        "SELECT VALUE 1 ? «:» 2",
        "SELECT VALUE 1 ? 2 «)»",
        "SELECT VALUE 1 ? 2 «,» 3",
        "SELECT VALUE «??» 1",
        "SELECT VALUE 42 NOT «15»",
        "SELECT VALUE 42 «15»",
        "SELECT VALUE 42 IN «1»",
        "SELECT VALUE 42 IN («)»",
        "SELECT VALUE 42 IN («,»)",
        "SELECT VALUE 42 IN ('a',«)»",
        "SELECT VALUE 42 IN («SELECT» 1)",
        "SELECT VALUE 42 IN (1) «IN» (2)",
        "SELECT VALUE 42 IN (1) «=» true",
        "SELECT VALUE 42 «inn» (1)",
        "SELECT VALUE «IN» (1)",
        "SELECT VALUE 'a' «ESCAPE» 'b'",
        "SELECT VALUE 'a' LIKE 'b' ESCAPE «1»",
        "SELECT VALUE 'a' LIKE 'b' ESCAPE «@p»",
        "SELECT VALUE 'a' LIKE 'b' «LIKE» 'c'",
        "SELECT VALUE 42 BETWEEN «AND» 2",
        "SELECT VALUE 42 BETWEEN 1 «OR» 2",
        "SELECT VALUE 42 BETWEEN 1 «,» 2",
        "SELECT VALUE 1 BETWEEN 3 «??» 4 AND 5",
        "SELECT VALUE 1 BETWEEN 2 AND 3 «BETWEEN» 4 AND 5",
        "SELECT VALUE 1 BETWEEN 2 AND 3 «AND» 4",
        "SELECT VALUE 1 NOT BETWEEN 2 AND 3 «OR» 4",
        "SELECT * FROM c WHERE c.y AND c.x BETWEEN 1 AND 2 «AND» c.z",
        "SELECT VALUE ABS(«,»)",
        "SELECT VALUE ABS('a',«)»",
        "SELECT VALUE ABS(1 «2»)",
        "SELECT VALUE LEFT «.» a",
        "SELECT VALUE udf«(»1)",
        "SELECT VALUE udf.f «.» g",
        "SELECT VALUE udf.«select»(1)",
        "SELECT VALUE UDF.f«(»1)",
        "SELECT VALUE EXISTS(«1»)",
        "SELECT VALUE EXISTS «SELECT» 1",
        "SELECT VALUE ARRAY(«c».a)",
        "SELECT VALUE ARRAY «[»1]",
        "SELECT VALUE COUNT(«SELECT» 1)",
        "SELECT VALUE udf.ALL(«SELECT» 1)",
        "SELECT VALUE ALL(SELECT 1, 2, «FROM» c)",
        "SELECT VALUE ALL(SELECT VALUE 1«,» 2)",
        "SELECT VALUE (SELECT 1«]»",
        "SELECT VALUE c.a[«]»",
        "SELECT VALUE c.a[1«,» 2]",
        "SELECT VALUE c.«'a'»",
        "SELECT VALUE c.«@p»",
        "SELECT VALUE c.«(»a)",
        "SELECT VALUE c«.5»",
        "SELECT VALUE (LET «x» = 1 IN x)",
        "SELECT VALUE 'it' «'s'»",
        "SELECT * FROM c «/»* no comment */",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_refused(cases[i], "SC1001", "incorrect syntax near");
    }
}

static void texts_that_end_too_early(void **state) {
    (void)state;
    static const char *const cases[] = {
        "«»",
        "   «»",
        "-- nothing«»",
        "SELECT«»",
        "SELECT «»",
        "SELECT -- c«»",
        "SELECT («»",
        "SELECT 1,«»",
        "SELECT 1 AS«»",
        "SELECT VALUE«»",
        "SELECT DISTINCT«»",
        "SELECT TOP«»",
        "SELECT TOP 1«»",
        "SELECT {«»",
        "SELECT {\"a\"«»",
        "SELECT {\"a\":«»",
        "SELECT {\"a\": 1«»",
        "SELECT [«»",
        "SELECT [1«»",
        "SELECT c.«»",
        "SELECT c[«»",
        "SELECT c[0«»",
        "SELECT f(«»",
        "SELECT f(1«»",
        "SELECT udf«»",
        "SELECT udf.«»",
        "SELECT udf.f«»",
        "SELECT EXISTS«»",
        "SELECT EXISTS(«»",
        "SELECT EXISTS(SELECT 1«»",
        "SELECT (SELECT *«»",
        "SELECT LEFT«»",
        "SELECT -«»",
        "SELECT NOT«»",
        "SELECT 1 +«»",
        "SELECT 1 AND«»",
        "SELECT 1 NOT«»",
        "SELECT 1 IN«»",
        "SELECT 1 IN («»",
        "SELECT 1 IN (-123«»",
        "SELECT 1 LIKE«»",
        "SELECT 1 LIKE 'a' ESCAPE«»",
        "SELECT 1 BETWEEN«»",
        "SELECT 1 BETWEEN 1«»",
        "SELECT 1 BETWEEN 1 AND«»",
        "SELECT 1 ?«»",
        "SELECT 1 ? 2«»",
        "SELECT 1 ? 2 :«»",
        "SELECT 1 ? 2 ? 3«»",
        "SELECT 1 ??«»",
        "SELECT * FROM«»",
        "SELECT * FROM c.«»",
        "SELECT * FROM c[«»",
        "SELECT * FROM c[1«»",
        "SELECT * FROM c AS«»",
        "SELECT * FROM x IN«»",
        "SELECT * FROM x IN («»",
        "SELECT * FROM (SELECT 1«»",
        "SELECT * FROM c JOIN«»",
        "SELECT * FROM c WHERE«»",
        "SELECT * FROM c WHERE c.price =«»",
        "SELECT * FROM c GROUP«»",
        "SELECT * FROM c GROUP BY«»",
        "SELECT * FROM c GROUP BY c.a,«»",
        "SELECT * FROM c ORDER«»",
        "SELECT * FROM c ORDER BY«»",
        "SELECT * FROM c ORDER BY c.a,«»",
        "SELECT * FROM c ORDER BY RANK f«»",
        "SELECT * FROM c OFFSET«»",
        "SELECT * FROM c OFFSET 1«»",
        "SELECT * FROM c OFFSET 1 LIMIT«»",
        "SELECT 'é€😀' FROM«»",
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_refused(cases[i], "SC1002", "unexpected end-of-file");
    }
}

static void characters_numbers_and_strings_that_are_none(void **state) {
    (void)state;
    static const struct {
        const char *marked, *code, *kind;
    } cases[] = {
        {"SELECT * FROM c«;»", "SC1010", "invalid token"},
        {"SELECT * FROM c«;» SELECT 1", "SC1010", "invalid token"},
        {"SELECT VALUE 42 «#» 1337", "SC1010", "invalid token"},
        {"SELECT VALUE «$»42", "SC1010", "invalid token"},
        {"SELECT c.price«$»", "SC1010", "invalid token"},
        {"SELECT * FROM c WHERE «!»c.a", "SC1010", "invalid token"},
        {"SELECT «@»", "SC1010", "invalid token"},
        {"SELECT TOP «@»1 * FROM c", "SC1010", "invalid token"},
        {"SELECT c.«é» FROM c", "SC1010", "invalid token"},
        {"SELECT 'é€😀', «€»", "SC1010", "invalid token"},
        {"SELECT VALUE «12a»", "SC1011", "invalid numeric value token"},
        {"SELECT c«.12a» FROM c", "SC1011", "invalid numeric value token"},
        {"SELECT VALUE «0x»", "SC1011", "invalid numeric value token"},
        {"SELECT VALUE -«0.E»", "SC1011", "invalid numeric value token"},
        {"SELECT * FROM c WHERE c.id = «3a63f3c5»-4d1e", "SC1011", "invalid numeric value token"},
        {"SELECT VALUE «1e999»", "SC1011", "invalid numeric value token"},
        {"SELECT TOP «1e999» * FROM c", "SC1011", "invalid numeric value token"},
        {"SELECT * FROM c WHERE c.a = «'abc»", "SC1012", "invalid string literal token"},
        {"SELECT «'a\\d'» FROM c", "SC1012", "invalid string literal token"},
        {"SELECT c WHERE c.u = \"\"«\"»", "SC1012", "invalid string literal token"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        check_refused(cases[i].marked, cases[i].code, cases[i].kind);
    }
}

static void bytes_that_are_no_text(void **state) {
    (void)state;
    query_ast *ast;
    assert_int_equal(query_parse(&o, &memory, SLICE_LIT("SELECT \xFF"), &ast), E_BAD_QUERY);
    assert_string_equal(o.detail,
                        "{\"errors\":[{\"severity\":\"Error\",\"location\":{\"start\":7,\"end\":8},\"code\":\"SC1010\",\"message\":"
                        "\"Syntax error, invalid token '\xEF\xBF\xBD'.\"}]}");
    assert_int_equal(query_parse(&o, &memory, SLICE_LIT("SELECT 'a\xFF"), &ast), E_BAD_QUERY);
    assert_non_null(strstr(o.detail, "\"SC1012\""));
    assert_int_equal(query_parse(&o, &memory, SLICE_LIT("SELECT\0 1"), &ast), E_BAD_QUERY);
    assert_non_null(strstr(o.detail, "\"SC1010\""));
    assert_int_equal(query_parse(&o, &memory, SLICE_EMPTY, &ast), E_BAD_QUERY);
    assert_non_null(strstr(o.detail, "\"SC1002\""));
}

/* A token as long as the whole text must leave room for the JSON around it, whatever characters it has. */
static void long_tokens_are_cut_in_sentences(void **state) {
    (void)state;
    static const char *const fillings[] = {"x", "\\\\", "\t", "€", "\\\"", "😀"};
    for (size_t i = 0; i < sizeof fillings / sizeof *fillings; i++) {
        buf text = buf_init(BUF_NO_LIMIT);
        query_ast *ast;
        buf_add_lit(&text, "SELECT 1 FROM \"");
        for (int k = 0; k < 5000; k++) {
            buf_add(&text, fillings[i], strlen(fillings[i]));
        }
        buf_add_byte(&text, '"');
        assert_int_equal(query_parse(&o, &memory, buf_view(&text), &ast), E_BAD_QUERY);
        assert_true(o.detail_n > 200 && o.detail_n < sizeof o.detail);
        assert_int_equal(o.detail_n, strlen(o.detail));
        assert_memory_equal(o.detail + o.detail_n - 4, "\"}]}", 4);
        assert_true(bson_utf8_validate(o.detail, o.detail_n, false));
        bson_error_t why;
        bson_t *json = bson_new_from_json((const uint8_t *)o.detail, (ssize_t)o.detail_n, &why);
        assert_non_null(json);
        bson_destroy(json);
        buf_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(select_clauses),
        TEST(from_clauses),
        TEST(other_clauses),
        TEST(literals),
        TEST(paths),
        TEST(operators),
        TEST(predicates),
        TEST(calls_and_subqueries),
        TEST(queries_written_by_programs),
        TEST(tokens_out_of_place),
        TEST(texts_that_end_too_early),
        TEST(characters_numbers_and_strings_that_are_none),
        TEST(bytes_that_are_no_text),
        TEST(long_tokens_are_cut_in_sentences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
