/* operator.h — a simple model of the operator who sets the container's throughput, and of the bill.
 *
 * Raises T when an hour used 90 % of it, to 1.3 times that hour. Lowers T when three quarters of it would have been enough for two days, to
 * 1.25 times the highest hour of the day. */
#pragma once

typedef struct operator_bill { /* RU/s × hours */
    double manual;             /* T itself */
    double autoscale;          /* T times the highest normalised use of any range, at least a tenth */
    double dynamic;            /* the same for each range, added up */
} operator_bill;

typedef struct operator_state {
    double throughput;
    double throughput_most;
    double hour_sum; /* sum over this hour's minutes */
    int hour_minutes;
    double day_peak; /* the highest hour */
    int low_days;
    unsigned ups, downs;
    operator_bill bill;
} operator_state;

void operator_begin(operator_state *o, double throughput);
void operator_minute(operator_state *o, double demand);
void operator_hour(operator_state *o); /* may raise T */
void operator_day(operator_state *o);  /* may lower it */
