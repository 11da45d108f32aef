/* patch_int.h — a patch path cut into steps. For this folder. */
#pragma once

#include "doc/patch.h"

typedef struct patch_path {
    slice text;   /* as written */
    slice *steps; /* unescaped, as BSON keys have them */
    size_t n;
} patch_path;

/* Bytes live in `a`. False: not a path, or more steps than a document may have levels. */
bool patch__split(arena *a, slice text, patch_path *path_out);

/* The index that a step names in an array; false if it names none. */
bool patch__index(slice step, size_t *index_out);
