#include "account/offer.h"

err throughput_check(op *o, throughput_setting setting, bool fixed_container) {
    uint32_t least = setting.kind == THROUGHPUT_AUTOSCALE ? AUTOSCALE_MIN : THROUGHPUT_MIN;
    uint32_t step = setting.kind == THROUGHPUT_AUTOSCALE ? AUTOSCALE_STEP : THROUGHPUT_STEP;
    uint32_t most = fixed_container ? THROUGHPUT_FIXED_MAX : THROUGHPUT_MAX;
    if (setting.kind == THROUGHPUT_NONE || (setting.value >= least && setting.value <= most && setting.value % step == 0)) {
        return OK;
    }
    return op_fail(o, E_BAD_REQUEST,
                   "Offer throughput value %u specified is invalid. The offer throughput value should be between %u and %u inclusive in "
                   "increments of %u.",
                   setting.value, least, most, step);
}

uint32_t throughput_minimum(const offer *offer) {
    bool autoscale = offer->throughput.kind == THROUGHPUT_AUTOSCALE;
    uint32_t part = offer->highest / (autoscale ? 10 : 100), step = autoscale ? AUTOSCALE_STEP : THROUGHPUT_STEP;
    uint32_t least = autoscale ? AUTOSCALE_MIN : THROUGHPUT_MIN;
    part = (part + step - 1) / step * step;
    return part > least ? part : least;
}
