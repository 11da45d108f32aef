/* json_compare.c — our JSON transcoder beside Debian's libraries, on the same texts, in one run: `ninja bench/json_compare`.
 *
 * Only libbson does the same work (text to BSON and back). The others stop earlier: yajl at parse events that nobody hears, the
 * rest at a tree in their own memory. Each function runs in rounds, taking turns with the others; the fastest round counts. */
#include <bson/bson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/random.h"
#include "doc/json.h"
#include "json_others.h"

typedef struct subject {
    const char *name;
    void (*run)(void);
    double best_ns;
} subject;

static slice text;
static buf ours_bson, ours_text;
static bson_t theirs;

/* ---- the texts ---- */

static const char item[] =
    "{\"id\":\"8f14e45f-ceea-467f-a8f9-1f3b2c9d0e11\",\"tenantId\":\"contoso-emea-0042\",\"type\":\"order\",\"status\":\"shipped\","
    "\"customer\":\"Mercè Rodoreda i Gurguí\",\"email\":\"merce.rodoreda@example.com\",\"street\":\"Carrer de la Diputació 250, 3r 2a\","
    "\"city\":\"Barcelona\",\"postalCode\":\"08007\",\"country\":\"ES\",\"orderNumber\":100482913,\"quantity\":3,\"unitPrice\":149.95,"
    "\"discount\":0.15,\"total\":382.37,\"currency\":\"EUR\",\"paid\":true,\"giftWrap\":false,\"createdAt\":\"2024-05-17T08:21:45."
    "1234567Z\","
    "\"description\":\"Trail running shoes with a reinforced toe cap, a breathable mesh upper and a grippy rubber outsole. Delivered in "
    "recyclable packaging; signature required on arrival. Leave with the neighbour on the second floor if nobody answers the door, and "
    "ring twice because the bell is broken again. Returns are free within thirty days; keep the box, the label and the receipt. Sizes run "
    "a little small: when in doubt, take the next one up, or come by the shop and try.\"}";

/* An item with lines of an order, of `bytes` or a little more. */
static void make_large(buf *out, size_t bytes) {
    random_source r;
    random_seed(&r, 1);
    buf_add_lit(out, "{\"id\":\"large\",\"lines\":[");
    for (unsigned i = 0; out->n < bytes; i++) {
        buf_addf(out,
                 "%s{\"line\":%u,\"sku\":\"SKU-%08x\",\"name\":\"Zapatilla de montaña n.º %u\",\"quantity\":%u,\"price\":%u.%02u,"
                 "\"weight\":%.6f,\"inStock\":%s,\"backorder\":null,\"tags\":[\"outdoor\",\"running\",\"%u\"],"
                 "\"place\":{\"aisle\":%u,\"shelf\":\"%c\"}}",
                 i ? "," : "", i, (unsigned)random_u64(&r), i, (unsigned)random_below(&r, 50), (unsigned)random_below(&r, 300),
                 (unsigned)random_below(&r, 100), (double)random_below(&r, 1000000) / 123457, i % 3 ? "true" : "false", i,
                 (unsigned)random_below(&r, 40), (char)('A' + random_below(&r, 26)));
    }
    buf_add_lit(out, "]}");
}

/* An item with an embedding: doubles of seventeen digits. */
static void make_vector(buf *out) {
    random_source r;
    random_seed(&r, 2);
    buf_add_lit(out, "{\"id\":\"vector\",\"embedding\":[");
    for (unsigned i = 0; i < 1536; i++) {
        buf_addf(out, "%s%.17g", i ? "," : "", (double)(int64_t)random_u64(&r) * 0x1p-68);
    }
    buf_add_lit(out, "]}");
}

/* ---- reading ---- */

static void check(bool good, const char *what) {
    if (!good) {
        fprintf(stderr, "json_compare: %s failed\n", what);
        exit(1);
    }
}

static void read_tesela(void) {
    buf_clear(&ours_bson);
    check(json_to_bson(text, NULL, &ours_bson, NULL, NULL) == OK, "json_to_bson");
}

static void read_libbson(void) {
    bson_error_t error;
    bson_t *b = bson_new_from_json((const uint8_t *)text.p, (ssize_t)text.n, &error);
    check(b != NULL, "bson_new_from_json");
    bson_destroy(b);
}

/* ---- writing ---- */

static void write_tesela(void) {
    buf_clear(&ours_text);
    json_from_bson(&ours_text, buf_view(&ours_bson));
}

static void write_libbson(void) {
    char *json = bson_as_relaxed_extended_json(&theirs, NULL);
    check(json != NULL, "bson_as_relaxed_extended_json");
    bson_free(json);
}

/* ---- measuring ---- */

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void measure(subject *subjects, size_t n, unsigned calls) {
    for (int round = 0; round < 25; round++) {
        for (size_t i = 0; i < n; i++) {
            double start = now_ns();
            for (unsigned k = 0; k < calls; k++) {
                subjects[i].run();
            }
            double ns = (now_ns() - start) / calls;
            if (round == 0 || ns < subjects[i].best_ns) {
                subjects[i].best_ns = ns;
            }
        }
    }
}

static void report(const char *what, subject *subjects, size_t n, unsigned calls) {
    measure(subjects, n, calls);
    for (size_t i = 0; i < n; i++) {
        printf("%-14s %-28s %10.0f ns %8.0f MB/s %8.2f\n", what, subjects[i].name, subjects[i].best_ns,
               (double)text.n * 1000 / subjects[i].best_ns, subjects[i].best_ns / subjects[0].best_ns);
    }
}

static void compare(const char *name, slice which, unsigned calls) {
    text = which;
    read_tesela();
    check(bson_init_static(&theirs, (const uint8_t *)ours_bson.p, ours_bson.n), "preparing");
    others_begin(text.p, text.n);
    subject reads[] = {
        {"tesela json_to_bson", read_tesela, 0},       {"libbson bson_new_from_json", read_libbson, 0},
        {"jansson, tree", others_read_jansson, 0},     {"yajl, events", others_read_yajl, 0},
        {"rapidjson, tree", others_read_rapidjson, 0}, {"simdjson, tree", others_read_simdjson, 0},
    };
    subject writes[] = {
        {"tesela json_from_bson", write_tesela, 0},
        {"libbson relaxed extended", write_libbson, 0},
        {"jansson, from tree", others_write_jansson, 0},
        {"rapidjson, from tree", others_write_rapidjson, 0},
    };
    printf("\n%s: %zu bytes of text, %zu of BSON\n", name, text.n, ours_bson.n);
    report("text in", reads, sizeof reads / sizeof *reads, calls);
    report("text out", writes, sizeof writes / sizeof *writes, calls);
    others_end();
}

int main(void) {
    ours_bson = buf_init(BUF_NO_LIMIT);
    ours_text = buf_init(BUF_NO_LIMIT);
    buf large = buf_init(BUF_NO_LIMIT), vector = buf_init(BUF_NO_LIMIT);
    make_large(&large, 100 * 1000);
    make_vector(&vector);
    printf("the last column is the time as a multiple of ours\n");
    compare("item of 20 fields", SLICE_LIT(item), 4000);
    compare("item of 100 KB", buf_view(&large), 40);
    compare("item with a vector", buf_view(&vector), 40);
    buf_free(&large);
    buf_free(&vector);
    buf_free(&ours_bson);
    buf_free(&ours_text);
    return 0;
}
