/* question.h — the queries that are measured, in both languages, and the values that they ask for. */
#pragma once

#include <stdbool.h>

#include "data.h"

enum { QUESTION_VALUES_MAX = 2 };

typedef struct question {
    const char *name;
    const char *cosmos;   /* with @a and @b; of the whole range, or of the partition key that `kind` says */
    const char *postgres; /* with $1 and $2; of the partition, if `kind` is DATA_BY_DEVICE, which is then $1 */
    const char *mongo;    /* a command as JSON, with @a and @b within strings; NULL: not asked there */
    data_field values[QUESTION_VALUES_MAX];
    unsigned values_n;
    unsigned page;  /* rows asked for at most */
    data_kind kind; /* DATA_BY_DEVICE, DATA_BY_TENANT: within the partition of a random item; otherwise across all */
    bool whole;     /* page after page until the last; otherwise the first page is all */
} question;

const question *question_find(const char *name); /* NULL: there is none */
const question *question_at(size_t i);           /* NULL after the last */

/* The command for MongoDB with the values of item `number`; returns its bytes. */
size_t question_command(const question *q, uint64_t number, char *out);

/* The body of a POST that asks it, with the values of item `number`; returns its bytes. */
size_t question_body(const question *q, uint64_t number, char *out);
