/* terms_int.h — adding to a list of terms. For this folder. */
#pragma once

#include "index/terms.h"

void index__begin_term(index_list *l, index_path path); /* the caller then appends the value to l->bytes */
void index__end_term(index_list *l);

void index__list_keys(index_list *l, const index_policy *policy, slice document);
void index__list_shapes(index_list *l, const index_policy *policy, slice document);
void index__list_words(index_list *l, const index_policy *policy, slice document);
