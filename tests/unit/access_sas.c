/* Shared access signatures: as the Table SDK makes them, what each letter allows, bounds, times, addresses, and what must be rejected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "access/sas.h"
#include "base/date.h"
#include "base/limits.h"

#define FROM "2026-11-16T14:00:00Z"
#define UNTIL "2026-11-16T15:00:00Z"

static const char storage_key[] = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
static const char reader_key[] = "cmVhZGVyJ3Mga2V5LCBsb25nIGVub3VnaCBub3QgdG8gYmUgZ3Vlc3NlZCBieSBhbnlib2R5";
static const uint8_t near[16] = {[10] = 0xFF, 0xFF, 10, 0, 0, 1}, end[16] = {[10] = 0xFF, 0xFF, 10, 0, 0, 9},
                     far[16] = {[10] = 0xFF, 0xFF, 10, 0, 0, 10}, v6[16] = {[15] = 1};

static arena memory;
static op o;
static access_ring *ring;
static access_reach reach;

static int64_t at(const char *text) {
    int64_t seconds;
    assert_true(date_parse_iso(slice_str(text), &seconds));
    return seconds;
}

static int set_up(void **state) {
    (void)state;
    memory = arena_init();
    op_init(&o, &memory, at("2026-11-16T14:30:00Z"));
    ring = access_ring_new();
    assert_true(access_ring_set(ring, ACCESS_KEY_SECONDARY, slice_str(storage_key)));
    assert_true(access_ring_set(ring, ACCESS_KEY_PRIMARY_READ_ONLY, slice_str(reader_key)));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    access_ring_free(ring);
    arena_free(&memory);
    return 0;
}

static err check_from(slice query, const uint8_t address[16], bool secure) {
    access_sas_request request = {.query = query, .account = SLICE_LIT("devstoreaccount1"), .address = address, .secure = secure};
    o.detail_n = 0;
    err code = access_sas_check(&o, ring, &request, &reach);
    assert_int_equal(code == OK, reach.proof == ACCESS_BY_SAS);
    assert_true(code == OK || (!reach.sas && !reach.verbs));
    return code;
}

static err check(slice query) {
    return check_from(query, near, true);
}

/* ---- made by @azure/data-tables 13.3.2 ---- */

static const char account_read[] =
    "sv=2019-02-02&ss=t&srt=sco&se=2026-11-16T15%3A00%3A00Z&sp=rl&sig=T8c1eos2BO5juZKkla%2Be3y7L%2FhWFOOFVRxYJEOShUkk%3D";
static const char account_all[] =
    "sv=2019-02-02&ss=t&srt=sco&spr=https&st=2026-11-16T14%3A00%3A00Z&se=2026-11-16T15%3A00%3A00Z&sip=10.0.0.1-10.0.0.9&sp=rwdlau"
    "&sig=Bc4hQZ1mpO014LWUN1bAfqf9vO5ay%2FqtLyRHxvOOYzE%3D";
static const char table_read[] =
    "sv=2019-02-02&se=2026-11-16T15%3A00%3A00Z&sp=r&sig=W4NfT8y9T7LXuzYJlZIsrZPBrpG%2BmwuAQA1VVcBAcAc%3D&tn=People";
static const char table_bounded[] =
    "sv=2019-02-02&spr=https%2Chttp&st=2026-11-16T14%3A00%3A00Z&se=2026-11-16T15%3A00%3A00Z&sip=10.0.0.1&sp=raud"
    "&sig=iIwZ77hRLyCkcnti5OGL7g2zWyLX2SC0sXFYjCImHmA%3D&tn=People&srk=1&spk=a%20b%26c&epk=m%2B%C3%B1&erk=9";
static const char table_policy[] =
    "sv=2019-02-02&se=2026-11-16T15%3A00%3A00Z&si=pol&sp=r&sig=6RG2VmQFpv5J7JjdQTFsRoc8r%2F4wfdEyFZVU%2BOXv3ZM%3D&tn=People";

static void those_of_the_sdk_are_accepted(void **state) {
    (void)state;
    const unsigned reads = ACCESS_READ | ACCESS_LIST | ACCESS_DESCRIBE;
    assert_int_equal(check(slice_str(account_read)), OK);
    assert_int_equal(reach.verbs, reads);
    assert_true(reach.sas->is_account && reach.key == ACCESS_KEY_SECONDARY && reach.until_s == at(UNTIL));
    assert_int_equal(check(slice_str(account_all)), OK);
    assert_int_equal(reach.verbs, reads | ACCESS_WRITE | ACCESS_CREATE | ACCESS_DROP | ACCESS_CONFIGURE);
    assert_int_equal(check(slice_str(table_read)), OK);
    assert_int_equal(reach.verbs, ACCESS_READ);
    assert_true(access_sas_is_for(reach.sas, SLICE_LIT("people")) && access_sas_is_for(reach.sas, SLICE_LIT("PEOPLE")));
    assert_false(access_sas_is_for(reach.sas, SLICE_LIT("peopl")) || access_sas_is_for(reach.sas, SLICE_EMPTY));
    assert_false(access_sas_is_bounded(reach.sas));
    assert_int_equal(check(slice_str(table_bounded)), OK);
    assert_int_equal(reach.verbs, ACCESS_READ | ACCESS_WRITE);
    assert_true(access_sas_is_bounded(reach.sas) && slice_eq(reach.sas->from_partition, SLICE_LIT("a b&c")));
    assert_true(slice_eq(reach.sas->to_partition, SLICE_LIT("m+\xC3\xB1")));
    assert_int_equal(check(slice_str(table_policy)), E_BAD_AUTHORIZATION);
}

static void other_parameters_of_the_request_do_not_matter(void **state) {
    (void)state;
    assert_int_equal(check(arena_printf(&memory, "$filter=a%%20eq%%20'%%zz'&%s&timeout=3&&=&x", table_read)), OK);
    assert_true(access_sas_is_there(arena_printf(&memory, "$top=1&%s", table_read)));
    assert_false(access_sas_is_there(SLICE_LIT("$top=1&xsig=1&sign=2")));
    assert_false(access_sas_is_there(SLICE_EMPTY));
    assert_int_equal(check(SLICE_LIT("$top=1")), E_NO_AUTHORIZATION);
    assert_int_equal(check(SLICE_EMPTY), E_NO_AUTHORIZATION);
}

/* Any changed byte in any parameter invalidates the signature, except the case of letters in the table's name. */
static void a_change_of_anything_voids_it(void **state) {
    (void)state;
    static const char *const all[] = {account_read, account_all, table_read, table_bounded};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char *text = arena_text(&memory, slice_str(all[i]));
        for (char *c = text; *c; c++) {
            char kept = *c;
            *c = kept == '0' ? '1' : '0';
            err code = check(slice_str(text));
            assert_true(code == E_UNAUTHORIZED || code == E_BAD_AUTHORIZATION || code == E_NO_AUTHORIZATION);
            *c = kept;
        }
        assert_int_equal(check(slice_str(text)), OK);
    }
    assert_int_equal(check_from(slice_str(table_read), near, true), OK);
    access_sas_request another = {.query = slice_str(table_read), .account = SLICE_LIT("another"), .address = near, .secure = true};
    assert_int_equal(access_sas_check(&o, ring, &another, &reach), E_UNAUTHORIZED);
}

/* ---- signed by the test ---- */

typedef struct values {
    const char *version, *services, *types, *permissions, *start, *expiry, *addresses, *protocol, *table, *spk, *srk, *epk, *erk;
    access_key key;
} values;

static const char *or_empty(const char *s) {
    return s ? s : "";
}

/* A signed query of values that need no percent-encoding. */
static slice signed_query(const values *v) {
    buf out = buf_init(BUF_NO_LIMIT), text = buf_init(BUF_NO_LIMIT), plain = buf_init(BUF_NO_LIMIT);
    const struct {
        const char *name, *value;
    } pairs[] = {{"sv", v->version}, {"ss", v->services},   {"srt", v->types},    {"sp", v->permissions}, {"st", v->start},
                 {"se", v->expiry},  {"sip", v->addresses}, {"spr", v->protocol}, {"tn", v->table},       {"spk", v->spk},
                 {"srk", v->srk},    {"epk", v->epk},       {"erk", v->erk}};
    if (v->services) {
        buf_addf(&text, "devstoreaccount1\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n%s", or_empty(v->permissions), v->services, or_empty(v->types),
                 or_empty(v->start), or_empty(v->expiry), or_empty(v->addresses), or_empty(v->protocol), v->version,
                 strcmp(v->version, "2020-12-06") >= 0 ? "\n" : "");
    } else {
        buf_addf(&text, "%s\n%s\n%s\n/table/devstoreaccount1/%s\n\n%s\n%s\n%s\n%s\n%s\n%s\n%s", or_empty(v->permissions),
                 or_empty(v->start), or_empty(v->expiry), or_empty(v->table), or_empty(v->addresses), or_empty(v->protocol), v->version,
                 or_empty(v->spk), or_empty(v->srk), or_empty(v->epk), or_empty(v->erk));
    }
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (pairs[i].value) {
            buf_addf(&out, "%s=%s&", pairs[i].name, pairs[i].value);
        }
    }
    buf_add_lit(&out, "sig=");
    assert_true(access_ring_sign(ring, v->key, buf_view(&text), &plain));
    buf_add_slice(&out, buf_view(&plain)); /* "+", "/" and "=" stay unencoded, as some clients send them */
    slice query = arena_copy(&memory, buf_view(&out));
    buf_free(&out);
    buf_free(&text);
    buf_free(&plain);
    return query;
}

static values for_table(const char *permissions) {
    return (values){.version = "2019-02-02", .permissions = permissions, .expiry = UNTIL, .table = "people", .key = ACCESS_KEY_SECONDARY};
}

static values for_account(const char *types, const char *permissions) {
    return (values){.version = "2021-08-06",
                    .services = "bt",
                    .types = types,
                    .permissions = permissions,
                    .expiry = UNTIL,
                    .key = ACCESS_KEY_SECONDARY};
}

static void letters_allow_verbs(void **state) {
    (void)state;
    static const struct {
        const char *types, *permissions;
        unsigned verbs;
    } cases[] = {
        {"o", "r", ACCESS_READ},
        {"o", "a", ACCESS_INSERT},
        {"o", "u", ACCESS_UPDATE},
        {"o", "d", ACCESS_DELETE},
        {"o", "lcwp", 0},
        {"c", "l", ACCESS_LIST},
        {"c", "c", ACCESS_CREATE},
        {"c", "w", ACCESS_CREATE},
        {"c", "d", ACCESS_DROP},
        {"c", "raup", 0},
        {"s", "r", ACCESS_DESCRIBE},
        {"s", "w", ACCESS_CONFIGURE},
        {"s", "laucd", 0},
        {"co", "d", ACCESS_DELETE | ACCESS_DROP},
        {"x", "rwdlacup", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        values v = for_account(cases[i].types, cases[i].permissions);
        assert_int_equal(check(signed_query(&v)), OK);
        assert_int_equal(reach.verbs, cases[i].verbs);
        v.version = "2019-02-02"; /* a version without the text's last line */
        assert_int_equal(check(signed_query(&v)), OK);
        v.services = "bqf";
        assert_int_equal(check(signed_query(&v)), OK);
        assert_int_equal(reach.verbs, 0);
    }
    values v = for_table("rwdlacup");
    assert_int_equal(check(signed_query(&v)), OK);
    assert_int_equal(reach.verbs, ACCESS_READ | ACCESS_WRITE);
    v.key = ACCESS_KEY_PRIMARY_READ_ONLY;
    assert_int_equal(check(signed_query(&v)), OK);
    assert_int_equal(reach.verbs, ACCESS_READ); /* limited by the signing key */
}

static void reaches_answer_for_containers(void **state) {
    (void)state;
    const container people = {.id = SLICE_LIT("People")}, others = {.id = SLICE_LIT("others")};
    values v = for_table("ra");
    assert_int_equal(check(signed_query(&v)), OK);
    assert_true(access_allows(&reach, ACCESS_READ, &people, NULL) && access_allows(&reach, ACCESS_READ | ACCESS_INSERT, &people, NULL));
    assert_false(access_allows(&reach, ACCESS_DELETE, &people, NULL) || access_allows(&reach, ACCESS_READ | ACCESS_DELETE, &people, NULL));
    assert_false(access_allows(&reach, ACCESS_READ, &others, NULL) || access_allows(&reach, ACCESS_READ, NULL, NULL));
    v.spk = "a";
    assert_int_equal(check(signed_query(&v)), OK);
    assert_false(access_allows(&reach, ACCESS_READ, &people, NULL)); /* not the whole table */
    values all = for_account("co", "rl");
    assert_int_equal(check(signed_query(&all)), OK);
    assert_true(access_allows(&reach, ACCESS_READ, &others, NULL) && access_allows(&reach, ACCESS_LIST, NULL, NULL));
    assert_false(access_allows(&reach, ACCESS_CREATE, NULL, NULL) || access_allows(&reach, ACCESS_GRANT, NULL, NULL));
}

/* As in the service's reference: partitions between the bounds, and at a bound only the rows from or up to its row. */
static void rows_lie_between_bounds(void **state) {
    (void)state;
    static const struct {
        const char *spk, *srk, *epk, *erk, *partition, *row;
        bool covered;
    } cases[] = {
        {NULL, NULL, NULL, NULL, "", "", true}, {"b", NULL, NULL, NULL, "a", "z", false},  {"b", NULL, NULL, NULL, "b", "", true},
        {"b", NULL, NULL, NULL, "c", "", true}, {"b", "5", NULL, NULL, "b", "4", false},   {"b", "5", NULL, NULL, "b", "5", true},
        {"b", "5", NULL, NULL, "c", "1", true}, {NULL, NULL, "m", NULL, "m", "zzz", true}, {NULL, NULL, "m", NULL, "m0", "", false},
        {NULL, NULL, "m", "5", "m", "5", true}, {NULL, NULL, "m", "5", "m", "51", false},  {NULL, NULL, "m", "5", "l", "9", true},
        {"b", "5", "b", "5", "b", "5", true},   {"b", "5", "b", "5", "b", "6", false},     {"b", "5", "b", "5", "c", "5", false},
        {"m", NULL, "b", NULL, "c", "", false}, {"b", NULL, "b", NULL, "b", "any", true},  {"b", NULL, "b", NULL, "ba", "any", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        values v = for_table("r");
        v.spk = cases[i].spk;
        v.srk = cases[i].srk;
        v.epk = cases[i].epk;
        v.erk = cases[i].erk;
        assert_int_equal(check(signed_query(&v)), OK);
        assert_int_equal(access_sas_covers(reach.sas, slice_str(cases[i].partition), slice_str(cases[i].row)), cases[i].covered);
    }
    values v = for_table("r");
    v.srk = "5";
    assert_int_equal(check(signed_query(&v)), E_BAD_AUTHORIZATION);
    v.srk = NULL;
    v.erk = "5";
    assert_int_equal(check(signed_query(&v)), E_BAD_AUTHORIZATION);
}

static void an_empty_bound_is_none(void **state) { /* an empty and an absent bound are signed alike */
    (void)state;
    values v = for_table("r");
    slice query = signed_query(&v);
    assert_int_equal(check(arena_printf(&memory, "epk=&spk&%.*s", (int)query.n, query.p)), OK);
    assert_false(access_sas_is_bounded(reach.sas));
}

static void times(void **state) {
    (void)state;
    values v = for_table("r");
    v.start = FROM;
    slice query = signed_query(&v);
    static const struct {
        const char *now;
        err code;
    } cases[] = {{"2026-11-16T13:59:59Z", E_BAD_AUTHORIZATION},
                 {FROM, OK},
                 {"2026-11-16T14:59:59Z", OK},
                 {UNTIL, E_BAD_AUTHORIZATION},
                 {"2027-01-01", E_BAD_AUTHORIZATION}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        o.now_s = at(cases[i].now);
        assert_int_equal(check(query), cases[i].code);
    }
    o.now_s = at(FROM);
    static const char *const never[] = {NULL, "", "tomorrow", "2026-11-16T15:00:00", "2026-13-16", "2026-11-16T15:00:00-01:00"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++) {
        v.expiry = never[i];
        assert_int_equal(check(signed_query(&v)), E_BAD_AUTHORIZATION);
    }
    v.expiry = UNTIL;
    v.start = "yesterday";
    assert_int_equal(check(signed_query(&v)), E_BAD_AUTHORIZATION);
}

static void addresses_and_protocols(void **state) {
    (void)state;
    static const struct {
        const char *addresses;
        err at_near, at_end, at_far, at_v6;
    } cases[] = {
        {NULL, OK, OK, OK, OK},
        {"10.0.0.1", OK, E_FORBIDDEN, E_FORBIDDEN, E_FORBIDDEN},
        {"10.0.0.1-10.0.0.9", OK, OK, E_FORBIDDEN, E_FORBIDDEN},
        {"10.0.0.9-10.0.0.1", E_FORBIDDEN, E_FORBIDDEN, E_FORBIDDEN, E_FORBIDDEN},
        {"0.0.0.0-255.255.255.255", OK, OK, OK, E_FORBIDDEN},
        {"10.0.0", E_BAD_AUTHORIZATION, E_BAD_AUTHORIZATION, E_BAD_AUTHORIZATION, E_BAD_AUTHORIZATION},
        {"::1", E_BAD_AUTHORIZATION, E_BAD_AUTHORIZATION, E_BAD_AUTHORIZATION, E_BAD_AUTHORIZATION},
        {"10.0.0.1-", E_BAD_AUTHORIZATION, E_BAD_AUTHORIZATION, E_BAD_AUTHORIZATION, E_BAD_AUTHORIZATION},
        {"10.0.0.1-10.0.0.9-10.0.0.10", E_BAD_AUTHORIZATION, E_BAD_AUTHORIZATION, E_BAD_AUTHORIZATION, E_BAD_AUTHORIZATION},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        values v = for_table("r");
        v.addresses = cases[i].addresses;
        slice query = signed_query(&v);
        assert_int_equal(check_from(query, near, false), cases[i].at_near);
        assert_int_equal(check_from(query, end, false), cases[i].at_end);
        assert_int_equal(check_from(query, far, false), cases[i].at_far);
        assert_int_equal(check_from(query, v6, false), cases[i].at_v6);
    }
    values v = for_table("r");
    v.protocol = "https";
    assert_int_equal(check_from(signed_query(&v), near, true), OK);
    assert_int_equal(check_from(signed_query(&v), near, false), E_FORBIDDEN);
    v.protocol = "https,http";
    assert_int_equal(check_from(signed_query(&v), near, false), OK);
    v.protocol = "http";
    assert_int_equal(check_from(signed_query(&v), near, false), E_BAD_AUTHORIZATION);
}

static void forms_that_are_refused(void **state) {
    (void)state;
    values v = for_table("r");
    slice good = signed_query(&v);
    assert_int_equal(check(good), OK);
    assert_int_equal(check(arena_printf(&memory, "sp=r&%.*s", (int)good.n, good.p)), E_BAD_AUTHORIZATION); /* twice */
    assert_int_equal(check(arena_printf(&memory, "%.*s&sig=x", (int)good.n, good.p)), E_BAD_AUTHORIZATION);
    assert_int_equal(check(arena_printf(&memory, "si=&si=&%.*s", (int)good.n, good.p)), E_BAD_AUTHORIZATION);
    assert_int_equal(check(arena_printf(&memory, "si=%%2&%.*s", (int)good.n, good.p)), E_BAD_AUTHORIZATION);
    assert_int_equal(check(arena_printf(&memory, "si=%%0A&%.*s", (int)good.n, good.p)), E_BAD_AUTHORIZATION); /* a line end */
    assert_int_equal(check(arena_printf(&memory, "si=%%00&%.*s", (int)good.n, good.p)), E_BAD_AUTHORIZATION);
    assert_int_equal(check(arena_printf(&memory, "ss=t&%.*s", (int)good.n, good.p)), E_BAD_AUTHORIZATION); /* both kinds at once */
    v.table = NULL;
    assert_int_equal(check(signed_query(&v)), E_BAD_AUTHORIZATION); /* neither kind */
    static const char *const versions[] = {"2015-04-04", "2014-02-14", "2019-02-0", "2019-02-30", "9", "2019-02-02T10:00Z"};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        v = for_table("r");
        v.version = versions[i];
        assert_int_equal(check(signed_query(&v)), E_BAD_AUTHORIZATION);
    }
    char *large = arena_alloc(&memory, LIMIT_SAS_BYTES + 100);
    memset(large, 'a', LIMIT_SAS_BYTES + 100);
    assert_int_equal(check(arena_printf(&memory, "%.*s&epk=%.*s", (int)good.n, good.p, LIMIT_SAS_BYTES + 100, large)), E_BAD_AUTHORIZATION);
    assert_int_equal(check(arena_printf(&memory, "%.*s&$filter=%.*s", (int)good.n, good.p, LIMIT_SAS_BYTES + 100, large)), OK);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(those_of_the_sdk_are_accepted), TEST(other_parameters_of_the_request_do_not_matter),
        TEST(a_change_of_anything_voids_it), TEST(letters_allow_verbs),
        TEST(reaches_answer_for_containers), TEST(rows_lie_between_bounds),
        TEST(an_empty_bound_is_none),        TEST(times),
        TEST(addresses_and_protocols),       TEST(forms_that_are_refused),
    };
    return cmocka_run_group_tests_name("access/sas", tests, NULL, NULL);
}
