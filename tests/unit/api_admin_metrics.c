/* The Prometheus text, read back by a strict parser: the grammar of version 0.0.4 and promtool's complaints. */
#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "api/admin/metrics.h"

enum { SAMPLES_MAX = 4000, FAMILIES_MAX = 100 };

typedef struct sample {
    char name[64];
    char labels[512]; /* name=value, values unescaped, each ended by '\x01' */
    double value;
} sample;

typedef struct parsed {
    sample samples[SAMPLES_MAX];
    size_t n;
    char families[FAMILIES_MAX][64];
    size_t families_n;
} parsed;

static parsed p;

static bool is_name(const char *at, size_t n) {
    bool good = n > 0 && !isdigit((unsigned char)at[0]);
    for (size_t i = 0; i < n; i++) {
        good = good && (isalnum((unsigned char)at[i]) || at[i] == '_' || at[i] == ':');
    }
    return good;
}

/* "# HELP name text" and then "# TYPE name kind", once for each name, before its samples. */
static const char *parse_family(const char *at) {
    char name[64], again[64], kind[16];
    int n = 0;
    assert_int_equal(sscanf(at, "# HELP %63s %n", name, &n), 1);
    assert_true(n > 0 && at[n] != '\n');
    assert_true(is_name(name, strlen(name)));
    at = strchr(at, '\n') + 1;
    assert_int_equal(sscanf(at, "# TYPE %63s %15s%n", again, kind, &n), 2);
    assert_string_equal(name, again);
    assert_true(strcmp(kind, "gauge") == 0 || strcmp(kind, "counter") == 0);
    bool total = strlen(name) > 6 && strcmp(name + strlen(name) - 6, "_total") == 0;
    assert_int_equal(total, strcmp(kind, "counter") == 0);
    for (size_t i = 0; i < p.families_n; i++) {
        assert_string_not_equal(p.families[i], name);
    }
    assert_true(p.families_n < FAMILIES_MAX);
    strcpy(p.families[p.families_n++], name);
    assert_int_equal(at[n], '\n');
    return at + n + 1;
}

static const char *parse_labels(const char *at, char *into) {
    do {
        const char *equals = strchr(++at, '=');
        assert_non_null(equals);
        assert_true(is_name(at, (size_t)(equals - at)));
        memcpy(into, at, (size_t)(equals + 1 - at));
        into += equals + 1 - at;
        at = equals + 1;
        assert_int_equal(*at++, '"');
        for (; *at != '"'; at++) {
            assert_true(*at && *at != '\n');
            if (*at == '\\') {
                at++;
                assert_non_null(strchr("\\\"n", *at));
                *into++ = *at == 'n' ? '\n' : *at;
            } else {
                *into++ = *at;
            }
        }
        *into++ = '\x01';
        at++;
    } while (*at == ',');
    *into = '\0';
    assert_int_equal(*at, '}');
    return at + 1;
}

static const char *parse_sample(const char *at) {
    sample *s = &p.samples[p.n++];
    size_t n = strcspn(at, "{ \n");
    char *end;
    assert_true(p.n <= SAMPLES_MAX && p.families_n > 0 && n < sizeof s->name && is_name(at, n));
    memcpy(s->name, at, n);
    s->name[n] = s->labels[0] = '\0';
    assert_string_equal(s->name, p.families[p.families_n - 1]); /* samples of a family are contiguous */
    at += n;
    at = *at == '{' ? parse_labels(at, s->labels) : at;
    assert_int_equal(*at++, ' ');
    s->value = strtod(at, &end);
    assert_true(end > at && *end == '\n' && isfinite(s->value));
    for (size_t i = 0; i + 1 < p.n; i++) {
        assert_false(strcmp(p.samples[i].name, s->name) == 0 && strcmp(p.samples[i].labels, s->labels) == 0);
    }
    return end + 1;
}

static void parse(buf *text) {
    p.n = p.families_n = 0;
    buf_add_byte(text, '\0');
    for (const char *at = text->p; *at;) {
        at = *at == '#' ? parse_family(at) : parse_sample(at);
    }
}

static double value_of(const char *name, const char *labels) {
    for (size_t i = 0; i < p.n; i++) {
        if (strcmp(p.samples[i].name, name) == 0 && strcmp(p.samples[i].labels, labels) == 0) {
            return p.samples[i].value;
        }
    }
    fail_msg("there is no %s{%s}", name, labels);
    return NAN;
}

static void without_containers(void **state) {
    buf out = buf_init(BUF_NO_LIMIT);
    metrics m = {.databases = 2,
                 .net = {.connections = 3, .authenticated = 2, .refused_full = 5, .refused_address = 6, .waiting_bytes = 1ul << 33},
                 .resident_bytes = 1ul << 40,
                 .started_s = 1794746071.339,
                 .uptime_s = 5.25,
                 .reshapes = 7};
    (void)state;
    m.work[NET_PAGES].waiting = 7;
    m.work[NET_SHORT].cancelled = 2;
    metrics_write(&out, &m);
    parse(&out);
    assert_true(value_of("tesela_databases", "") == 2);
    assert_true(value_of("tesela_connections", "") == 3);
    assert_true(value_of("tesela_connections_authenticated", "") == 2);
    assert_true(value_of("tesela_connections_refused_total", "limit=all\x01") == 5);
    assert_true(value_of("tesela_connections_refused_total", "limit=address\x01") == 6);
    assert_true(value_of("tesela_answer_waiting_bytes", "") == 0x1p33);
    assert_true(value_of("tesela_work", "lane=pages\x01state=waiting\x01") == 7);
    assert_true(value_of("tesela_work_cancelled_total", "lane=short\x01") == 2);
    assert_true(value_of("process_resident_memory_bytes", "") == 0x1p40);
    assert_true(value_of("process_start_time_seconds", "") == 1794746071.339);
    assert_true(value_of("tesela_uptime_seconds", "") == 5.25);
    assert_true(value_of("tesela_range_changes_total", "") == 7);
    assert_true(value_of("tesela_build_info", "version=" TESELA_VERSION "\x01") == 1);
    buf_free(&out);
}

static void every_number_of_a_range(void **state) {
    buf out = buf_init(BUF_NO_LIMIT);
    report_range numbers = {
        .items = 1000001,
        .bytes = 1ul << 50,
        .index_bytes = 77,
        .partitions = 5,
        .lsn = 123456789,
        .share = 3333.3333333333335,
        .last = {.ru = 100, .requests = 9, .throttled = 8, .latency_average_us = 7, .latency_max_us = 123456, .normalized = 955},
        .requests = 1ul << 52,
        .throttled = 42,
        .failed = 43,
        .ru = 0.1,
        .latency_s = 1e-6,
    };
    metrics_range ranges[] = {{SLICE_LIT("d"), SLICE_LIT("c"), 0, numbers}, {SLICE_LIT("d"), SLICE_LIT("c"), 4294967295, {0}}};
    metrics_container container = {SLICE_LIT("d"), SLICE_LIT("c"), 2, 10000};
    metrics m = {.ranges = ranges, .ranges_n = 2, .containers = &container, .containers_n = 1};
    const char *labels = "database=d\x01"
                         "container=c\x01range=0\x01";
    (void)state;
    metrics_write(&out, &m);
    parse(&out);
    assert_true(value_of("tesela_range_items", labels) == 1000001);
    assert_true(value_of("tesela_range_data_bytes", labels) == 0x1p50);
    assert_true(value_of("tesela_range_index_bytes", labels) == 77);
    assert_true(value_of("tesela_range_logical_partitions", labels) == 5);
    assert_true(value_of("tesela_range_lsn", labels) == 123456789);
    assert_true(value_of("tesela_range_share_ru", labels) == 3333.3333333333335);
    assert_true(value_of("tesela_range_normalized_ru_ratio", labels) == 0.955);
    assert_true(value_of("tesela_range_latency_max_seconds", labels) == 0.123456);
    assert_true(value_of("tesela_range_requests_total", labels) == 0x1p52);
    assert_true(value_of("tesela_range_throttled_requests_total", labels) == 42);
    assert_true(value_of("tesela_range_failed_requests_total", labels) == 43);
    assert_true(value_of("tesela_range_request_units_total", labels) == 0.1);
    assert_true(value_of("tesela_range_latency_seconds_total", labels) == 1e-6);
    assert_true(value_of("tesela_range_items", "database=d\x01"
                                               "container=c\x01range=4294967295\x01") == 0);
    assert_true(value_of("tesela_container_ranges", "database=d\x01"
                                                    "container=c\x01") == 2);
    assert_true(value_of("tesela_container_throughput_ru", "database=d\x01"
                                                           "container=c\x01") == 10000);
    buf_free(&out);
}

static void stores_by_family_and_level(void **state) {
    buf out = buf_init(BUF_NO_LIMIT);
    store_figures stores[2] = {{.n = 1, .tail_bytes = 5}, {.n = 1, .tail_bytes = 6}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        stores[i].families[0] = (store_family_figures){.name = "terms", .bytes = 70 + i, .compacted = 900, .stopped = 3};
        stores[i].families[0].levels[4] = (store_level_figures){.files = 1, .bytes = 70 + i};
    }
    metrics m = {.stores = stores, .stores_n = 2};
    metrics_write(&out, &m);
    parse(&out);
    assert_true(value_of("tesela_store_bytes", "store=0\x01"
                                               "family=terms\x01") == 70);
    assert_true(value_of("tesela_store_bytes", "store=1\x01"
                                               "family=terms\x01") == 71);
    assert_true(value_of("tesela_store_compacted_bytes_total", "store=0\x01"
                                                               "family=terms\x01") == 900);
    assert_true(value_of("tesela_store_stopped_total", "store=0\x01"
                                                       "family=terms\x01") == 3);
    assert_true(value_of("tesela_store_level_bytes", "store=1\x01"
                                                     "family=terms\x01level=4\x01") == 71);
    assert_true(value_of("tesela_store_tail_bytes", "store=1\x01") == 6);
    buf_free(&out);
}

/* Clients may choose any names. */
static void labels_are_escaped(void **state) {
    static const char *const names[] = {"a\"b", "a\\b", "a\nb", "\\", "\\\"\n", "}", "{x=\"y\"} 1", "ñ 日本", "\\n", "# HELP x y"};
    metrics_range ranges[sizeof names / sizeof *names];
    metrics_container containers[sizeof names / sizeof *names];
    size_t n = sizeof names / sizeof *names;
    buf out = buf_init(BUF_NO_LIMIT);
    (void)state;
    for (size_t i = 0; i < n; i++) {
        ranges[i] = (metrics_range){slice_str(names[i]), slice_str(names[n - 1 - i]), (uint32_t)i, {.items = i}};
        containers[i] = (metrics_container){slice_str(names[i]), slice_str(names[n - 1 - i]), i, 0};
    }
    metrics m = {.ranges = ranges, .ranges_n = n, .containers = containers, .containers_n = n};
    metrics_write(&out, &m);
    parse(&out);
    for (size_t i = 0; i < n; i++) {
        char labels[200];
        snprintf(labels, sizeof labels,
                 "database=%s\x01"
                 "container=%s\x01range=%zu\x01",
                 names[i], names[n - 1 - i], i);
        assert_true(value_of("tesela_range_items", labels) == (double)i);
    }
    buf_free(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_containers),
        cmocka_unit_test(every_number_of_a_range),
        cmocka_unit_test(stores_by_family_and_level),
        cmocka_unit_test(labels_are_escaped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
