/* operator.h — whoever sets the container's throughput: a simple person, and the bill.
 *
 * Up: as soon as an hour took 90 % of T, to 1.3 times that hour. Down: when for two days a quarter would have been enough to leave out,
 * to 1.25 times the highest hour of the day. */
#pragma once

typedef struct operator_bill { /* RU/s × hours */
    double manual;             /* T itself */
    double autoscale;          /* the highest normalised use of any range, of T; at least a tenth */
    double dynamic;            /* the same by range, added up */
} operator_bill;

typedef struct operator_state {
    double throughput;
    double throughput_most;
    double hour_sum; /* of this hour's minutes */
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
