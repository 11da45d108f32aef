/* divide.h — within item/: a request's operations that are of several homes.
 *
 * Each home decides and writes its own, and the request is done when all of them are. Only a request whose operations stand for themselves
 * can be of several homes: an atomic one is of one logical partition. One that stops at the first failure goes from home to home, in the
 * order of its operations. */
#pragma once

#include "item/item.h"

bool item__is_divided(const item_commit *c); /* its operations are of several homes */
void item__divide(item_commit *c);           /* submits them; c->done is called once, by the last home */
void item__divided_give(item_commit *c);     /* with item_commit_give */

/* Homes whose operations were too long for their committers: as item_commit_prepare and, again, item_commit_submit. */
void item__divided_prepare(item_commit *c);
void item__divide_again(item_commit *c);

/* Submits operations of one home, admitted already (item/commit.c). */
void item__submit_here(item_commit *c);
