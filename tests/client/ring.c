/* A ring grows and shrinks while processes write and read through it, and while its manager and its writers are killed: no item is lost,
 * none is there twice, none comes back.
 *
 * What each writer has been told is in shared memory. An item has its old or its new value if its writer was killed in between. */
#include "harness.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WRITERS = 2, ITEMS = 60, ANCHORS = 200, ABSENT = -1, REFRESH_MS = 200, REQUEST_MS = 1000 };

typedef struct shared {
    atomic_bool stop;
    atomic_uint writes, reads, unavailable;
    atomic_int value[WRITERS][ITEMS], pending[WRITERS][ITEMS]; /* of an item; pending differs while a write is under way */
} shared;

static shared *s;
static tesela_container *states;
static char ring_name[16];

static void pause_ms(long ms) {
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static _Noreturn void give_up(const char *what, int a, int b) {
    print_error("%s (%d, %d): %s %s\n", what, a, b, tesela_status_text(error.status), error.message);
    _exit(1);
}

/* ---- a client process: its own client and resolver ---- */

static tesela_client *own;

static void open_ring(void) {
    tesela_resolver *r;
    tesela_container *k;
    tesela_client_options options = {.endpoint = endpoint, .key = KEY};
    if (tesela_client_open(&options, &own, &error) != TESELA_OK || tesela_container_open(own, "d", "states", &k, &error) != TESELA_OK ||
        tesela_ring_open(own, k, ring_name, NULL, &r, &error) != TESELA_OK) {
        give_up("open", 0, 0);
    }
    tesela_client_set_resolver(own, "d", r);
}

/* Repeats what the ring was unavailable for. */
#define patiently(status, call)                                                                                                            \
    while (((status) = (call)) == TESELA_UNAVAILABLE) {                                                                                    \
        s->unavailable++;                                                                                                                  \
        pause_ms(20);                                                                                                                      \
    }

static int read_value(int w, int i) {
    char id[32], pk[32], key[40];
    tesela_response *r = NULL;
    tesela_status status;
    snprintf(id, sizeof id, "w%d-%d", w, i);
    snprintf(pk, sizeof pk, "k%d-%d", w, i);
    snprintf(key, sizeof key, "\"%s\"", pk);
    tesela_key item_key = tesela_key_string(pk);
    patiently(status, tesela_database_read_item(own, "d", key, id, &item_key, NULL, &r, &error));
    if (status == TESELA_NOT_FOUND) {
        return ABSENT;
    }
    if (status != TESELA_OK) {
        give_up("read", w, i);
    }
    const char *at = strstr(tesela_response_body(r, NULL), "\"value\":");
    int value = at ? atoi(at + 8) : -2;
    tesela_response_free(r);
    return value;
}

static void write_value(int w, int i, int before, int value) {
    char id[32], pk[32], key[40], item[128];
    tesela_status status;
    snprintf(id, sizeof id, "w%d-%d", w, i);
    snprintf(pk, sizeof pk, "k%d-%d", w, i);
    snprintf(key, sizeof key, "\"%s\"", pk);
    snprintf(item, sizeof item, "{\"id\":\"%s\",\"pk\":\"%s\",\"value\":%d}", id, pk, value);
    tesela_key item_key = tesela_key_string(pk);
    s->pending[w][i] = value;
    if (value == ABSENT) {
        patiently(status, tesela_database_delete_item(own, "d", key, id, &item_key, NULL, NULL, &error));
    } else if (before == ABSENT) {
        patiently(status, tesela_database_create_item(own, "d", item, NULL, NULL, &error));
    } else if (value % 2) {
        patiently(status, tesela_database_replace_item(own, "d", id, item, NULL, NULL, &error));
    } else {
        patiently(status, tesela_database_upsert_item(own, "d", item, NULL, NULL, &error));
    }
    if (status != TESELA_OK) {
        give_up("write", i, value);
    }
    s->value[w][i] = value;
    s->writes++;
}

/* What is there must be what was acknowledged, or what was under way when the writer before was killed. */
static void check_value(int w, int i) {
    int is = read_value(w, i), acknowledged = s->value[w][i], pending = s->pending[w][i];
    if (is != acknowledged && is != pending) {
        give_up("an item has another value than was written", is, acknowledged);
    }
    s->value[w][i] = s->pending[w][i] = is;
    s->reads++;
}

static void write_on(int w, unsigned seed) {
    open_ring();
    srand(seed);
    for (int i = 0; i < ITEMS; i++) {
        check_value(w, i);
    }
    while (!s->stop) {
        int i = rand() % ITEMS, before = s->value[w][i];
        write_value(w, i, before, before != ABSENT && rand() % 3 == 0 ? ABSENT : rand() % 100000);
        check_value(w, i);
        pause_ms(2);
    }
    _exit(0);
}

/* Every anchor once in each query of all containers, whatever the phase. */
static void query_on(void) {
    open_ring();
    while (!s->stop) {
        bool seen[ANCHORS] = {false};
        unsigned count = 0;
        const char *row;
        tesela_cursor *cursor;
        tesela_status status = tesela_database_query(own, "d", NULL, "SELECT * FROM c", NULL, NULL, &cursor, &error);
        if (status == TESELA_UNAVAILABLE) {
            s->unavailable++;
            pause_ms(20);
            continue;
        }
        while (status == TESELA_OK && (status = tesela_cursor_next(cursor, &row, NULL, &error)) == TESELA_OK) {
            const char *at = strstr(row, "\"anchor\":");
            int i = at ? atoi(at + 9) : -1;
            if (i >= 0 && seen[i]) {
                give_up("an item comes twice", i, 0);
            }
            if (i >= 0) {
                seen[i] = true;
                count++;
            }
        }
        if (status != TESELA_DONE || count != ANCHORS) {
            give_up("a query lacks items", (int)count, ANCHORS);
        }
        tesela_cursor_close(cursor);
        s->reads++;
        pause_ms(20);
    }
    _exit(0);
}

static void manage(const char *const *names, size_t n, bool unavailable) {
    tesela_container *k;
    tesela_client_options options = {.endpoint = endpoint, .key = KEY};
    tesela_ring_change_options change = {.unavailable = unavailable};
    if (tesela_client_open(&options, &own, &error) != TESELA_OK || tesela_container_open(own, "d", "states", &k, &error) != TESELA_OK) {
        give_up("open", 0, 0);
    }
    tesela_status status = names ? tesela_ring_change(own, k, ring_name, names, n, &change, NULL, &error)
                                 : tesela_ring_resume(own, k, ring_name, &change, NULL, &error);
    if (status != TESELA_OK) {
        give_up("change", 0, 0);
    }
    _exit(0);
}

/* ---- the test ---- */

static pid_t writers[WRITERS], reader;

static void start_writer(int w, unsigned seed) {
    writers[w] = fork();
    if (writers[w] == 0) {
        write_on(w, seed);
    }
}

/* Whether the process has ended well, waiting at most `ms`. */
static bool ended(pid_t pid, long ms, bool *well) {
    int how;
    for (long waited = 0; waited <= ms; waited += 20) {
        if (waitpid(pid, &how, WNOHANG) == pid) {
            *well = WIFEXITED(how) && WEXITSTATUS(how) == 0;
            return true;
        }
        pause_ms(20);
    }
    return false;
}

/* Changes the ring by managers that are killed `kills` times, and with them a writer; the last one ends its work. */
static bool change(const char *const *names, size_t n, bool unavailable, int kills) {
    bool well = true;
    for (int kill_no = 0;; kill_no++) {
        pid_t manager = fork();
        if (manager == 0) {
            manage(kill_no ? NULL : names, n, unavailable);
        }
        if (ended(manager, kill_no < kills ? 1300 + rand() % 1500 : 120000, &well)) {
            return well;
        }
        kill(manager, SIGKILL);
        waitpid(manager, NULL, 0);
        int w = kill_no % WRITERS;
        kill(writers[w], SIGKILL);
        waitpid(writers[w], NULL, 0);
        start_writer(w, (unsigned)rand());
        if (kill_no >= kills) {
            print_error("the change does not end\n");
            return false;
        }
    }
}

static void create_items(const char *const *names, size_t n) {
    tesela_resolver *r;
    tesela_ring_options options = {.refresh_ms = REFRESH_MS, .request_ms = REQUEST_MS};
    ok(tesela_ring_create(states, ring_name, "d", "/pk", names, n, &options, &error));
    fails(tesela_ring_create(states, ring_name, "d", "/pk", names, n, &options, &error), TESELA_CONFLICT);
    ok(tesela_ring_open(client, states, ring_name, NULL, &r, &error));
    tesela_transition mode;
    ok(tesela_ring_mode(r, &mode, &error));
    assert_int_equal(mode, TESELA_READ_CURRENT);
    tesela_client_set_resolver(client, "d", r);
    for (int i = 0; i < ANCHORS; i++) {
        char item[96];
        snprintf(item, sizeof item, "{\"id\":\"a%d\",\"pk\":\"anchor-%d\",\"anchor\":%d}", i, i, i);
        ok(tesela_database_create_item(client, "d", item, NULL, NULL, &error));
    }
    tesela_client_set_resolver(client, "d", NULL);
    tesela_resolver_free(r);
}

/* Looks into the containers themselves: every item once, where the ring wants it, with the value that was acknowledged; no marks. */
static bool all_is_well(const char *const *all, size_t all_n, const char *const *names, size_t n) {
    int anchors = 0, expected = 0, found = 0;
    tesela_resolver *plain;
    ok(tesela_hash_resolver_new("/pk", names, n, NULL, &plain, &error));
    bool well = true;
    for (size_t c = 0; c < all_n; c++) {
        tesela_container *k;
        tesela_cursor *cursor;
        const char *row;
        ok(tesela_container_open(client, "d", all[c], &k, &error));
        ok(tesela_query(k, "SELECT * FROM c", NULL, NULL, &cursor, &error));
        while (tesela_cursor_next(cursor, &row, NULL, &error) == TESELA_OK) {
            tesela_texts *key = tesela_texts_new(), *where = tesela_texts_new();
            int w, i;
            ok(tesela_resolver_partition_key(plain, row, key, &error));
            ok(tesela_resolver_for_create(plain, tesela_texts_get(key, 0), where, &error));
            well = well && strcmp(tesela_texts_get(where, 0), all[c]) == 0 && !strstr(row, "_tesela_deleted");
            anchors += strstr(row, "\"anchor\":") != NULL;
            if (sscanf(row, "{\"id\":\"w%d-%d\"", &w, &i) == 2) {
                found++;
                int value = atoi(strstr(row, "\"value\":") + 8);
                well = well && (value == s->value[w][i] || value == s->pending[w][i]);
            }
            tesela_texts_free(key);
            tesela_texts_free(where);
        }
        tesela_cursor_close(cursor);
        tesela_container_close(k);
    }
    for (int w = 0; w < WRITERS; w++) {
        for (int i = 0; i < ITEMS; i++) {
            expected += s->value[w][i] != ABSENT;
        }
    }
    tesela_resolver_free(plain);
    if (anchors != ANCHORS || found != expected) {
        print_error("anchors %d of %d, items %d of %d\n", anchors, ANCHORS, found, expected);
    }
    return well && anchors == ANCHORS && found == expected;
}

static void grows_and_shrinks(void **state) {
    (void)state;
    const char *names[] = {"part0", "part1", "part2", "part3"}, *fewer[] = {"part0", "part2", "part3"};
    strcpy(ring_name, "ring");
    for (int i = 0; i < 4; i++) {
        tesela_container_close(container_new(names[i], 0));
    }
    for (int w = 0; w < WRITERS; w++) {
        for (int i = 0; i < ITEMS; i++) {
            s->value[w][i] = s->pending[w][i] = ABSENT;
        }
    }
    create_items(names, 3);
    for (int w = 0; w < WRITERS; w++) {
        start_writer(w, (unsigned)w);
    }
    reader = fork();
    if (reader == 0) {
        query_on();
    }
    bool grown = change(names, 4, false, 3);          /* one more */
    bool shrunk = grown && change(fewer, 3, true, 1); /* one less, by way of None */
    bool well = true, one = false;
    s->stop = true;
    for (int w = 0; w < WRITERS; w++) {
        well = ended(writers[w], 60000, &one) && one && well;
    }
    well = ended(reader, 60000, &one) && one && well;
    assert_true(grown && shrunk && well);
    assert_true(all_is_well(names, 4, fewer, 3));
    print_message("%u writes, %u reads, unavailable %u times\n", s->writes, s->reads, s->unavailable);
    assert_true(s->writes > 50 && s->reads > 50 && s->unavailable > 0);
}

/* Only what must move is moved, and the manager stops and goes on as it is told. */
typedef struct stopper {
    unsigned calls, stop_at;
} stopper;

static bool on_progress(void *context, const tesela_ring_progress *progress) {
    stopper *p = context;
    assert_non_null(progress->phase);
    return ++p->calls != p->stop_at;
}

static void moves_the_minimum(void **state) {
    (void)state;
    const char *names[] = {"min0", "min1", "min2", "min3", "min4"};
    tesela_ring_options options = {.refresh_ms = 20, .request_ms = 20, .hash = &(tesela_hash_options){.virtual_nodes = 256}};
    tesela_resolver *r, *next;
    uint64_t moved, more;
    unsigned must = 0;
    snprintf(ring_name, sizeof ring_name, "minimum");
    for (int i = 0; i < 5; i++) {
        tesela_container_close(container_new(names[i], 0));
    }
    ok(tesela_ring_create(states, ring_name, "d", "/pk", names, 4, &options, &error));
    ok(tesela_ring_open(client, states, ring_name, NULL, &r, &error));
    ok(tesela_hash_resolver_new("/pk", names, 5, options.hash, &next, &error));
    tesela_client_set_resolver(client, "d", r);
    for (int i = 0; i < 500; i++) {
        char item[64], key[16];
        snprintf(item, sizeof item, "{\"id\":\"%d\",\"pk\":\"p%d\"}", i, i);
        snprintf(key, sizeof key, "\"p%d\"", i);
        ok(tesela_database_create_item(client, "d", item, NULL, NULL, &error));
        tesela_texts *where = tesela_texts_new();
        ok(tesela_resolver_for_create(next, key, where, &error));
        must += strcmp(tesela_texts_get(where, 0), "min4") == 0;
        tesela_texts_free(where);
    }
    stopper p = {.stop_at = 12};
    tesela_ring_change_options change_options = {.progress = on_progress, .context = &p};
    fails(tesela_ring_change(client, states, ring_name, names, 5, &change_options, &moved, &error), TESELA_CANCELLED);
    fails(tesela_ring_change(client, states, ring_name, names, 5, NULL, NULL, &error), TESELA_CONFLICT);
    ok(tesela_ring_resume(client, states, ring_name, NULL, &more, &error));
    assert_int_equal(moved + more, must);
    assert_true((double)must <= 1.2 * 500 / 5);
    ok(tesela_ring_resume(client, states, ring_name, NULL, &more, &error));
    assert_int_equal(more, 0);
    tesela_client_set_resolver(client, "d", NULL);
    tesela_resolver_free(r);
    tesela_resolver_free(next);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(moves_the_minimum), cmocka_unit_test(grows_and_shrinks)};
    server_start("--throttling", "off", NULL);
    s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (tesela_container_create(client, "d", "{\"id\":\"states\",\"partitionKey\":{\"paths\":[\"/id\"],\"kind\":\"Hash\",\"version\":2}}",
                                NULL, NULL, &error) != TESELA_OK ||
        tesela_container_open(client, "d", "states", &states, &error) != TESELA_OK) {
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    tesela_container_close(states);
    server_stop();
    return failed;
}
