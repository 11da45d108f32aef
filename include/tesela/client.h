/* tesela/client.h — a client: an account's endpoint, the right to use it, and the connections to it.
 *
 *   tesela_client *client;
 *   tesela_client_options options = {.endpoint = "http://localhost:8081", .key = key};
 *   if (tesela_client_open(&options, &client, &error) != TESELA_OK) { puts(error.message); }
 *
 * One client serves a whole process: it keeps connections, session tokens and the list of the account's regions. Any thread may use it.
 *
 * Requests that fail for a passing reason are sent again, as the official SDKs do it:
 *
 *   429            after the time that the server tells, at most throttle_retries times and throttle_wait_ms in all
 *   410            after the container's ranges have been read again, for up to 30 seconds
 *   449            after 10 ms, then twice as long each time, for up to 30 seconds
 *   404, 1002      (the replica does not have the session's last write yet) for up to 5 seconds
 *   503            in the next region if there is one, at most 10 times, up to 5 seconds apart
 *   403, 3         (the region takes no writes) after the regions have been read again
 *   no connection  at most 10 times; a write only if it cannot have been received
 *   408, time-outs reads only */
#ifndef TESELA_CLIENT_H
#define TESELA_CLIENT_H

#include <tesela/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tesela_client tesela_client;

/* Zero or NULL means the default. Texts are copied. */
typedef struct tesela_client_options {
    const char *endpoint;          /* "https://name.documents.azure.com" or "http://localhost:8081" */
    const char *key;               /* one of the account's keys, base64 */
    const char *resource_token;    /* in place of a key: the token of a permission */
    const char *connection_string; /* in place of endpoint and key: "AccountEndpoint=…;AccountKey=…;" */
    const char *ca_file;           /* PEM file of certificates to trust; default: the system's */
    const char *application;       /* added to the user agent */
    const char *consistency;       /* "Eventual", "ConsistentPrefix", "Session", "BoundedStaleness", "Strong"; default: the account's */
    const char *const *regions;    /* preferred regions for reads, the best first */
    size_t regions_count;
    bool stay;                   /* use the given endpoint only: do not ask for the account's regions */
    uint32_t connect_timeout_ms; /* 5,000 */
    uint32_t request_timeout_ms; /* 60,000, for each attempt */
    int throttle_retries;        /* 9; −1: none */
    uint32_t throttle_wait_ms;   /* 30,000, the sum for one request */
    uint32_t idle_connections;   /* 64: kept open when they are not in use */
    size_t response_bytes;       /* 64 MB: a longer response fails with TESELA_LIMIT */
} tesela_client_options;

/* Opens a client. Nothing is sent; the account's regions are read with the first request. Fails with TESELA_BAD_ARGUMENT if the endpoint,
 * key or connection string is malformed. Close it with tesela_client_close. */
TESELA_API TESELA_CHECKED tesela_status tesela_client_open(const tesela_client_options *options, tesela_client **client_out,
                                                           tesela_error *error);

/* Closes its connections and frees it. Close everything that was opened with it first. NULL is allowed. */
TESELA_API void tesela_client_close(tesela_client *client);

/* Reads the account: its regions and its consistency. Checks that the endpoint can be reached and the key is accepted. */
TESELA_API tesela_status tesela_account_read(tesela_client *client, tesela_response **response_out, tesela_error *error);

/* ---- throughput ---- */

/* Request units per second. All zero: none of its own. */
typedef struct tesela_throughput {
    uint32_t manual;        /* RU/s, or: */
    uint32_t autoscale_max; /* the most that autoscale may give */
} tesela_throughput;

/* ---- databases ---- */

/* Creates a database; `throughput`, shared by its containers, may be NULL. TESELA_CONFLICT: it exists. */
TESELA_API tesela_status tesela_database_create(tesela_client *client, const char *database, const tesela_throughput *throughput,
                                                tesela_response **response_out, tesela_error *error);

/* Reads a database's properties. TESELA_NOT_FOUND: there is none of this name. */
TESELA_API tesela_status tesela_database_read(tesela_client *client, const char *database, tesela_response **response_out,
                                              tesela_error *error);

/* Deletes a database and all its containers. */
TESELA_API tesela_status tesela_database_delete(tesela_client *client, const char *database, tesela_response **response_out,
                                                tesela_error *error);

/* Reads and sets the throughput that a database's containers share. TESELA_NOT_FOUND: it has none of its own. */
TESELA_API tesela_status tesela_database_throughput(tesela_client *client, const char *database, tesela_throughput *throughput_out,
                                                    tesela_error *error);
TESELA_API tesela_status tesela_database_set_throughput(tesela_client *client, const char *database, const tesela_throughput *throughput,
                                                        tesela_error *error);

#ifdef __cplusplus
}
#endif
#endif
