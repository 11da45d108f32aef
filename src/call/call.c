#include "call/call_int.h"

#include "throughput/charge.h"

/* Tenant numbers beyond the range of container numbers. */
static const uint64_t tenant_none = (uint64_t)1 << 63, tenant_databases = (uint64_t)1 << 62;

void call_init(call *c, const call_core *core, net_client *client, op *o, container *container, call_step done) {
    c->core = core;
    c->client = client;
    c->op = o;
    c->done = done;
    c->container = container;
    c->tenant = 0;
    c->seen = NULL;
    c->seen_n = 0;
    c->code = OK;
    c->marked = false;
    c->fault = 0;
    c->substatus = 0;
    c->clean = NULL;
}

const items *call__items(const call *c) {
    return account_items(c->core->account);
}

uint64_t call_tenant_of_container(const container *c) {
    return (uint64_t)c->space->container + 1;
}

uint64_t call_tenant_of_database(const database *d) {
    return tenant_databases | d->number;
}

uint64_t call_tenant_of_none(void) {
    return tenant_none;
}

static uint64_t tenant_of(const call *c) {
    return c->tenant ? c->tenant : c->container ? call_tenant_of_container(c->container) : tenant_none;
}

/* ---- completion ---- */

void call__finish(call *c) {
    if (c->clean) {
        c->clean(c);
    }
    c->done(c);
}

void call__end(call *c, err code) {
    c->code = code;
    call__finish(c);
}

static void on_loop(net_task *task) {
    call *c = (call *)((char *)task - offsetof(call, task));
    c->then(c);
}

void call__return_with(call *c, call_step then, void (*post)(net_loop *loop, net_task *task)) {
    c->then = then;
    c->task = (net_task){.run = on_loop};
    post(c->client->loop, &c->task);
}

void call__return(call *c, call_step then) {
    call__return_with(c, then, net_post);
}

void call_complete(call *c, err code) {
    c->code = code;
    call__return(c, call__finish);
}

/* ---- workers ---- */

static void run_on_worker(net_work *work) {
    call *c = (call *)((char *)work - offsetof(call, work));
    c->run(c);
}

static void back_from_worker(net_work *work) {
    call *c = (call *)((char *)work - offsetof(call, work));
    if (net_work_code(work) != OK) {
        call__end(c, net_work_code(work));
    } else {
        c->then(c);
    }
}

void call__on_worker(call *c, net_lane lane, call_step run, call_step then) {
    c->run = run;
    c->then = then;
    net_work_start(c->client, c->op, lane, tenant_of(c), &c->work, run_on_worker, back_from_worker);
}

void call_work(call *c, net_lane lane, call_step run) {
    call__on_worker(c, lane, run, call__finish);
}

/* ---- script threads ---- */

static err check_client(op_turn *turn) {
    const call *c = (const call *)((const char *)turn - offsetof(call, turn));
    return call_client_left(c) ? E_CANCELLED : OK;
}

static void run_on_script_thread(script_job *job) {
    call *c = (call *)((char *)job - offsetof(call, job));
    if (call_client_left(c)) {
        c->code = E_CANCELLED;
    } else {
        c->run(c);
    }
}

static void back_on_loop(net_task *task) {
    call *c = (call *)((char *)task - offsetof(call, task));
    c->op->turn = NULL;
    if (c->job.code != OK) {
        call__end(c, c->job.code);
    } else {
        c->then(c);
    }
}

static void leave_script_thread(script_job *job) {
    call *c = (call *)((char *)job - offsetof(call, job));
    net_post(c->client->loop, &c->task);
}

void call__on_script_thread(call *c, uint64_t sequence, call_step run, call_step then) {
    c->run = run;
    c->then = then;
    c->task = (net_task){.run = back_on_loop};
    c->turn = (op_turn){.check = check_client};
    c->op->turn = &c->turn;
    c->job = (script_job){.tenant = tenant_of(c), .sequence = sequence, .work = run_on_script_thread, .done = leave_script_thread};
    err code = script_submit(c->core->scripts, &c->job); /* on OK the script thread owns the call */
    if (code != OK) {
        c->op->turn = NULL;
        call__end(c, code);
    }
}

/* ---- first step of calls about items ---- */

int64_t call__one_range(const call *c, const epk *min, const epk *end) {
    return range_is_divided(c->container, min, end) ? -1 : (int64_t)range_mark_at(c->container, min).range_id;
}

void call__bounds(const item_cursor *cursor, epk *min_out, epk *end_out) {
    if (cursor->partition) {
        *min_out = *end_out = cursor->partition->epk;
    } else {
        *min_out = cursor->n ? cursor->stretches[0].min : epk_min();
        *end_out = cursor->n ? cursor->stretches[cursor->n - 1].max : epk_max();
    }
}

static void resume(net_delay *delay) {
    call *c = (call *)((char *)delay - offsetof(call, delay));
    c->code != OK ? call__finish(c) : c->then(c);
}

static void take_fault(call *c, const fault *hit) {
    if (hit->code != OK) {
        c->code = hit->code;
        c->fault = hit->id;
        c->substatus = hit->substatus;
        c->op->retry_after_ms = hit->retry_after_ms;
        op_charge(c->op, hit->code == E_THROTTLED ? CHARGE_THROTTLED : 0);
    }
}

/* True: a fault hit; the call completes or continues later. */
static bool is_hit(call *c, int64_t range_id, bool writes, call_step go) {
    fault hit;
    fault_request request = {.database = c->container->database_id, .container = c->container->id, .range = range_id, .writes = writes};
    if (!faults_hit(c->core->faults, &request, &hit)) {
        return false;
    }
    take_fault(c, &hit);
    c->then = go;
    if (hit.delay_ms) {
        net_delay_start(c->client->loop, &c->delay, hit.delay_ms, resume);
    } else {
        resume(&c->delay);
    }
    return true;
}

static bool has_reached(const call *c, const epk *min, const epk *end) {
    bool reached = true;
    for (size_t i = 0; i < c->seen_n && reached; i++) {
        reached = range_has_reached(c->container, &c->seen[i], min, end);
    }
    return reached;
}

void call__enter(call *c, const epk *min, const epk *end, int64_t range_id, bool writes, call_step go) {
    c->mark = range_mark_at(c->container, min);
    c->marked = true;
    c->code = c->seen_n && !has_reached(c, min, end) ? E_SESSION_NOT_AVAILABLE : OK;
    if (c->core->faults && faults_any(c->core->faults) && is_hit(c, range_id, writes, go)) {
        return;
    }
    c->code != OK ? call__finish(c) : go(c);
}
