#include "api/table/errors.h"

const table_refusal *table_refusal_of(table_error error) {
    static const table_refusal refusals[] = {
#define TABLE_ERROR_ROW(name, status, code, sentence) {status, code, sentence},
        TABLE_ERRORS(TABLE_ERROR_ROW)
#undef TABLE_ERROR_ROW
    };
    return &refusals[error];
}

#define NOT_AUTHENTICATED                                                                                                                  \
    "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly including the signature."

/* Where Table storage's status or sentence differs from the core's list (base/err.h). An empty code: the list's. */
static const struct {
    err code;
    table_refusal refusal;
} differing[] = {
    {E_UNAUTHORIZED, {403, "", NOT_AUTHENTICATED}},
    {E_NO_AUTHORIZATION, {403, "", NOT_AUTHENTICATED}},
    {E_BAD_AUTHORIZATION, {403, "", NOT_AUTHENTICATED}},
    {E_FORBIDDEN, {403, "", "This request is not authorized to perform this operation."}},
    {E_NOT_FOUND, {404, "", "The specified resource does not exist."}},
    {E_OWNER_NOT_FOUND, {404, "", "The table specified does not exist."}},
    {E_CONFLICT, {409, "", "The specified entity already exists."}},
    {E_PRECONDITION, {412, "", "The update condition specified in the request was not satisfied."}},
    {E_METHOD, {405, "", "The resource doesn't support specified Http Verb."}},
    {E_RETRY_WITH, {412, "", "The update condition specified in the request was not satisfied."}},
    {E_TOO_LARGE, {413, "", "The request body is too large and exceeds the maximum permissible limit."}},
    {E_BAD_REQUEST, {400, "", "One of the request inputs is not valid."}},
    {E_BAD_JSON, {400, "", "One of the request inputs is not valid."}},
    {E_RANGE_GONE, {503, "", "The server is busy."}},
};

table_refusal table_refusal_of_core(err code) {
    const err_entry *entry = err_lookup(code);
    for (size_t i = 0; i < sizeof differing / sizeof *differing; i++) {
        if (differing[i].code == code) {
            return (table_refusal){differing[i].refusal.status, entry->table_code, differing[i].refusal.sentence};
        }
    }
    return (table_refusal){entry->http_status, entry->table_code, entry->sentence};
}
