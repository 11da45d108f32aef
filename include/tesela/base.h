/* tesela/base.h — what all headers of libtesela share: results, errors, partition keys, responses.
 *
 * Every function that can fail returns a tesela_status; TESELA_OK is 0. Results come out through the last parameters and are set to NULL or
 * 0 on failure. `error` may be NULL; otherwise it is filled on failure and left alone on success.
 *
 * Texts given to the library are UTF-8 and end with a zero byte; it copies what it keeps. Texts that it returns belong to the object that
 * they came from. JSON comes and goes as text.
 *
 * Threads: clients, containers and resolvers may be used by any number of threads at the same time. All other objects (cursors, batches,
 * bulks, change feeds, responses) belong to one thread at a time. The library has no global state of its own. Memory that cannot be
 * allocated ends the process. */
#ifndef TESELA_BASE_H
#define TESELA_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TESELA_API __attribute__((visibility("default")))
#define TESELA_CHECKED __attribute__((warn_unused_result))

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tesela_status {
    TESELA_OK = 0,
    TESELA_DONE,                /* an iteration is at its end */
    TESELA_NOT_MODIFIED,        /* 304: the item still has the etag of if_none_match */
    TESELA_BAD_REQUEST,         /* 400 */
    TESELA_UNAUTHORIZED,        /* 401 */
    TESELA_FORBIDDEN,           /* 403; sub-status 1014: the logical partition is full */
    TESELA_NOT_FOUND,           /* 404 */
    TESELA_CONFLICT,            /* 409: the id or a unique key exists already */
    TESELA_GONE,                /* 410, after all retries */
    TESELA_PRECONDITION_FAILED, /* 412: if_match, or the condition of a patch */
    TESELA_TOO_LARGE,           /* 413 */
    TESELA_FAILED_DEPENDENCY,   /* 424: another operation of the same batch failed */
    TESELA_THROTTLED,           /* 429, after all retries */
    TESELA_RETRY_WITH,          /* 449, after all retries */
    TESELA_SERVER_ERROR,        /* 500, 501, and other statuses without a line here */
    TESELA_UNAVAILABLE,         /* 503, or a resolver in transition mode None */
    TESELA_TIMEOUT,             /* 408, or no answer in time. A write may or may not have happened */
    TESELA_NO_CONNECTION,       /* the endpoint cannot be reached, or the connection broke */
    TESELA_TLS,                 /* the server's certificate is not trusted */
    TESELA_BAD_ARGUMENT,        /* refused by the library: nothing was sent */
    TESELA_BAD_RESPONSE,        /* the answer is not what the protocol says */
    TESELA_LIMIT,               /* a limit of the library, such as the size of a response */
    TESELA_CANCELLED            /* a callback of the application ended it */
} tesela_status;

/* One word for a status, such as "throttled". Static text; "unknown" for other numbers. */
TESELA_API const char *tesela_status_text(tesela_status status);

/* Why something failed. Lives where the caller puts it, usually on the stack. */
typedef struct tesela_error {
    tesela_status status;
    int http_status;         /* 0: there was no answer */
    int http_substatus;      /* x-ms-substatus */
    uint32_t retry_after_ms; /* with TESELA_THROTTLED: how long to wait */
    double charge;           /* request units that the failed request cost */
    char activity_id[40];    /* names the request in the server's log */
    char message[1024];      /* for people; cut if longer */
    void *reserved[4];
} tesela_error;

/* The library's version, such as "0.1.0". Static text. */
TESELA_API const char *tesela_version(void);

/* ---- partition keys ---- */

typedef enum tesela_key_kind {
    TESELA_KEY_NONE = 0, /* the item has no such property */
    TESELA_KEY_NULL,
    TESELA_KEY_BOOL,
    TESELA_KEY_NUMBER,
    TESELA_KEY_STRING
} tesela_key_kind;

typedef struct tesela_key_value {
    tesela_key_kind kind;
    bool truth;
    double number;
    const char *text; /* not copied: must live as long as the key */
} tesela_key_value;

/* The value of a partition key: one component, up to three in containers with hierarchical keys, none in containers without a key. */
typedef struct tesela_key {
    size_t count;
    tesela_key_value values[3];
} tesela_key;

static inline tesela_key tesela_key_string(const char *text) {
    tesela_key key = {1, {{TESELA_KEY_STRING, false, 0, text}, {TESELA_KEY_NONE, false, 0, NULL}, {TESELA_KEY_NONE, false, 0, NULL}}};
    return key;
}

static inline tesela_key tesela_key_number(double number) {
    tesela_key key = {1, {{TESELA_KEY_NUMBER, false, number, NULL}, {TESELA_KEY_NONE, false, 0, NULL}, {TESELA_KEY_NONE, false, 0, NULL}}};
    return key;
}

static inline tesela_key tesela_key_bool(bool truth) {
    tesela_key key = {1, {{TESELA_KEY_BOOL, truth, 0, NULL}, {TESELA_KEY_NONE, false, 0, NULL}, {TESELA_KEY_NONE, false, 0, NULL}}};
    return key;
}

static inline tesela_key tesela_key_null(void) {
    tesela_key key = {1, {{TESELA_KEY_NULL, false, 0, NULL}, {TESELA_KEY_NONE, false, 0, NULL}, {TESELA_KEY_NONE, false, 0, NULL}}};
    return key;
}

static inline tesela_key tesela_key_none(void) {
    tesela_key key = {1, {{TESELA_KEY_NONE, false, 0, NULL}, {TESELA_KEY_NONE, false, 0, NULL}, {TESELA_KEY_NONE, false, 0, NULL}}};
    return key;
}

/* Adds a component to a hierarchical key. False: it has three already. */
static inline bool tesela_key_add(tesela_key *key, tesela_key component) {
    if (key->count >= 3 || component.count != 1) {
        return false;
    }
    key->values[key->count++] = component.values[0];
    return true;
}

/* ---- responses ---- */

/* The answer to one request. Functions that give one take `tesela_response **`, which may be NULL if the answer does not matter. */
typedef struct tesela_response tesela_response;

/* Frees a response and every text that came from it. NULL is allowed. */
TESELA_API void tesela_response_free(tesela_response *response);

/* The HTTP status, such as 201. */
TESELA_API int tesela_response_http_status(const tesela_response *response);

/* The body, JSON text ending with a zero byte that its length does not count; "" if there is none. Lives as long as the response. */
TESELA_API const char *tesela_response_body(const tesela_response *response, size_t *length_out);

/* Request units, the sum over all requests that the call has made. */
TESELA_API double tesela_response_charge(const tesela_response *response);

/* The item's etag, for if_match; "" if there is none. Lives as long as the response. */
TESELA_API const char *tesela_response_etag(const tesela_response *response);

/* The request's id in the server's log. Lives as long as the response. */
TESELA_API const char *tesela_response_activity_id(const tesela_response *response);

/* The session token, for another client that must see this write; "" if there is none. Lives as long as the response. */
TESELA_API const char *tesela_response_session_token(const tesela_response *response);

/* Any field of the response's header, by its name in any letter case; NULL if it is not there. Lives as long as the response. */
TESELA_API const char *tesela_response_header(const tesela_response *response, const char *name);

/* How often the request was sent again before this answer came. */
TESELA_API unsigned tesela_response_retries(const tesela_response *response);

#ifdef __cplusplus
}
#endif
#endif
