#include "net/loop_int.h"

enum {
    SLICE_US = 500,
    OWN_SLICES = 8,
    JOIN_PART = 4, /* while jobs queue up, a finished one waits for others for 1/4 of the time that it has queued, within these limits */
    JOIN_MIN_US = 100,
    JOIN_MAX_US = 2000,
    JOIN_RUN_US = 100, /* what ran longer does not wait: a wake-up costs little beside that, and a large answer would leave the caches */
    IDLE_MS = 10000,
    STARTED_MAX = 32,
    STARTED_PER_TENANT = 8,
    WAITING_MAX = 2048,
    WAITING_PER_TENANT = 256,
    READS_AT_ONCE = 32, /* their threads wait for the disk, not for a processor */
    READS_WAITING = 16384,
    READS_PER_TENANT = 8192,
    BODIES_PER_TENANT = 64, /* a waiting body holds up to 4 MB */
    WAITING_ALL = 1 << 30,
};

const char *const net_lane_names[NET_LANES] = {"short", "pages", "bodies", "answers", "reads", "admin"};

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

/* How long a finished job may wait for others, so that they wake the loop once. Without a queue it does not wait. */
static int64_t time_to_join(const sched_job *job) {
    int64_t us = job->followed && job->ran_us <= JOIN_RUN_US ? job->waited_us / JOIN_PART : 0;
    return us < JOIN_MAX_US ? us : JOIN_MAX_US;
}

static void hand_over(sched_job *job) {
    net_work *work = (net_work *)job;
    int64_t us = time_to_join(job);
    us < JOIN_MIN_US ? net_post(work->client->loop, &work->task) : net_post_within(work->client->loop, &work->task, us);
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

void net_cancel(net_client *client) {
    net__client_left(client);
}

/* ---- life ---- */

static unsigned lane_permits(net_lane lane, unsigned processors) {
    switch (lane) {
    case NET_BODIES:
    case NET_ANSWERS:
        return (processors + 1) / 2;
    case NET_READS:
        return READS_AT_ONCE;
    case NET_ADMIN:
        return STARTED_PER_TENANT;
    default:
        return processors;
    }
}

static void limit_waiting(sched_options *options, net_lane lane) {
    switch (lane) {
    case NET_ANSWERS:
        options->waiting_max = options->waiting_per_tenant = WAITING_ALL;
        break;
    case NET_READS:
        options->waiting_max = READS_WAITING, options->waiting_per_tenant = READS_PER_TENANT;
        break;
    case NET_BODIES:
        options->waiting_per_tenant = BODIES_PER_TENANT;
        break;
    default:
        break;
    }
}

static sched_options lane_options(const net_shared *shared, net_lane lane) {
    unsigned processors = uv_available_parallelism();
    sched_options options = {
        .name = net_lane_names[lane],
        .permits = lane_permits(lane, processors),
        .extra = processors,
        .started_max = STARTED_MAX,
        .started_per_tenant = lane == NET_READS ? READS_AT_ONCE : STARTED_PER_TENANT,
        .waiting_max = WAITING_MAX,
        .waiting_per_tenant = WAITING_PER_TENANT,
        .slice_us = SLICE_US,
        .urgent = lane == NET_READS,
        .own_slices = OWN_SLICES,
        .idle_ms = IDLE_MS,
        .clock = shared->options.clock,
    };
    limit_waiting(&options, lane);
    return options;
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
