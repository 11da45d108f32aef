/* Errors, and the words for them. */
#include <stdio.h>

#include "client/client_int.h"

static const char *const words[] = {
    [TESELA_OK] = "ok",
    [TESELA_DONE] = "done",
    [TESELA_NOT_MODIFIED] = "not modified",
    [TESELA_BAD_REQUEST] = "bad request",
    [TESELA_UNAUTHORIZED] = "unauthorized",
    [TESELA_FORBIDDEN] = "forbidden",
    [TESELA_NOT_FOUND] = "not found",
    [TESELA_CONFLICT] = "conflict",
    [TESELA_GONE] = "gone",
    [TESELA_PRECONDITION_FAILED] = "precondition failed",
    [TESELA_TOO_LARGE] = "too large",
    [TESELA_FAILED_DEPENDENCY] = "failed dependency",
    [TESELA_THROTTLED] = "throttled",
    [TESELA_RETRY_WITH] = "retry with",
    [TESELA_SERVER_ERROR] = "server error",
    [TESELA_UNAVAILABLE] = "unavailable",
    [TESELA_TIMEOUT] = "timeout",
    [TESELA_NO_CONNECTION] = "no connection",
    [TESELA_TLS] = "not trusted",
    [TESELA_BAD_ARGUMENT] = "bad argument",
    [TESELA_BAD_RESPONSE] = "bad response",
    [TESELA_LIMIT] = "limit exceeded",
    [TESELA_CANCELLED] = "cancelled",
};

const char *tesela_status_text(tesela_status status) {
    unsigned at = (unsigned)status;
    return at < sizeof words / sizeof *words ? words[at] : "unknown";
}

const char *tesela_version(void) {
    return TESELA_VERSION;
}

static const struct {
    int http;
    tesela_status status;
} statuses[] = {
    {304, TESELA_NOT_MODIFIED},        {400, TESELA_BAD_REQUEST}, {401, TESELA_UNAUTHORIZED},      {403, TESELA_FORBIDDEN},
    {404, TESELA_NOT_FOUND},           {408, TESELA_TIMEOUT},     {409, TESELA_CONFLICT},          {410, TESELA_GONE},
    {412, TESELA_PRECONDITION_FAILED}, {413, TESELA_TOO_LARGE},   {424, TESELA_FAILED_DEPENDENCY}, {429, TESELA_THROTTLED},
    {449, TESELA_RETRY_WITH},          {503, TESELA_UNAVAILABLE},
};

tesela_status client__status_of_http(int http) {
    if (http >= 200 && http < 300) {
        return TESELA_OK;
    }
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        if (statuses[i].http == http) {
            return statuses[i].status;
        }
    }
    return http >= 400 && http < 500 ? TESELA_BAD_REQUEST : TESELA_SERVER_ERROR;
}

tesela_status client__fail(tesela_error *error, tesela_status status, const char *format, ...) {
    if (error) {
        va_list args;
        va_start(args, format);
        *error = (tesela_error){.status = status};
        vsnprintf(error->message, sizeof error->message, format, args);
        va_end(args);
    }
    return status;
}
