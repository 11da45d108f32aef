/* Transactional batches: one request, all operations or none. */
#include <stdlib.h>

#include "base/memory.h"
#include "client/batch_body.h"
#include "client/json.h"
#include "client/routing.h"
#include <tesela/item.h>

struct tesela_batch {
    tesela_container *container;
    buf key, body;
    bool bad; /* an operation's body is not JSON */
};

typedef struct operation_result {
    int http_status;
    slice body;
    char *text, *etag;
} operation_result;

struct tesela_batch_result {
    tesela_response *response;
    operation_result *results;
    size_t n;
};

tesela_status tesela_batch_open(tesela_container *k, const tesela_key *key, tesela_batch **batch_out, tesela_error *error) {
    tesela_batch *b = mem_zero(sizeof *b);
    b->container = k;
    b->key = buf_init(64 * 1024);
    b->body = buf_init(CLIENT_REQUEST_BYTES_MAX);
    *batch_out = NULL;
    if (!key || !client__key_write(key, &b->key)) {
        tesela_batch_close(b);
        return client__fail(error, TESELA_BAD_ARGUMENT, "A batch needs a partition key of UTF-8 texts and finite numbers.");
    }
    *batch_out = b;
    return TESELA_OK;
}

void tesela_batch_close(tesela_batch *b) {
    if (b) {
        buf_free(&b->key);
        buf_free(&b->body);
        free(b);
    }
}

static void add(tesela_batch *b, const char *kind, const char *id, const char *body, const char *if_match) {
    b->bad |= !client__operation_add(&b->body, &(batch_operation){.kind = kind, .id = id, .body = body, .if_match = if_match});
}

void tesela_batch_create(tesela_batch *b, const char *item) {
    add(b, "Create", NULL, item, NULL);
}

void tesela_batch_upsert(tesela_batch *b, const char *item, const char *if_match) {
    add(b, "Upsert", NULL, item, if_match);
}

void tesela_batch_read(tesela_batch *b, const char *id) {
    add(b, "Read", id, NULL, NULL);
}

void tesela_batch_replace(tesela_batch *b, const char *id, const char *item, const char *if_match) {
    add(b, "Replace", id, item, if_match);
}

void tesela_batch_patch(tesela_batch *b, const char *id, const char *patch, const char *if_match) {
    add(b, "Patch", id, patch, if_match);
}

void tesela_batch_delete(tesela_batch *b, const char *id, const char *if_match) {
    add(b, "Delete", id, NULL, if_match);
}

static char *text_copy(slice value) {
    buf text = buf_init(CLIENT_HEADER_BYTES_MAX);
    json_text(value, &text);
    char *copy = mem_text(text.p ? text.p : "", text.n);
    buf_free(&text);
    return copy;
}

/* Reads the results; false: the body is not an array of them. */
static bool read_results(tesela_batch_result *r) {
    json_walk w;
    slice one;
    if (!json_enter(client__response_body(r->response), &w) || w.object) {
        return false;
    }
    while (json_next(&w, NULL, &one)) {
        if ((r->n & (r->n - 1)) == 0) {
            r->results = mem_resize(r->results, (r->n ? r->n * 2 : 1) * sizeof *r->results);
        }
        slice body = json_member(one, "resourceBody");
        r->results[r->n++] = (operation_result){.http_status = (int)json_whole(json_member(one, "statusCode"), 0, 999, 0),
                                                .body = body,
                                                .text = mem_text(body.n ? body.p : "", body.n),
                                                .etag = text_copy(json_member(one, "eTag"))};
    }
    return !w.broken;
}

/* The first operation that failed for a reason of its own. */
static tesela_status judge(const tesela_batch_result *r, tesela_error *error) {
    for (size_t i = 0; i < r->n; i++) {
        tesela_status status = client__status_of_http(r->results[i].http_status);
        if (status != TESELA_OK && status != TESELA_FAILED_DEPENDENCY && status != TESELA_NOT_MODIFIED) {
            client__fail(error, status, "Operation %zu of the batch failed with %d; nothing was written.", i, r->results[i].http_status);
            if (error) {
                error->http_status = r->results[i].http_status;
            }
            return status;
        }
    }
    return TESELA_OK;
}

tesela_status tesela_batch_run(tesela_batch *b, tesela_batch_result **result_out, tesela_error *error) {
    if (result_out) {
        *result_out = NULL;
    }
    if (b->bad || !b->body.n) {
        return client__fail(error, TESELA_BAD_ARGUMENT, "The batch has no operation, or one whose item is not JSON.");
    }
    exchange *x = client__container_exchange(b->container, "POST", "docs", false);
    buf_add_lit(&x->path, "/docs");
    client__exchange_text(x, "Content-Type", "application/json");
    client__exchange_text(x, "x-ms-cosmos-is-batch-request", "True");
    client__exchange_text(x, "x-ms-cosmos-batch-atomic", "True");
    client__exchange_field(x, "x-ms-documentdb-partitionkey", buf_view(&b->key));
    x->has_body = true;
    buf_add_byte(&x->body, '[');
    buf_add_slice(&x->body, buf_view(&b->body));
    buf_add_byte(&x->body, ']');
    x->body.overflow |= b->body.overflow;
    tesela_batch_result *r = mem_zero(sizeof *r);
    tesela_status status = client__exchange_finish(x, &r->response, error);
    if (status == TESELA_OK) {
        status = read_results(r) ? judge(r, error) : client__fail(error, TESELA_BAD_RESPONSE, "The batch's results cannot be understood.");
    }
    if (result_out && r->response) {
        *result_out = r;
    } else {
        tesela_batch_result_free(r);
    }
    return status;
}

size_t tesela_batch_result_count(const tesela_batch_result *r) {
    return r->n;
}

int tesela_batch_result_http_status(const tesela_batch_result *r, size_t index) {
    return index < r->n ? r->results[index].http_status : 0;
}

const char *tesela_batch_result_body(const tesela_batch_result *r, size_t index, size_t *length_out) {
    if (length_out) {
        *length_out = index < r->n ? r->results[index].body.n : 0;
    }
    return index < r->n ? r->results[index].text : "";
}

const char *tesela_batch_result_etag(const tesela_batch_result *r, size_t index) {
    return index < r->n ? r->results[index].etag : "";
}

double tesela_batch_result_charge(const tesela_batch_result *r) {
    return tesela_response_charge(r->response);
}

void tesela_batch_result_free(tesela_batch_result *r) {
    if (r) {
        for (size_t i = 0; i < r->n; i++) {
            free(r->results[i].text);
            free(r->results[i].etag);
        }
        free(r->results);
        tesela_response_free(r->response);
        free(r);
    }
}
