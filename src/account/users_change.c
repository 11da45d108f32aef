/* Changes of users and permissions: solo commits, as in change.c. */
#include "account/settings.h"
#include "account/users_int.h"

static int64_t now_s(const account *a) {
    return clock_wall_ms(a->items.clock) / 1000;
}

static void submit(account_change *change, store_use use, err (*apply)(commit *, commit_group *), void (*publish)(account_change *)) {
    change->user->user_out = NULL;
    change->user->permission_out = NULL;
    change->user->created = false;
    account__submit(change, use, apply, publish);
}

static err taken(op *o) {
    return op_fail(o, E_CONFLICT, "Resource with specified id, name, or unique index already exists.");
}

static err find_database(account_change *change, database_node **database_out) {
    *database_out = account__find_database(change->account, change->database, change->database_by_rid);
    return *database_out ? OK : account__missing(change->op, E_OWNER_NOT_FOUND);
}

static void delete_only(account_change *change, commit_group *group, void *node) {
    change->account->numbers.version++;
    change->made = node;
    commit_link(group, &change->hook);
}

/* ---- users ---- */

/* Makes the user or, in place of `before`, its next version. */
static void make_user(account_change *change, commit_group *group, const database_node *d, const user_node *before) {
    account *a = change->account;
    uint32_t number = before ? before->user->number : a->numbers.user++;
    change->user->user_out = user_new(&d->database->rid, number, change->user->id, now_s(a), a->numbers.version++);
    change->user->created = before == NULL;
    account__put_user(&group->batch, change->user->user_out);
    commit_link(group, &change->hook);
}

static err apply_create_user(commit *base, commit_group *group) {
    account_change *change = (account_change *)base;
    database_node *d;
    TRY(find_database(change, &d));
    TRY(settings_check_name(change->op, change->user->id));
    user_node *before = account__find_user(d, change->user->id, false);
    if (before && !change->upsert) {
        return taken(change->op);
    }
    if (before && !account__etag_matches(change->if_match, before->user->version, before->user->ts)) {
        return E_PRECONDITION;
    }
    change->made = before ? (void *)before : (void *)d;
    make_user(change, group, d, before);
    return OK;
}

static void publish_user(account_change *change) {
    user *u = change->user->user_out;
    atomic_fetch_add(&u->refs, 1); /* one for the table, one for the caller */
    change->user->created ? account__add_user(change->made, u) : account__swap_user(change->made, u);
}

void account_create_user(account_change *change) {
    submit(change, STORE_GROWS, apply_create_user, publish_user);
}

static err find_user(account_change *change, user_node **node_out) {
    database_node *d;
    *node_out = NULL;
    TRY(find_database(change, &d));
    *node_out = account__find_user(d, change->user->user, change->user->user_by_rid);
    if (!*node_out) {
        return account__missing(change->op, E_NOT_FOUND);
    }
    const user *u = (*node_out)->user;
    return account__etag_matches(change->if_match, u->version, u->ts) ? OK : E_PRECONDITION;
}

static err apply_replace_user(commit *base, commit_group *group) {
    account_change *change = (account_change *)base;
    user_node *node;
    TRY(find_user(change, &node));
    TRY(settings_check_name(change->op, change->user->id));
    user_node *other = account__find_user(node->database, change->user->id, false);
    if (other && other != node) {
        return taken(change->op);
    }
    change->made = node;
    make_user(change, group, node->database, node);
    return OK;
}

void account_replace_user(account_change *change) {
    submit(change, STORE_GROWS, apply_replace_user, publish_user);
}

static err apply_delete_user(commit *base, commit_group *group) {
    account_change *change = (account_change *)base;
    user_node *node;
    TRY(find_user(change, &node));
    account__delete_user_record(&group->batch, node->user);
    delete_only(change, group, node);
    return OK;
}

static void publish_delete_user(account_change *change) {
    account__remove_user(change->made);
}

void account_delete_user(account_change *change) {
    submit(change, STORE_FREES, apply_delete_user, publish_delete_user);
}

/* ---- permissions ---- */

static err find_owner(account_change *change, user_node **owner_out) {
    database_node *d;
    *owner_out = NULL;
    TRY(find_database(change, &d));
    *owner_out = account__find_user(d, change->user->user, change->user->user_by_rid);
    return *owner_out ? OK : account__missing(change->op, E_OWNER_NOT_FOUND);
}

/* `except`: the permission that is being replaced, or NULL. */
static err check_grant(account_change *change, user_node *owner, const permission_node *except) {
    const grant *g = &change->user->grant;
    container_node *c = NULL;
    permission_node *same = NULL;
    HASH_FIND(by_rid, change->account->containers_by_rid, g->container.bytes, 8, c);
    if (!c || c->database != owner->database) {
        return account__missing(change->op, E_NOT_FOUND);
    }
    slice resource = grant_resource(change->op->arena, g);
    HASH_FIND(by_resource, owner->permissions_by_resource, resource.p, resource.n, same);
    if (same && same != except) {
        return op_fail(
            change->op, E_CONFLICT,
            "Resource with specified id, name, or unique index already exists. The user has a permission for this resource: '%.*s'.",
            slice_shown(same->permission->id), same->permission->id.p);
    }
    return OK;
}

static void make_permission(account_change *change, commit_group *group, const user_node *owner, const permission_node *before) {
    account *a = change->account;
    uint32_t number = before ? before->permission->number : a->numbers.permission++;
    permission *p = permission_new(owner->user, number, change->user->id, &change->user->grant);
    p->ts = now_s(a);
    p->version = a->numbers.version++;
    change->user->permission_out = p;
    change->user->created = before == NULL;
    account__put_permission(&group->batch, p);
    commit_link(group, &change->hook);
}

static err apply_create_permission(commit *base, commit_group *group) {
    account_change *change = (account_change *)base;
    user_node *owner;
    TRY(find_owner(change, &owner));
    TRY(settings_check_name(change->op, change->user->id));
    permission_node *before = account__find_permission(owner, change->user->id, false);
    if (before && !change->upsert) {
        return taken(change->op);
    }
    if (before && !account__etag_matches(change->if_match, before->permission->version, before->permission->ts)) {
        return E_PRECONDITION;
    }
    TRY(check_grant(change, owner, before));
    change->made = before ? (void *)before : (void *)owner;
    make_permission(change, group, owner, before);
    return OK;
}

static void publish_permission(account_change *change) {
    permission *p = change->user->permission_out;
    atomic_fetch_add(&p->refs, 1);
    change->user->created ? account__add_permission(change->made, p) : account__swap_permission(change->made, p);
}

void account_create_permission(account_change *change) {
    submit(change, STORE_GROWS, apply_create_permission, publish_permission);
}

static err find_permission(account_change *change, permission_node **node_out) {
    user_node *owner;
    *node_out = NULL;
    TRY(find_owner(change, &owner));
    *node_out = account__find_permission(owner, change->user->permission, change->user->permission_by_rid);
    if (!*node_out) {
        return account__missing(change->op, E_NOT_FOUND);
    }
    const permission *p = (*node_out)->permission;
    return account__etag_matches(change->if_match, p->version, p->ts) ? OK : E_PRECONDITION;
}

static err apply_replace_permission(commit *base, commit_group *group) {
    account_change *change = (account_change *)base;
    permission_node *node;
    TRY(find_permission(change, &node));
    TRY(settings_check_name(change->op, change->user->id));
    permission_node *other = account__find_permission(node->user, change->user->id, false);
    if (other && other != node) {
        return taken(change->op);
    }
    TRY(check_grant(change, node->user, node));
    change->made = node;
    make_permission(change, group, node->user, node);
    return OK;
}

void account_replace_permission(account_change *change) {
    submit(change, STORE_GROWS, apply_replace_permission, publish_permission);
}

static err apply_delete_permission(commit *base, commit_group *group) {
    account_change *change = (account_change *)base;
    permission_node *node;
    TRY(find_permission(change, &node));
    account__delete_permission_record(&group->batch, node->permission);
    delete_only(change, group, node);
    return OK;
}

static void publish_delete_permission(account_change *change) {
    account__remove_permission(change->made);
}

void account_delete_permission(account_change *change) {
    submit(change, STORE_FREES, apply_delete_permission, publish_delete_permission);
}
