/* Responses: what is read of an answer. */
#include <stdlib.h>

#include "client/client_int.h"

slice client__response_body(const tesela_response *r) {
    return slice_of(r->body, r->body_n);
}

slice client__response_field(const tesela_response *r, const char *name) {
    const char *p = r->fields, *end = p + r->fields_n;
    while (p < end) {
        const char *value = p + strlen(p) + 1;
        if (strcmp(p, name) == 0) {
            return slice_str(value);
        }
        p = value + strlen(value) + 1;
    }
    return SLICE_EMPTY;
}

void tesela_response_free(tesela_response *r) {
    if (r) {
        free(r->fields);
        free(r->body);
        free(r);
    }
}

int tesela_response_http_status(const tesela_response *r) {
    return r->status;
}

const char *tesela_response_body(const tesela_response *r, size_t *n_out) {
    if (n_out) {
        *n_out = r->body_n;
    }
    return r->body;
}

double tesela_response_charge(const tesela_response *r) {
    return r->charge;
}

/* Fields are stored with a zero byte after them. */
static const char *text_of(const tesela_response *r, const char *name) {
    slice value = client__response_field(r, name);
    return value.p ? value.p : "";
}

const char *tesela_response_etag(const tesela_response *r) {
    return text_of(r, "etag");
}

const char *tesela_response_activity_id(const tesela_response *r) {
    return r->activity_id;
}

const char *tesela_response_session_token(const tesela_response *r) {
    return text_of(r, "x-ms-session-token");
}

const char *tesela_response_header(const tesela_response *r, const char *name) {
    const char *p = r->fields, *end = p + r->fields_n;
    while (p < end) {
        const char *value = p + strlen(p) + 1;
        if (slice_eq_nocase(slice_str(p), slice_str(name))) {
            return value;
        }
        p = value + strlen(value) + 1;
    }
    return NULL;
}

unsigned tesela_response_retries(const tesela_response *r) {
    return r->retries;
}
