/* err.h — the list of all errors that a request can end with, one line each.
 *
 * A line holds the name, the HTTP status and sub-status, the "code" word of the service's error JSON, the *answer* with the codes of the
 * other protocols, and the message. Many errors share an answer; ERR_ANSWERS holds the other protocols' codes, one line each. Adding an
 * error is one line and its test.
 *
 * Functions return the code; OK is 0. A function that can give a more exact message than the list's stores it in the operation with op_fail
 * (base/op.h). There are three kinds of errors: the client's (an err, answered), the environment's (E_STORE_*, answered and logged), and
 * our own (assert, which stays on in release builds). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Columns:
 *   MongoDB   code and codeName (MongoDB's error_codes.yml; for 50 and 16500 the names that the service uses)
 *   CQL       code of the ERROR frame (native_protocol_v4.spec section 9). WRITE_TIMEOUT and WRITE_FAILURE are for writes; err_cql
 *             returns the codes for reads. Where the service documents its choice for an HTTP status, it is used here.
 *   Gremlin   status code of the response (TinkerPop's ResponseStatusCode), and the x-ms-status-code that the service adds to it
 *   Table     code of odata.error; the HTTP status is that of the error's own line
 * Front ends handle two cases themselves. If a container exists already, the answer is 48 NamespaceExists for MongoDB and
 * TableAlreadyExists for Table. If no document is found, MongoDB gets an answer without a document, not an error. */
#define ERR_ANSWERS(X)                                                                                                                     \
    X(DONE, 0, "OK", 0x0000, 200, 200, "")                                                                                                 \
    X(INVALID, 2, "BadValue", 0x2200, 597, 400, "InvalidInput")                                                                            \
    X(UNPARSED, 9, "FailedToParse", 0x2000, 597, 1004, "InvalidInput")                                                                     \
    X(POSITION, 260, "InvalidResumeToken", 0x000A, 597, 400, "InvalidInput")                                                               \
    X(KEY, 61, "ShardKeyNotFound", 0x2200, 597, 400, "PropertiesNeedValue")                                                                \
    X(MEMORY, 146, "ExceededMemoryLimit", 0x2200, 597, 1003, "InvalidInput")                                                               \
    X(SCRIPT, 139, "JSInterpreterFailure", 0x1400, 597, 400, "InvalidInput")                                                               \
    X(CHANGING, 117, "ConflictingOperationInProgress", 0x2300, 500, 400, "InvalidInput")                                                   \
    X(WHO, 18, "AuthenticationFailed", 0x0100, 401, 401, "AuthenticationFailed")                                                           \
    X(FORBIDDEN, 13, "Unauthorized", 0x2100, 403, 403, "AuthorizationFailure")                                                             \
    X(QUOTA, 12501, "QuotaExceeded", 0x2100, 500, 403, "Forbidden")                                                                        \
    X(NOT_FOUND, 47, "NoMatchingDocument", 0x1500, 500, 404, "ResourceNotFound")                                                           \
    X(NO_OWNER, 26, "NamespaceNotFound", 0x2200, 500, 404, "TableNotFound")                                                                \
    X(BEHIND, 134, "ReadConcernMajorityNotAvailableYet", 0x1000, 596, 404, "ServerBusy")                                                   \
    X(METHOD, 59, "CommandNotFound", 0x0000, 498, 405, "MethodNotAllowed")                                                                 \
    X(TIMEOUT, 50, "ExceededTimeLimit", 0x1100, 598, 1009, "OperationTimedOut")                                                            \
    X(CANCELLED, 11601, "Interrupted", 0x1100, 598, 1007, "OperationTimedOut")                                                             \
    X(EXISTS, 11000, "DuplicateKey", 0x2400, 500, 409, "EntityAlreadyExists")                                                              \
    X(UNIQUE, 11000, "DuplicateKey", 0x2200, 500, 409, "EntityAlreadyExists")                                                              \
    X(MOVED, 13388, "StaleConfig", 0x1001, 596, 1008, "ServerBusy")                                                                        \
    X(CONDITION, 112, "WriteConflict", 0x1500, 500, 412, "UpdateConditionNotSatisfied")                                                    \
    X(TOO_LARGE, 10334, "BSONObjectTooLarge", 0x1500, 500, 413, "RequestBodyTooLarge")                                                     \
    X(DEPENDENCY, 251, "NoSuchTransaction", 0x1500, 500, 424, "InvalidInput")                                                              \
    X(THROTTLED, 16500, "TooManyRequests", 0x1001, 429, 429, "TooManyRequests")                                                            \
    X(RACE, 112, "WriteConflict", 0x1500, 596, 409, "UpdateConditionNotSatisfied")                                                         \
    X(INTERNAL, 1, "InternalError", 0x0000, 500, 500, "InternalError")                                                                     \
    X(UNSUPPORTED, 115, "CommandNotSupported", 0x2200, 597, 1004, "NotImplemented")                                                        \
    X(UNAVAILABLE, 91, "ShutdownInProgress", 0x1000, 596, 503, "ServerBusy")                                                               \
    X(DISK_FULL, 14031, "OutOfDiskSpace", 0x1500, 500, 503, "ServerBusy")                                                                  \
    X(READ_ONLY, 10107, "NotWritablePrimary", 0x1500, 500, 503, "ServerBusy")                                                              \
    X(NO_TRANSACTION, 251, "NoSuchTransaction", 0x1100, 598, 1009, "OperationTimedOut")                                                    \
    X(BUSY, 16500, "TooManyRequests", 0x1001, 429, 503, "ServerBusy")

#define ERR_LIST(X)                                                                                                                        \
    X(OK, 200, 0, "Ok", DONE, "")                                                                                                          \
    X(E_NOT_MODIFIED, 304, 0, "NotModified", DONE, "")                                                                                     \
    X(E_BAD_REQUEST, 400, 0, "BadRequest", INVALID, "One of the input values is invalid.")                                                 \
    X(E_BAD_JSON, 400, 0, "BadRequest", UNPARSED, "The request payload is invalid. Ensure to provide a valid request payload.")            \
    X(E_BAD_QUERY, 400, 0, "BadRequest", UNPARSED, "Syntax error in the query.")                                                           \
    X(E_BAD_URL, 400, 0, "BadRequest", INVALID, "Request url is invalid.")                                                                 \
    X(E_BAD_CONTINUATION, 400, 0, "BadRequest", POSITION, "Invalid Continuation Token")                                                    \
    X(E_KEY_MISMATCH, 400, 1001, "BadRequest", KEY, "PartitionKey extracted from document doesn't match the one specified in the header")  \
    X(E_KEY_COMPONENTS, 400, 1001, "BadRequest", KEY,                                                                                      \
      "The partition key supplied in x-ms-partitionkey header has fewer components than defined in the the collection.")                   \
    X(E_CROSS_PARTITION, 400, 1004, "BadRequest", INVALID,                                                                                 \
      "The provided cross partition query can not be directly served by the gateway. This is a first chance (internal) exception that "    \
      "all newer clients will know how to handle gracefully. This exception is traced, but unless you see it bubble up as an exception "   \
      "(which only happens on older SDK clients), then you can safely ignore this message.")                                               \
    X(E_MEMORY, 400, 0, "BadRequest", MEMORY,                                                                                              \
      "The request needs more memory than one request may have. Select fewer properties, or make the condition narrower.")                 \
    X(E_QUERY_CARDINALITY, 400, 0, "BadRequest", INVALID,                                                                                  \
      "{\"errors\":[{\"severity\":\"Error\",\"code\":\"SC2210\",\"message\":\"The cardinality of a scalar subquery result set cannot be "  \
      "greater than one.\"}]}")                                                                                                            \
    X(E_EDIT_TOO_LONG, 400, 0, "BadRequest", INVALID, "The write takes more steps than an edit may take: divide it.")                      \
    X(E_TRANSACTION_SPREAD, 400, 0, "BadRequest", UNSUPPORTED,                                                                             \
      "The items of a transaction lie in several stores: only what is in one store can be read and written together.")                     \
    X(E_SCRIPT_FAILED, 400, 0, "BadRequest", SCRIPT, "Encountered exception while executing Javascript.")                                  \
    X(E_SCRIPT_COMPILE, 400, 65535, "BadRequest", SCRIPT, "Encountered exception while compiling Javascript.")                             \
    X(E_WRONG_CONTAINER_RID, 400, 1024, "BadRequest", NO_OWNER, "The container the client intended is not the one of this name any more.") \
    X(E_OFFER_BUSY, 400, 3205, "BadRequest", CHANGING,                                                                                     \
      "Another throughput change of this resource is still under way. Please retry once x-ms-offer-replace-pending is false.")             \
    X(E_UNAUTHORIZED, 401, 0, "Unauthorized", WHO,                                                                                         \
      "The input authorization token can't serve the request. Please check that the expected payload is built as per the protocol, "       \
      "and check the key being used.")                                                                                                     \
    X(E_NO_AUTHORIZATION, 401, 5000, "Unauthorized", WHO,                                                                                  \
      "Required Header authorization is missing. Ensure a valid Authorization token "                                                      \
      "is passed.")                                                                                                                        \
    X(E_BAD_AUTHORIZATION, 401, 5001, "Unauthorized", WHO,                                                                                 \
      "The input authorization token is not in a valid format. Please ensure the token is in the form type=...&ver=...&sig=...")           \
    X(E_FORBIDDEN, 403, 0, "Forbidden", FORBIDDEN, "The operation is not permitted with this key.")                                        \
    X(E_NO_ROLE, 403, 5302, "Forbidden", FORBIDDEN, "The principal has no role that permits this.")                                        \
    X(E_NOT_BY_ROLE, 403, 5300, "Forbidden", FORBIDDEN, "The request cannot be authorized by AAD token in data plane.")                    \
    X(E_WRONG_HOST, 403, 0, "Forbidden", FORBIDDEN,                                                                                        \
      "While the server takes the emulator's well-known key, web pages of other sites may not use it: Host must be localhost or an "       \
      "address of the server, and Origin, if there is one, the same. Start it with --allow-host NAME to be reached by another name, or "   \
      "with a key of your own (--key-file).")                                                                                              \
    X(E_SHARED_CONTAINERS, 403, 1019, "Forbidden", QUOTA,                                                                                  \
      "The database already has as many containers sharing its throughput as it may have.")                                                \
    X(E_PARTITION_FULL, 403, 1014, "Forbidden", QUOTA, "Partition key reached maximum size.")                                              \
    X(E_CONTAINER_FULL, 403, 0, "Forbidden", QUOTA, "The container reached its maximum size.")                                             \
    X(E_RETIRED, 403, 0, "Forbidden", QUOTA,                                                                                               \
      "The container was replaced by one with another partition key and takes no more writes. It can be read and deleted.")                \
    X(E_NOT_FOUND, 404, 0, "NotFound", NOT_FOUND, "Entity with the specified id does not exist in the system.")                            \
    X(E_SESSION_NOT_AVAILABLE, 404, 1002, "NotFound", BEHIND, "The read session is not available for the input session token.")            \
    X(E_OWNER_NOT_FOUND, 404, 1003, "NotFound", NO_OWNER, "Owner resource does not exist")                                                 \
    X(E_METHOD, 405, 0, "MethodNotAllowed", METHOD, "The requested verb is not supported.")                                                \
    X(E_TIMEOUT, 408, 0, "RequestTimeout", TIMEOUT, "The operation did not complete within the allotted amount of time.")                  \
    X(E_SCRIPT_TIMEOUT, 408, 0, "RequestTimeout", TIMEOUT,                                                                                 \
      "The requested operation exceeded maximum alloted time. Learn more: https://aka.ms/cosmosdb-tsg-service-request-timeout")            \
    X(E_TRANSACTION_EXPIRED, 408, 0, "RequestTimeout", NO_TRANSACTION,                                                                     \
      "The transaction was open for too long and is gone; nothing was written. Begin it again.")                                           \
    X(E_QUERY_TOO_LONG, 408, 0, "RequestTimeout", TIMEOUT,                                                                                 \
      "The query looks at too much for one page: name a partition key, or make its condition narrower.")                                   \
    X(E_CANCELLED, 408, 0, "RequestTimeout", CANCELLED, "The client left before the operation was done.")                                  \
    X(E_CONFLICT, 409, 0, "Conflict", EXISTS, "Entity with the specified id already exists in the system.")                                \
    X(E_UNIQUE_KEY, 409, 0, "Conflict", UNIQUE, "Unique index constraint violation.")                                                      \
    X(E_NAME_STALE, 410, 1000, "Gone", NO_OWNER, "The container of this name is another one than the client has cached.")                  \
    X(E_RANGE_GONE, 410, 1002, "Gone", MOVED, "The requested resource is no longer available at the server.")                              \
    X(E_PRECONDITION, 412, 0, "PreconditionFailed", CONDITION,                                                                             \
      "One of the specified pre-condition is not met. Learn more: https://aka.ms/CosmosDB/sql/errors/precondition-failed")                 \
    X(E_TOO_LARGE, 413, 0, "RequestEntityTooLarge", TOO_LARGE, "Request size is too large")                                                \
    X(E_VALUE_TOO_LARGE, 413, 0, "RequestEntityTooLarge", TOO_LARGE,                                                                       \
      "The query makes a value of more than 16 MB. Select fewer or smaller properties.")                                                   \
    X(E_FAILED_DEPENDENCY, 424, 0, "FailedDependency", DEPENDENCY, "Another operation of the same batch failed.")                          \
    X(E_THROTTLED, 429, 3200, "TooManyRequests", THROTTLED,                                                                                \
      "Request rate is large. More Request Units may be needed, so no changes were made. Please retry this request later. Learn more: "    \
      "http://aka.ms/cosmosdb-error-429")                                                                                                  \
    X(E_SCRIPTS_BUSY, 429, 3084, "TooManyRequests", THROTTLED, "Too many scripts are to be run at once. Please retry this request later.") \
    X(E_TENANT_BUSY, 429, 3092, "TooManyRequests", THROTTLED,                                                                              \
      "Too many requests of this container are waiting for a worker. Please retry this request later.")                                    \
    X(E_FROZEN, 429, 3092, "TooManyRequests", THROTTLED,                                                                                   \
      "The container is about to be replaced by one with another partition key: it takes writes again in a moment. Please retry this "     \
      "request later.")                                                                                                                    \
    X(E_TOO_MANY_HEADERS, 431, 0, "RequestHeaderFieldsTooLarge", INVALID, "The request's header fields are too large.")                    \
    X(E_RETRY_WITH, 449, 0, "RetryWith", RACE, "Conflicting request to resource has been attempted. Retry to avoid conflicts.")            \
    X(E_INTERNAL, 500, 0, "InternalServerError", INTERNAL, "An unexpected error happened. The server's log has the details.")              \
    X(E_NOT_IMPLEMENTED, 501, 0, "NotImplemented", UNSUPPORTED, "This operation is not supported by tesela yet.")                          \
    X(E_STORE_CORRUPT, 500, 0, "InternalServerError", INTERNAL, "Stored data failed its checksum. The server's log names the file.")       \
    X(E_UNAVAILABLE, 503, 0, "ServiceUnavailable", UNAVAILABLE,                                                                            \
      "Service is currently unavailable. More info: https://aka.ms/cosmosdb-tsg-service-unavailable")                                      \
    X(E_NOT_IN_MEMORY, 503, 0, "ServiceUnavailable", INTERNAL, "The data is not in memory.") /* never answered: it is read by a worker */  \
    X(E_STORE_IO, 503, 0, "ServiceUnavailable", INTERNAL, "The data folder cannot be read or written. The server's log has the reason.")   \
    X(E_STORE_FULL, 503, 0, "ServiceUnavailable", DISK_FULL,                                                                               \
      "The disk of the data folder is full; nothing was written. Reads go on; delete items or containers, or free space.")                 \
    X(E_STORE_READ_ONLY, 503, 0, "ServiceUnavailable", READ_ONLY,                                                                          \
      "The store takes no more writes since a write to disk failed; see the log.")                                                         \
    X(E_BUSY_MEMORY, 503, 0, "ServiceUnavailable", BUSY, "The memory for requests is used up by others. Please retry this request later.") \
    X(E_BUSY_CONNECTIONS, 503, 0, "ServiceUnavailable", BUSY,                                                                              \
      "The server has as many connections as it may have, in all or of your address. Close some, or retry later.")                         \
    X(E_WORK_BUSY, 503, 0, "ServiceUnavailable", BUSY, "Too many requests are waiting for a worker. Please retry this request later.")     \
    X(E_BUSY, 503, 0, "ServiceUnavailable", BUSY, "Too many large requests are being received at once. Please retry.")

typedef enum err {
#define ERR_NAME(name, status, substatus, word, answer, sentence) name,
    ERR_LIST(ERR_NAME)
#undef ERR_NAME
        ERR_COUNT
} err;

typedef struct err_entry {
    const char *name;
    const char *word;     /* the service's "code" */
    const char *sentence; /* the message */
    uint16_t http_status;
    uint16_t http_substatus;
    int32_t mongo_code;
    const char *mongo_name;
    const char *table_code;
    uint16_t gremlin_status;
    uint16_t gremlin_ms_status; /* x-ms-status-code */
    uint16_t cql_code;          /* for writes; see err_cql for reads */
} err_entry;

const err_entry *err_lookup(err code);

/* The code of CQL's ERROR frame. Timeouts and failures have different codes for reads and writes. */
uint16_t err_cql(err code, bool reads);

/* Returns from the function if the call fails. Use TRY if nothing needs releasing, otherwise `goto out`. */
#define TRY(call)                                                                                                                          \
    do {                                                                                                                                   \
        err try_code_ = (call);                                                                                                            \
        if (try_code_ != OK) {                                                                                                             \
            return try_code_;                                                                                                              \
        }                                                                                                                                  \
    } while (0)

#define MUST_CHECK __attribute__((warn_unused_result))
