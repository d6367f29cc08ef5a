#include "workspace/upper_fixture.h"

/* None of these is written by a mount of ours; each would change what a file is. */
TEST(overlay_attributes_that_we_never_write_are_refused)
{
    static const struct {
        const char *path, *name, *value;
        int result;
    } cases[] = {
        { "upper/f", "user.overlay.redirect", "/elsewhere", -EUCLEAN },
        { "upper/d", "user.overlay.redirect", "elsewhere", -EUCLEAN },
        { "upper/f", "user.overlay.metacopy", "", -EUCLEAN },
        { "upper/f", "user.overlay.whiteout", "y", -EUCLEAN },
        { "upper/f", "user.overlay.opaque", "y", -EUCLEAN },
        { "upper/d", "user.overlay.opaque", "x", -EUCLEAN },
        { "upper/d", "user.overlay.opaque", "", -EUCLEAN },
        { "upper/d", "user.overlay.opaque", "yy", -EUCLEAN },
        { "upper/d", "user.overlay.opaque", "yes, quite long", -EUCLEAN },
        { "upper", "user.overlay.opaque", "y", -EUCLEAN },
        { "upper/d", "user.overlay.somethingnew", "y", -EUCLEAN },
        { "upper/f", "trusted.overlay.metacopy", "", -EUCLEAN },
        { "upper/d", "trusted.overlay.redirect", "a", -EUCLEAN },
        { "upper/f", "user.overlay.origin", "anything", 0 },
        { "upper/d", "user.overlay.impure", "y", 0 },
        { "upper/d", "user.overlay.overlay.opaque", "y",
                0 }, /* by the run, through the mount */
        { "upper/f", "user.overlay.overlay.redirect", "y", 0 },
        { "upper/f", "user.something", "y", 0 },
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct place place;
        if (strncmp(cases[i].name, "trusted.", 8) == 0 && geteuid() != 0)
            continue;
        make_place(&place);
        put(&place, "upper/f", "");
        put_dir(&place, "upper/d");
        put_dir(&place, "tree/d");
        put(&place, "tree/d/x", "");
        mark(&place, cases[i].path, cases[i].name, cases[i].value);
        CHECK_EQ(walk(&place), cases[i].result);
        CHECK(cases[i].result == 0 || strstr(err.message, "overlay attribute"));
        CHECK_STR(shown(), cases[i].result == 0 ? "f" : "");
        drop_place(&place);
    }
}

TEST(many_attributes_do_not_hide_one)
{
    struct place place;
    char name[64];

    make_place(&place);
    put(&place, "upper/f", "");
    for (int i = 0; i < 60; i++) {
        (void)snprintf(name, sizeof(name), "user.an attribute with a long name %d", i);
        mark(&place, "upper/f", name, "");
    }
    CHECK_EQ(walk(&place), 0);
    mark(&place, "upper/f", "user.overlay.metacopy", "");
    CHECK_EQ(walk(&place), -EUCLEAN);
    drop_place(&place);
}
