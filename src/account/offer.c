#include "account/offer.h"

err throughput_check(op *o, throughput_setting setting, bool fixed_container) {
    uint32_t least = setting.kind == THROUGHPUT_AUTOSCALE ? AUTOSCALE_MIN : THROUGHPUT_MIN;
    uint32_t step = setting.kind == THROUGHPUT_AUTOSCALE ? AUTOSCALE_STEP : THROUGHPUT_STEP;
    uint32_t most = fixed_container ? THROUGHPUT_FIXED_MAX : THROUGHPUT_MAX;
    if (setting.increment_percent > INCREMENT_PERCENT_MAX) {
        return op_fail(o, E_BAD_REQUEST, "incrementPercent must be a whole number from 0 to %d.", INCREMENT_PERCENT_MAX);
    }
    if (setting.kind == THROUGHPUT_NONE || (setting.value >= least && setting.value <= most && setting.value % step == 0)) {
        return OK;
    }
    return op_fail(o, E_BAD_REQUEST,
                   "Offer throughput value %u specified is invalid. The offer throughput value should be between %u and %u inclusive in "
                   "increments of %u.",
                   setting.value, least, most, step);
}

static uint32_t most(uint32_t a, uint32_t b) {
    return a > b ? a : b;
}

uint32_t throughput_minimum(const offer *offer, uint64_t storage_bytes, unsigned containers) {
    bool autoscale = offer->throughput.kind == THROUGHPUT_AUTOSCALE;
    uint32_t step = autoscale ? AUTOSCALE_STEP : THROUGHPUT_STEP;
    uint32_t gigabytes = (uint32_t)((storage_bytes + (1u << 30) - 1) >> 30);
    uint32_t more = containers > SHARED_CONTAINERS_MAX ? containers - SHARED_CONTAINERS_MAX : 0;
    uint32_t least = autoscale ? AUTOSCALE_MIN + 1000 * more : THROUGHPUT_MIN + 100 * more;
    least = most(least, offer->highest / (autoscale ? 10 : 100));
    least = most(least, storage_bytes >> 30 ? gigabytes * (autoscale ? 10 : 1) : 0);
    return (least + step - 1) / step * step;
}

static uint64_t round_up(uint64_t value) {
    return (value + AUTOSCALE_STEP - 1) / AUTOSCALE_STEP * AUTOSCALE_STEP;
}

uint32_t throughput_for_storage(throughput_setting setting, uint64_t storage_bytes) {
    uint64_t needed = round_up((storage_bytes >> 30) * 10), value = setting.value;
    if (needed <= value) {
        return setting.value;
    }
    while (setting.increment_percent && value < needed && value < THROUGHPUT_MAX) {
        value = round_up(value + (value * setting.increment_percent + 99) / 100);
    }
    value = value > needed ? value : needed;
    return value < THROUGHPUT_MAX ? (uint32_t)value : THROUGHPUT_MAX;
}
