/* $filter of the Table API: what parses, what passes, what the core gets of it. And the other small parsers: URLs, multipart bodies, XML.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/table/filter.h"
#include "api/table/multipart.h"
#include "api/table/route.h"
#include "api/table/xml.h"
#include "doc/json.h"

static arena memory;
static op o;

static int set_up(void **state) {
    (void)state;
    memory = arena_init();
    op_init(&o, &memory, 0);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(&memory);
    return 0;
}

static const filter *parsed(const char *text) {
    const filter *f;
    assert_int_equal(filter_parse(&o, slice_str(text), &f), TABLE_FINE);
    return f;
}

/* ---- passing ---- */

/* Has a = 5, s = "it's", yes = true; nothing else. */
static bool get(const void *context, slice name, edm_value *v) {
    (void)context;
    if (slice_eq(name, SLICE_LIT("a"))) {
        *v = (edm_value){.type = EDM_INT32, .number = 5};
    } else if (slice_eq(name, SLICE_LIT("s"))) {
        *v = (edm_value){.type = EDM_STRING, .text = SLICE_LIT("it's")};
    } else if (slice_eq(name, SLICE_LIT("yes"))) {
        *v = (edm_value){.type = EDM_BOOLEAN, .number = 1};
    } else {
        return false;
    }
    return true;
}

static void filters_pass_by_precedence(void **state) {
    static const struct {
        const char *text;
        bool passes;
    } cases[] = {
        {"a eq 5", true},
        {"a eq 6 or a eq 5 and yes", true},
        {"(a eq 6 or a eq 5) and not yes", false},
        {"a eq 5 or a eq 6 and a eq 7", true},
        {"not a eq 6 and s eq 'it''s'", true},
        {"not not (a lt 5.5)", true},
        {"nothing ne 5", false},
        {"not (nothing eq 5)", true},
        {"s ne 5", true},
        {"s gt 5", false},
        {"5 lt a", false},
        {"4 lt a", true},
        {"yes eq true and true eq yes", true},
        {"", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(filter_passes(parsed(cases[i].text), get, NULL), cases[i].passes);
    }
}

/* ---- what the core gets ---- */

static void bound_is(const filter_bound *b, const char *value, bool exclusive) {
    assert_int_equal(b->given, value != NULL);
    if (value) {
        assert_true(slice_eq(b->value, slice_str(value)));
        assert_int_equal(b->exclusive, exclusive);
    }
}

static void keys_are_bounded_by_what_must_hold(void **state) {
    filter_keys k = filter_keys_of(parsed("PartitionKey eq 'p' and (RowKey ge 'a' and RowKey gt 'a') and RowKey lt 'c' and n eq 1"));
    (void)state;
    assert_true(k.one_partition);
    bound_is(&k.partition_from, "p", false);
    bound_is(&k.row_from, "a", true);
    bound_is(&k.row_to, "c", true);
    k = filter_keys_of(parsed("PartitionKey eq 'p' or RowKey eq 'a'"));
    assert_false(k.one_partition || k.row_from.given);
    k = filter_keys_of(parsed("not (PartitionKey eq 'p')"));
    assert_false(k.one_partition);
    k = filter_keys_of(parsed("PartitionKey ge 'p' and PartitionKey le 'p'"));
    assert_true(k.one_partition);
    k = filter_keys_of(parsed("PartitionKey eq 'p' and PartitionKey eq 'q'"));
    assert_false(k.one_partition);
    k = filter_keys_of(NULL);
    assert_false(k.one_partition);
}

static void conditions_within(bool one_partition, const char *text, const char *json) {
    buf out = buf_init(BUF_NO_LIMIT);
    slice conditions = filter_conditions(&o, parsed(text), SLICE_LIT("F"), one_partition, NULL);
    json_from_bson(&out, conditions);
    buf_add_byte(&out, '\0');
    slice expected = arena_printf(&memory, "{\"and\":[%s{\"filter\":1,\"with\":{\"text\":\"F\"}}]}", json);
    assert_string_equal(out.p, expected.p);
    buf_free(&out);
}

static void conditions_are(const char *text, const char *json) {
    conditions_within(false, text, json);
}

static void conditions_are_what_an_index_can_answer(void **state) {
    (void)state;
    conditions_are("n eq 1", "{\"at\":[\"n\"],\"eq\":1},");
    conditions_are("n eq 1 and m gt 2.5", "{\"at\":[\"m\"],\"gt\":2.5},{\"at\":[\"n\"],\"eq\":1},");
    conditions_are("n ne 1", "");
    conditions_are("not (n eq 1)", "");
    conditions_are("n eq 1 and not (m eq 2)", "{\"at\":[\"n\"],\"eq\":1},");
    conditions_are("n eq 1 or not (m eq 2)", "");
    conditions_are("n eq 1 or m eq 2", "{\"or\":[{\"at\":[\"m\"],\"eq\":2},{\"at\":[\"n\"],\"eq\":1}]},");
    conditions_are("b gt X'00'", "");
    conditions_are("PartitionKey eq 'p' and n eq 1", "{\"at\":[\"n\"],\"eq\":1},{\"at\":[\"PartitionKey\"],\"eq\":\"p\"},");
    conditions_within(true, "PartitionKey eq 'p' and (n eq 1 and PartitionKey le 'q')", "{\"at\":[\"n\"],\"eq\":1},");
}

static void only_other_properties_narrow_a_partition_down(void **state) {
    (void)state;
    static const char *const narrow[] = {"PartitionKey eq 'p' and n eq 1", "n eq 1 and PartitionKey eq 'p'",
                                         "PartitionKey eq 'p' and (m ne 2 and n lt 1)", "PartitionKey eq 'p' and (n eq 1 or m eq 2)"};
    static const char *const wide[] = {"PartitionKey eq 'p'", "PartitionKey eq 'p' and RowKey gt 'a'", "PartitionKey eq 'p' and n ne 1",
                                       "PartitionKey eq 'p' and (n eq 1 or m ne 2)", "PartitionKey eq 'p' and not (n eq 1)"};
    for (size_t i = 0; i < sizeof narrow / sizeof *narrow; i++) {
        assert_true(filter_narrows(parsed(narrow[i])));
    }
    for (size_t i = 0; i < sizeof wide / sizeof *wide; i++) {
        assert_false(filter_narrows(parsed(wide[i])));
    }
}

static void nesting_is_bounded(void **state) {
    const filter *f;
    char text[4096];
    (void)state;
    memset(text, '(', sizeof text);
    assert_int_equal(filter_parse(&o, slice_of(text, sizeof text), &f), TABLE_INVALID_INPUT);
    buf nots = buf_init(BUF_NO_LIMIT);
    for (int i = 0; i < 5000; i++) {
        buf_add_lit(&nots, "not ");
    }
    buf_add_lit(&nots, "a");
    assert_int_equal(filter_parse(&o, buf_view(&nots), &f), TABLE_INVALID_INPUT);
    buf_free(&nots);
}

/* ---- URLs ---- */

static void route_is(const char *path, table_kind kind, const char *account, const char *table, const char *partition, const char *row) {
    table_route r;
    assert_int_equal(table_route_parse(&memory, slice_str(path), false, &r), TABLE_FINE);
    assert_int_equal(r.kind, kind);
    assert_true(slice_eq(r.account, account ? slice_str(account) : SLICE_EMPTY));
    assert_true(slice_eq(r.table, slice_str(table)));
    assert_true(!partition || (slice_eq(r.partition, slice_str(partition)) && slice_eq(r.row, slice_str(row))));
}

static void paths_name_tables_and_entities(void **state) {
    (void)state;
    route_is("/Tables", TABLE_TABLES, NULL, "Tables", NULL, NULL);
    route_is("/acct/Tables", TABLE_TABLES, "acct", "Tables", NULL, NULL);
    route_is("/acct-secondary/Tables", TABLE_TABLES, "acct", "Tables", NULL, NULL);
    route_is("/acct-secondary/acct/Tables", TABLE_TABLES, "acct", "Tables", NULL, NULL);
    route_is("/Tables('t')", TABLE_TABLE, NULL, "t", NULL, NULL);
    route_is("/people", TABLE_ENTITIES, NULL, "people", NULL, NULL);
    route_is("/acct/people()", TABLE_ENTITIES, "acct", "people", NULL, NULL);
    route_is("/people(PartitionKey='a%20b',RowKey='it''s')", TABLE_ENTITY, NULL, "people", "a b", "it's");
    route_is("/a/people(RowKey='%27%27',PartitionKey='')", TABLE_ENTITY, "a", "people", "", "'");
    route_is("/$batch", TABLE_BATCH, NULL, "$batch", NULL, NULL);
}

/* ---- multipart ---- */

static void requests_of_a_changeset_are_read(void **state) {
    static const char body[] =
        "--b\nContent-Type: multipart/mixed; boundary=c\n\n\n--c\nContent-Type: application/http\nContent-ID: 4\n\n"
        "PUT http://h/t(PartitionKey='a b',RowKey='r') HTTP/1.1\r\nIf-Match: *\r\n\r\n\r\n{\"x\":\"\n--cc\"}\r\n--c--\n--b--\n";
    multipart_request r[2];
    size_t n;
    bool changes;
    (void)state;
    assert_int_equal(multipart_read(&o, slice_str(body), SLICE_LIT("b"), r, 2, &n, &changes), TABLE_FINE);
    assert_true(n == 1 && changes);
    assert_true(slice_eq(r->verb, SLICE_LIT("PUT")));
    assert_true(slice_eq(r->url, SLICE_LIT("http://h/t(PartitionKey='a b',RowKey='r')")));
    assert_true(slice_eq(r->if_match, SLICE_LIT("*")));
    assert_true(slice_eq(r->content_id, SLICE_LIT("4")));
    assert_true(slice_eq(r->body, SLICE_LIT("{\"x\":\"\n--cc\"}")));
    assert_true(slice_eq(table_path_of_url(r->url), SLICE_LIT("/t(PartitionKey='a b',RowKey='r')")));
}

/* ---- XML ---- */

static void xml_comes_back(void **state) {
    slice bson;
    buf out = buf_init(BUF_NO_LIMIT);
    (void)state;
    assert_int_equal(xml_read(&o, SLICE_LIT("<?xml version='1.0'?> <A x='y'><!-- no --><B> 1 &amp; 2</B>\n<C/><B></B></A>"), &bson),
                     TABLE_FINE);
    xml_write(&out, bson);
    buf_add_byte(&out, '\0');
    assert_string_equal(out.p, "<?xml version=\"1.0\" encoding=\"utf-8\"?><A><B>1 &amp; 2</B><C></C><B></B></A>");
    assert_true(slice_eq(xml_text(xml_child(bson, "A"), "B"), SLICE_LIT("1 & 2")));
    buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters_pass_by_precedence),
        cmocka_unit_test(keys_are_bounded_by_what_must_hold),
        cmocka_unit_test(conditions_are_what_an_index_can_answer),
        cmocka_unit_test(only_other_properties_narrow_a_partition_down),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(paths_name_tables_and_entities),
        cmocka_unit_test(requests_of_a_changeset_are_read),
        cmocka_unit_test(xml_comes_back),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
