/* offer.h — provisioned throughput of a database or a container, manual or autoscale. */
#pragma once

#include "account/rid.h"
#include "base/op.h"

typedef enum throughput_kind { THROUGHPUT_NONE, THROUGHPUT_MANUAL, THROUGHPUT_AUTOSCALE } throughput_kind;

typedef struct throughput_setting {
    throughput_kind kind;
    uint32_t value;             /* RU/s; for autoscale the maximum */
    bool has_increment;         /* autoscale: the next one was given */
    uint32_t increment_percent; /* by how much the maximum is raised when the data outgrows it; 0: by as much as is needed */
} throughput_setting;

typedef struct offer {
    uint32_t number;
    rid rid;
    uint32_t database;
    uint32_t container; /* 0: the database's offer. Offers are looked up by this field and the one before */
    rid resource;
    throughput_setting throughput;
    uint32_t highest;           /* highest value ever provisioned; it limits how far the value may be lowered */
    uint8_t bucket_percents[5]; /* throughput buckets: percentages of each range's share; 0: not set */
    int64_t ts;
    uint64_t version;
} offer;

enum {
    THROUGHPUT_MIN = 400,
    THROUGHPUT_MAX = 1000000,
    THROUGHPUT_STEP = 100,
    AUTOSCALE_MIN = 1000,
    AUTOSCALE_STEP = 1000,
    AUTOSCALE_RATIO = 10, /* autoscale goes down to a tenth of its maximum */
    THROUGHPUT_FIXED_MAX = 10000,
    INCREMENT_PERCENT_MAX = 1000,
    SERVERLESS_RANGE = 5000, /* RU/s of each physical partition */
    SHARED_CONTAINERS_MAX = 25
};

/* Checks the limits and the step. E_BAD_REQUEST with the service's sentence. */
MUST_CHECK err throughput_check(op *o, throughput_setting setting, bool fixed_container);

/* The minimum value of the offer, given its highest value ever, the stored bytes, and the number of containers that share it. */
uint32_t throughput_minimum(const offer *offer, uint64_t storage_bytes, unsigned containers);

/* The maximum of autoscale for this many stored bytes: at least 10 RU/s for each gigabyte. If that is more than it is now, it is raised by
 * the setting's increment, as often as it takes, and rounded up to a step. Never above THROUGHPUT_MAX. */
uint32_t throughput_for_storage(throughput_setting setting, uint64_t storage_bytes);

/* What the resource may spend: the manual value, or the autoscale maximum. */
static inline uint32_t throughput_provisioned(throughput_setting setting) {
    return setting.value;
}
