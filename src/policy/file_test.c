/* file_test.c - policy files: where they are found, and which are trusted. */
#include "base/arena.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/tree.h"
#include "harness.h"
#include "policy/file.h"
#include "policy/join.h"
#include "policy/policy.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* A home directory, a repository in it and a system file, in a temporary directory. */
struct fixture {
    char top[64];
    char home[96]; /* HOME=... */
    char system[96];
    char cwd[96];
    const char *environment[4];
    struct policy_request request;
    struct carrel_error err;
};

static void put(const struct fixture *fx, const char *rel, const char *text)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", fx->top, rel);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        CHECK(mkdir(path, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
    if (rel[strlen(rel) - 1] != '/')
        CHECK_EQ(fd_replace_file(path, text, strlen(text), 0644, NULL), 0);
}

static void set_up(struct fixture *fx)
{
    *fx = (struct fixture){ .top = "/tmp/carrel-policy.XXXXXX" };
    (void)umask(022);
    CHECK(test_mkdtemp(fx->top));
    CHECK_EQ(chmod(fx->top, 0755), 0);
    put(fx, "home/.config/carrel/", NULL);
    put(fx, "etc/", NULL);
    put(fx, "home/repo/.git/", NULL);
    put(fx, "home/repo/a/b/", NULL);
    (void)snprintf(fx->home, sizeof(fx->home), "HOME=%s/home", fx->top);
    (void)snprintf(fx->system, sizeof(fx->system), "%s/etc/policy.yaml", fx->top);
    (void)snprintf(fx->cwd, sizeof(fx->cwd), "%s/home/repo/a/b", fx->top);
    fx->environment[0] = fx->home;
    fx->request = (struct policy_request){
        .cwd = fx->cwd,
        .system_file = fx->system,
        .environment = fx->environment,
    };
}

static void take_down(struct fixture *fx)
{
    AUTO(fd_close) int tmp = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);

    CHECK_EQ(tree_remove(tmp, fx->top + strlen("/tmp/"), NULL), 0);
}

static int load(struct fixture *fx, struct policy **out)
{
    fx->err = (struct carrel_error){ 0 };
    return policy_load(&fx->request, out, &fx->err);
}

/* The number of pids tells which file was used; 256 is built in. */
static void check_pids(struct fixture *fx, uint64_t pids, int line)
{
    AUTO(policy_free) struct policy *policy = NULL;

    if (load(fx, &policy) < 0)
        test_fail(__FILE__, line, "refused: %s", fx->err.message);
    test_check_eq(
            __FILE__, line, "pids", (__int128)policy_get(policy, POLICY_PIDS)->number, pids);
}
#define PIDS(fx, pids) check_pids(fx, pids, __LINE__)

/* "TOP" in `said` stands for the fixture's directory. */
static void check_refused(struct fixture *fx, int code, const char *said, int line)
{
    AUTO(policy_free) struct policy *policy = NULL;
    char expected[512];

    test_check_eq(__FILE__, line, "code", load(fx, &policy), code);
    const char *at = strstr(said, "TOP");
    (void)snprintf(expected, sizeof(expected), "%.*s%s%s", at ? (int)(at - said) : 0, said,
            at ? fx->top : "", at ? at + 3 : said);
    if (strncmp(fx->err.message, expected, strlen(expected)) != 0)
        test_check_str(__FILE__, line, "message", fx->err.message, expected);
}
#define REFUSED(fx, code, said) check_refused(fx, code, said, __LINE__)

#define PIDS_TEXT(n) "sandbox: {limits: {pids: " #n "}}\n"

TEST(the_nearest_file_gives_the_values)
{
    struct fixture fx;

    set_up(&fx);
    PIDS(&fx, 256);
    put(&fx, "home/.config/carrel/policy.yaml", PIDS_TEXT(200));
    PIDS(&fx, 200);
    put(&fx, "home/carrel.yaml", PIDS_TEXT(100)); /* above the repository */
    PIDS(&fx, 100);
    put(&fx, "home/repo/configs/profiles/default.yaml", PIDS_TEXT(90));
    PIDS(&fx, 90);
    put(&fx, "home/repo/carrel.yaml", PIDS_TEXT(80));
    PIDS(&fx, 80);
    put(&fx, "home/repo/a/b/carrel.yaml", PIDS_TEXT(70));
    PIDS(&fx, 70);
    put(&fx, "named.yaml", PIDS_TEXT(300));
    char named[96];
    (void)snprintf(named, sizeof(named), "%s/named.yaml", fx.top);
    fx.request.file = named;
    PIDS(&fx, 300);
    fx.request.file = "none";
    PIDS(&fx, 256);
    take_down(&fx);
}

TEST(configs_without_a_repository_are_not_looked_at)
{
    struct fixture fx;

    set_up(&fx);
    put(&fx, "home/repo/a/configs/profiles/default.yaml", PIDS_TEXT(90));
    put(&fx, "home/configs/profiles/default.yaml", PIDS_TEXT(91));
    PIDS(&fx, 256);
    take_down(&fx);
}

TEST(xdg_config_home_counts_before_home)
{
    struct fixture fx;
    char xdg[128];

    set_up(&fx);
    put(&fx, "home/.config/carrel/policy.yaml", PIDS_TEXT(200));
    put(&fx, "xdg/carrel/policy.yaml", PIDS_TEXT(150));
    (void)snprintf(xdg, sizeof(xdg), "XDG_CONFIG_HOME=%s/xdg", fx.top);
    fx.environment[1] = xdg;
    PIDS(&fx, 150);
    fx.environment[1] = "XDG_CONFIG_HOME=relative";
    PIDS(&fx, 200);
    fx.environment[0] = "HOME=";
    PIDS(&fx, 256);
    take_down(&fx);
}

TEST(the_system_s_bounds_stay_whatever_gives_the_values)
{
    struct fixture fx;

    if (geteuid() != 0)
        SKIP("a system's policy belongs to root");
    set_up(&fx);
    put(&fx, "etc/policy.yaml", "sandbox: {limits: {pids: {default: 10, maximum: 50}}}\n");
    PIDS(&fx, 10);
    put(&fx, "home/repo/carrel.yaml", PIDS_TEXT(60));
    REFUSED(&fx, -EPERM,
            "TOP/home/repo/carrel.yaml:1:26: sandbox.limits.pids 60: is looser than 10 ");
    put(&fx, "home/.config/carrel/policy.yaml", PIDS_TEXT(60));
    put(&fx, "home/repo/carrel.yaml", PIDS_TEXT(55));
    REFUSED(&fx, -EPERM,
            "TOP/home/repo/carrel.yaml:1:26: sandbox.limits.pids 55 is more than the maximum "
            "50 of ");
    fx.request.file = "none";
    PIDS(&fx, 50); /* what is built in, lowered */
    take_down(&fx);
}

TEST(a_user_s_bounds_stay_under_a_named_file_and_go_with_none)
{
    struct fixture fx;
    char named[96];

    set_up(&fx);
    put(&fx, "home/.config/carrel/policy.yaml", "sandbox: {limits: {pids: {maximum: 50}}}\n");
    put(&fx, "named.yaml", PIDS_TEXT(60));
    (void)snprintf(named, sizeof(named), "%s/named.yaml", fx.top);
    fx.request.file = named;
    REFUSED(&fx, -EPERM,
            "TOP/named.yaml:1:26: sandbox.limits.pids 60 is more than the maximum");
    fx.request.file = "none";
    PIDS(&fx, 256);
    take_down(&fx);
}

TEST(a_link_is_refused)
{
    static const char *const places[] = { "home/repo/carrel.yaml",
        "home/.config/carrel/policy.yaml", "etc/policy.yaml" };
    char path[PATH_MAX];
    char said[128];

    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        struct fixture fx;
        set_up(&fx);
        put(&fx, "real.yaml", PIDS_TEXT(1));
        (void)snprintf(path, sizeof(path), "%s/%s", fx.top, places[i]);
        (void)snprintf(said, sizeof(said), "TOP/%s: is a symbolic link", places[i]);
        CHECK_EQ(symlink("/tmp/../etc/passwd", path), 0);
        REFUSED(&fx, -ELOOP, said);
        take_down(&fx);
    }
}

TEST(a_link_on_the_way_to_configs_is_refused)
{
    struct fixture fx;
    char path[PATH_MAX];

    set_up(&fx);
    put(&fx, "elsewhere/profiles/default.yaml", PIDS_TEXT(1));
    (void)snprintf(path, sizeof(path), "%s/home/repo/configs", fx.top);
    CHECK_EQ(symlink("../../elsewhere", path), 0);
    REFUSED(&fx, -ELOOP, "TOP/home/repo/configs/profiles/default.yaml: is a symbolic link");
    take_down(&fx);
}

TEST(a_named_file_is_not_a_link)
{
    struct fixture fx;
    char path[96];

    set_up(&fx);
    put(&fx, "real.yaml", PIDS_TEXT(7));
    (void)snprintf(path, sizeof(path), "%s/link.yaml", fx.top);
    CHECK_EQ(symlink("real.yaml", path), 0);
    fx.request.file = path;
    REFUSED(&fx, -ELOOP,
            "policy: 'TOP/link.yaml': is a link; carrel does not follow links there");
    take_down(&fx);
}

TEST(a_named_file_must_be_there)
{
    struct fixture fx;

    set_up(&fx);
    fx.request.file = "/nonexistent/policy.yaml";
    REFUSED(&fx, -ENOENT, "policy: '/nonexistent/policy.yaml': No such file or directory");
    fx.request.file = "/tmp";
    REFUSED(&fx, -EISDIR, "policy: '/tmp': is a directory; expected a regular file");
    take_down(&fx);
}

TEST(a_fifo_is_refused_and_blocks_nobody)
{
    struct fixture fx;
    char path[PATH_MAX];

    set_up(&fx);
    (void)snprintf(path, sizeof(path), "%s/home/repo/carrel.yaml", fx.top);
    CHECK_EQ(mkfifo(path, 0644), 0);
    REFUSED(&fx, -EINVAL, "TOP/home/repo/carrel.yaml: a policy must be a regular file");
    fx.request.file = path;
    REFUSED(&fx, -EINVAL,
            "policy: 'TOP/home/repo/carrel.yaml': is a FIFO; expected a regular file");
    take_down(&fx);
}

TEST(a_file_that_is_too_large_is_refused)
{
    struct fixture fx;
    char path[PATH_MAX];

    set_up(&fx);
    put(&fx, "home/repo/carrel.yaml", "");
    (void)snprintf(path, sizeof(path), "%s/home/repo/carrel.yaml", fx.top);
    CHECK_EQ(truncate(path, 1LL << 40), 0);
    REFUSED(&fx, -EFBIG, "TOP/home/repo/carrel.yaml: is larger than 262144 bytes");
    take_down(&fx);
}

static void set_mode(const struct fixture *fx, const char *rel, mode_t mode)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof(path), "%s/%s", fx->top, rel);
    CHECK_EQ(chmod(path, mode), 0);
}

TEST(what_others_can_write_is_refused)
{
    struct fixture fx;

    set_up(&fx);
    put(&fx, "home/.config/carrel/policy.yaml", PIDS_TEXT(200));
    set_mode(&fx, "home/.config/carrel/policy.yaml", 0646);
    REFUSED(&fx, -EPERM, "TOP/home/.config/carrel/policy.yaml: is writable by all users");
    set_mode(&fx, "home/.config/carrel/policy.yaml", 0664);
    PIDS(&fx, 200);
    take_down(&fx);
}

TEST(a_system_s_policy_is_root_s_alone)
{
    struct fixture fx;

    set_up(&fx);
    put(&fx, "etc/policy.yaml", PIDS_TEXT(9));
    if (geteuid() != 0) {
        REFUSED(&fx, -EPERM, "TOP/etc/policy.yaml: its directory must belong to root");
        take_down(&fx);
        return;
    }
    PIDS(&fx, 9);
    set_mode(&fx, "etc/policy.yaml", 0664);
    REFUSED(&fx, -EPERM, "TOP/etc/policy.yaml: the system's policy can be written by others");
    set_mode(&fx, "etc/policy.yaml", 0646);
    REFUSED(&fx, -EPERM, "TOP/etc/policy.yaml: the system's policy can be written by others");
    set_mode(&fx, "etc/policy.yaml", 0644);
    set_mode(&fx, "etc", 0777);
    REFUSED(&fx, -EPERM, "TOP/etc/policy.yaml: its directory can be written by others");
    set_mode(&fx, "etc", 0755);
    CHECK_EQ(chown(fx.system, 65533, 65533), 0);
    REFUSED(&fx, -EPERM, "TOP/etc/policy.yaml: the system's policy must belong to root");
    take_down(&fx);
}

TEST(a_stranger_s_file_is_refused)
{
    struct fixture fx;
    char path[PATH_MAX];

    if (geteuid() != 0)
        SKIP("needs root to make files of two owners");
    set_up(&fx);
    put(&fx, "home/.config/carrel/policy.yaml", PIDS_TEXT(200));
    (void)snprintf(path, sizeof(path), "%s/home/.config/carrel/policy.yaml", fx.top);
    CHECK_EQ(chown(path, 65533, 65533), 0);
    REFUSED(&fx, -EPERM, "TOP/home/.config/carrel/policy.yaml: belongs to another user");
    CHECK_EQ(unlink(path), 0);
    put(&fx, "home/carrel.yaml", PIDS_TEXT(100));
    (void)snprintf(path, sizeof(path), "%s/home/carrel.yaml", fx.top);
    CHECK_EQ(chown(path, 65533, 65533), 0);
    REFUSED(&fx, -EPERM, "TOP/home/carrel.yaml: belongs to another user");
    (void)snprintf(path, sizeof(path), "%s/home", fx.top);
    CHECK_EQ(chown(path, 65533, 65533), 0); /* the owner of the directory may put it there */
    PIDS(&fx, 100);
    take_down(&fx);
}

TEST(what_is_there_but_cannot_be_read_is_an_error)
{
    struct fixture fx;

    set_up(&fx);
    put(&fx, "home/.config/carrel/policy.yaml", PIDS_TEXT(200));
    set_mode(&fx, "home/.config/carrel/policy.yaml", 0);
    if (geteuid() == 0)
        CHECK_EQ(seteuid(65533), 0);
    REFUSED(&fx, -EACCES, "open 'TOP/home/.config/carrel/policy.yaml': Permission denied");
    CHECK_EQ(seteuid(getuid()), 0);
    set_mode(&fx, "home/.config", 0);
    if (geteuid() == 0)
        CHECK_EQ(seteuid(65533), 0);
    PIDS(&fx, 256); /* a home directory of another user does not count */
    CHECK_EQ(seteuid(getuid()), 0);
    set_mode(&fx, "home/.config", 0755);
    take_down(&fx);
}

/* ---- profiles ---- */

TEST(a_profile_is_taken_from_whoever_has_it)
{
    struct fixture fx;

    set_up(&fx);
    put(&fx, "home/.config/carrel/policy.yaml",
            "profiles: {small: {sandbox: {limits: {pids: 20}}}}\n");
    fx.request.profile = "small";
    PIDS(&fx, 20);
    put(&fx, "home/repo/carrel.yaml", "sandbox: {network: none}\n");
    PIDS(&fx, 20);
    put(&fx, "home/repo/carrel.yaml", "profiles: {small: {sandbox: {limits: {pids: 10}}}}\n");
    PIDS(&fx, 10);
    fx.request.profile = "smal";
    REFUSED(&fx, -ENOENT, "there is no profile 'smal' (did you mean 'small'?)");
    fx.request.profile = "unlike";
    REFUSED(&fx, -ENOENT, "there is no profile 'unlike' in TOP/home/repo/carrel.yaml");
    fx.request.file = "none";
    REFUSED(&fx, -ENOENT, "there is no profile 'unlike': no policy file gives values");
    take_down(&fx);
}
