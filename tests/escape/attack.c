/* attack.c - modes, attempts and the verdict of an attack program. */
#include "attack.h"
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool has_success;
static bool has_other;

__attribute__((format(printf, 3, 0))) static void line(
        const char *verdict, const char *what, const char *fmt, va_list args)
{
    char text[512];

    vsnprintf(text, sizeof(text), fmt, args);
    printf("%s %s %s\n", verdict, what, text);
    fflush(stdout);
}

void succeeded(const char *what, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    line("SUCCEEDED", what, fmt, args);
    va_end(args);
    has_success = true;
}

void refused(const char *what, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    line("REFUSED", what, fmt, args);
    va_end(args);
}

void invisible(const char *what)
{
    printf("INVISIBLE %s\n", what);
    fflush(stdout);
}

void ready(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    line("READY", "", fmt, args);
    va_end(args);
}

bool is_among(int why, const int *reasons)
{
    for (; reasons && *reasons; reasons++)
        if (*reasons == why)
            return true;
    return false;
}

const char *errno_name(int why)
{
    const char *name = strerrorname_np(why);
    return name ? name : "?";
}

void attempt(const char *what, long result, const int *reasons)
{
    if (result >= 0)
        succeeded(what, "%ld", result);
    else
        failed(what, errno, reasons);
}

void failed(const char *what, int why, const int *reasons)
{
    if (is_among(why, reasons)) {
        refused(what, "%s", errno_name(why));
    } else {
        printf("OTHER %s %s\n", what, errno_name(why));
        fflush(stdout);
        has_other = true;
    }
}

void works(const char *what, bool is_fine)
{
    int why = errno;

    if (is_fine) {
        printf("WORKS %s\n", what);
    } else {
        printf("FAILS %s %s\n", what, errno_name(why));
        has_success = true;
    }
    fflush(stdout);
}

void attempt_in_child(const char *what, attempt_fn *fn, const void *arg, const int *reached,
        const int *reasons)
{
    struct {
        long result;
        int why;
    } answer = { 0 };
    int pipe_fds[2];

    fflush(stdout);
    if (pipe(pipe_fds) < 0)
        cannot("pipe: %s", strerror(errno));
    pid_t pid = fork();
    if (pid < 0)
        cannot("fork: %s", strerror(errno));
    if (pid == 0) {
        errno = 0;
        answer.result = fn(arg);
        answer.why = errno;
        _exit(write(pipe_fds[1], &answer, sizeof(answer)) == sizeof(answer) ? 0 : 99);
    }
    close(pipe_fds[1]);
    ssize_t n = read(pipe_fds[0], &answer, sizeof(answer));
    close(pipe_fds[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    if (n == sizeof(answer)) {
        if (answer.result < 0 && is_among(answer.why, reached))
            succeeded(what, "reached: %s", errno_name(answer.why));
        else if (answer.result < 0)
            failed(what, answer.why, reasons);
        else
            succeeded(what, "%ld", answer.result);
    } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) {
        refused(what, "SIGSYS");
    } else if (WIFSIGNALED(status)) {
        printf("OTHER %s signal %d\n", what, WTERMSIG(status));
        has_other = true;
    } else {
        cannot("%s: the child said nothing", what);
    }
}

void cannot(const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    fprintf(stderr, "cannot try: %s\n", text);
    exit(99);
}

unsigned long number(const char *word)
{
    char *end = NULL;
    if (!word || !*word)
        cannot("a number is missing");
    unsigned long value = strtoul(word, &end, 0);
    if (*end)
        cannot("'%s' is not a number", word);
    return value;
}

int attack_main(int argc, char **argv, const struct attack_mode *modes)
{
    if (argc >= 2)
        for (; modes->name; modes++)
            if (strcmp(modes->name, argv[1]) == 0) {
                modes->fn(argv + 2);
                return has_success ? 1 : has_other ? 2 : 0;
            }
    cannot("usage: %s MODE [ARG...]", argv[0]);
}
