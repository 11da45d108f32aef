/* client_int.h — the inside of a client: what one request is, how it is sent, alone or beside others.
 *
 *   exchange   one logical request: built once, sent until it is answered or given up (exchange.c). It rides in a lane
 *   lane       an easy handle of libcurl, kept in the client's pool with its connection (lanes.c)
 *   fan        exchanges in flight beside each other on one thread, by a multi handle (fan.c)
 *
 * An exchange belongs to one thread; the pool, the account and the session tokens are shared under locks. No lock is held while a request
 * is under way, except that one thread reads the account for all. */
#pragma once

#include <curl/curl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "client/retry.h"
#include "client/sessions.h"
#include <tesela/client.h>

enum {
    CLIENT_HEADER_BYTES_MAX = 64 * 1024,
    CLIENT_REQUEST_BYTES_MAX = 16 * 1024 * 1024,
    CLIENT_PATH_BYTES_MAX = 16 * 1024,
    CLIENT_FIELDS_MAX = 48,
    CLIENT_ENDPOINTS_MAX = 32,
    CLIENT_EMPTY_PAGES_MAX = 10000, /* in a row, before the server is thought to give them for ever */
};

#define CLIENT_HEADER_TOO_LONG "The response's header is too long."

/* ---- errors ---- */

/* Fills `error`, which may be NULL, and returns the status. */
tesela_status client__fail(tesela_error *error, tesela_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
tesela_status client__status_of_http(int http_status);

/* ---- responses ---- */

struct tesela_response {
    int status, substatus;
    uint32_t retry_after_ms;
    double charge;
    unsigned retries;
    char activity_id[40];
    char *fields; /* "name\0value\0", names in lower case */
    size_t fields_n;
    char *body; /* zero-terminated */
    size_t body_n;
};

slice client__response_body(const tesela_response *r);
slice client__response_field(const tesela_response *r, const char *name); /* lower case; empty: not there */

/* ---- client ---- */

typedef struct lane {
    struct lane *next;
    CURL *easy;
    struct exchange *exchange;
    buf body, fields;
    size_t header_n;   /* bytes of the response's header, of all its lines */
    const char *limit; /* which limit the response has exceeded */
    struct curl_slist list[CLIENT_FIELDS_MAX];
} lane;

typedef struct tesela_resolver tesela_resolver;

typedef struct registered {
    struct registered *next;
    char *database;
    tesela_resolver *resolver;
} registered;

struct tesela_client {
    char *endpoint; /* "http://host:port", without a slash at the end */
    char *ca_file, *agent, *consistency, *resource_token;
    struct sign_key *key;
    uint64_t activity_seed[2]; /* of the names of requests */
    atomic_uint_fast64_t activities;
    char **regions;
    size_t regions_n;
    bool stay;
    long connect_timeout_ms, request_timeout_ms;
    retry_limits limits;
    size_t response_bytes;

    pthread_mutex_t pool_lock;
    lane *lanes; /* idle */
    unsigned lanes_n, lanes_max;
    CURLM *multis[8]; /* idle, with their connections */
    unsigned multis_n;

    pthread_mutex_t account_lock; /* of the endpoints; held while the account is read */
    _Atomic bool account_known;
    char *reads[CLIENT_ENDPOINTS_MAX], *writes[CLIENT_ENDPOINTS_MAX];
    size_t reads_n, writes_n;
    atomic_bool one_writer; /* known to have one region that takes writes */
    char **retired;         /* endpoint texts of before, which requests may still use */
    size_t retired_n;

    sessions *sessions;
    pthread_mutex_t resolvers_lock; /* of the next two */
    registered *resolvers;
    struct kept_container *containers; /* handles that operations on databases have opened */
};

/* An idle lane, or a new one. */
lane *client__lane_take(tesela_client *c);
void client__lane_give(tesela_client *c, lane *l);
CURLM *client__multi_take(tesela_client *c);
void client__multi_give(tesela_client *c, CURLM *m);
void client__lanes_free(tesela_client *c);
void client__containers_close(tesela_client *c);

/* The endpoint for the n-th try; reads the account first if it is not known. The text lives as long as the client. */
const char *client__endpoint(tesela_client *c, bool read, unsigned n);
void client__account_refresh(tesela_client *c);

/* ---- exchanges ---- */

typedef enum exchange_kind { EXCHANGE_READ, EXCHANGE_WRITE } exchange_kind;

typedef struct exchange exchange;
struct exchange {
    exchange *next; /* in a list of its fan */
    size_t at;      /* its place among those in flight */
    tesela_client *client;
    const char *verb;
    const char *type;    /* resource type that is signed */
    buf path;            /* percent-encoded, from the slash on */
    buf link;            /* what is signed */
    buf fields;          /* "Name: value\0" each */
    size_t own_fields_n; /* of them, without those of the attempt under way */
    buf body;
    slice body_view; /* used in place of `body` if not empty; must live as long as the exchange */
    bool has_body;
    bool read;                          /* changes nothing: may be sent again whatever happened */
    bool routed;                        /* names a range */
    bool no_account;                    /* is the request that reads the account */
    bool own_session;                   /* the caller gave a session token */
    bool plain_write;                   /* of one item: what it is decided by is in the region that takes writes */
    slice owner;                        /* name path of the container, for session tokens; points into `path`'s maker. Empty: none */
    struct tesela_container *container; /* whose ranges are refreshed after 410; may be NULL */
    char activity_id[40];
    const char *endpoint;
    unsigned endpoint_n;
    retry_state retries;
    unsigned attempts;
    int64_t not_before_us; /* in a fan: when to send it again */
    double charge;         /* of earlier attempts */
    tesela_response *response;
    tesela_status status; /* once it is done */
    char why[256];        /* if there is no response */
    lane *lane;
    void *tag; /* the caller's */
};

/* Begins one: appends path segments with client__exchange_segment, fields with client__exchange_field. */
exchange *client__exchange_new(tesela_client *c, const char *verb, const char *type, bool read);
void client__exchange_free(exchange *x);
void client__exchange_segment(exchange *x, slice name);                      /* "/name" */
void client__exchange_signed_link(exchange *x);                              /* all segments so far are what is signed */
void client__exchange_field(exchange *x, const char *name, slice value);     /* not added if the value is empty */
void client__exchange_text(exchange *x, const char *name, const char *text); /* NULL, "": not added */
void client__exchange_number(exchange *x, const char *name, int64_t value);

/* Sends it until it is done, and returns its status; `error` is filled if that is not TESELA_OK. */
tesela_status client__exchange_run(exchange *x, tesela_error *error);

/* The parts of a run, for fans: sets up the lane for the next attempt; and judges how it ended: true, it is done; false, it goes again
 * after x->not_before_us. */
void client__exchange_prepare(exchange *x);
bool client__exchange_judge(exchange *x, CURLcode how);
tesela_status client__exchange_error(const exchange *x, tesela_error *error);

/* Runs it, gives the response to the caller if wanted, and frees it. */
tesela_status client__exchange_finish(exchange *x, tesela_response **response_out, tesela_error *error);

/* ---- fans ---- */

typedef struct fan fan;

fan *client__fan_new(tesela_client *c);
void client__fan_free(fan *f);                          /* drops what is in flight; the exchanges are freed */
void client__fan_each(fan *f, void (*drop)(void *tag)); /* calls it for the tag of each that has not been returned */
void client__fan_add(fan *f, exchange *x);              /* the fan has it until client__fan_next returns it */
unsigned client__fan_count(const fan *f);
exchange *client__fan_next(fan *f, int64_t wait_us); /* one that is done; NULL: none in that time, or none in flight. −1: for ever */

int64_t client__now_us(void);
void client__sleep_us(int64_t us);
