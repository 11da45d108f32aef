/* Changes of users and permissions: solo commits, as in change.c. */
#include "account/settings.h"
#include "account/users_int.h"

static int64_t now_s(const account *a) {
    return clock_wall_ms(a->items.clock) / 1000;
}

static err taken(op *o) {
    return op_fail(o, E_CONFLICT, "Resource with specified id, name, or unique index already exists.");
}

static err find_database(account_change *change, const account_name *name, database_node **database_out) {
    *database_out = account__find_database(change->account, name->text, name->by_rid);
    return *database_out ? OK : account__missing(change->op, E_OWNER_NOT_FOUND);
}

static void delete_only(account_change *change, commit_group *group, void *node) {
    change->account->numbers.version++;
    change->made = node;
    commit_link(group, &change->hook);
}

/* ---- users ---- */

/* Makes a new user or, if `before` is given, its next version. */
static user *make_user(account_change *change, commit_group *group, const database_node *d, slice id, const user_node *before) {
    account *a = change->account;
    uint32_t number = before ? before->user->number : a->numbers.user++;
    user *made = user_new(&d->database->rid, number, id, now_s(a), a->numbers.version++);
    account__put_user(&group->batch, made);
    commit_link(group, &change->hook);
    return made;
}

static err apply_create_user(account_change *change, commit_group *group) {
    user_creation *create = (user_creation *)change;
    database_node *d;
    TRY(find_database(change, &create->database, &d));
    TRY(settings_check_name(change->op, create->id));
    user_node *before = account__find_user(d, create->id, false);
    if (before && !create->upsert) {
        return taken(change->op);
    }
    if (before && !account__etag_matches(change->if_match, before->user->version, before->user->ts)) {
        return E_PRECONDITION;
    }
    change->made = before ? (void *)before : (void *)d;
    create->created = !before;
    create->user_out = make_user(change, group, d, create->id, before);
    return OK;
}

static void publish_create_user(account_change *change) {
    const user_creation *create = (user_creation *)change;
    atomic_fetch_add(&create->user_out->refs, 1); /* one for the table, one for the caller */
    create->created ? account__add_user(change->made, create->user_out) : account__swap_user(change->made, create->user_out);
}

void account_create_user(user_creation *create) {
    static const account_verb verb = {.use = STORE_GROWS, .apply = apply_create_user, .publish = publish_create_user};
    create->user_out = NULL;
    create->created = false;
    account__submit(&create->base, &verb);
}

static err find_user(account_change *change, const account_name *database, const account_name *name, user_node **node_out) {
    database_node *d;
    *node_out = NULL;
    TRY(find_database(change, database, &d));
    *node_out = account__find_user(d, name->text, name->by_rid);
    if (!*node_out) {
        return account__missing(change->op, E_NOT_FOUND);
    }
    const user *u = (*node_out)->user;
    return account__etag_matches(change->if_match, u->version, u->ts) ? OK : E_PRECONDITION;
}

static err apply_replace_user(account_change *change, commit_group *group) {
    user_replacement *replace = (user_replacement *)change;
    user_node *node;
    TRY(find_user(change, &replace->database, &replace->user, &node));
    TRY(settings_check_name(change->op, replace->id));
    user_node *other = account__find_user(node->database, replace->id, false);
    if (other && other != node) {
        return taken(change->op);
    }
    change->made = node;
    replace->user_out = make_user(change, group, node->database, replace->id, node);
    return OK;
}

static void publish_replace_user(account_change *change) {
    user *u = ((user_replacement *)change)->user_out;
    atomic_fetch_add(&u->refs, 1);
    account__swap_user(change->made, u);
}

void account_replace_user(user_replacement *replace) {
    static const account_verb verb = {.use = STORE_GROWS, .apply = apply_replace_user, .publish = publish_replace_user};
    replace->user_out = NULL;
    account__submit(&replace->base, &verb);
}

static err apply_delete_user(account_change *change, commit_group *group) {
    const user_deletion *remove = (user_deletion *)change;
    user_node *node;
    TRY(find_user(change, &remove->database, &remove->user, &node));
    account__delete_user_record(&group->batch, node->user);
    delete_only(change, group, node);
    return OK;
}

static void publish_delete_user(account_change *change) {
    account__remove_user(change->made);
}

void account_delete_user(user_deletion *remove) {
    static const account_verb verb = {.use = STORE_FREES, .apply = apply_delete_user, .publish = publish_delete_user};
    account__submit(&remove->base, &verb);
}

/* ---- permissions ---- */

static err find_owner(account_change *change, const account_name *database, const account_name *name, user_node **owner_out) {
    database_node *d;
    *owner_out = NULL;
    TRY(find_database(change, database, &d));
    *owner_out = account__find_user(d, name->text, name->by_rid);
    return *owner_out ? OK : account__missing(change->op, E_OWNER_NOT_FOUND);
}

/* `except`: the permission that is being replaced, or NULL. */
static err check_grant(account_change *change, user_node *owner, const grant *g, const permission_node *except) {
    container_node *c = NULL;
    permission_node *same = NULL;
    HASH_FIND(by_rid, change->account->containers_by_rid, g->container.bytes, 8, c);
    if (g->kind != RID_NONE && (!c || c->database != owner->database)) {
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

static permission *make_permission(account_change *change, commit_group *group, const user_node *owner, slice id, const grant *g,
                                   const permission_node *before) {
    account *a = change->account;
    uint32_t number = before ? before->permission->number : a->numbers.permission++;
    permission *p = permission_new(owner->user, number, id, g);
    p->ts = now_s(a);
    p->version = a->numbers.version++;
    account__put_permission(&group->batch, p);
    commit_link(group, &change->hook);
    return p;
}

static err apply_create_permission(account_change *change, commit_group *group) {
    permission_creation *create = (permission_creation *)change;
    user_node *owner;
    TRY(find_owner(change, &create->database, &create->user, &owner));
    TRY(settings_check_name(change->op, create->id));
    permission_node *before = account__find_permission(owner, create->id, false);
    if (before && !create->upsert) {
        return taken(change->op);
    }
    if (before && !account__etag_matches(change->if_match, before->permission->version, before->permission->ts)) {
        return E_PRECONDITION;
    }
    TRY(check_grant(change, owner, &create->grant, before));
    change->made = before ? (void *)before : (void *)owner;
    create->created = !before;
    create->permission_out = make_permission(change, group, owner, create->id, &create->grant, before);
    return OK;
}

static void publish_create_permission(account_change *change) {
    const permission_creation *create = (permission_creation *)change;
    permission *p = create->permission_out;
    atomic_fetch_add(&p->refs, 1);
    create->created ? account__add_permission(change->made, p) : account__swap_permission(change->made, p);
}

void account_create_permission(permission_creation *create) {
    static const account_verb verb = {.use = STORE_GROWS, .apply = apply_create_permission, .publish = publish_create_permission};
    create->permission_out = NULL;
    create->created = false;
    account__submit(&create->base, &verb);
}

static err find_permission(account_change *change, user_node *owner, const account_name *name, permission_node **node_out) {
    *node_out = account__find_permission(owner, name->text, name->by_rid);
    if (!*node_out) {
        return account__missing(change->op, E_NOT_FOUND);
    }
    const permission *p = (*node_out)->permission;
    return account__etag_matches(change->if_match, p->version, p->ts) ? OK : E_PRECONDITION;
}

static err apply_replace_permission(account_change *change, commit_group *group) {
    permission_replacement *replace = (permission_replacement *)change;
    user_node *owner;
    permission_node *node;
    TRY(find_owner(change, &replace->database, &replace->user, &owner));
    TRY(find_permission(change, owner, &replace->permission, &node));
    TRY(settings_check_name(change->op, replace->id));
    permission_node *other = account__find_permission(owner, replace->id, false);
    if (other && other != node) {
        return taken(change->op);
    }
    TRY(check_grant(change, owner, &replace->grant, node));
    change->made = node;
    replace->permission_out = make_permission(change, group, owner, replace->id, &replace->grant, node);
    return OK;
}

static void publish_replace_permission(account_change *change) {
    permission *p = ((permission_replacement *)change)->permission_out;
    atomic_fetch_add(&p->refs, 1);
    account__swap_permission(change->made, p);
}

void account_replace_permission(permission_replacement *replace) {
    static const account_verb verb = {.use = STORE_GROWS, .apply = apply_replace_permission, .publish = publish_replace_permission};
    replace->permission_out = NULL;
    account__submit(&replace->base, &verb);
}

static err apply_delete_permission(account_change *change, commit_group *group) {
    const permission_deletion *remove = (permission_deletion *)change;
    user_node *owner;
    permission_node *node;
    TRY(find_owner(change, &remove->database, &remove->user, &owner));
    TRY(find_permission(change, owner, &remove->permission, &node));
    account__delete_permission_record(&group->batch, node->permission);
    delete_only(change, group, node);
    return OK;
}

static void publish_delete_permission(account_change *change) {
    account__remove_permission(change->made);
}

void account_delete_permission(permission_deletion *remove) {
    static const account_verb verb = {.use = STORE_FREES, .apply = apply_delete_permission, .publish = publish_delete_permission};
    account__submit(&remove->base, &verb);
}
