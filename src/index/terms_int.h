/* terms_int.h — within index/: adding to a list of terms. */
#pragma once

#include "index/terms.h"

void index__begin_term(index_list *l, index_path path); /* what is spelled into l->bytes then is its value */
void index__end_term(index_list *l);

void index__list_shapes(index_list *l, const index_policy *policy, slice document);
void index__list_words(index_list *l, const index_policy *policy, slice document);
