#include "net/work.h"

#include <assert.h>
#include <stdlib.h>

#include "net/loop_int.h"

static_assert(sizeof(uv_work_t) <= sizeof(((net_work *)0)->space), "room for libuv's request");

static net_work *work_of(uv_work_t *request) {
    return (net_work *)(void *)((char *)request - offsetof(net_work, space));
}

static void on_worker(uv_work_t *request) {
    net_work *work = work_of(request);
    work->work(work);
}

static void on_loop(uv_work_t *request, int status) {
    (void)status;
    net_work *work = work_of(request);
    work->done(work);
}

void net_work_start(net_loop *loop, net_work *work, void (*run)(net_work *), void (*done)(net_work *)) {
    work->work = run;
    work->done = done;
    if (uv_queue_work(&loop->uv, (uv_work_t *)(void *)work->space, on_worker, on_loop) != 0) {
        abort(); /* only with a NULL function */
    }
}
