#include "net/loop_int.h"

enum {
    SLICE_US = 500,
    OWN_SLICES = 8,
    IDLE_MS = 10000,
    STARTED_MAX = 32,
    STARTED_PER_TENANT = 8,
    WAITING_MAX = 2048,
    WAITING_PER_TENANT = 256,
    BODIES_PER_TENANT = 64, /* a waiting body holds up to 4 MB */
    WAITING_ALL = 1 << 30,
};

const char *const net_lane_names[NET_LANES] = {"short", "pages", "bodies", "answers", "admin"};

static void on_worker(sched_job *job) {
    net_work *work = (net_work *)job;
    work->work(work);
}

static void finish(net_work *work) {
    work->op->turn = NULL;
    work->client->working = NULL;
    work->done(work);
}

/* Once the loop has stopped, `done` must not begin work that needs the rest of the server. */
static void on_loop(net_task *task) {
    net_work *work = (net_work *)((char *)task - offsetof(net_work, task));
    if (work->client->loop->stopped && !work->kept) {
        work->job.code = E_UNAVAILABLE;
    }
    finish(work);
}

static void hand_over(sched_job *job) {
    net_work *work = (net_work *)job;
    net_post(work->client->loop, &work->task);
}

static void prepare(net_client *client, op *o, uint64_t tenant, net_work *work, void (*run)(net_work *), void (*done)(net_work *)) {
    work->job = (sched_job){.tenant = tenant, .work = on_worker, .done = hand_over};
    work->task = (net_task){.run = on_loop};
    work->client = client;
    work->op = o;
    work->work = run;
    work->done = done;
    o->turn = &work->job.turn;
}

void net_work_start(net_client *client, op *o, net_lane lane, uint64_t tenant, net_work *work, void (*run)(net_work *),
                    void (*done)(net_work *)) {
    sched *s = client->loop->shared->lanes[lane];
    prepare(client, o, tenant, work, run, done);
    work->kept = lane == NET_ANSWERS;
    client->working = work->kept ? NULL : work; /* set before submitting: then the worker owns `work` */
    err code = client->left && !work->kept ? E_CANCELLED : sched_submit(s, &work->job);
    if (code != OK) {
        work->job.code = code;
        o->retry_after_ms = code == E_TENANT_BUSY || code == E_WORK_BUSY ? NET_WORK_RETRY_MS : 0;
        finish(work);
    }
}

void net__client_left(net_client *client) {
    net_work *work = client->working;
    net_wait *wait = client->waiting;
    client->left = true;
    if (wait) {
        client->waiting = NULL;
        net__wait_end(wait);
    }
    if (work) {
        client->working = NULL; /* cancel only once */
        sched_cancel(&work->job);
    }
}

/* ---- life ---- */

static sched_options lane_options(const net_shared *shared, net_lane lane) {
    unsigned processors = uv_available_parallelism();
    return (sched_options){
        .name = net_lane_names[lane],
        .permits = lane == NET_BODIES || lane == NET_ANSWERS ? (processors + 1) / 2
                   : lane == NET_ADMIN                       ? STARTED_PER_TENANT
                                                             : processors,
        .extra = processors,
        .started_max = STARTED_MAX,
        .started_per_tenant = STARTED_PER_TENANT,
        .waiting_max = lane == NET_ANSWERS ? WAITING_ALL : WAITING_MAX,
        .waiting_per_tenant = lane == NET_ANSWERS  ? WAITING_ALL
                              : lane == NET_BODIES ? BODIES_PER_TENANT
                                                   : WAITING_PER_TENANT,
        .slice_us = SLICE_US,
        .own_slices = OWN_SLICES,
        .idle_ms = IDLE_MS,
        .clock = shared->options.clock,
    };
}

void net__lanes_open(net_shared *shared) {
    for (unsigned i = 0; i < NET_LANES; i++) {
        sched_options options = lane_options(shared, (net_lane)i);
        shared->lanes[i] = sched_open(&options);
    }
}

void net__lanes_stop(net_shared *shared) {
    for (unsigned i = 0; i < NET_LANES; i++) {
        sched_stop(shared->lanes[i]);
    }
}

void net__lanes_close(net_shared *shared) {
    for (unsigned i = 0; i < NET_LANES; i++) {
        sched_close(shared->lanes[i]);
    }
}
