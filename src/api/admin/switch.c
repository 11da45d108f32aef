/* POST /_tesela/claim, /_tesela/freeze, /_tesela/thaw, /_tesela/switch: another container in the place of one, for `tesela rekey`. */
#include "api/admin/admin_int.h"

typedef struct frozen {
    container *container, *with; /* `with`: only for a switch */
    int64_t token;
    uint64_t ms;
} frozen;

static err find(admin_request *q, slice body, const char *name, container **container_out) {
    slice database, container;
    TRY(admin_text(q, body, "database", &database));
    TRY(admin_text(q, body, name, &container));
    return admin_container(q, database, container, container_out);
}

static err read_token(admin_request *q, slice body, frozen *f) {
    uint64_t token = 0;
    TRY(admin_number(q, body, "freeze", 1, INT64_MAX - 1, &token));
    f->token = (int64_t)token;
    return OK;
}

static err claim(admin_request *q, slice body, frozen *f) {
    uint64_t claimant = 0;
    f->ms = 5000;
    TRY(admin_number(q, body, "ms", 1, ACCOUNT_FREEZE_MS_MAX, &f->ms));
    TRY(admin_number(q, body, "claim", 1, INT64_MAX - 1, &claimant));
    if (!claimant) {
        return op_fail(&q->op, E_BAD_REQUEST, "'claim' must be a number that the claimant has chosen.");
    }
    TRY(account_claim(q->admin->account, &q->op, f->container, claimant, (unsigned)f->ms));
    buf_addf(&q->body, "{\"claim\":%lu,\"ms\":%lu}\n", (unsigned long)claimant, (unsigned long)f->ms);
    return OK;
}

static err freeze(admin_request *q, slice body, frozen *f) {
    f->ms = 5000;
    TRY(admin_number(q, body, "ms", 1, ACCOUNT_FREEZE_MS_MAX, &f->ms));
    TRY(read_token(q, body, f));
    TRY(account_freeze(q->admin->account, &q->op, f->container, (unsigned)f->ms, &f->token));
    buf_addf(&q->body, "{\"freeze\":%ld,\"ms\":%lu}\n", (long)f->token, (unsigned long)f->ms);
    return OK;
}

static err thaw(admin_request *q, slice body, frozen *f) {
    TRY(read_token(q, body, f));
    account_thaw(f->container, f->token);
    buf_add_lit(&q->body, "{}\n");
    return OK;
}

static err exchange(admin_request *q, slice body, frozen *f) {
    TRY(read_token(q, body, f));
    TRY(find(q, body, "with", &f->with));
    TRY(account_switch(q->admin->account, &q->op, f->container, f->with, f->token));
    buf_add_lit(&q->body, "{\"retired\":true");
    admin_add_text(&q->body, "as", f->with->id);
    buf_add_lit(&q->body, "}\n");
    return OK;
}

static err run(admin_request *q, const char *const *names, size_t names_n, err (*step)(admin_request *, slice, frozen *)) {
    frozen f = {0};
    slice body;
    TRY(admin_body(q, names, names_n, &body));
    TRY(find(q, body, "container", &f.container));
    err code = step(q, body, &f);
    container_give(f.container);
    if (f.with) {
        container_give(f.with);
    }
    return code;
}

err admin_claim(admin_request *q) {
    static const char *const names[] = {"database", "container", "ms", "claim"};
    return run(q, names, 4, claim);
}

err admin_freeze(admin_request *q) {
    static const char *const names[] = {"database", "container", "ms", "freeze"};
    return run(q, names, 4, freeze);
}

err admin_thaw(admin_request *q) {
    static const char *const names[] = {"database", "container", "freeze"};
    return run(q, names, 3, thaw);
}

err admin_switch(admin_request *q) {
    static const char *const names[] = {"database", "container", "with", "freeze"};
    return run(q, names, 4, exchange);
}
