#include "base/err.h"
#include "workspace/git_fixture.h"
#include "workspace/source/include.h"
#include <errno.h>

static struct carrel_error err;
static struct include_list list;

static struct repo *set_up(void)
{
    struct repo *repo = NULL;

    SHELL("git init -q user; mkdir upper; cd user; mkdir -p config node_modules/x;"
          "printf '.env*\\nnode_modules\\n*.key\\n' > .gitignore; echo a > a; git add .;"
          "git commit -q -m base; echo S=1 > .env; echo S=2 > .env.local; echo k > "
          "config/tls.key;"
          "echo m > node_modules/x/m; echo u > untracked; chmod 600 .env; touch -d @1000000000 "
          ".env");
    CHECK_EQ(repo_open("user", &repo, &err), 0);
    return repo;
}

#define SET_UP()                                                                               \
    AUTO(fixture_close) struct fixture at = fixture_open();                                    \
    AUTO(repo_free) struct repo *repo = set_up();                                              \
    AUTO(fd_close) int upper = open("upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC)

#define PATTERNS(...) ((const char *const[]){ __VA_ARGS__, NULL })

static int find(const struct repo *repo, const char *const *patterns)
{
    include_list_finish(&list);
    return include_find(repo, patterns, &list, &err);
}

static const char *found(void)
{
    static char text[1024];
    size_t len = 0;

    text[0] = '\0';
    for (size_t i = 0; i < list.n; i++)
        len += (size_t)snprintf(text + len, sizeof(text) - len, "%s;", list.paths[i]);
    return text;
}

TEST(nothing_is_carried_along_unless_it_was_named)
{
    SET_UP();
    CHECK_EQ(find(repo, NULL), 0);
    CHECK_EQ(list.n, 0);
    CHECK_EQ(include_copy(repo, &list, upper, 0, &err), 0);
}

TEST(patterns_name_ignored_and_untracked_files_but_no_tracked_ones)
{
    SET_UP();
    CHECK_EQ(find(repo, PATTERNS(".env", "untracked", "a")), 0);
    CHECK_STR(found(), ".env;untracked;");
    CHECK_EQ(find(repo, PATTERNS("*.key", "node_modules/")), 0);
    CHECK_STR(found(), "config/tls.key;node_modules/x/m;");
    CHECK_EQ(find(repo, PATTERNS("--help")), 0);
    CHECK_EQ(list.n, 0);
}

TEST(a_file_in_the_repository_names_them_too)
{
    SET_UP();
    SHELL("printf '# secrets\\n.env*\\n!.env.local\\n' > user/.worktreeinclude");
    CHECK_EQ(find(repo, NULL), 0);
    CHECK_STR(found(), ".env;");
    CHECK_EQ(find(repo, PATTERNS("config/")), 0);
    CHECK_STR(found(), ".env;config/tls.key;");
}

TEST(files_are_copied_with_mode_and_time_and_links_as_links)
{
    SET_UP();
    SHELL("cd user; ln -s /etc/passwd .env.link");
    CHECK_EQ(find(repo, PATTERNS(".env*", "*.key")), 0);
    CHECK_EQ(list.n, 4);
    CHECK_EQ(include_copy(repo, &list, upper, 1000, &err), 0);
    SHELL("cd upper; test $(stat -c %%a.%%Y .env) = 600.1000000000; cmp .env ../user/.env;"
          "cmp config/tls.key ../user/config/tls.key; test $(readlink .env.link) = "
          "/etc/passwd");
}

TEST(what_does_not_fit_is_an_error_with_the_file)
{
    SET_UP();
    CHECK_EQ(find(repo, PATTERNS(".env", "untracked")), 0);
    CHECK_EQ(include_copy(repo, &list, upper, 4, &err), -EFBIG);
    CHECK_STR(err.message, "include 'untracked': the files are larger than 4 together");
}

TEST(a_fifo_or_a_repository_is_refused_by_name)
{
    SET_UP();
    list = (struct include_list){ .paths = (char *[]){ (char[]){ "pipe" } }, .n = 1 };
    SHELL("mkfifo user/pipe");
    CHECK_EQ(include_copy(repo, &list, upper, 100, &err), -EINVAL);
    CHECK_STR(err.message, "include 'pipe': it is neither a file nor a link");
    list = (struct include_list){ 0 };

    SHELL("cd user; git init -q vendored; cd vendored; echo x > x; git add x; git commit -qm "
          "x");
    CHECK_EQ(find(repo, PATTERNS("vendored/")), 0);
    CHECK_STR(found(), "vendored/;");
    CHECK_EQ(include_copy(repo, &list, upper, 100, &err), -EISDIR);
    CHECK_STR(err.message, "include 'vendored/': it is a git repository of its own");
}

TEST(a_linked_directory_is_not_followed)
{
    SET_UP();
    SHELL("mkdir outside; echo secret > outside/key; ln -s ../outside user/linked");
    list = (struct include_list){ .paths = (char *[]){ (char[]){ "linked/key" } }, .n = 1 };
    CHECK_EQ(include_copy(repo, &list, upper, 100, &err), -ELOOP);
    CHECK(strstr(err.message, "carry 'linked/key' along"));
    list = (struct include_list){ .paths = (char *[]){ (char[]){ "../outside/key" } }, .n = 1 };
    CHECK_EQ(include_copy(repo, &list, upper, 100, &err), -EXDEV);
    list = (struct include_list){ 0 };
    CHECK_STR(printed("ls upper"), "");
}
