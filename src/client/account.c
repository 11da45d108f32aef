/* The account's regions: where reads and writes go. */
#include <stdlib.h>

#include "base/memory.h"
#include "client/client_int.h"
#include "client/json.h"

enum { RETIRED_MAX = 1024 };

/* Texts of before stay until the client is closed: requests under way may use them. */
static void retire(tesela_client *c, char *text) {
    if (text) {
        c->retired = mem_resize(c->retired, (c->retired_n + 1) * sizeof(char *));
        c->retired[c->retired_n++] = text;
    }
}

/* An endpoint without its closing slash; kept if it is known already, so that `retired` does not grow with each refresh. NULL: the server
 * has told too many different ones. */
static char *endpoint_text(tesela_client *c, slice url) {
    while (url.n && url.p[url.n - 1] == '/') {
        url.n--;
    }
    for (size_t i = 0; i < c->retired_n; i++) {
        if (slice_eq(slice_str(c->retired[i]), url)) {
            return c->retired[i];
        }
    }
    if (c->retired_n == RETIRED_MAX) {
        return NULL;
    }
    retire(c, mem_text(url.p, url.n));
    return c->retired[c->retired_n - 1];
}

static size_t rank_of(const tesela_client *c, slice region) {
    for (size_t i = 0; i < c->regions_n; i++) {
        if (slice_eq_nocase(slice_str(c->regions[i]), region)) {
            return i;
        }
    }
    return c->regions_n;
}

/* Inserts an endpoint after those of the same rank; returns how many were inserted. */
static size_t insert(tesela_client *c, char **endpoints, size_t *ranks, size_t n, size_t rank, slice url) {
    char *text = endpoint_text(c, url);
    if (!text) {
        return 0;
    }
    for (; n > 0 && ranks[n - 1] > rank; n--) {
        ranks[n] = ranks[n - 1];
        endpoints[n] = endpoints[n - 1];
    }
    ranks[n] = rank;
    endpoints[n] = text;
    return 1;
}

/* Reads a list of locations, the preferred regions first. */
static size_t read_locations(tesela_client *c, slice body, const char *name, char **endpoints) {
    size_t ranks[CLIENT_ENDPOINTS_MAX], n = 0;
    json_walk w;
    slice location;
    if (!json_enter(json_member(body, name), &w)) {
        return 0;
    }
    while (n < CLIENT_ENDPOINTS_MAX && json_next(&w, NULL, &location)) {
        buf region = buf_init(1024), url = buf_init(4096);
        if (json_text(json_member(location, "name"), &region) && json_text(json_member(location, "databaseAccountEndpoint"), &url) &&
            (slice_starts(buf_view(&url), SLICE_LIT("https://")) || slice_starts(slice_str(c->endpoint), SLICE_LIT("http://")))) {
            n += insert(c, endpoints, ranks, n, rank_of(c, buf_view(&region)), buf_view(&url));
        }
        buf_free(&region);
        buf_free(&url);
    }
    return n;
}

/* A server on this machine may tell an address that is not the one by which it was reached; the official SDKs then stay where they are. */
static bool is_local(const tesela_client *c, slice body) {
    buf id = buf_init(1024);
    bool local = (json_text(json_member(body, "id"), &id) && slice_eq(buf_view(&id), SLICE_LIT("localhost"))) ||
                 strstr(c->endpoint, "//localhost") || strstr(c->endpoint, "//127.") || strstr(c->endpoint, "//[::1]");
    buf_free(&id);
    return local;
}

static exchange *account_exchange(tesela_client *c) {
    exchange *x = client__exchange_new(c, "GET", "", true);
    x->no_account = true;
    buf_add_byte(&x->path, '/');
    return x;
}

/* Called with the lock held. */
static void read_account(tesela_client *c) {
    exchange *x = account_exchange(c);
    if (client__exchange_run(x, NULL) == TESELA_OK) {
        slice body = client__response_body(x->response);
        if (!is_local(c, body)) {
            c->reads_n = read_locations(c, body, "readableLocations", c->reads);
            c->writes_n = read_locations(c, body, "writableLocations", c->writes);
        }
        c->one_writer = c->writes_n <= 1;
    }
    client__exchange_free(x);
    c->account_known = true;
}

void client__account_refresh(tesela_client *c) {
    if (!c->stay && !c->resource_token) {
        pthread_mutex_lock(&c->account_lock);
        read_account(c);
        pthread_mutex_unlock(&c->account_lock);
    }
}

const char *client__endpoint(tesela_client *c, bool read, unsigned n) {
    if (c->stay || c->resource_token) {
        return c->endpoint;
    }
    pthread_mutex_lock(&c->account_lock);
    if (!c->account_known) {
        read_account(c);
    }
    size_t count = read ? c->reads_n : c->writes_n;
    const char *endpoint = count ? (read ? c->reads : c->writes)[n % count] : c->endpoint;
    pthread_mutex_unlock(&c->account_lock);
    return endpoint;
}

tesela_status tesela_account_read(tesela_client *c, tesela_response **response_out, tesela_error *error) {
    return client__exchange_finish(account_exchange(c), response_out, error);
}
