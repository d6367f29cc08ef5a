/* keys.c - the user's keys: the pair that signs seals, and the one that is trusted. */
#include "base/err.h"
#include "core/record/find.h"
#include "core/state/state.h"
#include <errno.h>
#include <string.h>

#define SECRET_NAME "journal.key"
#define PUBLIC_NAME "journal.pub"

/* What the caller sees, and what it points to. */
struct keys_view {
    struct carrel_journal_keys public;
    char path[PATH_MAX];
    char public_hex[JOURNAL_KEY];
    char id[JOURNAL_KEY_ID];
};

void carrel_journal_keys_free(struct carrel_journal_keys *keys)
{
    free(keys ? container_of(keys, struct keys_view, public) : NULL);
}

/* Where the pair is to be; its directory is made. */
static int find_place(
        char secret[static PATH_MAX], char public[static PATH_MAX], struct carrel_error *err)
{
    char dir[PATH_MAX];

    int r = state_config_path(SECRET_NAME, secret, PATH_MAX, err);
    if (r == 0)
        r = state_config_path(PUBLIC_NAME, public, PATH_MAX, err);
    if (r < 0)
        return r;
    (void)stpcpy(dir, secret);
    *strrchr(dir, '/') = '\0';
    return state_make(dir, err);
}

int carrel_journal_keygen(struct carrel_journal_keys **out, struct carrel_error *err)
{
    AUTO(free) struct keys_view *view = calloc(1, sizeof(*view));
    char beside[PATH_MAX];

    err = ERR_OR_IGNORED(err);
    if (!view)
        return err_set_errno(err, -ENOMEM, "keys");
    int r = find_place(view->path, beside, err);
    if (r == 0)
        r = journal_key_make(view->path, beside, view->public_hex, err);
    if (r == -EEXIST)
        return err_wrap(err, r, "there is a key already; move it away to create another");
    if (r < 0)
        return r;
    journal_key_id(view->public_hex, view->id);
    view->public = (struct carrel_journal_keys){
        .size = sizeof(view->public),
        .path = view->path,
        .public_hex = view->public_hex,
        .id = view->id,
    };
    *out = &ptr_steal(&view)->public;
    return 0;
}

int journals_trust(const char *path, struct journal_trust *out, struct carrel_error *err)
{
    struct carrel_error why = { 0 };
    char own[PATH_MAX];

    if (path) {
        int r = journal_trust_load(path, out, err);
        out->is_required = r == 0;
        return r < 0 ? r : 1;
    }
    if (state_config_path(PUBLIC_NAME, own, sizeof(own), &why) < 0)
        return 0; /* without a home there is no key */
    int r = journal_trust_load(own, out, &why);
    if (r == -ENOENT)
        return 0;
    return r < 0 ? err_set(err, r, "%s", why.message) : 1;
}
