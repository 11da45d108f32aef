/* errors.h — within api/table: the errors of Table storage that only this protocol has, and what it says for the errors of the core.
 *
 * Functions that read a part of a request (entity.h, filter.h, multipart.h) return a table_error. The request keeps it, and its handlers
 * return the core's E_BAD_REQUEST with it. Sentences are the service's. */
#pragma once

#include "base/op.h"

#define TABLE_ERRORS(X)                                                                                                                    \
    X(TABLE_FINE, 200, "", "")                                                                                                             \
    X(TABLE_INVALID_INPUT, 400, "InvalidInput", "One of the request inputs is not valid.")                                                 \
    X(TABLE_INVALID_URI, 400, "InvalidUri", "The requested URI does not represent any resource on the server.")                            \
    X(TABLE_INVALID_HEADER, 400, "InvalidHeaderValue", "The value for one of the HTTP headers is not in the correct format.")              \
    X(TABLE_INVALID_PARAMETER, 400, "InvalidQueryParameterValue",                                                                          \
      "Value for one of the query parameters specified in the request URI is invalid.")                                                    \
    X(TABLE_INVALID_XML, 400, "InvalidXmlDocument", "XML specified is not syntactically valid.")                                           \
    X(TABLE_INVALID_NAME, 400, "InvalidResourceName", "The specified resource name contains invalid characters.")                          \
    X(TABLE_OUT_OF_RANGE, 400, "OutOfRangeInput", "One of the request inputs is out of range.")                                            \
    X(TABLE_NO_VALUES, 400, "PropertiesNeedValue", "The values are not specified for all properties in the entity.")                       \
    X(TABLE_NAME_INVALID, 400, "PropertyNameInvalid", "The property name is invalid.")                                                     \
    X(TABLE_NAME_TOO_LONG, 400, "PropertyNameTooLong", "The property name exceeds the maximum allowed length (255).")                      \
    X(TABLE_VALUE_TOO_LARGE, 400, "PropertyValueTooLarge", "The property value exceeds the maximum allowed size (64KB).")                  \
    X(TABLE_KEY_TOO_LARGE, 400, "KeyValueTooLarge", "The value specified for PartitionKey or RowKey exceeds the maximum size (1KB).")      \
    X(TABLE_VALUE_TYPE, 400, "InvalidValueType", "The value specified is invalid.")                                                        \
    X(TABLE_ENTITY_TOO_LARGE, 400, "EntityTooLarge", "The entity is larger than the maximum allowed size (1MB).")                          \
    X(TABLE_TOO_MANY_PROPERTIES, 400, "TooManyProperties",                                                                                 \
      "The entity contains more properties than allowed. Each entity can include up to 252 properties to store data. Each entity also "    \
      "has 3 system properties.")                                                                                                          \
    X(TABLE_NO_HEADER, 400, "MissingRequiredHeader", "An HTTP header that's mandatory for this request is not specified.")                 \
    X(TABLE_DUPLICATE_ROW, 400, "InvalidDuplicateRow",                                                                                     \
      "The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.")                 \
    X(TABLE_PARTITIONS, 400, "CommandsInBatchActOnDifferentPartitions", "All commands in a batch must operate on same entity group.")      \
    X(TABLE_POLICIES, 400, "InvalidInput", "A table has at most five stored access policies.")                                             \
    X(TABLE_HOST, 400, "InvalidInput", "The Origin and Access-Control-Request-Method header fields must be there.")                        \
    X(TABLE_NOT_ALLOWED, 403, "CorsPreflightFailure", "CORS not enabled or no matching rule found for this request.")                      \
    X(TABLE_EXISTS, 409, "TableAlreadyExists", "The table specified already exists.")                                                      \
    X(TABLE_ATOM, 415, "AtomFormatNotSupported", "Atom format is not supported.")                                                          \
    X(TABLE_JSON, 415, "JsonFormatNotSupported", "The request body must be JSON: Content-Type application/json.")                          \
    X(TABLE_BODY, 413, "RequestBodyTooLarge", "The request body is too large and exceeds the maximum permissible limit.")

typedef enum table_error {
#define TABLE_ERROR_NAME(name, status, code, sentence) name,
    TABLE_ERRORS(TABLE_ERROR_NAME)
#undef TABLE_ERROR_NAME
} table_error;

/* What a client is told. */
typedef struct table_refusal {
    unsigned status;
    const char *code, *sentence;
} table_refusal;

const table_refusal *table_refusal_of(table_error error);
table_refusal table_refusal_of_core(err code); /* the status, the code and the sentence of Table storage for an error of the core */

/* Returns from the function if the call finds an error. */
#define TABLE_TRY(call)                                                                                                                    \
    do {                                                                                                                                   \
        table_error try_error_ = (call);                                                                                                   \
        if (try_error_ != TABLE_FINE) {                                                                                                    \
            return try_error_;                                                                                                             \
        }                                                                                                                                  \
    } while (0)
