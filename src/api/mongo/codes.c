#include "api/mongo/codes.h"

#include <stdio.h>

/* MongoDB's src/mongo/base/error_codes.yml; for 50, 12501 and 16500 the names that Azure's service uses. */
static const struct {
    int32_t code;
    const char *name;
} names[] = {
    {1, "InternalError"},
    {2, "BadValue"},
    {4, "NoSuchKey"},
    {5, "GraphContainsCycle"},
    {9, "FailedToParse"},
    {11, "UserNotFound"},
    {12, "UnsupportedFormat"},
    {13, "Unauthorized"},
    {14, "TypeMismatch"},
    {15, "Overflow"},
    {16, "InvalidLength"},
    {17, "ProtocolError"},
    {18, "AuthenticationFailed"},
    {20, "IllegalOperation"},
    {22, "InvalidBSON"},
    {26, "NamespaceNotFound"},
    {27, "IndexNotFound"},
    {28, "PathNotViable"},
    {40, "ConflictingUpdateOperators"},
    {43, "CursorNotFound"},
    {47, "NoMatchingDocument"},
    {48, "NamespaceExists"},
    {50, "ExceededTimeLimit"},
    {52, "DollarPrefixedFieldName"},
    {53, "InvalidIdField"},
    {54, "NotSingleValueField"},
    {56, "EmptyFieldName"},
    {57, "DottedFieldName"},
    {59, "CommandNotFound"},
    {61, "ShardKeyNotFound"},
    {66, "ImmutableField"},
    {67, "CannotCreateIndex"},
    {68, "IndexAlreadyExists"},
    {72, "InvalidOptions"},
    {73, "InvalidNamespace"},
    {85, "IndexOptionsConflict"},
    {86, "IndexKeySpecsConflict"},
    {91, "ShutdownInProgress"},
    {96, "OperationFailed"},
    {112, "WriteConflict"},
    {115, "CommandNotSupported"},
    {117, "ConflictingOperationInProgress"},
    {121, "DocumentValidationFailure"},
    {125, "CommandFailed"},
    {134, "ReadConcernMajorityNotAvailableYet"},
    {139, "JSInterpreterFailure"},
    {146, "ExceededMemoryLimit"},
    {165, "ViewDepthLimitExceeded"},
    {166, "CommandNotSupportedOnView"},
    {167, "OptionNotSupportedOnView"},
    {168, "InvalidPipelineOperator"},
    {171, "CannotIndexParallelArrays"},
    {175, "QueryPlanKilled"},
    {181, "AmbiguousIndexKeyPattern"},
    {197, "InvalidIndexSpecificationOption"},
    {206, "NoSuchSession"},
    {217, "IncompleteTransactionHistory"},
    {224, "QueryFeatureNotAllowed"},
    {225, "TransactionTooOld"},
    {238, "NotImplemented"},
    {241, "ConversionFailure"},
    {246, "SnapshotUnavailable"},
    {251, "NoSuchTransaction"},
    {256, "TransactionCommitted"},
    {257, "TransactionTooLarge"},
    {260, "InvalidResumeToken"},
    {263, "OperationNotSupportedInTransaction"},
    {280, "ChangeStreamFatalError"},
    {286, "ChangeStreamHistoryLost"},
    {291, "NoQueryExecutionPlans"},
    {292, "QueryExceededMemoryLimitNoDiskUseAllowed"},
    {352, "UnsupportedOpQueryCommand"},
    {10107, "NotWritablePrimary"},
    {10334, "BSONObjectTooLarge"},
    {11000, "DuplicateKey"},
    {11600, "InterruptedAtShutdown"},
    {11601, "Interrupted"},
    {12501, "QuotaExceeded"},
    {13113, "MergeStageNoMatchingDocument"},
    {13388, "StaleConfig"},
    {14031, "OutOfDiskSpace"},
    {16500, "TooManyRequests"},
};

const char *mongo_code_name(int32_t code, char room[CODE_NAME_BYTES]) {
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].code == code) {
            return names[i].name;
        }
    }
    snprintf(room, CODE_NAME_BYTES, "Location%d", (int)code);
    return room;
}
