#include "client/cursor_int.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "client/json.h"

tesela_cursor *client__cursor_new(const cursor_source *source, void *state, size_t page_bytes_max) {
    tesela_cursor *c = mem_zero(sizeof *c);
    c->source = source;
    c->state = state;
    c->text = buf_init(page_bytes_max);
    c->continuation = buf_init(1 << 20);
    return c;
}

void tesela_cursor_close(tesela_cursor *c) {
    if (c) {
        c->source->free(c->state);
        buf_free(&c->text);
        buf_free(&c->continuation);
        free(c->rows);
        free(c);
    }
}

void client__cursor_add(tesela_cursor *c, slice row) {
    if (c->rows_n == c->rows_cap) {
        c->rows_cap = c->rows_cap ? c->rows_cap * 2 : 64;
        c->rows = mem_resize(c->rows, c->rows_cap * sizeof *c->rows);
    }
    c->rows[c->rows_n++] = (struct cursor_row){c->text.n, row.n};
    buf_add_slice(&c->text, row);
    buf_add_byte(&c->text, 0);
}

int64_t client__cursor_add_all(tesela_cursor *c, slice body, const char *name) {
    json_walk w;
    slice row;
    int64_t n = 0;
    if (!json_enter(json_member(body, name), &w) || w.object) {
        return -1;
    }
    for (; json_next(&w, NULL, &row); n++) {
        client__cursor_add(c, row);
    }
    return w.broken ? -1 : n;
}

void client__cursor_count(tesela_cursor *c, const exchange *x) {
    c->requests += x->attempts;
    c->charge += x->charge;
    if (x->response) {
        snprintf(c->activity_id, sizeof c->activity_id, "%s", x->response->activity_id);
    }
}

/* Fills the page; after an error the rows that came before it are dropped with it, and the source goes on where it was. */
static tesela_status fill(tesela_cursor *c, tesela_error *error) {
    c->at = c->rows_n = 0;
    buf_clear(&c->text);
    if (c->done) {
        return TESELA_DONE;
    }
    tesela_status status = c->source->fill(c, error);
    if (status == TESELA_OK && !buf_ok(&c->text)) {
        status =
            client__fail(error, TESELA_LIMIT, "The rows of a page take more memory than the cursor may use; ask for fewer (page_items).");
    }
    c->done = status == TESELA_DONE;
    if (status != TESELA_OK) {
        c->rows_n = 0;
    }
    return status;
}

tesela_status tesela_cursor_next(tesela_cursor *c, const char **row_out, size_t *length_out, tesela_error *error) {
    *row_out = NULL;
    for (unsigned empty = 0; c->at == c->rows_n; empty++) {
        if (empty == CLIENT_EMPTY_PAGES_MAX) {
            return client__fail(error, TESELA_BAD_RESPONSE, "The server goes on giving pages without rows.");
        }
        tesela_status status = fill(c, error);
        if (status != TESELA_OK) {
            return status;
        }
    }
    *row_out = tesela_cursor_row(c, c->at++, length_out);
    return TESELA_OK;
}

tesela_status tesela_cursor_page(tesela_cursor *c, size_t *count_out, tesela_error *error) {
    tesela_status status = fill(c, error);
    c->at = c->rows_n;
    if (count_out) {
        *count_out = c->rows_n;
    }
    return status;
}

const char *tesela_cursor_row(const tesela_cursor *c, size_t index, size_t *length_out) {
    if (index >= c->rows_n) {
        return NULL;
    }
    if (length_out) {
        *length_out = c->rows[index].n;
    }
    return c->text.p + c->rows[index].start;
}

const char *tesela_cursor_continuation(tesela_cursor *c) {
    buf_clear(&c->continuation);
    if (c->done || !c->source->continuation) {
        return NULL;
    }
    c->source->continuation(c, &c->continuation);
    if (!c->continuation.n || !buf_ok(&c->continuation)) {
        return NULL;
    }
    buf_add_byte(&c->continuation, 0);
    return c->continuation.p;
}

double tesela_cursor_charge(const tesela_cursor *c) {
    return c->charge;
}

unsigned tesela_cursor_requests(const tesela_cursor *c) {
    return c->requests;
}

const char *tesela_cursor_activity_id(const tesela_cursor *c) {
    return c->activity_id;
}
