#include "core/python/interpreter.h"
#include "harness.h"
#include "policy/policy.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[64];
static struct carrel_error err;
static struct interpreter interpreter;

static void shell(const char *line)
{
    char command[2048];

    (void)snprintf(command, sizeof(command), "cd %s && %s", top, line);
    CHECK_EQ(system(command), 0); /* a test's own words */
}

/* base/ is an installation, base-link another name of it, venv/ and bare/ are based on them. */
static void make_tree(void)
{
    (void)strcpy(top, "/tmp/carrel-place.XXXXXX");
    CHECK(mkdtemp(top));
    shell("mkdir -p base/bin base/lib/python3.12 venv/bin fake/bin dir && "
          "touch base/lib/python3.12/os.py base/bin/python3.12 && chmod +x base/bin/* && "
          "ln -s python3.12 base/bin/python3 && ln -s base base-link && "
          "ln -s python3 venv/bin/python && ln -s $PWD/base-link/bin/python3 "
          "venv/bin/python3 && "
          "printf 'home = %s/base-link/bin\\nversion = 3.12\\n' $PWD > venv/pyvenv.cfg && "
          "touch fake/bin/python && chmod +x fake/bin/python");
}

static int find(struct carrel_python_options *o)
{
    struct policy *policy = NULL;

    CHECK_EQ(policy_built_in(&policy, &err), 0);
    int r = interpreter_find(o, policy, &interpreter, &err);
    policy_free(policy);
    return r;
}

static void end(void)
{
    interpreter_finish(interpreter);
    shell("rm -rf ./* && rmdir $PWD");
}

/* The mounts that were added, without the directory they are all in. */
static const char *shown(void)
{
    static char text[1024];
    struct stat source;
    struct stat target;

    text[0] = '\0';
    for (size_t i = interpreter.n_given; i < interpreter.n_mounts; i++) {
        CHECK(!interpreter.mounts[i].is_writable);
        CHECK_EQ(stat(interpreter.mounts[i].source, &source), 0);
        CHECK_EQ(stat(interpreter.mounts[i].target, &target), 0);
        CHECK_EQ(source.st_ino, target.st_ino);
        CHECK_EQ(strncmp(interpreter.mounts[i].target, top, strlen(top)), 0);
        (void)strcat(text, interpreter.mounts[i].target + strlen(top));
        (void)strcat(text, " ");
    }
    return text;
}

static const char *at(const char *path)
{
    static char text[PATH_MAX];

    (void)snprintf(text, sizeof(text), "%s/%s", top, path);
    return text;
}

TEST(the_sandboxes_own_python_needs_nothing)
{
    struct carrel_python_options o = CARREL_PYTHON_OPTIONS_INIT;

    CHECK_EQ(find(&o), 0);
    CHECK_STR(interpreter.interpreter, "python3");
    CHECK_EQ(interpreter.n_mounts, 0);
    interpreter_finish(interpreter);

    o.python = "/usr/bin/python3";
    CHECK_EQ(find(&o), 0);
    CHECK_EQ(interpreter.n_mounts, 0);
    interpreter_finish(interpreter);
}

TEST(a_venv_is_shown_with_all_names_of_its_base)
{
    struct carrel_python_options o = CARREL_PYTHON_OPTIONS_INIT;

    make_tree();
    o.venv = at("venv");
    CHECK_EQ(find(&o), 0);
    CHECK_STR(interpreter.interpreter, at("venv/bin/python"));
    CHECK_STR(shown(), "/venv /base-link /base ");
    end();
}

TEST(a_relative_venv_gets_its_absolute_path)
{
    struct carrel_python_options o = CARREL_PYTHON_OPTIONS_INIT;

    make_tree();
    CHECK_EQ(chdir(at("dir")), 0);
    o.venv = "../venv/";
    CHECK_EQ(find(&o), 0);
    CHECK_STR(interpreter.interpreter, at("venv/bin/python"));
    end();
}

TEST(a_named_interpreter_brings_its_installation)
{
    struct carrel_python_options o = CARREL_PYTHON_OPTIONS_INIT;

    make_tree();
    o.python = at("base-link/bin/python3");
    CHECK_EQ(find(&o), 0);
    CHECK_STR(shown(), "/base-link /base ");
    end();
}

TEST(a_directory_that_is_no_installation_is_never_shown)
{
    struct carrel_python_options o = CARREL_PYTHON_OPTIONS_INIT;

    make_tree();
    o.python = at("fake/bin/python"); /* as ~/bin/python would show the whole home */
    CHECK_EQ(find(&o), 0);
    CHECK_STR(shown(), "");
    end();
}

TEST(what_the_caller_shows_is_not_shown_again)
{
    struct carrel_python_options o = CARREL_PYTHON_OPTIONS_INIT;
    struct carrel_run_options run = CARREL_RUN_OPTIONS_INIT;

    make_tree();
    const struct carrel_mount mount = { .source = top, .target = top };
    run.mounts = &mount;
    run.n_mounts = 1;
    o.run = &run;
    o.venv = at("venv");
    CHECK_EQ(find(&o), 0);
    CHECK_EQ(interpreter.n_mounts, 1);
    CHECK_STR(interpreter.mounts[0].source, top);
    end();
}

TEST(without_isolation_there_is_nothing_to_show)
{
    struct carrel_python_options o = CARREL_PYTHON_OPTIONS_INIT;
    struct carrel_run_options run = CARREL_RUN_OPTIONS_INIT;

    make_tree();
    run.runtime = "process";
    o.run = &run;
    o.venv = at("venv");
    CHECK_EQ(find(&o), 0);
    CHECK_EQ(interpreter.n_mounts, 0);
    end();
}

TEST(nothing_larger_than_an_installation_is_shown)
{
    struct carrel_python_options o = CARREL_PYTHON_OPTIONS_INIT;

    make_tree();
    o.venv = at("venv");
    shell("ln -s / evil && printf 'home = %s/evil/bin\\n' $PWD > venv/pyvenv.cfg");
    /* Where the machine has /lib/python3/os.py; elsewhere it is no installation either. */
    shell("mkdir -p lib/python3.12 bin && touch lib/python3.12/os.py bin/python3");
    int r = find(&o);
    CHECK(r == -EPERM ? strstr(err.message, "but '/' holds everything") != NULL
                      : r == 0 && !strstr(shown(), "evil"));
    interpreter_finish(interpreter);
    interpreter = (struct interpreter){ 0 };
    shell("printf 'home = %s/bin\\n' $PWD > venv/pyvenv.cfg"); /* holds the environment */
    CHECK_EQ(find(&o), -EPERM);
    CHECK(strstr(err.message, "holds the virtual environment"));
    shell("mkdir -p h/lib/python3.12 h/bin && touch h/lib/python3.12/os.py && "
          "printf 'home = %s/h/bin\\n' $PWD > venv/pyvenv.cfg");
    (void)setenv("HOME", at("h"), 1);
    o.venv = at("venv");
    CHECK_EQ(find(&o), -EPERM);
    CHECK(strstr(err.message, "holds a home"));
    o.venv = NULL;
    o.python = at("h/bin/python3");
    CHECK_EQ(find(&o), -EPERM);
    end();
}

TEST(a_fifo_or_a_link_is_no_pyvenv_cfg)
{
    struct carrel_python_options o = CARREL_PYTHON_OPTIONS_INIT;

    make_tree();
    o.venv = at("venv");
    shell("rm venv/pyvenv.cfg && mkfifo venv/pyvenv.cfg");
    CHECK_EQ(find(&o), -EINVAL);
    CHECK(strstr(err.message, "it has no readable pyvenv.cfg ('pyvenv.cfg': is a FIFO"));
    shell("rm venv/pyvenv.cfg && ln -s /etc/passwd venv/pyvenv.cfg");
    CHECK_EQ(find(&o), -EINVAL);
    CHECK(strstr(err.message, "is a link; carrel does not follow links there"));
    shell("ln -s venv other");
    o.venv = at("other");
    CHECK_EQ(find(&o), -ELOOP);
    end();
}

TEST(what_is_no_venv_is_refused)
{
    struct carrel_python_options o = CARREL_PYTHON_OPTIONS_INIT;
    char expected[256];

    make_tree();
    o.venv = at("dir");
    CHECK_EQ(find(&o), -EINVAL);
    (void)snprintf(expected, sizeof(expected),
            "'%s/dir' is not a virtual environment: it has no readable pyvenv.cfg (No such "
            "file or directory)",
            top);
    CHECK_STR(err.message, expected);

    shell("rm base/bin/python3.12");
    o.venv = at("venv");
    CHECK_EQ(find(&o), -EINVAL);
    CHECK(strstr(err.message, "is a broken virtual environment: its interpreter bin/python"));

    o.python = "python3";
    CHECK_EQ(find(&o), -EINVAL);
    CHECK(strstr(err.message, "--venv and --python cannot be combined"));
    interpreter = (struct interpreter){ 0 };
    end();
}
