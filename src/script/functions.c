#include "script/functions.h"

#include "base/limits.h"
#include "base/log.h"
#include "doc/json.h"
#include "doc/path.h"

/* A batch of calls is large enough that the round trip costs little, and small enough not to be worth waiting for. RESULTS_BYTES_MAX bounds
 * the results of one `call`, however much each function returns. */
enum {
    ROWS_MAX = 1024,
    ROWS_BYTES_MAX = 256 * 1024,
    RESULTS_BYTES_MAX = 32 * 1024 * 1024,
    DEPTH_MORE = 4, /* levels of a frame around a value */
    CALL_US = 5000000,
    GRACE_US = 250000 /* after the page's deadline: workers report every 50 ms, so only a single call that does not end is killed */
};

/* ---- frames ---- */

/* Gives a failed worker back to be killed, and turns the failure into an error. */
static err give_up(script_functions *f, op *o, script_sign sign) {
    log_warn("script", "a worker failed in a user-defined function", "pid=%d sign=%d", (int)f->process->pid, (int)sign);
    script_process_give(f->pool, f->process, false);
    f->process = NULL;
    switch (sign) {
    case SCRIPT_LATE:
        return E_SCRIPT_TIMEOUT;
    case SCRIPT_DEAD:
        return op_fail(o, E_SCRIPT_FAILED,
                       "Encountered exception while executing Javascript. Exception = RangeError: Out of memory: the function needed more "
                       "than a script may have, and was ended.");
    default:
        return op_fail(o, E_SCRIPT_FAILED, "Encountered exception while executing Javascript. Exception = Error: the engine failed.");
    }
}

/* Sends the text in f->text and receives the answer there. Unless the answer is READY, f->bson then has it as BSON. */
static script_sign exchange(script_functions *f, script_frame kind, int64_t until_us, script_frame *answer_out, json_root *root_out) {
    if (!buf_ok(&f->text)) {
        return SCRIPT_MALFORMED;
    }
    script_sign sign = script_process_send(f->process, kind, buf_view(&f->text), until_us);
    sign = sign == SCRIPT_FINE ? script_process_receive(f->process, answer_out, &f->text, until_us) : sign;
    if (sign != SCRIPT_FINE || *answer_out == SCRIPT_READY) {
        return sign;
    }
    json_options options = {.depth_max = LIMIT_JSON_DEPTH + DEPTH_MORE};
    buf_clear(&f->bson);
    return json_to_bson(buf_view(&f->text), &options, &f->bson, root_out, NULL) == OK ? SCRIPT_FINE : SCRIPT_MALFORMED;
}

static slice text_of(slice document, const char *name) {
    doc_element e;
    return doc_find_member(document, slice_str(name), &e) && e.type == BSON_TYPE_UTF8 ? doc_element_text(&e) : SLICE_EMPTY;
}

static bool flag_of(slice document, const char *name) {
    doc_element e;
    return doc_find_member(document, slice_str(name), &e) && e.type == BSON_TYPE_BOOL && e.value.p[0];
}

/* Handles a FAULT: the functions cannot be defined, or the engine failed. Exceptions of single calls come in RESULTS instead. */
static err take_fault(script_functions *f, op *o) {
    slice frame = buf_view(&f->bson), message = text_of(frame, "message");
    bson_iter_t it;
    int64_t number = doc_find_key(frame, SLICE_LIT("number"), &it) && BSON_ITER_HOLDS_NUMBER(&it) ? bson_iter_as_int64(&it) : 0;
    err code = flag_of(frame, "compile") ? E_SCRIPT_COMPILE : number == 413 ? E_TOO_LARGE : E_SCRIPT_FAILED;
    script_process_give(f->pool, f->process, !flag_of(frame, "last"));
    f->process = NULL;
    return number == 408 ? E_SCRIPT_TIMEOUT : op_fail(o, code, "%.*s", (int)message.n, message.p ? message.p : "");
}

/* ---- defining ---- */

static void write_definitions(script_functions *f) {
    buf_clear(&f->text);
    buf_add_lit(&f->text, "{\"functions\":[");
    for (size_t i = 0; i < f->n; i++) {
        buf_add_slice(&f->text, i ? SLICE_LIT(",{\"id\":") : SLICE_LIT("{\"id\":"));
        json_add_string(&f->text, f->list[i].id);
        buf_add_lit(&f->text, ",\"body\":");
        json_add_string(&f->text, f->list[i].body);
        buf_add_byte(&f->text, '}');
    }
    buf_add_lit(&f->text, "]}");
}

/* Defines the functions in a worker. If the worker dies, as worn-out workers end by themselves, tries one more. */
static err define(script_functions *f, op *o, int64_t until_us) {
    for (int attempt = 0;; attempt++) {
        script_frame kind = SCRIPT_FAULT;
        json_root root = JSON_OBJECT;
        TRY(script_process_take(f->pool, &f->process));
        write_definitions(f);
        script_sign sign = exchange(f, SCRIPT_DEFINE, until_us, &kind, &root);
        if (sign == SCRIPT_FINE && kind == SCRIPT_READY) {
            return OK;
        }
        if (sign == SCRIPT_FINE && kind == SCRIPT_FAULT && root == JSON_OBJECT) {
            return take_fault(f, o);
        }
        if (sign != SCRIPT_DEAD || attempt) {
            return give_up(f, o, sign == SCRIPT_FINE ? SCRIPT_MALFORMED : sign);
        }
        script_process_give(f->pool, f->process, false);
        f->process = NULL;
    }
}

/* ---- calls ---- */

static void write_value(buf *out, const query_value *v) {
    bool wrapped = v->type == TYPE_UNDEFINED || v->type >= TYPE_ARRAY;
    buf_add(out, ",[", wrapped ? 2 : 1);
    value_write(out, v);
    buf_add(out, "]", wrapped);
}

/* Writes as many calls as a batch takes; returns how many. */
static size_t write_rows(buf *out, const query_udf_call *calls, size_t n) {
    size_t i = 0;
    buf_clear(out);
    for (; i < n && i < ROWS_MAX && out->n < ROWS_BYTES_MAX; i++) {
        buf_add(out, i ? ",[" : "[[", 2);
        buf_add_u64(out, calls[i].function);
        for (unsigned j = 0; j < calls[i].n; j++) {
            write_value(out, &calls[i].args[j]);
        }
        buf_add_byte(out, ']');
    }
    buf_add_byte(out, ']');
    return i;
}

/* False: not a valid result. */
static bool read_result(const bson_iter_t *it, query_udf_call *call) {
    query_value v = value_of_iter(it);
    call->value = v;
    call->threw = SLICE_EMPTY;
    if (v.type == TYPE_ARRAY) { /* [value], or [] for undefined */
        call->value = value_element(&v, 0);
    } else if (v.type == TYPE_OBJECT) {
        call->threw = text_of(v.bytes, "threw");
    }
    return v.type != TYPE_UNDEFINED && (v.type != TYPE_OBJECT || call->threw.p) && call->value.bytes.n <= VALUE_BYTES_MAX;
}

/* Returns the number of results, from 1 to n; 0 if they are malformed. */
static size_t read_results(slice bson, query_udf_call *calls, size_t n) {
    bson_iter_t it;
    size_t i = 0;
    bool good = bson_iter_init_from_data(&it, (const uint8_t *)bson.p, bson.n);
    while (good && bson_iter_next(&it)) {
        good = i < n && read_result(&it, &calls[i++]);
    }
    return good ? i : 0;
}

static err call_all(script_functions *f, op *o, query_udf_call *calls, size_t n, arena *a, int64_t until_us, size_t *done_out) {
    size_t bytes = 0;
    int64_t until = until_us ? until_us : script_now_us() + CALL_US;
    while (*done_out < n && bytes < RESULTS_BYTES_MAX && script_now_us() < until) {
        script_frame kind = SCRIPT_FAULT;
        json_root root = JSON_OBJECT;
        if (!f->process) {
            TRY(define(f, o, until + GRACE_US));
        }
        size_t asked = write_rows(&f->text, calls + *done_out, n - *done_out);
        script_sign sign = exchange(f, SCRIPT_ROWS, until + GRACE_US, &kind, &root);
        if (sign == SCRIPT_FINE && kind == SCRIPT_FAULT && root == JSON_OBJECT) {
            return take_fault(f, o);
        }
        bool good = sign == SCRIPT_FINE && kind == SCRIPT_RESULTS && root == JSON_ARRAY && arena_fits(a, f->bson.n);
        size_t got = good ? read_results(arena_copy(a, buf_view(&f->bson)), calls + *done_out, asked) : 0;
        if (got == 0) {
            return give_up(f, o, sign == SCRIPT_FINE ? SCRIPT_MALFORMED : sign);
        }
        bytes += f->bson.n;
        *done_out += got;
    }
    return OK;
}

/* An answer that exceeds the memory budget looks malformed; the budget shows which of the two it is. */
static err call(query_udfs *base, op *o, query_udf_call *calls, size_t n, arena *a, int64_t until_us, size_t *done_out) {
    *done_out = 0;
    err code = call_all((script_functions *)base, o, calls, n, a, until_us, done_out);
    return code != OK && o->budget && o->budget->exceeded ? budget_error(o->budget) : code;
}

/* ---- all of it ---- */

void script_functions_init(script_functions *f, script_pool *pool, budget *budget, const script_function *list, size_t n) {
    *f = (script_functions){.base = {call}, .pool = pool, .list = list, .n = n};
    f->text = f->bson = buf_init_counted(BUF_NO_LIMIT, budget);
}

void script_functions_end(script_functions *f) {
    if (f->process) {
        script_process_give(f->pool, f->process, true);
        f->process = NULL;
    }
    buf_free(&f->text);
    buf_free(&f->bson);
}
