/* aside.c - a thread that is started and joined. */
#include "base/aside.h"
#include "base/err.h"
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct aside {
    mode_t umask;
    int (*work)(void *context);
    void *context;
    bool is_done; /* else `result` says why the work was not begun */
    int result;
};

static void *run(void *context)
{
    struct aside *aside = context;

    if (unshare(CLONE_FS) < 0) {
        aside->result = -errno;
        return NULL;
    }
    (void)umask(aside->umask);
    aside->result = aside->work(aside->context);
    aside->is_done = true;
    return NULL;
}

int aside_run(mode_t umask, int (*work)(void *context), void *context, struct carrel_error *err)
{
    struct aside aside = { .umask = umask, .work = work, .context = context };
    sigset_t all, before;
    pthread_t thread;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before); /* a new thread inherits it */
    int code = pthread_create(&thread, NULL, run, &aside);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0)
        return err_set_errno(err, -code, "start a thread");
    (void)pthread_join(thread, NULL); /* it cannot fail: the thread is ours alone */
    return aside.is_done ? aside.result
                         : err_set_errno(err, aside.result, "give a thread its own umask");
}
