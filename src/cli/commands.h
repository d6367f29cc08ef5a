/* commands.h - one function per command; the table in main.c lists them. */
#pragma once
#include <stdbool.h>

/* argv[0] is the command's own name. Returns the exit status. */
int cmd_run(int argc, char **argv);
int cmd_create(int argc, char **argv);
int cmd_exec(int argc, char **argv);
int cmd_attach(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_signal(int argc, char **argv);
int cmd_inspect(int argc, char **argv);
int cmd_renew(int argc, char **argv);
int cmd_pause(int argc, char **argv);
int cmd_resume(int argc, char **argv);
int cmd_update(int argc, char **argv);
int cmd_snapshot(int argc, char **argv);
int cmd_snapshots(int argc, char **argv);
int cmd_fork(int argc, char **argv);
int cmd_destroy(int argc, char **argv);
int cmd_policy(int argc, char **argv);
int cmd_python(int argc, char **argv);
int cmd_health(int argc, char **argv);
int cmd_test(int argc, char **argv);
int cmd_workspace(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_runs(int argc, char **argv);
int cmd_journal(int argc, char **argv);
int cmd_image(int argc, char **argv);
int cmd_cp(int argc, char **argv);
int cmd_ls(int argc, char **argv);
int cmd_cat(int argc, char **argv);
int cmd_write(int argc, char **argv);
int cmd_rm(int argc, char **argv);
int cmd_mv(int argc, char **argv);
int cmd_mkdir(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_cleanup(int argc, char **argv);

/* Programs that carrel executes itself as: src/cli/hidden/. */
int cmd_archive(int argc, char **argv); /* for `import` and `image import` */
int cmd_host(int argc, char **argv);    /* for `health` and `test` */
int cmd_keeper(int argc, char **argv);  /* for `create` and `fork` */
int cmd_probe(int argc, char **argv);   /* for `test` */

/*
 * What git asks, in a sandbox, which files changed: the hook fsmonitor-watchman of githooks(5),
 * version and token in, a new token and paths out. git starts it by a name of its own, which
 * argv[0] is then.
 */
bool is_git_monitor(const char *argv0);
int git_monitor(int argc, char **argv);
