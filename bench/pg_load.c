/* pg_load.c — PostgreSQL beside tesela-load: the same records and questions over as many connections, closed loops on one thread.
 *
 * A table is (id text primary key, pk text, doc jsonb). Records come in by COPY, questions are prepared statements, documents go out as
 * JSON text. One line of JSON on standard output. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <time.h>

#include "histogram.h"
#include "question.h"

enum { CONNECTIONS_MAX = 64, EVENTS = 64, COPY_BYTES = 1 << 16, VALUES_MAX = QUESTION_VALUES_MAX + 1 };

static const uint64_t least_wait_ns = 60000000000; /* for answers that take longer than the time given */

typedef struct settings {
    const char *socket, *mode, *table;
    const question *ask;
    uint64_t items, first, least;
    int connections;
    double seconds, warm_up;
    bool indexes, serial;
} settings;

/* The texts of a statement's values, as libpq wants them. */
typedef struct values {
    char texts[VALUES_MAX][DATA_VALUE_MAX];
    char doc[2 * DATA_RECORD_BYTES];
    const char *list[VALUES_MAX];
    int n;
} values;

static settings set = {.table = "items", .mode = "query", .items = 20000, .connections = 32, .seconds = 5, .warm_up = 1};
static uint64_t random_state = DATA_SEED, next_number;
static histogram latencies;
static uint64_t errors, rows, bytes_in;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what, const char *why) {
    fprintf(stderr, "pg_load: %s: %s\n", what, why);
    exit(1);
}

static PGconn *open_connection(void) {
    const char *names[] = {"host", "user", "dbname", NULL}, *texts[] = {set.socket, "postgres", "postgres", NULL};
    PGconn *c = PQconnectdbParams(names, texts, 0);
    if (PQstatus(c) != CONNECTION_OK) {
        die("connect", PQerrorMessage(c));
    }
    return c;
}

static PGresult *run(PGconn *c, const char *sql) {
    PGresult *r = PQexec(c, sql);
    ExecStatusType status = PQresultStatus(r);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_COPY_IN) {
        die(sql, PQerrorMessage(c));
    }
    return r;
}

static void __attribute__((format(printf, 2, 3))) runf(PGconn *c, const char *format, ...) {
    char sql[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(sql, sizeof sql, format, args);
    va_end(args);
    PQclear(run(c, sql));
}

/* ---- values ---- */

static void add_value(values *v, data_field field, uint64_t number) {
    char *text = v->texts[v->n];
    text[data_value(field, number, text)] = 0;
    v->list[v->n++] = text;
}

static void question_values(values *v, uint64_t number) {
    v->n = 0;
    if (set.ask->kind == DATA_BY_DEVICE) {
        add_value(v, DATA_DEVICE, number);
    }
    for (unsigned i = 0; i < set.ask->values_n; i++) {
        add_value(v, set.ask->values[i], number);
    }
}

static void record_values(values *v, uint64_t number) {
    v->n = 0;
    add_value(v, DATA_ID, number);
    add_value(v, DATA_DEVICE, number);
    v->doc[data_item(DATA_BY_DEVICE, number, DATA_RECORD_BYTES, v->doc)] = 0;
    v->list[v->n++] = v->doc;
}

static bool creates(void) {
    return strcmp(set.mode, "create") == 0;
}

static void next_values(values *v) {
    creates() ? record_values(v, next_number++) : question_values(v, set.first + data_random(&random_state) % set.items);
}

static void prepare(PGconn *c) {
    char insert[256];
    snprintf(insert, sizeof insert, "INSERT INTO %s VALUES ($1, $2, $3::jsonb)", set.table);
    if (set.serial) {
        PQclear(run(c, "SET max_parallel_workers_per_gather = 0"));
    }
    PGresult *r = PQprepare(c, "s", creates() ? insert : set.ask->postgres, 0, NULL);
    if (PQresultStatus(r) != PGRES_COMMAND_OK) {
        die("prepare", PQerrorMessage(c));
    }
    PQclear(r);
}

/* ---- load ---- */

static void send_copy(PGconn *c, const char *bytes, size_t n) {
    if (PQputCopyData(c, bytes, (int)n) != 1) {
        die("COPY", PQerrorMessage(c));
    }
}

/* Nothing in a record needs escaping. */
static void copy_records(PGconn *c) {
    static char out[COPY_BYTES + 4 * DATA_RECORD_BYTES];
    char *p = out;
    char sql[128];
    snprintf(sql, sizeof sql, "COPY %s FROM STDIN", set.table);
    PQclear(run(c, sql));
    for (uint64_t number = set.first; number < set.first + set.items; number++) {
        p += data_value(DATA_ID, number, p);
        *p++ = '\t';
        p += data_value(DATA_DEVICE, number, p);
        *p++ = '\t';
        p += data_item(DATA_BY_DEVICE, number, DATA_RECORD_BYTES, p);
        *p++ = '\n';
        if (p - out >= COPY_BYTES) {
            send_copy(c, out, (size_t)(p - out));
            p = out;
        }
    }
    send_copy(c, out, (size_t)(p - out));
    if (PQputCopyEnd(c, NULL) != 1) {
        die("COPY", PQerrorMessage(c));
    }
    for (PGresult *r; (r = PQgetResult(c)) != NULL; PQclear(r)) {
        if (PQresultStatus(r) != PGRES_COMMAND_OK) {
            die("COPY", PQerrorMessage(c));
        }
    }
}

/* Every path, and a tree for each that is asked for. */
static void make_indexes(PGconn *c) {
    static const char *const paths[] = {"email", "city", "created", "country", "status"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        runf(c, "CREATE INDEX ON %s ((doc->>'%s'))", set.table, paths[i]);
    }
    runf(c, "CREATE INDEX ON %s (pk, (doc->>'created'))", set.table);
    runf(c, "CREATE INDEX ON %s USING gin (doc jsonb_path_ops)", set.table);
}

static void load(void) {
    PGconn *c = open_connection();
    uint64_t start = now_ns();
    runf(c, "CREATE TABLE %s (id text PRIMARY KEY, pk text, doc jsonb)", set.table);
    copy_records(c);
    uint64_t copied = now_ns();
    if (set.indexes) {
        make_indexes(c);
    }
    runf(c, "VACUUM ANALYZE %s", set.table);
    runf(c, "CHECKPOINT");
    char sql[256];
    snprintf(sql, sizeof sql, "SELECT pg_relation_size('%s'), pg_indexes_size('%s'), count(*) FROM %s", set.table, set.table, set.table);
    PGresult *r = run(c, sql);
    printf("{\"mode\":\"load\",\"copySeconds\":%.3f,\"indexSeconds\":%.3f,\"bytes\":%s,\"indexBytes\":%s,\"items\":%s}\n",
           (double)(copied - start) / 1e9, (double)(now_ns() - copied) / 1e9, PQgetvalue(r, 0, 0), PQgetvalue(r, 0, 1),
           PQgetvalue(r, 0, 2));
    PQclear(r);
    PQfinish(c);
}

/* ---- the same answers, printed ---- */

static void print_answers(void) {
    PGconn *c = open_connection();
    values v;
    prepare(c);
    for (uint64_t i = 0; i < set.least; i++) {
        next_values(&v);
        PGresult *r = PQexecPrepared(c, "s", v.n, v.list, NULL, NULL, 0);
        if (PQresultStatus(r) != PGRES_TUPLES_OK) {
            die("query", PQerrorMessage(c));
        }
        printf("{\"ask\":%" PRIu64 ",\"status\":200,\"answer\":{\"Documents\":[", i);
        for (int row = 0; row < PQntuples(r); row++) {
            printf("%s%s", row ? "," : "", PQgetvalue(r, row, 0));
        }
        printf("]}}\n");
        PQclear(r);
    }
    PQfinish(c);
}

/* ---- many connections ---- */

typedef struct client {
    PGconn *c;
    uint64_t sent_at;
    values v;
} client;

static void ask(client *k) {
    next_values(&k->v);
    k->sent_at = now_ns();
    if (PQsendQueryPrepared(k->c, "s", k->v.n, k->v.list, NULL, NULL, 0) != 1) {
        die("send", PQerrorMessage(k->c));
    }
}

static void count_rows(const PGresult *r) {
    rows += (uint64_t)PQntuples(r);
    for (int row = 0; row < PQntuples(r); row++) {
        bytes_in += (uint64_t)PQgetlength(r, row, 0);
    }
}

/* Takes what has come; asks again when the answer is whole. */
static void receive(client *k, bool counting) {
    if (PQconsumeInput(k->c) != 1) {
        die("receive", PQerrorMessage(k->c));
    }
    while (!PQisBusy(k->c)) {
        PGresult *r = PQgetResult(k->c);
        if (r == NULL) {
            if (counting) {
                histogram_add(&latencies, now_ns() - k->sent_at);
            }
            ask(k);
            return;
        }
        ExecStatusType status = PQresultStatus(r);
        if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
            if (errors++ == 0) {
                fprintf(stderr, "pg_load: %s", PQerrorMessage(k->c));
            }
        } else if (counting) {
            count_rows(r);
        }
        PQclear(r);
    }
}

static void open_clients(client *clients, int epoll) {
    for (int i = 0; i < set.connections; i++) {
        client *k = &clients[i];
        k->c = open_connection();
        prepare(k->c);
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = k};
        if (epoll_ctl(epoll, EPOLL_CTL_ADD, PQsocket(k->c), &e) != 0) {
            die("epoll", strerror(errno));
        }
    }
}

static double cpu_micros(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void measure(void) {
    static client clients[CONNECTIONS_MAX];
    struct epoll_event events[EVENTS];
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    open_clients(clients, epoll);
    uint64_t start = now_ns(), warm = start + (uint64_t)(set.warm_up * 1e9), end = warm + (uint64_t)(set.seconds * 1e9), now = start;
    for (int i = 0; i < set.connections; i++) {
        ask(&clients[i]);
    }
    for (; now < end || (now < end + least_wait_ns && latencies.total < set.least); now = now_ns()) {
        int n = epoll_wait(epoll, events, EVENTS, 100);
        for (int i = 0; i < n; i++) {
            receive(events[i].data.ptr, now >= warm);
        }
    }
    double seconds = (double)(now - warm) / 1e9;
    printf("{\"mode\":\"%s\",\"connections\":%d,\"seconds\":%.3f,\"requests\":%" PRIu64 ",\"rate\":%.3f,\"errors\":%" PRIu64 ",", set.mode,
           set.connections, seconds, latencies.total, (double)latencies.total / seconds, errors);
    histogram_print(&latencies);
    printf(",\"bytesIn\":%" PRIu64 ",\"rows\":%" PRIu64 ",\"clientCpuMicros\":%.2f}\n", bytes_in, rows,
           latencies.total ? cpu_micros() / (double)latencies.total : 0);
}

/* ---- flags ---- */

static void help(void) {
    puts("pg_load — records and questions for PostgreSQL; one line of JSON\n"
         "\n"
         "  --socket DIR      where it listens\n"
         "  --mode MODE       load | query | create | print\n"
         "  --table NAME      load, create (items); --indexes: load makes all of them\n"
         "  --ask NAME        query, print: see tesela-load --questions\n"
         "  --items N  --first N  --connections N (32)  --seconds S (5)  --warm-up S (1)  --least N: as those of tesela-load\n"
         "  --serial          no parallel workers");
    exit(2);
}

static void take_flag(int flag, const char *value) {
    switch (flag) {
    case 'u':
        set.socket = value;
        break;
    case 'm':
        set.mode = value;
        break;
    case 't':
        set.table = value;
        break;
    case 'a':
        set.ask = question_find(value);
        break;
    case 'i':
        set.items = strtoull(value, NULL, 10);
        break;
    case 'f':
        set.first = strtoull(value, NULL, 10);
        break;
    case 'L':
        set.least = strtoull(value, NULL, 10);
        break;
    case 'c':
        set.connections = atoi(value);
        break;
    case 's':
        set.seconds = atof(value);
        break;
    case 'w':
        set.warm_up = atof(value);
        break;
    case 'x':
        set.indexes = true;
        break;
    case 'S':
        set.serial = true;
        break;
    default:
        help();
    }
}

int main(int argc, char **argv) {
    static const struct option flags[] = {{"socket", 1, 0, 'u'},  {"mode", 1, 0, 'm'},
                                          {"table", 1, 0, 't'},   {"ask", 1, 0, 'a'},
                                          {"items", 1, 0, 'i'},   {"first", 1, 0, 'f'},
                                          {"least", 1, 0, 'L'},   {"connections", 1, 0, 'c'},
                                          {"seconds", 1, 0, 's'}, {"warm-up", 1, 0, 'w'},
                                          {"indexes", 0, 0, 'x'}, {"serial", 0, 0, 'S'},
                                          {"help", 0, 0, 'h'},    {0}};
    for (int c; (c = getopt_long(argc, argv, "", flags, NULL)) != -1;) {
        take_flag(c, optarg);
    }
    bool asks = strcmp(set.mode, "query") == 0 || strcmp(set.mode, "print") == 0, loads = strcmp(set.mode, "load") == 0;
    if (!set.socket || set.items == 0 || set.connections < 1 || set.connections > CONNECTIONS_MAX || (asks && !set.ask) ||
        !(asks || loads || creates())) {
        help();
    }
    next_number = set.first;
    if (loads) {
        load();
    } else if (strcmp(set.mode, "print") == 0) {
        print_answers();
    } else {
        measure();
    }
    return 0;
}
