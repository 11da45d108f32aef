/* The account's regions: reads go to the preferred one, writes to the one that takes them; both go elsewhere when a region is away, refuses
 * writes, or is behind. The peer plays all regions: their endpoints differ in the host's name, which it finds in the Host field. */
#include "harness.h"

#include <pthread.h>

#include "peer.h"

static char east[64], west[64], start[64]; /* two regions, and the endpoint that the client is given */
static tesela_key key;

/* ---- what the peer plays ---- */

static char account[1024];
static char seen[8192];             /* "GET east, POST west tokens, …" of items */
static int accounts;                /* how often the account was read */
static const char *refusal_of_east; /* "403 Forbidden" and so on; NULL: none */
static int refusals;                /* how many times; below 0: always */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *region_of(const char *request) {
    const char *host = strcasestr(request, "\r\nHost: ");
    return !host ? "none" : strncmp(host + 8, "127.0.0.1", 9) == 0 ? "east" : strncasecmp(host + 8, "localhost", 9) == 0 ? "west" : "start";
}

static void note(const char *request) {
    size_t n = strlen(seen);
    snprintf(seen + n, sizeof seen - n, "%s%.*s %s%s", n ? ", " : "", (int)strcspn(request, " "), request, region_of(request),
             strcasestr(request, "\r\nx-ms-session-token:") ? " token" : "");
}

static int play(peer_link *l, const char *request) {
    const char *refused = NULL;
    int is_account = strncmp(request, "GET / HTTP", 10) == 0;
    pthread_mutex_lock(&lock);
    if (is_account) {
        accounts++;
    } else {
        note(request);
        if (strcmp(region_of(request), "east") == 0 && refusal_of_east && refusals) {
            refused = refusal_of_east;
            refusals--;
        }
    }
    pthread_mutex_unlock(&lock);
    if (is_account) {
        return peer_json(l, "200 OK", "", account);
    }
    return refused ? peer_json(l, refused, "x-ms-substatus: 3\r\n", "{\"message\":\"not here\"}")
                   : peer_json(l, "200 OK", "x-ms-session-token: 0:1#7\r\n", "{\"id\":\"1\",\"pk\":\"a\"}");
}

/* ---- the account ---- */

static void locations(char *out, size_t n, const char *first_name, const char *first, const char *second_name, const char *second) {
    int used = snprintf(out, n, "[{\"name\":\"%s\",\"databaseAccountEndpoint\":\"%s/\"}", first_name, first);
    snprintf(out + used, n - (size_t)used, second ? ",{\"name\":\"%s\",\"databaseAccountEndpoint\":\"%s/\"}]" : "]", second_name, second);
}

/* `writers`: "east", "west" or both. */
static void account_is(const char *writers) {
    char reads[300], writes[300];
    locations(reads, sizeof reads, "East US", east, "West US", west);
    if (strcmp(writers, "both") == 0) {
        locations(writes, sizeof writes, "East US", east, "West US", west);
    } else {
        locations(writes, sizeof writes, writers, strcmp(writers, "east") == 0 ? east : west, "", NULL);
    }
    pthread_mutex_lock(&lock);
    snprintf(account, sizeof account, "{\"id\":\"shop\",\"readableLocations\":%s,\"writableLocations\":%s}", reads, writes);
    pthread_mutex_unlock(&lock);
}

static tesela_container *k;

static int set_up(void **state) {
    (void)state;
    static const char *const preferred[] = {"west us", "East US"};
    account_is("east");
    seen[0] = 0;
    accounts = 0;
    refusal_of_east = NULL;
    peer_plays(play);
    tesela_client_options options = {.endpoint = start, .key = KEY, .regions = preferred, .regions_count = 2};
    ok(tesela_client_open(&options, &client, &error));
    ok(tesela_container_open(client, "d", "c", &k, &error));
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    tesela_container_close(k);
    tesela_client_close(client);
    return 0;
}

static void create(void) {
    ok(tesela_item_create(k, "{\"id\":\"1\",\"pk\":\"a\"}", &key, NULL, NULL, &error));
}

static void read_one(void) {
    ok(tesela_item_read(k, "1", &key, NULL, NULL, &error));
}

/* ---- tests ---- */

static void reads_go_to_the_preferred_region(void **state) {
    (void)state;
    read_one();
    create();
    read_one();
    assert_string_equal(seen, "GET west, POST east, GET west token"); /* a write needs no token where there is one writer */
    assert_int_equal(accounts, 1);
}

static void several_writers_get_session_tokens(void **state) {
    (void)state;
    account_is("both");
    create();
    create();
    read_one();
    assert_string_equal(seen, "POST west, POST west token, GET west token");
}

/* 403, 3: the region takes no writes any more; the account tells which one does. */
static void writes_follow_a_failover(void **state) {
    (void)state;
    create();
    account_is("west");
    refusal_of_east = "403 Forbidden";
    refusals = -1;
    create();
    create();
    assert_string_equal(seen, "POST east, POST east, POST west, POST west");
    assert_int_equal(accounts, 2);
}

static void an_unavailable_region_is_left(void **state) {
    (void)state;
    account_is("both");
    read_one();
    char *first = strdup(west);
    snprintf(west, sizeof west, "http://127.0.0.1:1"); /* nobody listens there */
    account_is("both");
    tear_down(NULL);
    tesela_client_options options = {.endpoint = start, .key = KEY, .regions = (const char *const[]){"West US"}, .regions_count = 1};
    ok(tesela_client_open(&options, &client, &error));
    ok(tesela_container_open(client, "d", "c", &k, &error));
    seen[0] = 0;
    read_one();
    create(); /* was not received by the first, so it is sent again */
    assert_string_equal(seen, "GET east, POST east token");
    snprintf(west, sizeof west, "%s", first);
    free(first);
}

static void a_busy_region_is_left(void **state) {
    (void)state;
    account_is("both");
    tear_down(NULL);
    tesela_client_options options = {.endpoint = start, .key = KEY, .regions = (const char *const[]){"East US"}, .regions_count = 1};
    ok(tesela_client_open(&options, &client, &error));
    ok(tesela_container_open(client, "d", "c", &k, &error));
    refusal_of_east = "503 Service Unavailable";
    refusals = 1;
    read_one();
    assert_string_equal(seen, "GET east, GET west");
}

/* With `stay`, and for a server on this machine, the given endpoint is used. */
static void a_client_can_stay(void **state) {
    (void)state;
    tear_down(NULL);
    tesela_client_options options = {.endpoint = start, .key = KEY, .stay = true};
    ok(tesela_client_open(&options, &client, &error));
    ok(tesela_container_open(client, "d", "c", &k, &error));
    create();
    read_one();
    assert_string_equal(seen, "POST start, GET start token");
    assert_int_equal(accounts, 0);
    tear_down(NULL);
    options = (tesela_client_options){.endpoint = east, .key = KEY};
    ok(tesela_client_open(&options, &client, &error));
    ok(tesela_container_open(client, "d", "c", &k, &error));
    account_is("west");
    seen[0] = 0;
    create();
    assert_string_equal(seen, "POST east");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(reads_go_to_the_preferred_region),
        TEST(several_writers_get_session_tokens),
        TEST(writes_follow_a_failover),
        TEST(an_unavailable_region_is_left),
        TEST(a_busy_region_is_left),
        TEST(a_client_can_stay),
    };
    peer_start(east);
    const char *port = strrchr(east, ':');
    snprintf(west, sizeof west, "http://localhost%s", port);
    snprintf(start, sizeof start, "http://0.0.0.0%s", port); /* reaches this machine, and is not known as its address */
    key = tesela_key_string("a");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
