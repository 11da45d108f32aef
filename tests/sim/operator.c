#include "operator.h"

#include <math.h>

void operator_begin(operator_state *o, double throughput) {
    *o = (operator_state){.throughput = throughput, .throughput_most = throughput};
}

void operator_minute(operator_state *o, double demand) {
    o->hour_sum += demand;
    o->hour_minutes++;
}

static double rounded(double throughput) {
    return fmax(ceil(throughput / 1000) * 1000, 1000);
}

void operator_hour(operator_state *o) {
    double mean = o->hour_sum / fmax(o->hour_minutes, 1);
    o->hour_sum = 0;
    o->hour_minutes = 0;
    o->day_peak = fmax(o->day_peak, mean);
    if (mean > 0.9 * o->throughput) {
        o->throughput = rounded(1.3 * mean);
        o->throughput_most = fmax(o->throughput_most, o->throughput);
        o->ups++;
    }
}

void operator_day(operator_state *o) {
    double enough = rounded(1.25 * o->day_peak);
    o->low_days = enough < 0.75 * o->throughput ? o->low_days + 1 : 0;
    if (o->low_days >= 2) {
        o->throughput = enough;
        o->low_days = 0;
        o->downs++;
    }
    o->day_peak = 0;
}
