#include "base/err.h"

#include <assert.h>

enum { CQL_WRITE_TIMEOUT = 0x1100, CQL_READ_TIMEOUT = 0x1200, CQL_READ_FAILURE = 0x1300, CQL_WRITE_FAILURE = 0x1500 };

#define ANSWER(answer, mongo, mongo_name, cql, gremlin, ms_status, table)                                                                  \
    enum { MONGO_##answer = mongo, CQL_##answer = cql, GREMLIN_##answer = gremlin, MS_##answer = ms_status };                              \
    static const char mongo_name_##answer[] = mongo_name, table_##answer[] = table;
ERR_ANSWERS(ANSWER)
#undef ANSWER

static const err_entry entries[ERR_COUNT] = {
#define ERR_ENTRY(error, status, substatus, code_word, answer, text)                                                                       \
    [error] = {.name = #error,                                                                                                             \
               .word = code_word,                                                                                                          \
               .sentence = text,                                                                                                           \
               .http_status = status,                                                                                                      \
               .http_substatus = substatus,                                                                                                \
               .mongo_code = MONGO_##answer,                                                                                               \
               .mongo_name = mongo_name_##answer,                                                                                          \
               .table_code = table_##answer,                                                                                               \
               .gremlin_status = GREMLIN_##answer,                                                                                         \
               .gremlin_ms_status = MS_##answer,                                                                                           \
               .cql_code = CQL_##answer},
    ERR_LIST(ERR_ENTRY)
#undef ERR_ENTRY
};

const err_entry *err_lookup(err code) {
    assert(code >= 0 && code < ERR_COUNT);
    return &entries[code];
}

uint16_t err_cql(err code, bool reads) {
    uint16_t writes = err_lookup(code)->cql_code;
    if (!reads) {
        return writes;
    }
    return writes == CQL_WRITE_TIMEOUT ? CQL_READ_TIMEOUT : writes == CQL_WRITE_FAILURE ? CQL_READ_FAILURE : writes;
}
