/* harness.c - runs the registered tests, one process each, and prints TAP. */
#include "harness.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_SKIPPED = 77, TEST_SECONDS = 60, DIRS_MAX = 64 };

static struct test *first;
static struct test **last = &first;

/* Shared by the parent and the test's processes: it does not fit into an exit status. */
struct shared {
    char reason[256];
    atomic_uint n_dirs; /* may exceed the size of the array */
    char dirs[DIRS_MAX][128];
};
static struct shared *shared;

static volatile sig_atomic_t is_ended;
static volatile pid_t running; /* the process of the current test, or 0 */

void test_register(struct test *test)
{
    *last = test;
    last = &test->next;
}

_Noreturn void test_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fprintf(stderr, "%s:%d: ", file, line);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
    va_end(ap);
    fflush(NULL);
    _exit(EXIT_FAILURE); /* no leak report: the test did not get to free anything */
}

_Noreturn void test_skip(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(shared->reason, sizeof(shared->reason), fmt, ap);
    va_end(ap);
    fflush(NULL);
    _exit(EXIT_SKIPPED);
}

char *test_mkdtemp(char *path)
{
    if (!mkdtemp(path))
        return NULL;
    unsigned n = atomic_fetch_add(&shared->n_dirs, 1);
    if (n < DIRS_MAX && strlen(path) < sizeof(shared->dirs[n]))
        memcpy(shared->dirs[n], path, strlen(path) + 1);
    return path;
}

static void remove_dir(char *path)
{
    char *argv[] = { (char[]){ "rm" }, (char[]){ "-rf" }, (char[]){ "--one-file-system" },
        (char[]){ "--" }, path, NULL };
    pid_t pid;

    if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) == 0)
        (void)waitpid(pid, NULL, 0);
}

/* Most tests have removed theirs. */
static void remove_dirs(void)
{
    unsigned n = atomic_exchange(&shared->n_dirs, 0);

    for (unsigned i = 0; i < n && i < DIRS_MAX; i++) {
        char *path = shared->dirs[i];
        if (path[0] && access(path, F_OK) == 0)
            remove_dir(path);
        path[0] = '\0';
    }
}

/* If we are killed, the test is killed too, and its directories are removed. */
static void on_end(int signal)
{
    (void)signal;
    is_ended = 1;
    if (running > 0)
        (void)kill(-running, SIGKILL);
}

static const int ends[] = { SIGTERM, SIGINT, SIGHUP };
static struct sigaction
        inherited[3]; /* the dispositions that a test gets: those we were started with */

static void catch_ends(void)
{
    const struct sigaction action = { .sa_handler = on_end, .sa_flags = SA_RESTART };

    for (int i = 0; i < 3; i++)
        (void)sigaction(ends[i], &action, &inherited[i]);
}

static void forget_ends(void)
{
    for (int i = 0; i < 3; i++)
        (void)sigaction(ends[i], &inherited[i], NULL);
}

static const char *decimal(__int128 value, char text[static 48])
{
    unsigned __int128 rest = value < 0 ? -(unsigned __int128)value : (unsigned __int128)value;
    char *at = text + 47;

    *at = '\0';
    do {
        *--at = (char)('0' + (int)(rest % 10));
        rest /= 10;
    } while (rest);
    if (value < 0)
        *--at = '-';
    return at;
}

void test_check_eq(
        const char *file, int line, const char *expr, __int128 actual, __int128 expected)
{
    char is[48];
    char should[48];

    if (actual != expected)
        test_fail(file, line, "%s is %s, expected %s", expr, decimal(actual, is),
                decimal(expected, should));
}

/* As a C literal, so that the difference is visible. */
static void show(const char *label, const void *data, size_t len)
{
    const unsigned char *at = data;

    fprintf(stderr, "  %s ", label);
    if (!data) {
        fprintf(stderr, "NULL\n");
        return;
    }
    fputc('"', stderr);
    for (size_t i = 0; i < len; i++) {
        if (at[i] == '"' || at[i] == '\\')
            fprintf(stderr, "\\%c", at[i]);
        else if (at[i] >= 0x20 && at[i] < 0x7f)
            fputc(at[i], stderr);
        else
            fprintf(stderr, "\\x%02x", at[i]);
    }
    fprintf(stderr, "\"\n");
}

void test_check_mem(const char *file, int line, const char *expr, const void *actual,
        size_t actual_len, const void *expected, size_t expected_len)
{
    if (!actual == !expected && actual_len == expected_len &&
            (actual_len == 0 || memcmp(actual, expected, actual_len) == 0))
        return;
    show("is      ", actual, actual_len);
    show("expected", expected, expected_len);
    test_fail(file, line, "%s differs", expr);
}

void test_check_str(
        const char *file, int line, const char *expr, const char *actual, const char *expected)
{
    test_check_mem(file, line, expr, actual, actual ? strlen(actual) : 0, expected,
            expected ? strlen(expected) : 0);
}

static void sentence(const char *name)
{
    for (; *name; name++)
        putchar(*name == '_' ? ' ' : *name);
}

/* The test's own output is shown only if it failed, as TAP comments. */
static void print_output(int output)
{
    FILE *file = fdopen(output, "r");
    int c;
    int before = '\n';

    if (!file)
        return;
    rewind(file);
    while ((c = fgetc(file)) != EOF) {
        if (before == '\n')
            fputs("#   ", stdout);
        putchar(c);
        before = c;
    }
    if (before != '\n')
        putchar('\n');
    fclose(file);
}

_Noreturn static void run_in_child(const struct test *test, int output)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    forget_ends();
    (void)setpgid(0, 0); /* so that its leftovers can be killed with it */
    if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
            dup2(output, STDERR_FILENO) < 0)
        _exit(EXIT_FAILURE);
    (void)close(null);
    (void)close(output);
    (void)alarm(TEST_SECONDS);
    test->run();
    exit(EXIT_SUCCESS); /* not _exit: the leak check of the sanitizer runs at exit */
}

/* Returns whether the test passed or was skipped. */
static int run(const struct test *test, int number)
{
    int status = 0;
    int output = memfd_create("output", MFD_CLOEXEC);

    shared->reason[0] = '\0';
    fflush(stdout);
    pid_t pid = output < 0 ? -1 : fork();
    if (pid == 0)
        run_in_child(test, output);
    if (pid < 0) {
        printf("not ok %d - ", number);
        sentence(test->name);
        printf("\n#   cannot start a process: %s\n", strerror(errno));
        return 0;
    }
    (void)setpgid(pid, pid); /* here, too: either may be first */
    running = pid;
    if (is_ended)
        (void)kill(-pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    running = 0;
    (void)kill(-pid, SIGKILL); /* mostly ESRCH: nothing was left */
    remove_dirs();

    int is_skipped = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIPPED;
    int is_ok = is_skipped || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
    printf("%s %d - ", is_ok ? "ok" : "not ok", number);
    sentence(test->name);
    if (is_skipped)
        printf(" # SKIP %s", shared->reason);
    putchar('\n');
    if (is_ok) {
        (void)close(output);
        return 1;
    }
    print_output(output);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        printf("#   not finished after %d seconds\n", TEST_SECONDS);
    else if (WIFSIGNALED(status))
        printf("#   ended by signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else
        printf("#   exit status %d\n", WEXITSTATUS(status));
    return 0;
}

/* With arguments, only the tests whose name contains one of them run. */
static int is_wanted(const struct test *test, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strstr(test->name, argv[i]))
            return 1;
    return argc < 2;
}

int main(int argc, char **argv)
{
    int count = 0;
    int number = 0;
    int failed = 0;

    (void)setenv("CARREL_PROGRAM", BUILT_PROGRAM, 1);
    shared = mmap(
            NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        printf("Bail out! no memory\n");
        return EXIT_FAILURE;
    }
    for (const struct test *test = first; test; test = test->next)
        count += is_wanted(test, argc, argv);
    printf("TAP version 13\n1..%d\n", count);
    catch_ends();
    for (const struct test *test = first; test && !is_ended; test = test->next)
        if (is_wanted(test, argc, argv))
            failed += !run(test, ++number);
    return failed || count == 0 || is_ended ? EXIT_FAILURE : EXIT_SUCCESS;
}
