/* divide.h — within item/: requests whose operations span several homes.
 *
 * Each home decides and writes its own operations; the request is done when all homes are. Only requests with independent operations can
 * span homes, since an atomic commit must stay within one. A request that stops at the first failure visits the homes one after the other,
 * in the order of its operations. */
#pragma once

#include "item/item.h"

bool item__is_divided(const item_commit *c); /* whether its operations span several homes */
void item__divide(item_commit *c);           /* submits them; the last home to finish calls c->done */
void item__divided_give(item_commit *c);     /* called by item_commit_give */

/* The counterparts of item_commit_prepare and a further item_commit_submit, for the homes whose committers left operations undecided. */
void item__divided_prepare(item_commit *c);
void item__divide_again(item_commit *c);

/* Submits operations of one home that are already admitted (item/commit.c). */
void item__submit_here(item_commit *c);
