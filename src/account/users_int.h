/* users_int.h — within account/: functions of users.c (tables, records) for users_change.c (changes). */
#pragma once

#include "account/account_int.h"

user *user_new(const rid *in, uint32_t number, slice id, int64_t ts, uint64_t version);
permission *permission_new(const user *of, uint32_t number, slice id, const grant *g); /* copies; the caller sets ts and version */
slice grant_resource(arena *a, const grant *g);                                        /* equal if and only if the resource is */

user_node *account__find_user(database_node *d, slice name, bool by_rid);
permission_node *account__find_permission(user_node *u, slice name, bool by_rid);

/* Each takes over the caller's reference. */
void account__add_user(database_node *d, user *u);
void account__swap_user(user_node *node, user *u);
void account__add_permission(user_node *u, permission *p);
void account__swap_permission(permission_node *node, permission *p);

void account__remove_user(user_node *node); /* with its permissions */
void account__remove_permission(permission_node *node);

void account__put_user(store_batch *batch, const user *u);
void account__put_permission(store_batch *batch, const permission *p);
void account__delete_user_record(store_batch *batch, const user *u); /* and its permissions' records */
void account__delete_permission_record(store_batch *batch, const permission *p);
