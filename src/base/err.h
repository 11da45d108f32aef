/* err.h — every error a request can end with: one list, one line each.
 *
 * A line holds the name, what HTTP says (status, sub-status, the "code" word of the service's error JSON) and the sentence for people.
 * Other protocols add their column here when they come. Adding an error is one line and its test.
 *
 * Functions return the code; OK is 0. Where a sentence can be more exact than the list's, whoever knows the fact writes it into the
 * operation with op_fail (base/op.h). Three kinds are kept apart: the client is wrong (an err, answered), the world is wrong (E_STORE_*,
 * answered and logged), we are wrong (assert, which stays on in release builds). */
#pragma once

#include <stdint.h>

#define ERR_LIST(X)                                                                                                                        \
    X(OK, 200, 0, "Ok", "")                                                                                                                \
    X(E_NOT_MODIFIED, 304, 0, "NotModified", "")                                                                                           \
    X(E_BAD_REQUEST, 400, 0, "BadRequest", "One of the input values is invalid.")                                                          \
    X(E_BAD_JSON, 400, 0, "BadRequest", "The request payload is invalid. Ensure to provide a valid request payload.")                      \
    X(E_BAD_QUERY, 400, 0, "BadRequest", "Syntax error in the query.")                                                                     \
    X(E_BAD_URL, 400, 0, "BadRequest", "Request url is invalid.")                                                                          \
    X(E_BAD_CONTINUATION, 400, 0, "BadRequest", "Invalid Continuation Token")                                                              \
    X(E_KEY_MISMATCH, 400, 1001, "BadRequest", "PartitionKey extracted from document doesn't match the one specified in the header")       \
    X(E_KEY_COMPONENTS, 400, 1001, "BadRequest",                                                                                           \
      "The partition key supplied in x-ms-partitionkey header has fewer components than defined in the the collection.")                   \
    X(E_CROSS_PARTITION, 400, 1004, "BadRequest",                                                                                          \
      "The provided cross partition query can not be directly served by the gateway. This is a first chance (internal) exception that "    \
      "all newer clients will know how to handle gracefully. This exception is traced, but unless you see it bubble up as an exception "   \
      "(which only happens on older SDK clients), then you can safely ignore this message.")                                               \
    X(E_MEMORY, 400, 0, "BadRequest",                                                                                                      \
      "The request needs more memory than one request may have. Select fewer properties, or make the condition narrower.")                 \
    X(E_QUERY_CARDINALITY, 400, 0, "BadRequest",                                                                                           \
      "{\"errors\":[{\"severity\":\"Error\",\"code\":\"SC2210\",\"message\":\"The cardinality of a scalar subquery result set cannot be "  \
      "greater than one.\"}]}")                                                                                                            \
    X(E_EDIT_TOO_LONG, 400, 0, "BadRequest", "The write takes more steps than an edit may take: divide it.")                               \
    X(E_SCRIPT_FAILED, 400, 0, "BadRequest", "Encountered exception while executing Javascript.")                                          \
    X(E_SCRIPT_COMPILE, 400, 65535, "BadRequest", "Encountered exception while compiling Javascript.")                                     \
    X(E_WRONG_CONTAINER_RID, 400, 1024, "BadRequest", "The container the client intended is not the one of this name any more.")           \
    X(E_OFFER_BUSY, 400, 3205, "BadRequest",                                                                                               \
      "Another throughput change of this resource is still under way. Please retry once x-ms-offer-replace-pending is false.")             \
    X(E_UNAUTHORIZED, 401, 0, "Unauthorized",                                                                                              \
      "The input authorization token can't serve the request. Please check that the expected payload is built as per the protocol, "       \
      "and check the key being used.")                                                                                                     \
    X(E_NO_AUTHORIZATION, 401, 5000, "Unauthorized",                                                                                       \
      "Required Header authorization is missing. Ensure a valid Authorization token "                                                      \
      "is passed.")                                                                                                                        \
    X(E_BAD_AUTHORIZATION, 401, 5001, "Unauthorized",                                                                                      \
      "The input authorization token is not in a valid format. Please ensure the token is in the form type=...&ver=...&sig=...")           \
    X(E_FORBIDDEN, 403, 0, "Forbidden", "The operation is not permitted with this key.")                                                   \
    X(E_WRONG_HOST, 403, 0, "Forbidden",                                                                                                   \
      "While the server takes the emulator's well-known key, web pages of other sites may not use it: Host must be localhost or an "       \
      "address of the server, and Origin, if there is one, the same. Start it with --allow-host NAME to be reached by another name, or "   \
      "with a key of your own (--key-file).")                                                                                              \
    X(E_SHARED_CONTAINERS, 403, 1019, "Forbidden", "The database already has as many containers sharing its throughput as it may have.")   \
    X(E_PARTITION_FULL, 403, 1014, "Forbidden", "Partition key reached maximum size.")                                                     \
    X(E_CONTAINER_FULL, 403, 0, "Forbidden", "The container reached its maximum size.")                                                    \
    X(E_NOT_FOUND, 404, 0, "NotFound", "Entity with the specified id does not exist in the system.")                                       \
    X(E_SESSION_NOT_AVAILABLE, 404, 1002, "NotFound", "The read session is not available for the input session token.")                    \
    X(E_OWNER_NOT_FOUND, 404, 1003, "NotFound", "Owner resource does not exist")                                                           \
    X(E_METHOD, 405, 0, "MethodNotAllowed", "The requested verb is not supported.")                                                        \
    X(E_TIMEOUT, 408, 0, "RequestTimeout", "The operation did not complete within the allotted amount of time.")                           \
    X(E_SCRIPT_TIMEOUT, 408, 0, "RequestTimeout",                                                                                          \
      "The requested operation exceeded maximum alloted time. Learn more: https://aka.ms/cosmosdb-tsg-service-request-timeout")            \
    X(E_QUERY_TOO_LONG, 408, 0, "RequestTimeout",                                                                                          \
      "The query looks at too much for one page: name a partition key, or make its condition narrower.")                                   \
    X(E_CANCELLED, 408, 0, "RequestTimeout", "The client left before the operation was done.")                                             \
    X(E_CONFLICT, 409, 0, "Conflict", "Entity with the specified id already exists in the system.")                                        \
    X(E_UNIQUE_KEY, 409, 0, "Conflict", "Unique index constraint violation.")                                                              \
    X(E_RANGE_GONE, 410, 1002, "Gone", "The requested resource is no longer available at the server.")                                     \
    X(E_PRECONDITION, 412, 0, "PreconditionFailed",                                                                                        \
      "One of the specified pre-condition is not met. Learn more: https://aka.ms/CosmosDB/sql/errors/precondition-failed")                 \
    X(E_TOO_LARGE, 413, 0, "RequestEntityTooLarge", "Request size is too large")                                                           \
    X(E_VALUE_TOO_LARGE, 413, 0, "RequestEntityTooLarge",                                                                                  \
      "The query makes a value of more than 16 MB. Select fewer or smaller properties.")                                                   \
    X(E_FAILED_DEPENDENCY, 424, 0, "FailedDependency", "Another operation of the same batch failed.")                                      \
    X(E_THROTTLED, 429, 3200, "TooManyRequests",                                                                                           \
      "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request later. Learn more: "    \
      "http://aka.ms/cosmosdb-error-429")                                                                                                  \
    X(E_SCRIPTS_BUSY, 429, 3084, "TooManyRequests", "Too many scripts are to be run at once. Please retry this request later.")            \
    X(E_TENANT_BUSY, 429, 3092, "TooManyRequests",                                                                                         \
      "Too many requests of this container are waiting for a worker. Please retry this request later.")                                    \
    X(E_TOO_MANY_HEADERS, 431, 0, "RequestHeaderFieldsTooLarge", "The request's header fields are too large.")                             \
    X(E_RETRY_WITH, 449, 0, "RetryWith", "Conflicting request to resource has been attempted. Retry to avoid conflicts.")                  \
    X(E_INTERNAL, 500, 0, "InternalServerError", "An unexpected error happened. The server's log has the details.")                        \
    X(E_NOT_IMPLEMENTED, 501, 0, "NotImplemented", "This operation is not supported by tesela yet.")                                       \
    X(E_STORE_CORRUPT, 500, 0, "InternalServerError", "Stored data failed its checksum. The server's log names the file.")                 \
    X(E_UNAVAILABLE, 503, 0, "ServiceUnavailable",                                                                                         \
      "Service is currently unavailable. More info: https://aka.ms/cosmosdb-tsg-service-unavailable")                                      \
    X(E_STORE_IO, 503, 0, "ServiceUnavailable", "The data folder cannot be read or written. The server's log has the reason.")             \
    X(E_STORE_FULL, 503, 0, "ServiceUnavailable",                                                                                          \
      "The disk of the data folder is full; nothing was written. Reads go on; delete items or containers, or free space.")                 \
    X(E_STORE_READ_ONLY, 503, 0, "ServiceUnavailable", "The store takes no more writes since a write to disk failed; see the log.")        \
    X(E_BUSY_MEMORY, 503, 0, "ServiceUnavailable", "The memory for requests is used up by others. Please retry this request later.")       \
    X(E_BUSY_CONNECTIONS, 503, 0, "ServiceUnavailable",                                                                                    \
      "The server has as many connections as it may have, in all or of your address. Close some, or retry later.")                         \
    X(E_WORK_BUSY, 503, 0, "ServiceUnavailable", "Too many requests are waiting for a worker. Please retry this request later.")           \
    X(E_BUSY, 503, 0, "ServiceUnavailable", "Too many large requests are being received at once. Please retry.")

typedef enum err {
#define ERR_NAME(name, status, substatus, word, sentence) name,
    ERR_LIST(ERR_NAME)
#undef ERR_NAME
        ERR_COUNT
} err;

typedef struct err_entry {
    const char *name;
    const char *word;     /* the service's "code" */
    const char *sentence; /* for people */
    uint16_t http_status;
    uint16_t http_substatus;
} err_entry;

const err_entry *err_lookup(err code);

/* Pass an error on. Use TRY where nothing needs releasing, `goto out` where something does. */
#define TRY(call)                                                                                                                          \
    do {                                                                                                                                   \
        err try_code_ = (call);                                                                                                            \
        if (try_code_ != OK) {                                                                                                             \
            return try_code_;                                                                                                              \
        }                                                                                                                                  \
    } while (0)

#define MUST_CHECK __attribute__((warn_unused_result))
