/* Opening and closing clients. */
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/memory.h"
#include "base/random.h"
#include "client/client_int.h"
#include "client/sign.h"

enum { KEY_BYTES_MAX = 4096 };

static char *copy_text(const char *text) {
    return text ? mem_text(text, strlen(text)) : NULL;
}

/* ---- connection strings: "AccountEndpoint=…;AccountKey=…;" ---- */

static slice part_of(const char *text, const char *name) {
    size_t n = strlen(name);
    for (const char *p = text; *p;) {
        const char *end = strchrnul(p, ';');
        if ((size_t)(end - p) > n && p[n] == '=' && slice_eq_nocase(slice_of(p, n), slice_str(name))) {
            return slice_of(p + n + 1, (size_t)(end - p) - n - 1);
        }
        p = *end ? end + 1 : end;
    }
    return SLICE_EMPTY;
}

/* ---- parts of the options ---- */

static tesela_status set_endpoint(tesela_client *c, slice url, tesela_error *error) {
    while (url.n && url.p[url.n - 1] == '/') {
        url.n--;
    }
    bool tls = slice_starts(url, SLICE_LIT("https://"));
    slice host = slice_skip(url, tls ? 8 : 7);
    if ((!tls && !slice_starts(url, SLICE_LIT("http://"))) || !host.n || memchr(host.p, '/', host.n) || memchr(host.p, '@', host.n)) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "The endpoint must be http://host:port or https://host, not '%.*s'.",
                            slice_shown(url), url.p ? url.p : "");
    }
    c->endpoint = mem_text(url.p, url.n);
    return TESELA_OK;
}

static tesela_status set_key(tesela_client *c, slice key, tesela_error *error) {
    buf bytes = buf_init(KEY_BYTES_MAX);
    if (!base64_decode(&bytes, key) || !bytes.n) {
        buf_free(&bytes);
        return client__fail(error, TESELA_BAD_ARGUMENT, "The key is not base64: take it from the account's keys as it is.");
    }
    c->key = client__sign_key_new(buf_view(&bytes));
    OPENSSL_cleanse(bytes.p, bytes.n);
    buf_free(&bytes);
    return TESELA_OK;
}

static tesela_status set_rights(tesela_client *c, const tesela_client_options *o, tesela_error *error) {
    const char *joined = o->connection_string ? o->connection_string : "";
    slice url = o->endpoint ? slice_str(o->endpoint) : part_of(joined, "AccountEndpoint");
    slice key = o->key ? slice_str(o->key) : part_of(joined, "AccountKey");
    tesela_status status = set_endpoint(c, url, error);
    if (status != TESELA_OK) {
        return status;
    }
    if (o->resource_token) {
        c->resource_token = copy_text(o->resource_token);
        return TESELA_OK;
    }
    return key.n ? set_key(c, key, error)
                 : client__fail(error, TESELA_BAD_ARGUMENT, "Give a key, a resource token or a connection string.");
}

static void set_numbers(tesela_client *c, const tesela_client_options *o) {
    c->stay = o->stay;
    c->connect_timeout_ms = o->connect_timeout_ms ? (long)o->connect_timeout_ms : 5000;
    c->request_timeout_ms = o->request_timeout_ms ? (long)o->request_timeout_ms : 60000;
    c->limits.throttle_retries = o->throttle_retries < 0 ? 0 : o->throttle_retries ? o->throttle_retries : 9;
    c->limits.throttle_wait_ms = o->throttle_wait_ms ? o->throttle_wait_ms : 30000;
    c->lanes_max = o->idle_connections ? o->idle_connections : 64;
    c->response_bytes = !o->response_bytes ? 64 << 20 : o->response_bytes < SIZE_MAX / 4 ? o->response_bytes : SIZE_MAX / 4;
}

static void set_texts(tesela_client *c, const tesela_client_options *o) {
    char agent[256];
    snprintf(agent, sizeof agent, "libtesela/%s%s%s", TESELA_VERSION, o->application ? " " : "", o->application ? o->application : "");
    c->agent = copy_text(agent);
    c->ca_file = copy_text(o->ca_file);
    c->consistency = copy_text(o->consistency);
    if (o->regions_count) {
        c->regions = mem_zero(o->regions_count * sizeof(char *));
        for (; c->regions_n < o->regions_count; c->regions_n++) {
            c->regions[c->regions_n] = copy_text(o->regions[c->regions_n]);
        }
    }
}

tesela_status tesela_client_open(const tesela_client_options *options, tesela_client **client_out, tesela_error *error) {
    tesela_client *c = mem_zero(sizeof *c);
    pthread_mutex_init(&c->pool_lock, NULL);
    pthread_mutex_init(&c->account_lock, NULL);
    pthread_mutex_init(&c->resolvers_lock, NULL);
    c->sessions = client__sessions_new();
    random_source random;
    random_seed_system(&random);
    random_bytes(&random, c->activity_seed, sizeof c->activity_seed);
    set_numbers(c, options);
    set_texts(c, options);
    tesela_status status = set_rights(c, options, error);
    if (status != TESELA_OK) {
        tesela_client_close(c);
        c = NULL;
    }
    *client_out = c;
    return status;
}

void tesela_client_close(tesela_client *c) {
    if (!c) {
        return;
    }
    client__containers_close(c);
    client__lanes_free(c);
    client__sessions_free(c->sessions);
    for (registered *r = c->resolvers, *next; r; r = next) {
        next = r->next;
        free(r->database);
        free(r);
    }
    for (size_t i = 0; i < c->retired_n; i++) {
        free(c->retired[i]);
    }
    for (size_t i = 0; i < c->regions_n; i++) {
        free(c->regions[i]);
    }
    free(c->retired);
    free(c->regions);
    client__sign_key_free(c->key);
    free(c->endpoint);
    free(c->ca_file);
    free(c->agent);
    free(c->consistency);
    free(c->resource_token);
    pthread_mutex_destroy(&c->pool_lock);
    pthread_mutex_destroy(&c->account_lock);
    pthread_mutex_destroy(&c->resolvers_lock);
    free(c);
}
