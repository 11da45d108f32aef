/* offer.h — provisioned throughput: what a database or a container was given, by hand or by autoscale. */
#pragma once

#include "account/rid.h"
#include "base/op.h"

typedef enum throughput_kind { THROUGHPUT_NONE, THROUGHPUT_MANUAL, THROUGHPUT_AUTOSCALE } throughput_kind;

typedef struct throughput_setting {
    throughput_kind kind;
    uint32_t value; /* RU/s, or the most RU/s */
} throughput_setting;

typedef struct offer {
    uint32_t number;
    rid rid;
    uint32_t database;
    uint32_t container; /* 0: shared by the database; looked up together with the field before */
    rid resource;
    throughput_setting throughput;
    uint32_t highest;           /* ever provisioned: it bounds how far down one may go */
    uint8_t bucket_percents[5]; /* throughput buckets: percentages of each range's share; 0: none */
    int64_t ts;
    uint64_t version;
} offer;

enum {
    THROUGHPUT_MIN = 400,
    THROUGHPUT_MAX = 1000000,
    THROUGHPUT_STEP = 100,
    AUTOSCALE_MIN = 1000,
    AUTOSCALE_STEP = 1000,
    THROUGHPUT_FIXED_MAX = 10000,
    SERVERLESS_RANGE = 5000, /* RU/s of each physical partition */
    SHARED_CONTAINERS_MAX = 25
};

/* Within limits and a multiple of the step? E_BAD_REQUEST with the service's sentence. */
MUST_CHECK err throughput_check(op *o, throughput_setting setting, bool fixed_container);

/* The lowest value that the offer may be changed to: by what it was, by what is stored, by how many containers share it. */
uint32_t throughput_minimum(const offer *offer, uint64_t storage_bytes, unsigned containers);

/* "offerThroughput" of the resource: the manual value, or autoscale's most. */
static inline uint32_t throughput_provisioned(throughput_setting setting) {
    return setting.value;
}
