/* load.c — tesela-load: many connections, signed requests, latencies.
 *
 * Each thread has an epoll loop over its share of the connections; each connection sends a request, waits for the whole answer, sends
 * the next (a closed loop: the rate is what the server gives). The same program with the same header fields drives nginx, so a ratio
 * compares servers and not clients. One line of JSON on standard output. `--help` has examples. */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "answer.h"
#include "graph.h"
#include "histogram.h"
#include "request.h"

static const char emulator_key[] = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
enum { INPUT_BYTES = 1 << 20, THREADS_MAX = 16, EVENTS = 256, SLOTS_MAX = 100000 };
static const uint64_t least_wait_ns = 60000000000; /* for answers that take longer than the time given */

typedef struct settings {
    const char *host, *port, *key, *mode;
    request_maker maker;
    request_kind kind;
    uint64_t items, first, requests_max; /* requests_max 0: until the time is over */
    int connections, threads;
    double seconds, warm_up;
    bool setup, idle, patient;
    uint64_t least; /* answers to wait for, though the time be over; print: requests */
    uint32_t throughput;
    uint32_t slot_ms; /* length of a slot of the timeline; 0: no timeline */
} settings;

static settings set;
static struct addrinfo *address;
static atomic_uint_fast64_t next_number; /* the next item to create; the connections share it */
static uint64_t number_end;              /* and where they stop; 0: never */
static atomic_uint_fast64_t answered;    /* and counted */
static _Atomic uint32_t *slots;          /* the timeline: the longest latency of the answers in each slot, microseconds */
static uint64_t slots_start;             /* now_ns() of the first */
static double slots_start_wall;          /* … and seconds since 1970 */

typedef struct connection {
    int fd;
    char *out, *in;
    size_t out_n, out_sent, in_n;
    uint64_t sent_at, number;
    bool connecting, waiting; /* waiting: a request is out */
    uint64_t resume_at;       /* a patient one waits until then; 0: it does not */
    char continuation[CONTINUATION_MAX];
} connection;

typedef struct worker {
    pthread_t thread;
    request_maker maker;
    uint64_t random;
    int epoll;
    connection *connections;
    int connections_n, active;
    histogram latencies;
    uint64_t statuses[ANSWER_STATUS_MAX], broken, bytes_in, rows, begun;
    bool counting;
} worker;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what) {
    fprintf(stderr, "tesela-load: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- one connection ---- */

static void watch(worker *w, connection *c, int operation, uint32_t events) {
    struct epoll_event e = {.events = events, .data.ptr = c};
    if (epoll_ctl(w->epoll, operation, c->fd, &e) != 0) {
        die("epoll_ctl");
    }
}

static void connect_again(worker *w, connection *c) {
    if (c->fd >= 0) {
        close(c->fd);
    }
    c->fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;
    if (c->fd < 0 || setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) {
        die("socket");
    }
    if (connect(c->fd, address->ai_addr, address->ai_addrlen) != 0 && errno != EINPROGRESS) {
        die("connect");
    }
    c->connecting = true;
    c->in_n = 0;
    watch(w, c, EPOLL_CTL_ADD, EPOLLOUT);
}

static void send_rest(worker *w, connection *c) {
    while (c->out_sent < c->out_n) {
        ssize_t n = send(c->fd, c->out + c->out_sent, c->out_n - c->out_sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            watch(w, c, EPOLL_CTL_MOD, EPOLLIN | EPOLLOUT);
            return;
        }
        if (n < 0) {
            w->broken++;
            connect_again(w, c);
            return;
        }
        c->out_sent += (size_t)n;
    }
}

static uint64_t choose_number(worker *w) {
    if (set.kind == REQUEST_CREATE || set.kind == REQUEST_BULK || set.kind == REQUEST_TABLE_INSERT) {
        return atomic_fetch_add_explicit(&next_number, set.kind == REQUEST_BULK ? set.maker.bulk : 1, memory_order_relaxed);
    }
    return set.first + data_random(&w->random) % set.items;
}

/* Prepares the next request; false when there is none left to send. */
static bool begin_request(worker *w, connection *c) {
    c->number = choose_number(w);
    if (number_end != 0 && c->number >= number_end) {
        w->active--;
        return false;
    }
    c->out_n = request_make(&w->maker, set.kind, c->number, c->out);
    c->out_sent = 0;
    c->sent_at = now_ns();
    c->waiting = true;
    w->begun++;
    return true;
}

static void note_slot(uint64_t now, uint64_t latency_ns) {
    uint64_t slot = (now - slots_start) / (set.slot_ms * 1000000ull);
    uint32_t micros = latency_ns > UINT32_MAX * 1000ull ? UINT32_MAX : (uint32_t)(latency_ns / 1000);
    if (slot < SLOTS_MAX) {
        uint32_t before = atomic_load_explicit(&slots[slot], memory_order_relaxed);
        while (before < micros && !atomic_compare_exchange_weak(&slots[slot], &before, micros)) {
        }
    }
}

/* Is there a page to ask for before the question is answered? */
static bool has_more(const answer *a) {
    return set.kind == REQUEST_QUERY && set.maker.ask->whole && a->status == 200 && a->continuation &&
           a->continuation_bytes < CONTINUATION_MAX;
}

static void begin_page(worker *w, connection *c, const answer *a) {
    memcpy(c->continuation, a->continuation, a->continuation_bytes);
    c->continuation[a->continuation_bytes] = 0;
    c->out_n = request_make_query(&w->maker, c->number, c->continuation, c->out);
    c->out_sent = 0;
}

static void count_answer(worker *w, const connection *c, const answer *a) {
    uint64_t now = now_ns();
    histogram_add(&w->latencies, now - c->sent_at);
    if (slots) {
        note_slot(now, now - c->sent_at);
    }
    w->statuses[a->status]++;
    atomic_fetch_add_explicit(&answered, 1, memory_order_relaxed);
}

static uint64_t asked_to_wait_ms(const connection *c, const answer *a) {
    static const char field[] = "x-ms-retry-after-ms: ";
    const char *at = set.patient && a->status == 429 ? strstr(c->in, field) : NULL;
    return at ? strtoull(at + sizeof field - 1, NULL, 10) : 0;
}

static void finish_answer(worker *w, connection *c, const answer *a, size_t bytes) {
    bool more = has_more(a);
    uint64_t wait_ms = asked_to_wait_ms(c, a);
    w->bytes_in += w->counting ? bytes : 0;
    w->rows += w->counting ? a->rows : 0;
    c->waiting = more;
    if (w->counting && !more) {
        count_answer(w, c, a);
    }
    if (set.idle) { /* one request to open it, and then silence */
        w->active--;
        return;
    }
    if (more) {
        begin_page(w, c, a);
    }
    memmove(c->in, c->in + bytes, c->in_n - bytes);
    c->in_n -= bytes;
    if (!more && !begin_request(w, c)) {
        return;
    }
    if (a->close) {
        connect_again(w, c);
    } else if (wait_ms) {
        c->resume_at = now_ns() + wait_ms * 1000000ull;
    } else {
        send_rest(w, c);
    }
}

static void resume_patient(worker *w, uint64_t now) {
    for (int i = 0; set.patient && i < w->connections_n; i++) {
        connection *c = &w->connections[i];
        if (c->resume_at && now >= c->resume_at) {
            c->resume_at = 0;
            c->sent_at = now;
            send_rest(w, c);
        }
    }
}

/* The server has closed it. A request that was out goes out again on a new connection, unless what has come is an answer without length. */
static void closed(worker *w, connection *c) {
    answer a;
    if (!c->waiting) {
        close(c->fd);
        c->fd = -1;
        return;
    }
    if (answer_head(c->in, c->in_n, &a) && !a.chunked && a.body_bytes == SIZE_MAX) {
        a.close = true;
        finish_answer(w, c, &a, c->in_n);
        return;
    }
    w->broken++;
    c->out_sent = 0;
    connect_again(w, c);
}

static void receive(worker *w, connection *c) {
    answer a;
    ssize_t n = recv(c->fd, c->in + c->in_n, INPUT_BYTES - 1 - c->in_n, 0);
    if (n < 0 && errno == EAGAIN) {
        return;
    }
    if (n <= 0) {
        closed(w, c);
        return;
    }
    c->in_n += (size_t)n;
    c->in[c->in_n] = 0;
    size_t bytes = answer_bytes(c->in, c->in_n, &a);
    if (bytes > 0) {
        finish_answer(w, c, &a, bytes);
    } else if (c->in_n == INPUT_BYTES - 1) {
        die("an answer is too long");
    }
}

static void on_event(worker *w, connection *c, uint32_t events) {
    if (c->connecting) {
        int error = 0;
        socklen_t n = sizeof error;
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n);
        errno = error;
        if (error != 0) {
            die("connect");
        }
        c->connecting = false;
        watch(w, c, EPOLL_CTL_MOD, EPOLLIN);
        send_rest(w, c);
        return;
    }
    if (events & EPOLLOUT) {
        watch(w, c, EPOLL_CTL_MOD, EPOLLIN);
        send_rest(w, c);
    }
    if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
        receive(w, c);
    }
}

/* ---- one thread ---- */

static void open_connections(worker *w) {
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    w->connections = calloc((size_t)w->connections_n, sizeof *w->connections);
    for (int i = 0; i < w->connections_n; i++) {
        connection *c = &w->connections[i];
        *c = (connection){.fd = -1, .out = malloc(REQUEST_BYTES_MAX), .in = malloc(INPUT_BYTES)};
        w->active++;
        if (begin_request(w, c)) {
            connect_again(w, c);
        }
    }
}

static void *work(void *p) {
    worker *w = p;
    struct epoll_event events[EVENTS];
    uint64_t start = now_ns(), warm = start + (uint64_t)(set.warm_up * 1e9), end = warm + (uint64_t)(set.seconds * 1e9);
    request_tick(&w->maker, time(NULL));
    open_connections(w);
    uint64_t last = end + (set.least > 0 ? least_wait_ns : 0);
    for (uint64_t now = start; (now < end || (now < last && atomic_load(&answered) < set.least)) && (w->active > 0 || set.idle);
         now = now_ns()) {
        w->counting = now >= warm;
        request_tick(&w->maker, time(NULL));
        resume_patient(w, now);
        int n = epoll_wait(w->epoll, events, EVENTS, set.patient ? 5 : 100);
        for (int i = 0; i < n; i++) {
            on_event(w, events[i].data.ptr, events[i].events);
        }
    }
    return NULL;
}

/* ---- setup: one request at a time ---- */

/* The answer's bytes, until the next call. */
static const char *exchange(const char *request, size_t n, answer *a) {
    static char in[INPUT_BYTES];
    size_t in_n = 0;
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0 || send(fd, request, n, MSG_NOSIGNAL) != (ssize_t)n) {
        die("connect");
    }
    *a = (answer){0};
    for (ssize_t got; answer_bytes(in, in_n, a) == 0 && (got = recv(fd, in + in_n, sizeof in - 1 - in_n, 0)) > 0;) {
        in_n += (size_t)got;
    }
    close(fd);
    if (a->status == 0) {
        die("no answer");
    }
    in[in_n] = 0;
    return in;
}

static void must_create(const char *request, size_t n) {
    answer a;
    const char *in = exchange(request, n, &a);
    if (a.status >= 300 && a.status != 409) {
        fprintf(stderr, "tesela-load: setup refused:\n%s\n", in);
        exit(1);
    }
}

static void set_up(void) {
    static char request[REQUEST_BYTES_MAX];
    request_tick(&set.maker, time(NULL));
    must_create(request, request_make_database(&set.maker, request));
    must_create(request, request_make_container(&set.maker, set.throughput, request));
}

/* Asks some questions, one after the other, and prints each page of the answers. */
static void print_answers(void) {
    static char request[REQUEST_BYTES_MAX], continuation[CONTINUATION_MAX];
    uint64_t random = DATA_SEED;
    for (uint64_t i = 0; i < set.least; i++) {
        uint64_t number = set.first + data_random(&random) % set.items;
        answer a;
        continuation[0] = 0;
        do {
            request_tick(&set.maker, time(NULL));
            const char *in = exchange(request, request_make_query(&set.maker, number, continuation, request), &a);
            printf("{\"ask\":%" PRIu64 ",\"status\":%u,\"answer\":%.*s}\n", i, a.status,
                   (int)(a.body_bytes == SIZE_MAX ? strlen(in + a.body_at) : a.body_bytes), in + a.body_at);
            snprintf(continuation, sizeof continuation, "%.*s", (int)a.continuation_bytes, a.continuation ? a.continuation : "");
        } while (has_more(&a));
    }
}

/* ---- flags and report ---- */

static void help(void) {
    puts("tesela-load — signed requests from many connections; one line of JSON\n"
         "\n"
         "  --url HOST:PORT       where (default localhost:8081); http only\n"
         "  --mode MODE           read | create | upsert | load | get | idle | query | print | execute | raw\n"
         "                        of the Table API, with --container as the table: table-get | table-insert | table-load\n"
         "  --items N             read and upsert: of items FIRST to FIRST+N-1; load: creates those, then stops\n"
         "  --first N             the number of the first item (default 0); create: start here\n"
         "  --connections N       (32)   --threads N (1)   --seconds S (5)   --warm-up S (1)\n"
         "  --least N             wait up to a minute longer for so many answers; print: ask so many times (5)\n"
         "  --size BYTES          of an item as sent (1024)\n"
         "  --bulk N              load: N items in each request, as a non-atomic batch to range 0\n"
         "  --setup               first create the database and the container; --throughput RU sets its throughput\n"
         "  --database ID         (bench)   --container ID (items)   --key BASE64 (the emulator's)\n"
         "  --path PATH           get: ask for this, with the header fields of a read; table-*: the PartitionKey of all entities\n"
         "  --file FILE           raw: send this request as it is, again and again\n"
         "  --patient             after a 429, wait as long as it says\n"
         "  --partition PROPERTY  items are records of 20 properties, and this one is the partition key: id | device | tenant\n"
         "  --graph VERTICES      items are the graph of graph.h: its vertices, then ten edges of each\n"
         "  --policy JSON         setup: the container's indexing policy\n"
         "  --ask NAME            query: ask this again and again; print: print answers; see --questions\n"
         "  --questions           print the questions, in both languages\n"
         "  --timeline MS         also the longest latency in each so many milliseconds\n"
         "\n"
         "  tesela-load --url localhost:8081 --setup --mode load --items 10000 --bulk 100\n"
         "  tesela-load --url localhost:8081 --mode read --items 10000 --seconds 10\n"
         "  tesela-load --url localhost:8081 --mode create --first 10000 --connections 64\n"
         "  tesela-load --setup --mode load --partition id --items 20000 --bulk 100 && tesela-load --mode query --partition id --ask email "
         "--items "
         "20000\n"
         "  tesela-load --url localhost:8080 --mode get --path /item.json\n"
         "  tesela-load --url localhost:8081 --mode idle --items 10000 --connections 2000 --seconds 5");
    exit(0);
}

static void set_mode(const char *mode) {
    static const struct {
        const char *name;
        request_kind kind;
    } modes[] = {{"read", REQUEST_READ},
                 {"create", REQUEST_CREATE},
                 {"upsert", REQUEST_UPSERT},
                 {"load", REQUEST_CREATE},
                 {"get", REQUEST_GET},
                 {"idle", REQUEST_READ},
                 {"query", REQUEST_QUERY},
                 {"print", REQUEST_QUERY},
                 {"execute", REQUEST_EXECUTE},
                 {"raw", REQUEST_RAW},
                 {"table-get", REQUEST_TABLE_GET},
                 {"table-insert", REQUEST_TABLE_INSERT},
                 {"table-load", REQUEST_TABLE_INSERT}};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(modes[i].name, mode) == 0) {
            set.mode = modes[i].name;
            set.kind = modes[i].kind;
            return;
        }
    }
    fprintf(stderr, "tesela-load: no mode '%s'\n", mode);
    exit(2);
}

static void set_url(char *url) {
    char *colon = strrchr(url, ':');
    if (colon == NULL) {
        fprintf(stderr, "tesela-load: --url is HOST:PORT\n");
        exit(2);
    }
    snprintf(set.maker.host, sizeof set.maker.host, "%s", url);
    *colon = 0;
    set.host = url;
    set.port = colon + 1;
}

static void set_partition(const char *name) {
    static const char *const names[] = {[DATA_BY_ID] = "id", [DATA_BY_DEVICE] = "device", [DATA_BY_TENANT] = "tenant"};
    for (data_kind kind = DATA_BY_ID; kind <= DATA_BY_TENANT; kind++) {
        if (strcmp(names[kind], name) == 0) {
            set.maker.kind = kind;
            set.maker.item_bytes = DATA_RECORD_BYTES;
            return;
        }
    }
    fprintf(stderr, "tesela-load: --partition is id, device or tenant\n");
    exit(2);
}

static void set_question(const char *name) {
    set.maker.ask = question_find(name);
    if (!set.maker.ask) {
        fprintf(stderr, "tesela-load: no question '%s'\n", name);
        exit(2);
    }
}

static void list_questions(void) {
    const question *q;
    for (size_t i = 0; (q = question_at(i)) != NULL; i++) {
        printf("%s\n  %s\n  %s\n", q->name, q->cosmos, q->postgres);
    }
    exit(0);
}

static void copy_text(char *to, size_t size, const char *from) {
    if (snprintf(to, size, "%s", from) >= (int)size) {
        fprintf(stderr, "tesela-load: too long: %s\n", from);
        exit(2);
    }
}

static void read_raw(const char *path) {
    static char bytes[REQUEST_BYTES_MAX];
    FILE *file = fopen(path, "re");
    if (!file) {
        die(path);
    }
    set.maker.raw = bytes;
    set.maker.raw_bytes = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
}

static void take_flag(int flag, char *value) {
    request_maker *m = &set.maker;
    switch (flag) {
    case 'u':
        set_url(value);
        break;
    case 'm':
        set_mode(value);
        break;
    case 'i':
        set.items = strtoull(value, NULL, 10);
        break;
    case 'f':
        set.first = strtoull(value, NULL, 10);
        break;
    case 'c':
        set.connections = atoi(value);
        break;
    case 't':
        set.threads = atoi(value);
        break;
    case 's':
        set.seconds = atof(value);
        break;
    case 'w':
        set.warm_up = atof(value);
        break;
    case 'z':
        m->item_bytes = (uint32_t)atoi(value);
        break;
    case 'b':
        m->bulk = (uint32_t)atoi(value);
        break;
    case 'S':
        set.setup = true;
        break;
    case 'T':
        set.throughput = (uint32_t)atoi(value);
        break;
    case 'k':
        set.key = value;
        break;
    case 'd':
        copy_text(m->database, sizeof m->database, value);
        break;
    case 'C':
        copy_text(m->container, sizeof m->container, value);
        break;
    case 'l':
        set.slot_ms = (uint32_t)atoi(value);
        break;
    case 'L':
        set.least = strtoull(value, NULL, 10);
        break;
    case 'K':
        set_partition(value);
        break;
    case 'G':
        graph_vertices = strtoull(value, NULL, 10);
        m->kind = DATA_GRAPH;
        break;
    case 'P':
        copy_text(m->policy, sizeof m->policy, value);
        break;
    case 'a':
        set_question(value);
        break;
    case 'q':
        list_questions();
        break;
    case 'F':
        read_raw(value);
        break;
    case 'A':
        set.patient = true;
        break;
    case 'p':
        copy_text(m->path, sizeof m->path, value);
        break;
    default:
        help();
    }
}

static void parse_flags(int argc, char **argv) {
    static const struct option flags[] = {{"url", 1, 0, 'u'},       {"mode", 1, 0, 'm'},        {"items", 1, 0, 'i'},
                                          {"first", 1, 0, 'f'},     {"connections", 1, 0, 'c'}, {"threads", 1, 0, 't'},
                                          {"seconds", 1, 0, 's'},   {"warm-up", 1, 0, 'w'},     {"size", 1, 0, 'z'},
                                          {"bulk", 1, 0, 'b'},      {"setup", 0, 0, 'S'},       {"throughput", 1, 0, 'T'},
                                          {"database", 1, 0, 'd'},  {"container", 1, 0, 'C'},   {"key", 1, 0, 'k'},
                                          {"path", 1, 0, 'p'},      {"timeline", 1, 0, 'l'},    {"least", 1, 0, 'L'},
                                          {"partition", 1, 0, 'K'}, {"policy", 1, 0, 'P'},      {"ask", 1, 0, 'a'},
                                          {"questions", 0, 0, 'q'}, {"help", 0, 0, 'h'},        {"file", 1, 0, 'F'},
                                          {"patient", 0, 0, 'A'},   {"graph", 1, 0, 'G'},       {0}};
    static char url[] = "localhost:8081";
    set = (settings){.key = emulator_key, .items = 10000, .connections = 32, .threads = 1, .seconds = 5, .warm_up = 1};
    set.maker = (request_maker){.item_bytes = 1024, .database = "bench", .container = "items", .path = "/"};
    set_mode("read");
    set_url(url);
    for (int c; (c = getopt_long(argc, argv, "", flags, NULL)) != -1;) {
        take_flag(c, optarg);
    }
    set.idle = strcmp(set.mode, "idle") == 0;
    set.least = set.least == 0 && strcmp(set.mode, "print") == 0 ? 5 : set.least;
    if (strcmp(set.mode, "load") == 0 || strcmp(set.mode, "table-load") == 0) {
        set.seconds = 1e9;
        set.warm_up = 0;
        number_end = set.first + set.items;
        if (set.maker.bulk > 0) {
            set.kind = REQUEST_BULK;
        }
    }
    if (set.items == 0 || (set.kind == REQUEST_RAW && !set.maker.raw_bytes) || (set.kind == REQUEST_QUERY && !set.maker.ask) ||
        set.threads < 1 || set.threads > THREADS_MAX || set.connections < set.threads || set.maker.item_bytes < 400 ||
        (uint64_t)set.maker.bulk * (set.maker.item_bytes + 200) > REQUEST_BYTES_MAX - 4096) {
        help();
    }
    atomic_store(&next_number, set.first);
}

/* Of this program, for each request: whether the generator, and not the server, is what the figure measures. */
static double cpu_micros(uint64_t requests) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    double micros = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    return requests > 0 ? micros / (double)requests : 0;
}

static void open_timeline(void) {
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    slots = calloc(SLOTS_MAX, sizeof *slots);
    slots_start = now_ns();
    slots_start_wall = (double)wall.tv_sec + (double)wall.tv_nsec / 1e9;
}

static void report_timeline(void) {
    uint64_t n = (now_ns() - slots_start) / (set.slot_ms * 1000000ull);
    printf(",\"timeline\":{\"start\":%.3f,\"milliseconds\":%u,\"longest\":[", slots_start_wall, set.slot_ms);
    for (uint64_t i = 0; i < n && i < SLOTS_MAX; i++) {
        printf("%s%u", i ? "," : "", slots[i]);
    }
    printf("]}");
}

static void report(const worker *total, double seconds) {
    const histogram *h = &total->latencies;
    uint64_t errors = total->broken;
    for (unsigned s = 0; s < ANSWER_STATUS_MAX; s++) {
        if (s < 200 || s > 299 || s == 207) { /* 207: operations of a bulk request failed */
            errors += total->statuses[s];
        }
    }
    printf("{\"mode\":\"%s\",\"connections\":%d,\"threads\":%d,\"seconds\":%.3f,\"requests\":%" PRIu64 ",\"rate\":%.3f,\"errors\":%" PRIu64
           ",\"broken\":%" PRIu64 ",\"status\":{",
           set.mode, set.connections, set.threads, seconds, h->total, (double)h->total / seconds, errors, total->broken);
    const char *comma = "";
    for (unsigned s = 0; s < ANSWER_STATUS_MAX; s++) {
        if (total->statuses[s] > 0) {
            printf("%s\"%u\":%" PRIu64, comma, s, total->statuses[s]);
            comma = ",";
        }
    }
    printf("},");
    histogram_print(h);
    printf(",\"bytesIn\":%" PRIu64 ",\"rows\":%" PRIu64 ",\"clientCpuMicros\":%.2f", total->bytes_in, total->rows,
           cpu_micros(total->begun));
    if (slots) {
        report_timeline();
    }
    printf("}\n");
}

int main(int argc, char **argv) {
    static worker workers[THREADS_MAX], total;
    parse_flags(argc, argv);
    if (!sign_init(&set.maker.signer, set.key)) {
        fprintf(stderr, "tesela-load: the key is not base64\n");
        return 2;
    }
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    if (getaddrinfo(set.host, set.port, &hints, &address) != 0) {
        die("no such host");
    }
    if (set.setup) {
        set_up();
    }
    if (strcmp(set.mode, "print") == 0) {
        print_answers();
        return 0;
    }
    if (set.slot_ms) {
        open_timeline();
    }
    uint64_t start = now_ns();
    for (int i = 0; i < set.threads; i++) {
        workers[i].maker = set.maker;
        workers[i].random = DATA_SEED + (uint64_t)i * 7919;
        workers[i].connections_n = set.connections / set.threads + (i < set.connections % set.threads);
        pthread_create(&workers[i].thread, NULL, work, &workers[i]);
    }
    for (int i = 0; i < set.threads; i++) {
        pthread_join(workers[i].thread, NULL);
        histogram_merge(&total.latencies, &workers[i].latencies);
        for (int s = 0; s < ANSWER_STATUS_MAX; s++) {
            total.statuses[s] += workers[i].statuses[s];
        }
        total.broken += workers[i].broken;
        total.bytes_in += workers[i].bytes_in;
        total.rows += workers[i].rows;
        total.begun += workers[i].begun;
    }
    report(&total, (double)(now_ns() - start) / 1e9 - set.warm_up);
    return 0;
}
