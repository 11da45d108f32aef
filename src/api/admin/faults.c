/* GET, POST, DELETE /_tesela/faults: fault injection (account/faults.h). */
#include "api/admin/admin_int.h"
#include "base/random.h"
#include "doc/json.h"

static const char *const operations[] = {[FAULT_ANY] = "any", [FAULT_READ] = "read", [FAULT_WRITE] = "write"};

/* ---- listing ---- */

static void add_filter(buf *out, const fault *f) {
    if (f->database[0]) {
        admin_add_text(out, "database", slice_str(f->database));
    }
    if (f->container[0]) {
        admin_add_text(out, "container", slice_str(f->container));
    }
    if (f->range >= 0) {
        admin_add_id(out, "range", (uint32_t)f->range);
    }
    admin_add_text(out, "operation", slice_str(operations[f->operation]));
}

static void write_fault(buf *out, const fault *f) {
    const err_entry *entry = err_lookup(f->code);
    buf_addf(out, "{\"id\":%u", f->id);
    if (f->code != OK) {
        admin_add(out, "status", entry->http_status);
        admin_add(out, "substatus", f->substatus ? f->substatus : entry->http_substatus);
        admin_add(out, "retryAfterMs", f->retry_after_ms);
    }
    admin_add(out, "delayMs", f->delay_ms);
    add_filter(out, f);
    if (f->count) {
        admin_add(out, "count", f->count);
        admin_add(out, "left", f->count - f->hits);
    }
    if (f->percent < 100) {
        buf_add_lit(out, ",\"percent\":");
        json_add_double(out, f->percent);
        admin_add(out, "seed", f->seed);
    }
    admin_add(out, "hits", f->hits);
    buf_add_byte(out, '}');
}

err admin_faults_list(admin_request *q) {
    fault list[FAULTS_MAX];
    size_t n = faults_list(q->admin->faults, list);
    buf_add_lit(&q->body, "{\"faults\":[");
    for (size_t i = 0; i < n; i++) {
        buf_add(&q->body, ",", i > 0);
        write_fault(&q->body, &list[i]);
    }
    buf_add_byte(&q->body, ']');
    admin_add(&q->body, "injected", faults_hits(q->admin->faults));
    buf_add_lit(&q->body, "}\n");
    return OK;
}

/* ---- adding ---- */

static err read_name(admin_request *q, slice body, const char *name, char into[LIMIT_NAME_BYTES + 1]) {
    slice text;
    TRY(admin_text(q, body, name, &text));
    memcpy(into, text.p ? text.p : "", text.n);
    into[text.n] = '\0';
    return OK;
}

static err read_operation(admin_request *q, slice body, fault *f) {
    slice word;
    TRY(admin_text(q, body, "operation", &word));
    for (unsigned i = 0; i < sizeof operations / sizeof *operations; i++) {
        if (word.n == 0 || slice_eq(word, slice_str(operations[i]))) {
            f->operation = (fault_operation)i;
            return OK;
        }
    }
    return op_fail(&q->op, E_BAD_REQUEST, "'operation' must be read, write or any.");
}

static err read_filter(admin_request *q, slice body, fault *f) {
    f->range = -1;
    TRY(read_name(q, body, "database", f->database));
    TRY(read_name(q, body, "container", f->container));
    TRY(admin_range_id(q, body, "range", &f->range));
    return read_operation(q, body, f);
}

/* By default the fault hits only the next request; `count` and `percent` change that. */
static err read_frequency(admin_request *q, slice body, fault *f) {
    random_source system;
    double percent = 0;
    random_seed_system(&system);
    f->seed = random_u64(&system) >> 11;
    TRY(admin_number(q, body, "count", 1, UINT32_MAX, &f->count));
    TRY(admin_double(q, body, "percent", 0.001, 100, &percent));
    TRY(admin_number(q, body, "seed", 0, INT64_MAX, &f->seed));
    f->percent = percent > 0 ? percent : 100;
    f->count = f->count || percent > 0 ? f->count : 1;
    return OK;
}

static err read_effect(admin_request *q, slice body, fault *f) {
    uint64_t status = 0, substatus = 0, retry = 0, delay = 0;
    TRY(admin_number(q, body, "status", 400, 599, &status));
    TRY(admin_number(q, body, "substatus", 1, UINT16_MAX, &substatus));
    if (status && !fault_status_read((unsigned)status, &f->code)) {
        return op_fail(&q->op, E_BAD_REQUEST, "'status' must be one of 408, 410, 429, 449, 500, 503.");
    }
    retry = status == 429 ? 100 : 0;
    TRY(admin_number(q, body, "retryAfterMs", 0, FAULT_WAIT_MS_MAX, &retry));
    TRY(admin_number(q, body, "delayMs", 0, FAULT_WAIT_MS_MAX, &delay));
    if (!status && !delay) {
        return op_fail(&q->op, E_BAD_REQUEST, "A fault needs a 'status', a 'delayMs', or both.");
    }
    f->substatus = (uint16_t)substatus;
    f->retry_after_ms = (uint32_t)retry;
    f->delay_ms = (uint32_t)delay;
    return OK;
}

err admin_faults_add(admin_request *q) {
    static const char *const names[] = {"status", "substatus", "retryAfterMs", "delayMs", "count",    "percent",
                                        "seed",   "database",  "container",    "range",   "operation"};
    fault made = {0};
    slice body;
    TRY(admin_body(q, names, sizeof names / sizeof *names, &body));
    TRY(read_filter(q, body, &made));
    TRY(read_frequency(q, body, &made));
    TRY(read_effect(q, body, &made));
    if (faults_add(q->admin->faults, &made, &made.id) != OK) {
        return op_fail(&q->op, E_BAD_REQUEST, "There are %d faults already, as many as there may be.", FAULTS_MAX);
    }
    q->status = 201;
    write_fault(&q->body, &made);
    buf_add_byte(&q->body, '\n');
    return OK;
}

/* ---- removing ---- */

err admin_faults_remove(admin_request *q) {
    slice id;
    uint64_t number = 0;
    size_t n = 1;
    TRY(admin_param(q, "id", &id));
    TRY(admin_param_number(q, "id", 1, UINT32_MAX, &number));
    if (!id.p) {
        n = faults_clear(q->admin->faults);
    } else if (!faults_remove(q->admin->faults, (uint32_t)number)) {
        return op_fail(&q->op, E_NOT_FOUND, "There is no fault %lu (any more).", (unsigned long)number);
    }
    buf_addf(&q->body, "{\"removed\":%zu}\n", n);
    return OK;
}
