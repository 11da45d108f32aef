/* reasons.h — why a query runs as it does and what would help: an id, two arguments and an English text for each. Answers carry the id and
 * the arguments too, so that the portal says the same in the reader's language (portal/src/texts, `why_ID`). */
#pragma once

#include "base/buf.h"

/* Conditions of WHERE that the index does not answer; why all items were read; why a graph of vectors was not used; advice. */
#define QUERY_REASONS(X)                                                                                                                   \
    X(CALL, "function", "{name} is computed from each item: the index has values as they are stored")                                      \
    X(UDF, "udf", "the user-defined function {name} is called with each item")                                                             \
    X(SPATIAL, "spatial", "no spatial index answers {name} here")                                                                          \
    X(FULL_TEXT, "full-text", "no full-text index answers {name} here")                                                                    \
    X(VOLATILE, "volatile", "{name} changes from call to call")                                                                            \
    X(NOT_EQUAL, "not-equal", "the index finds values that are there, not all others")                                                     \
    X(NEGATION, "negation", "it is a negation: the index finds values that are there, not all others")                                     \
    X(BOTH_SIDES, "both-sides", "both sides come from the item: the index needs a constant on one")                                        \
    X(NO_CONSTANT, "no-constant", "the other side is no constant of an ordered type (a number or a string)")                               \
    X(COMPUTED, "computed", "it is computed from each item")                                                                               \
    X(PATTERN, "pattern", "the pattern has no fixed beginning: the index knows how strings begin, not what is in them")                    \
    X(LIST, "list", "its list is no list of constants, or longer than the index is asked for")                                             \
    X(NO_KEY_INDEX, "no-key-index", "the container has no such key index")                                                                 \
    X(FILTER, "filter", "it is a filter of its own: only the item can be asked")                                                           \
    X(CONSTANT, "constant", "it does not look at the item at all")                                                                         \
    X(OFF, "off", "the container has no index (indexingMode is none)")                                                                     \
    X(LEFT_OUT, "left-out", "the indexing policy leaves out {name}")                                                                       \
    X(TOO_MANY_CONDITIONS, "too-many-conditions", "the query has more conditions than the index is asked for")                             \
                                                                                                                                           \
    X(ALL_RANK, "all-rank", "all items are read, since ORDER BY RANK scores all of them")                                                  \
    X(ALL_OFF, "all-off", "all items are read, since the container has no index (indexingMode is none)")                                   \
    X(ALL_SMALL, "all-small", "the partition is small, so its items are all read")                                                         \
    X(ALL_NEEDED, "all-needed", "all items are read: the query needs every one, or the index is just being replaced")                      \
    X(ALL_TOO_MANY, "all-too-many",                                                                                                        \
      "all items are read: what the index knows of WHERE holds for so many of them that reading all is quicker")                           \
    X(ALL_UNANSWERED, "all-unanswered", "all items are read, since the index answers no condition of WHERE")                               \
    X(ALL_NO_CONDITION, "all-no-condition", "all items are read, since there is no condition")                                             \
                                                                                                                                           \
    X(GRAPH_TOO_FEW, "graph-too-few", "the graph of {name} finds too few rows, so all items are read")                                     \
    X(GRAPH_MOVING, "graph-moving", "all items are read, since they are still being moved after a split or a merge")                       \
    X(GRAPH_BUILDING, "graph-building", "all items are read, since the graph of {name} is still being built; vectors by now: {n}")         \
    X(GRAPH_NO_MEMORY, "graph-no-memory", "all items are read, since the graph of {name} would take more than --vector-memory leaves")     \
    X(GRAPH_UNFIT, "graph-unfit", "all items are read, since numbers at {name} are too large or too small for a graph")                    \
    X(GRAPH_NOT_WORTH, "graph-not-worth", "all items are read: they are too few, or too many are wanted, for the graph of {name}")         \
                                                                                                                                           \
    X(NAME_KEY, "name-key", "name a partition key: the query was asked of {n} ranges, and each costs 2.25 RU")                             \
    X(INCLUDE, "include", "include {name} in the indexing policy")                                                                         \
    X(COMPOSITE, "composite", "on the service a composite index ({name}) would help; here single ones are intersected")                    \
    X(ONE_CASE, "one-case", "store the text in one case as a property of its own, and compare with that")

typedef enum query_reason_id {
    REASON_NONE,
#define X(name, id, text) REASON_##name,
    QUERY_REASONS(X)
#undef X
} query_reason_id;

typedef struct query_reason {
    query_reason_id id;
    slice name; /* {name} */
    uint64_t n; /* {n} */
    slice side; /* "OR" or "AND": only this side of the condition is the reason; else empty */
} query_reason;

void query_reason_words(buf *out, const query_reason *r);
void query_reason_json(buf *out, const query_reason *r); /* {"id":…,"name":…,"n":…,"side":…}, without what is empty */
