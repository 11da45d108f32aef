/* tesela/processor.h — hands the changes of a container to a function. Any number of processors of the same name, in any processes, share
 * the ranges: each range has a lease, an item in a container of the application (partition key /id). A processor renews its leases, takes
 * those that have expired, and takes some from processors that have more. A range's position is stored with its lease after each page. So
 * after a crash a page may be handed over again, but none is left out. */
#ifndef TESELA_PROCESSOR_H
#define TESELA_PROCESSOR_H

#include <tesela/container.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tesela_processor tesela_processor;

typedef struct tesela_processor_page {
    const char *lease; /* which part of the key space it comes from */
    size_t count;
    const char *const *items; /* JSON texts */
} tesela_processor_page;

/* Handles a page; pages of one lease come one after the other. False: stop; the page is handed over again later, here or elsewhere. */
typedef bool (*tesela_processor_handle)(void *context, const tesela_processor_page *page);

typedef struct tesela_processor_options {
    const char *name;               /* of this processing: processors with another name get all changes too */
    const char *instance;           /* of this processor, unique among those of the name */
    tesela_container *feed;         /* whose changes */
    tesela_container *leases;       /* where the leases are; its partition key is /id */
    tesela_processor_handle handle; /* called by the thread that runs tesela_processor_run */
    void *context;
    bool from_now;      /* when the processing starts for the first time; default: from the beginning */
    int page_items;     /* most items of a page; default: the server's */
    uint32_t poll_ms;   /* 1,000: how long to wait when there are no changes */
    uint32_t renew_ms;  /* 5,000: how often leases are renewed and shared anew */
    uint32_t expire_ms; /* 20,000: a lease that was not renewed for so long is free */
} tesela_processor_options;

/* Opens a processor; nothing is sent. Containers and context must outlive it. */
TESELA_API TESELA_CHECKED tesela_status tesela_processor_open(const tesela_processor_options *options, tesela_processor **processor_out,
                                                              tesela_error *error);

/* Works until tesela_processor_stop is called or `handle` returns false (TESELA_OK, TESELA_CANCELLED), or an error does not pass. Then it
 * gives its leases back. */
TESELA_API tesela_status tesela_processor_run(tesela_processor *processor, tesela_error *error);

/* Asks tesela_processor_run to end soon. Any thread, also `handle`, also a signal handler. */
TESELA_API void tesela_processor_stop(tesela_processor *processor);

/* How many leases it has at the moment. Any thread. */
TESELA_API unsigned tesela_processor_leases(const tesela_processor *processor);

/* Frees a processor that does not run. NULL is allowed. */
TESELA_API void tesela_processor_close(tesela_processor *processor);

#ifdef __cplusplus
}
#endif
#endif
