/* A hostile peer in the place of the server: endless, lying, malformed and oversized answers. Every call must end, with an error where the
 * answer cannot be what the protocol says, in bounded processor time and memory. */
#include "harness.h"

#include <sys/resource.h>
#include <time.h>

#include "peer.h"

enum { RESPONSE_BYTES = 1 << 20, MEMORY_KB_MAX = 800 * 1024, PROCESSOR_S_MAX = 20 };

#define DEFINITION "{\"id\":\"c\",\"_rid\":\"AAAAAAAAAAA=\",\"partitionKey\":{\"paths\":[\"/pk\"],\"kind\":\"Hash\",\"version\":2}}"
#define RANGES(list) "{\"_rid\":\"AAAAAAAAAAA=\",\"PartitionKeyRanges\":[" list "]}"
#define ONE_RANGE RANGES("{\"id\":\"0\",\"minInclusive\":\"\",\"maxExclusive\":\"FF\"}")
#define PLAN(info)                                                                                                                         \
    "{\"queryInfo\":{" info "},\"queryRanges\":[{\"min\":\"\",\"max\":\"FF\",\"isMinInclusive\":true,\"isMaxInclusive\":false}]}"

static char at[64];
static tesela_container *k;
static tesela_key key;

/* ---- what the peer plays ---- */

static char large[RESPONSE_BYTES + 2]; /* a body; never freed, since the peer may still be sending it when the client has gone */

/* The bodies of answers, and the fields of pages of items. */
static const char *definition, *ranges, *plan, *page, *page_fields;

static int play_bodies(peer_link *l, const char *request) {
    if (strcasestr(request, "is-query-plan-request")) {
        return peer_json(l, "200 OK", "", plan);
    } else if (strncmp(request, "GET /dbs/d/colls/c HTTP", 23) == 0) {
        return peer_json(l, "200 OK", "", definition);
    } else if (strncmp(request, "GET /dbs/d/colls/c/pkranges", 27) == 0) {
        return peer_json(l, "200 OK", "", ranges);
    }
    return peer_json(l, "200 OK", page_fields, page);
}

static void usual_bodies(void) {
    definition = DEFINITION;
    ranges = ONE_RANGE;
    plan = PLAN("\"rewrittenQuery\":\"\"");
    page = "{\"Documents\":[]}";
    page_fields = "";
    peer_plays(play_bodies);
}

/* Repeats a text until the client goes. */
static int for_ever(peer_link *l, const char *head, const char *text) {
    char block[16384];
    size_t n = strlen(text), used = 0;
    for (; used + n <= sizeof block; used += n) {
        memcpy(block + used, text, n);
    }
    for (int more = peer_text(l, head); more;) {
        more = peer_send(l, block, used);
    }
    return 0;
}

static int endless_fields(peer_link *l, const char *request) {
    (void)request;
    return for_ever(l, "HTTP/1.1 200 OK\r\n", "x-more: of the same\r\n");
}

static int endless_odd_lines(peer_link *l, const char *request) {
    (void)request;
    return for_ever(l, "HTTP/1.1 200 OK\r\nx: y\r\n", "no field\r\n");
}

static int endless_line(peer_link *l, const char *request) {
    (void)request;
    return for_ever(l, "HTTP/1.1 200 OK\r\nx-long: ", "longer and ");
}

static int endless_continue(peer_link *l, const char *request) {
    (void)request;
    return for_ever(l, "", "HTTP/1.1 100 Continue\r\n\r\n");
}

static int endless_chunks(peer_link *l, const char *request) {
    (void)request;
    return for_ever(l, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "10\r\n0123456789abcdef\r\n");
}

static int endless_body(peer_link *l, const char *request) {
    (void)request;
    return for_ever(l, "HTTP/1.1 200 OK\r\nContent-Length: 9000000000000000000\r\n\r\n", "{\"Documents\":[");
}

static int endless_trailer(peer_link *l, const char *request) {
    (void)request;
    return for_ever(l, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", "x-more: of the same\r\n");
}

static int no_http(peer_link *l, const char *request) {
    (void)request;
    return peer_text(l, "SSH-2.0-OpenSSH_9.2\r\n") && 0;
}

static int odd_length(peer_link *l, const char *request) {
    (void)request;
    return peer_text(l, "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}") && 0;
}

static int short_body(peer_link *l, const char *request) {
    (void)request;
    return peer_text(l, "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{}") && 0;
}

static int silence(peer_link *l, const char *request) {
    (void)request;
    return peer_wait(l);
}

static int half_an_answer(peer_link *l, const char *request) {
    (void)request;
    return peer_text(l, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{\"id\":") && peer_wait(l);
}

/* ---- the calls ---- */

static tesela_status first_row(tesela_status opened, tesela_cursor *cursor) {
    const char *row;
    tesela_status status = opened == TESELA_OK ? tesela_cursor_next(cursor, &row, NULL, &error) : opened;
    tesela_cursor_close(cursor);
    return status;
}

static tesela_status call_account(void) {
    return tesela_account_read(client, NULL, &error);
}

static tesela_status call_read(void) {
    return tesela_item_read(k, "1", &key, NULL, NULL, &error);
}

static tesela_status call_create(void) {
    return tesela_item_create(k, "{\"id\":\"1\",\"pk\":\"a\"}", &key, NULL, NULL, &error);
}

static tesela_status call_throughput(void) {
    tesela_throughput t;
    return tesela_container_throughput(k, &t, &error);
}

static tesela_status call_databases(void) {
    tesela_cursor *cursor = NULL;
    tesela_status opened = tesela_databases(client, &cursor, &error);
    return first_row(opened, cursor);
}

static tesela_status call_items(void) {
    tesela_cursor *cursor = NULL;
    tesela_status opened = tesela_items(k, 0, NULL, &cursor, &error);
    return first_row(opened, cursor);
}

static tesela_status call_query(void) {
    tesela_cursor *cursor = NULL;
    tesela_status opened = tesela_query(k, "SELECT * FROM c", NULL, &(tesela_query_options){.parallelism = 2}, &cursor, &error);
    return first_row(opened, cursor);
}

static tesela_status call_query_in_key(void) {
    tesela_cursor *cursor = NULL;
    tesela_status opened = tesela_query(k, "SELECT * FROM c", NULL, &(tesela_query_options){.key = &key}, &cursor, &error);
    return first_row(opened, cursor);
}

static tesela_status call_ranges(void) {
    tesela_ranges *list = NULL;
    tesela_status status = tesela_container_ranges(k, &list, &error);
    tesela_ranges_free(list);
    return status;
}

static tesela_status call_changes(void) {
    tesela_changes *c;
    size_t n;
    ok(tesela_changes_open(k, NULL, &c, &error));
    tesela_status status = tesela_changes_page(c, &n, &error);
    tesela_changes_close(c);
    return status;
}

static tesela_status call_batch(void) {
    tesela_batch *b;
    ok(tesela_batch_open(k, &key, &b, &error));
    tesela_batch_create(b, "{\"id\":\"1\",\"pk\":\"a\"}");
    tesela_status status = tesela_batch_run(b, NULL, &error);
    tesela_batch_close(b);
    return status;
}

static tesela_status call_bulk(void) {
    tesela_bulk *b;
    tesela_status status = tesela_bulk_open(k, NULL, &b, &error);
    if (status == TESELA_OK) {
        status = tesela_bulk_add(b, &(tesela_bulk_operation){.kind = TESELA_BULK_CREATE, .body = "{\"id\":\"1\",\"pk\":\"a\"}"}, &error);
        status = status == TESELA_OK ? tesela_bulk_finish(b, &error) : status;
        tesela_bulk_close(b);
    }
    return status;
}

typedef tesela_status (*call)(void);
static const call all[] = {call_account, call_read,         call_create, call_throughput, call_databases, call_items,
                           call_query,   call_query_in_key, call_ranges, call_changes,    call_batch,     call_bulk};

/* Each test has a client of its own, so that nothing is left of the one before. */
static void open_client(uint32_t timeout_ms) {
    tesela_client_options options = {
        .endpoint = at, .key = KEY, .stay = true, .request_timeout_ms = timeout_ms, .response_bytes = RESPONSE_BYTES};
    ok(tesela_client_open(&options, &client, &error));
    ok(tesela_container_open(client, "d", "c", &k, &error));
}

static int set_up(void **state) {
    (void)state;
    usual_bodies();
    open_client(60000);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    struct rusage use;
    tesela_container_close(k);
    tesela_client_close(client);
    getrusage(RUSAGE_SELF, &use);
    assert_true(use.ru_maxrss < MEMORY_KB_MAX);
    return 0;
}

static void open_again(uint32_t timeout_ms) {
    tesela_container_close(k);
    tesela_client_close(client);
    open_client(timeout_ms);
}

/* ---- tests ---- */

static void all_fail(peer_answer answer, tesela_status wanted) {
    clock_t before = clock();
    peer_plays(answer);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tesela_status is = all[i]();
        if (is != wanted) {
            print_error("call %zu\n", i);
        }
        fails(is, wanted);
    }
    assert_true((clock() - before) / CLOCKS_PER_SEC < PROCESSOR_S_MAX);
}

static void endless_headers(void **state) {
    (void)state;
    all_fail(endless_fields, TESELA_LIMIT);
    all_fail(endless_odd_lines, TESELA_BAD_RESPONSE);
    all_fail(endless_line, TESELA_LIMIT);
    all_fail(endless_continue, TESELA_LIMIT);
    all_fail(endless_trailer, TESELA_LIMIT);
}

static void endless_bodies(void **state) {
    (void)state;
    all_fail(endless_chunks, TESELA_LIMIT);
    all_fail(endless_body, TESELA_LIMIT);
}

static void another_protocol(void **state) {
    (void)state;
    all_fail(no_http, TESELA_BAD_RESPONSE);
    all_fail(odd_length, TESELA_BAD_RESPONSE);
}

/* A read is sent again, a write is not. */
static void cut_short(void **state) {
    (void)state;
    peer_plays(short_body);
    fails(call_create(), TESELA_NO_CONNECTION);
    fails(call_read(), TESELA_NO_CONNECTION);
    open_again(100);
    peer_plays(silence);
    fails(call_create(), TESELA_TIMEOUT);
    fails(call_read(), TESELA_TIMEOUT);
    fails(call_query(), TESELA_TIMEOUT);
    peer_plays(half_an_answer);
    fails(call_create(), TESELA_TIMEOUT);
    fails(call_read(), TESELA_TIMEOUT);
}

/* The longest body that is allowed ends with a zero byte, and one more byte is too much. */
static void longest_body(void **state) {
    (void)state;
    tesela_response *r;
    size_t n;
    char *body = large;
    memset(body, 'x', RESPONSE_BYTES + 1);
    body[RESPONSE_BYTES] = 0;
    page = body;
    ok(tesela_item_read(k, "1", &key, NULL, &r, &error));
    assert_int_equal(strlen(tesela_response_body(r, &n)), RESPONSE_BYTES);
    assert_int_equal(n, RESPONSE_BYTES);
    tesela_response_free(r);
    body[RESPONSE_BYTES] = 'x';
    body[RESPONSE_BYTES + 1] = 0;
    fails(call_read(), TESELA_LIMIT);
}

/* Calls that read the answer's JSON. */
static const call reading[] = {call_throughput, call_databases, call_items, call_query, call_query_in_key,
                               call_ranges,     call_changes,   call_batch, call_bulk};

static void read_body(const char *body) {
    definition = ranges = plan = page = body;
    for (size_t i = 0; i < sizeof reading / sizeof *reading; i++) {
        assert_true(reading[i]() > TESELA_DONE);
    }
}

static void malformed_json(void **state) {
    (void)state;
    static const char *const bodies[] = {
        "",
        "null",
        "{",
        "[",
        "{\"Documents\":[",
        "{\"Documents\":[1,}",
        "{\"Documents\":[{}{}]}",
        "[1,2",
        "{\"Documents\"",
        "\"\\",
        "{\"a\":\\",
        "\xff\xfe{\"x\":1}",
        "{\"Documents\":{}}",
        "<html>no</html>",
        "[[[[}]",
        "{\"Documents\":[1e999999,]",
        "{\"PartitionKeyRanges\":[{\"id\":1}]}",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        read_body(bodies[i]);
    }
}

static void deep_json(void **state) {
    (void)state;
    char *body = large;
    memset(body, '[', RESPONSE_BYTES - 1);
    body[RESPONSE_BYTES - 1] = 0;
    read_body(body);
    memcpy(body, "{\"Documents\":", 13);
    read_body(body);
}

static void hostile_plans(void **state) {
    (void)state;
    tesela_status bad = TESELA_BAD_RESPONSE;
    plan = PLAN("\"orderBy\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]");
    fails(call_query(), bad);
    plan = PLAN("\"aggregates\":[\"Median\"]");
    fails(call_query(), bad);
    plan = "{\"queryInfo\":{},\"queryRanges\":[{\"min\":\"zz\",\"max\":\"FF\"}]}";
    fails(call_query(), bad);
    plan = PLAN("\"orderBy\":[\"Ascending\"]");
    page = "{\"Documents\":[1,{\"orderByItems\":7}]}";
    fails(call_query(), bad);
    plan = PLAN("\"groupByAliasToAggregateType\":{\"a\":\"Count\"}");
    page = "{\"Documents\":[1,{\"payload\":{\"a\":{\"item\":1}}}]}"; /* a value without a name, then one with */
    fails(call_query(), bad);
    plan = PLAN("\"top\":1e300,\"offset\":-1,\"limit\":\"many\"");
    page = "{\"Documents\":[1]}";
    ok(call_query());
}

static void numbers_out_of_range(void **state) {
    (void)state;
    page = "[{\"statusCode\":1e300,\"subStatusCode\":-1e300,\"requestCharge\":1e400,\"retryAfterMilliseconds\":-9}]";
    page_fields = "x-ms-request-charge: nan\r\nx-ms-substatus: 99999999999999999999\r\nx-ms-retry-after-ms: -1\r\n"
                  "x-ms-session-token: 0:-1#99999999999999999999#1=1,:#,,#:\r\n";
    fails(call_batch(), TESELA_SERVER_ERROR);
    fails(call_bulk(), TESELA_SERVER_ERROR);
    page = "{\"Offers\":[{\"content\":{\"offerThroughput\":1e300}}]}";
    call_throughput();
}

/* ---- pages without end ---- */

static unsigned pages;

static void endless_empty_pages(void **state) {
    (void)state;
    page = "{\"Documents\":[],\"Databases\":[]}";
    page_fields = "x-ms-continuation: more\r\n";
    fails(call_databases(), TESELA_BAD_RESPONSE);
    fails(call_query(), TESELA_BAD_RESPONSE);
}

static int play_ranges(peer_link *l, const char *request) {
    char body[256], fields[64], min[16], max[16];
    if (!strstr(request, "/pkranges")) {
        return play_bodies(l, request);
    }
    const char *from = strcasestr(request, "x-ms-continuation: ");
    unsigned i = from ? (unsigned)strtoul(from + 19, NULL, 10) : 0;
    bool last = i + 1 == pages;
    snprintf(min, sizeof min, "%02X", i);
    snprintf(max, sizeof max, "%02X", last ? 255 : i + 1);
    snprintf(body, sizeof body, "{\"PartitionKeyRanges\":[{\"id\":\"%u\",\"minInclusive\":\"%s\",\"maxExclusive\":\"%s\"}]}", i,
             i ? min : "", max);
    snprintf(fields, sizeof fields, "x-ms-continuation: %u\r\n", i + 1);
    return peer_json(l, "200 OK", last ? "" : fields, body);
}

static void pages_of_ranges(void **state) {
    (void)state;
    tesela_ranges *list;
    pages = 5;
    peer_plays(play_ranges);
    ok(tesela_container_ranges(k, &list, &error));
    assert_int_equal(tesela_ranges_count(list), 5);
    for (size_t i = 1; i < 5; i++) {
        assert_string_equal(tesela_ranges_get(list, i)->min, tesela_ranges_get(list, i - 1)->max);
    }
    tesela_ranges_free(list);
}

static int play_same_ranges(peer_link *l, const char *request) {
    return strstr(request, "/pkranges") ? peer_json(l, "200 OK", "x-ms-continuation: more\r\n", ranges) : play_bodies(l, request);
}

static void endless_ranges(void **state) {
    (void)state;
    peer_plays(play_same_ranges);
    fails(call_ranges(), TESELA_BAD_RESPONSE);
    ranges = RANGES("");
    fails(call_ranges(), TESELA_BAD_RESPONSE);
    usual_bodies();
    ranges = RANGES(
        "{\"id\":\"0\",\"minInclusive\":\"\",\"maxExclusive\":\"FF\"},{\"id\":\"1\",\"minInclusive\":\"FF\",\"maxExclusive\":\"FF\"}");
    fails(call_ranges(), TESELA_BAD_RESPONSE); /* an empty one */
}

/* A continuation, which may have been out of the application's hands, from beyond the last range. */
static void no_such_range(void **state) {
    (void)state;
    tesela_changes *c;
    size_t n;
    const char *from = "{\"version\":1,\"ranges\":[{\"min\":\"FFF0\",\"max\":\"FFFF\"}]}";
    ok(tesela_changes_open(k, &(tesela_changes_options){.continuation = from}, &c, &error));
    fails(tesela_changes_page(c, &n, &error), TESELA_DONE);
    tesela_changes_close(c);
}

/* ---- answers that ask for another request ---- */

static int forbid(peer_link *l, const char *request) {
    (void)request;
    return peer_json(l, "403 Forbidden", "x-ms-substatus: 3\r\n", "{\"message\":\"elsewhere\"}");
}

static int throttle(peer_link *l, const char *request) {
    (void)request;
    return peer_json(l, "429 Too Many", "x-ms-retry-after-ms: 3999999999\r\n", "{\"message\":\"later\"}");
}

static int redirect(peer_link *l, const char *request) {
    (void)request;
    return peer_json(l, "307 Temporary Redirect", "Location: http://127.0.0.1:1/\r\n", "");
}

static void sent_elsewhere(void **state) {
    (void)state;
    tesela_client *c;
    peer_plays(throttle);
    fails(call_read(), TESELA_THROTTLED);
    peer_plays(redirect);
    fails(call_read(), TESELA_SERVER_ERROR); /* the key's signature goes nowhere else */
    peer_plays(forbid);
    ok(tesela_client_open(&(tesela_client_options){.endpoint = at, .key = KEY}, &c, &error));
    fails(tesela_account_read(c, NULL, &error), TESELA_FORBIDDEN);
    tesela_client_close(c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(endless_headers),     TEST(endless_bodies), TEST(another_protocol), TEST(cut_short),       TEST(longest_body),
        TEST(malformed_json),      TEST(deep_json),      TEST(hostile_plans),    TEST(pages_of_ranges), TEST(numbers_out_of_range),
        TEST(endless_empty_pages), TEST(endless_ranges), TEST(no_such_range),    TEST(sent_elsewhere),
    };
    peer_start(at);
    key = tesela_key_string("a");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
