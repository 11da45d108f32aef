#include "script/run.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/log.h"
#include "doc/json.h"
#include "doc/path.h"

enum { DEPTH_MORE = 4 /* levels of a frame around a document */, PEEK_TIMES = 50, PEEK_US = 2000 };

/* ---- sending the run ---- */

static void add_text(buf *out, const char *name, slice value) {
    buf_addf(out, ",\"%s\":", name);
    json_add_string(out, value);
}

static void add_json(buf *out, const char *name, slice value) {
    if (value.n) {
        buf_addf(out, ",\"%s\":", name);
        buf_add_slice(out, value);
    }
}

static void write_run(buf *out, const script_run *run) {
    buf_addf(out, "{\"kind\":\"%s\"", run->kind);
    add_text(out, "id", run->id);
    add_text(out, "body", run->source);
    add_json(out, "args", run->arguments.n ? run->arguments : SLICE_LIT("[]"));
    buf_addf(out, ",\"logging\":%s,\"collection\":{\"self\":", run->logging ? "true" : "false");
    json_add_string(out, run->self);
    add_text(out, "alt", run->alt);
    buf_add_byte(out, '}');
    if (run->operation) {
        buf_addf(out, ",\"request\":{\"operation\":\"%s\"", run->operation);
        add_json(out, "body", run->request_body);
        buf_add_byte(out, '}');
    }
    if (run->response_body.n) {
        buf_add_lit(out, ",\"response\":{\"body\":");
        buf_add_slice(out, run->response_body);
        buf_add_byte(out, '}');
    }
    buf_add_byte(out, '}');
}

/* ---- taking the result ---- */

static slice text_of(slice document, const char *name) {
    doc_element e;
    bool found = doc_find_member(document, slice_str(name), &e) && e.type == BSON_TYPE_UTF8;
    return found ? doc_element_text(&e) : SLICE_EMPTY;
}

/* The JSON of one member: writes a document with only this member, then removes the braces and the name. */
static slice json_of(arena *a, slice document, const char *name) {
    doc_element e;
    if (!doc_find_member(document, slice_str(name), &e)) {
        return SLICE_EMPTY;
    }
    slice bytes = doc_element_bytes(&e);
    buf alone = buf_init_counted(BUF_NO_LIMIT, a->budget), text = buf_init_counted(BUF_NO_LIMIT, a->budget);
    char length[4];
    doc_store_i32(length, (int32_t)(bytes.n + 5));
    buf_add(&alone, length, sizeof length);
    buf_add_slice(&alone, bytes);
    buf_add_byte(&alone, 0);
    json_from_bson(&text, buf_view(&alone));
    size_t before = strlen(name) + 4; /* {"name": */
    bool fits = buf_ok(&alone) && buf_ok(&text) && arena_fits(a, text.n);
    slice json = fits ? arena_copy(a, slice_of(text.p + before, text.n - before - 1)) : SLICE_EMPTY;
    buf_free(&alone);
    buf_free(&text);
    return json;
}

static bool is_true(slice document, const char *name) {
    doc_element e;
    return doc_find_member(document, slice_str(name), &e) && e.type == BSON_TYPE_BOOL && e.value.p[0];
}

static err take_done(op *o, script_run *run, slice frame) {
    run->log = arena_copy(run->arena, text_of(frame, "log"));
    run->body = json_of(run->arena, frame, "body");
    if (o->budget && o->budget->exceeded) {
        return budget_error(o->budget);
    }
    if (run->body.n > LIMIT_RESPONSE_BYTES) {
        return op_fail(o, E_TOO_LARGE, "Response size is too large: the script's is %zu bytes, at most %d are allowed.", run->body.n,
                       (int)LIMIT_RESPONSE_BYTES);
    }
    return OK;
}

static err code_of_fault(bool of_compiler, int64_t number) {
    return of_compiler ? E_SCRIPT_COMPILE : number == 408 ? E_SCRIPT_TIMEOUT : number == 413 ? E_TOO_LARGE : E_SCRIPT_FAILED;
}

static err take_fault(op *o, script_run *run, slice frame) {
    bson_iter_t number;
    run->log = arena_copy(run->arena, text_of(frame, "log"));
    slice message = text_of(frame, "message");
    bool of_compiler = is_true(frame, "compile");
    bool numbered = doc_find_key(frame, SLICE_LIT("number"), &number) && BSON_ITER_HOLDS_NUMBER(&number);
    run->number = numbered ? bson_iter_as_int64(&number) : 0;
    err code = code_of_fault(of_compiler, run->number);
    size_t shown = message.n < sizeof o->detail ? message.n : sizeof o->detail - 1;
    while (shown && shown < message.n && ((unsigned char)message.p[shown] & 0xC0) == 0x80) { /* do not cut inside a UTF-8 sequence */
        shown--;
    }
    return code == E_SCRIPT_TIMEOUT ? code : op_fail(o, code, "%.*s", (int)shown, message.p ? message.p : "");
}

/* Finds out why the worker died. An engine that runs out of memory ends itself by another signal; SIGKILL comes from outside. If the worker
 * died before it sent a frame, the script did not begin and can be run by another worker. */
static err take_death(op *o, const script_process *p, script_run *run) {
    siginfo_t info = {0};
    for (int i = 0; i < PEEK_TIMES && info.si_pid == 0; i++) {
        if (i) {
            usleep(PEEK_US);
        }
        if (waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
            break;
        }
    }
    bool killed = info.si_pid && info.si_code == CLD_KILLED && info.si_status == SIGKILL;
    run->retired = !run->spoke && (killed || (info.si_pid && info.si_code == CLD_EXITED && info.si_status == 0));
    log_warn("script", "a worker died", "pid=%d code=%d status=%d", (int)p->pid, info.si_code, info.si_status);
    if (killed || run->retired) {
        return op_fail(o, E_UNAVAILABLE, "The process that ran the script was killed; nothing was written. Please retry.");
    }
    return op_fail(o, E_SCRIPT_FAILED,
                   "Encountered exception while executing function. Exception = RangeError: Out of memory: the script needed more than a "
                   "script may have, and was ended.");
}

static err take_sign(op *o, const script_process *p, script_run *run, script_sign sign) {
    switch (sign) {
    case SCRIPT_LATE:
        return E_SCRIPT_TIMEOUT;
    case SCRIPT_DEAD:
        return take_death(o, p, run);
    default:
        log_error("script", "a worker spoke nonsense", "pid=%d", (int)p->pid);
        return op_fail(o, E_SCRIPT_FAILED,
                       "Encountered exception while executing function. Exception = Error: the script's engine failed.");
    }
}

/* ---- the conversation ---- */

typedef struct conversation {
    script_process *process;
    script_run *run;
    op *op;
    buf text, bson, answer;
    bool ended;
    int64_t until_us;
} conversation;

static err serve_call(conversation *c) {
    buf_clear(&c->answer);
    err code = c->run->call(c->run->context, buf_view(&c->bson), &c->answer);
    if (code != OK) {
        return code;
    }
    script_sign sign = script_process_send(c->process, SCRIPT_ANSWER, buf_view(&c->answer), c->until_us);
    return sign == SCRIPT_FINE ? OK : take_sign(c->op, c->process, c->run, sign);
}

static err take_frame(conversation *c, script_frame kind) {
    json_root root = JSON_ARRAY;
    json_options options = {.depth_max = LIMIT_JSON_DEPTH + DEPTH_MORE};
    buf_clear(&c->bson);
    err code = json_to_bson(buf_view(&c->text), &options, &c->bson, &root, NULL);
    if (code == E_TOO_LARGE || (code != OK && kind != SCRIPT_CALL && c->text.n > LIMIT_RESPONSE_BYTES)) {
        return E_TOO_LARGE;
    }
    if (code != OK || root != JSON_OBJECT || (kind != SCRIPT_CALL && kind != SCRIPT_DONE && kind != SCRIPT_FAULT)) {
        return take_sign(c->op, c->process, c->run, SCRIPT_MALFORMED);
    }
    if (kind == SCRIPT_CALL) {
        return serve_call(c);
    }
    c->ended = true;
    c->run->fit = !is_true(buf_view(&c->bson), "last");
    return kind == SCRIPT_DONE ? take_done(c->op, c->run, buf_view(&c->bson)) : take_fault(c->op, c->run, buf_view(&c->bson));
}

static err converse(conversation *c) {
    buf_clear(&c->text);
    write_run(&c->text, c->run);
    script_sign sign = script_process_send(c->process, SCRIPT_RUN, buf_view(&c->text), c->until_us);
    err code = OK;
    while (sign == SCRIPT_FINE && code == OK && !c->ended) {
        script_frame kind = SCRIPT_FAULT;
        sign = script_process_receive(c->process, &kind, &c->text, c->until_us);
        c->run->spoke = c->run->spoke || sign == SCRIPT_FINE;
        code = sign == SCRIPT_FINE ? take_frame(c, kind) : OK;
    }
    return sign == SCRIPT_FINE ? code : take_sign(c->op, c->process, c->run, sign);
}

err script_run_in(script_process *p, op *o, script_run *run) {
    conversation c = {
        .process = p,
        .run = run,
        .op = o,
        .text = buf_init_counted(SCRIPT_FRAME_BYTES_MAX, o->budget),
        .bson = buf_init_counted(2 * SCRIPT_FRAME_BYTES_MAX, o->budget),
        .answer = buf_init_counted(SCRIPT_FRAME_BYTES_MAX - 1, o->budget),
        .until_us = run->until_us + SCRIPT_GRACE_US,
    };
    int64_t before_us = script_process_cpu_us(p), begun_us = script_now_us();
    run->fit = run->spoke = run->retired = false;
    run->number = 0;
    run->body = run->log = SLICE_EMPTY;
    err code = converse(&c);
    int64_t after_us = script_process_cpu_us(p);
    run->cpu_us = after_us ? after_us - before_us : script_now_us() - begun_us; /* if the process is gone, use elapsed time */
    buf_free(&c.text);
    buf_free(&c.bson);
    buf_free(&c.answer);
    return code != OK && o->budget && o->budget->exceeded ? budget_error(o->budget) : code;
}
