/* user_word.c - names and numbers of users. */
#include "cli/args/user_word.h"
#include "base/auto.h"
#include "base/err.h"
#include "base/str.h"
#include <errno.h>

int user_word_parse(const char *text, uid_t *uid, gid_t *gid, struct carrel_error *err)
{
    static const struct {
        const char *name;
        unsigned id;
    } known[] = { { "root", 0 }, { "agent", 1000 }, { "nobody", 65534 } };
    char shown[64];
    uint64_t ids[2];

    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (strcmp(text, known[i].name) != 0)
            continue;
        *uid = *gid = known[i].id;
        return 0;
    }
    AUTO(free) char *copy = strdup(text);
    if (!copy)
        return err_set_errno(err, -ENOMEM, "user");
    char *colon = strchr(copy, ':');
    if (colon)
        *colon = '\0';
    if (str_parse_u64(copy, &ids[0]) < 0 ||
            str_parse_u64(colon ? colon + 1 : copy, &ids[1]) < 0 || ids[0] >= UINT32_MAX ||
            ids[1] >= UINT32_MAX)
        return err_set(err, -EINVAL,
                "'%s' is not a user; expected UID, UID:GID, root, agent or nobody",
                str_escape(text, strlen(text), shown, sizeof(shown)));
    *uid = (uid_t)ids[0];
    *gid = (gid_t)ids[1];
    return 0;
}
