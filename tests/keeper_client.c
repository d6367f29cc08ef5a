/*
 * keeper_client.c - a client that violates the protocol. tests/cli/keeper.bats checks the
 * keeper.
 *
 * usage: keeper_client SOCKET CASE [ARG...]
 *   payloads     invalid payloads, each beside a request that needs one
 *   changing N   sends N requests with a payload that another thread changes and truncates
 * meanwhile garbage      invalid messages, messages out of order, unexpected descriptors
 *   requests     valid messages about things that do not exist
 *   silent N     N connections that send nothing; prints "ready", and exits when its input ends
 *   unread       sends requests and never reads an answer, until it is disconnected
 *   forks N      asks for N forks and reads no answer, as `silent`
 *   half         gets a file, closes one direction and continues to write, as `silent`
 *   peer         connects, and prints the result
 *   extra        a program with streams beside the three
 *
 * Exits with 0 if each case had the expected answer. Others are printed.
 */
#include "base/auto.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/payload.h"
#include "core/keeper/wire.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const char *path;
static int n_wrong;

static _Noreturn void die(const char *what)
{
    perror(what);
    exit(1);
}

static int dial(void)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (sock < 0 || strlen(path) >= sizeof(at.sun_path))
        die("socket");
    (void)strcpy(at.sun_path, path);
    if (connect(sock, (const struct sockaddr *)&at, sizeof(at)) < 0)
        die(path);
    return sock;
}

/* Sends any data, with any number of descriptors. */
static void say(int sock, const void *data, size_t len, const int *fds, size_t n_fds)
{
    static char control[CMSG_SPACE(253 * sizeof(int))] __attribute__((aligned(8)));
    struct iovec io = { .iov_base = (void *)(uintptr_t)data, .iov_len = len };
    struct msghdr header = { .msg_iov = &io, .msg_iovlen = 1 };

    if (n_fds > 0) {
        header.msg_control = control;
        header.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&header);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
    }
    if (sendmsg(sock, &header, MSG_NOSIGNAL) < 0)
        die("sendmsg");
}

/* The answer: "done", a message, or "hung up". */
static const char *hear(int sock)
{
    static struct keeper_message answer;
    int fds[KEEPER_MAX_FDS];

    int n = keeper_receive(sock, &answer, fds, 0);
    if (n < 0)
        return n == -EPIPE ? "hung up" : strerrorname_np(-n);
    for (int i = 0; i < n; i++)
        fd_close(fds[i]);
    return answer.kind == KEEPER_DONE     ? "done"
           : answer.kind == KEEPER_FAILED ? answer.error.message
                                          : "another answer";
}

static void expect(const char *what, int sock, const char *answer)
{
    const char *got = hear(sock);

    if (strcmp(got, answer) != 0) {
        printf("%s: '%s' instead of '%s'\n", what, got, answer);
        n_wrong++;
    }
}

static void greet(int sock)
{
    const struct keeper_message hello = { .kind = KEEPER_HELLO, .value = KEEPER_VERSION };
    int events[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, events) < 0)
        die("socketpair");
    say(sock, &hello, sizeof(hello), &events[1], 1);
    expect("hello", sock, "done");
    fd_close(events[0]);
    fd_close(events[1]);
}

/* A memory file of this size, all zero. */
static int memory(off_t size)
{
    int fd = memfd_create("client", MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, size) < 0)
        die("memfd_create");
    return fd;
}

/* --- what is no payload --- */

static const enum keeper_kind with_payload[] = { KEEPER_START, KEEPER_FILE, KEEPER_SNAPSHOT,
    KEEPER_FORK };

static void ask_with(int sock, const char *what, int fd, const char *answer)
{
    for (size_t i = 0; i < ARRAY_LEN(with_payload); i++) {
        const struct keeper_message request = { .kind = with_payload[i] };
        say(sock, &request, sizeof(request), &fd, 1);
        expect(what, sock, answer);
    }
    fd_close(fd);
}

/* In the message itself: too short, too long, with lists or text past the end. */
static void near_payloads(int sock, enum keeper_kind kind, const int fds[static 4])
{
    static const struct payload_near wrong[] = { { .len = 1 }, { .len = 15 }, { .len = 31 },
        { .len = 32 }, { .len = 505 }, { .len = UINT64_MAX },
        { .len = 504, .bytes = { [7] = 1 } }, { .len = 504, .bytes = { 61 } },
        { .len = 504, .bytes = { [8] = 60 } }, { .len = 33, .bytes = { [32] = 'x' } } };
    char many[64];

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        const struct keeper_message request = { .kind = kind, .payload = wrong[i] };
        say(sock, &request, sizeof(request), NULL, 0);
        expect("near", sock, "the request's payload is malformed");
    }
    const struct keeper_message both = { .kind = kind, .payload = { .len = 33 } };
    (void)snprintf(many, sizeof(many), "4 descriptors with a request that takes %d",
            kind == KEEPER_FILE ? 2 : 0);
    say(sock, &both, sizeof(both), fds, 4);
    expect("near, and many", sock, many);
}

static void payloads(void)
{
    static const char foreign[] = "the request's payload is not a memory file";
    static const char malformed[] = "the request's payload is malformed";
    AUTO(fd_close) int sock = dial();
    int ends[2];

    greet(sock);
    if (pipe2(ends, O_CLOEXEC) < 0)
        die("pipe");
    ask_with(sock, "a pipe", ends[0], foreign);
    fd_close(ends[1]);
    ask_with(sock, "a directory", open("/", O_RDONLY | O_CLOEXEC), foreign);
    ask_with(sock, "a device", open("/dev/zero", O_RDONLY | O_CLOEXEC), foreign);
    ask_with(sock, "a file", open("/etc/passwd", O_RDONLY | O_CLOEXEC), foreign);
    ask_with(sock, "a path", open("/etc/passwd", O_PATH | O_CLOEXEC), foreign);
    ask_with(sock, "a socket", socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), foreign);
    ask_with(sock, "nothing", memory(0), malformed);
    ask_with(sock, "too little", memory(8), malformed);
    ask_with(sock, "too much", memory(65 << 20), malformed);
    for (size_t i = 0; i < ARRAY_LEN(with_payload); i++) {
        const struct keeper_message request = { .kind = with_payload[i] };
        const int fds[] = { memory(64), memory(64), memory(64), memory(64) };
        char many[64];
        (void)snprintf(many, sizeof(many), "4 descriptors with a request that takes %d",
                with_payload[i] == KEEPER_FILE ? 3 : 1);
        say(sock, &request, sizeof(request), fds, ARRAY_LEN(fds));
        expect("many", sock, many);
        near_payloads(sock, with_payload[i], fds);
        for (size_t k = 0; k < ARRAY_LEN(fds); k++)
            fd_close(fds[k]);
    }
}

/* --- a payload that changes --- */

static atomic_bool is_over;

static void *change(void *arg)
{
    const int fd = *(const int *)arg;
    off_t whole = lseek(fd, 0, SEEK_END);
    char *copy = malloc((size_t)whole);

    if (!copy || pread(fd, copy, (size_t)whole, 0) != whole)
        die("payload");
    while (!is_over) {
        if (ftruncate(fd, whole / 2) < 0 || pwrite(fd, "ABCDEFGH", 8, 8) != 8 ||
                ftruncate(fd, 0) < 0 || pwrite(fd, copy, (size_t)whole, 0) != whole)
            die("change");
    }
    free(copy);
    return NULL;
}

static void changing(long n)
{
    static char many[64U << 10];
    struct keeper_message request = { .kind = KEEPER_FILE, .file.op = FILE_STAT };
    AUTO(fd_close) int sock = dial();
    struct carrel_error err = { 0 };
    pthread_t thread;

    greet(sock);
    memset(many, 'x', sizeof(many) - 1);
    const char *const words[] = { many, NULL };
    AUTO(fd_close) int fd = payload_make("/tmp", words, words, &err);
    if (fd < 0 || pthread_create(&thread, NULL, change, &fd) != 0)
        die("payload");
    for (long i = 0; i < n; i++) { /* whole, truncated or changed: it must be answered */
        say(sock, &request, sizeof(request), &fd, 1);
        if (strcmp(hear(sock), "hung up") == 0) {
            printf("hung up at %ld\n", i);
            n_wrong++;
            break;
        }
    }
    is_over = true;
    (void)pthread_join(thread, NULL);
}

/* --- what is no message --- */

/* On a connection of its own, which cannot be used afterwards. */
static void hangs_up(const char *what, const void *data, size_t len, size_t n_fds)
{
    AUTO(fd_close) int sock = dial();
    int fds[253] = { 0 };

    for (size_t i = 0; i < n_fds; i++)
        fds[i] = sock;
    say(sock, data, len, fds, n_fds);
    expect(what, sock, "hung up");
}

static void is_told(int sock, const struct keeper_message *message, size_t n_fds,
        const char *what, const char *answer)
{
    int fds[KEEPER_MAX_FDS] = { 0 };

    for (size_t i = 0; i < n_fds; i++)
        fds[i] = open("/etc/passwd", O_RDONLY | O_CLOEXEC);
    say(sock, message, sizeof(*message), fds, n_fds);
    expect(what, sock, answer);
    for (size_t i = 0; i < n_fds; i++)
        fd_close(fds[i]);
}

static void no_messages(void)
{
    static unsigned char large[sizeof(struct keeper_message) + 1];
    const struct keeper_message zero = { 0 };
    const struct keeper_message unknown = { .kind = KEEPER_EXITED + 1 };
    struct keeper_message endless = { .kind = KEEPER_FAILED };

    hangs_up("empty", large, 0, 0);
    hangs_up("empty with descriptors", large, 0, 3);
    hangs_up("a byte", large, 1, 0);
    hangs_up("half", large, sizeof(struct keeper_message) / 2, 2);
    hangs_up("one less", large, sizeof(struct keeper_message) - 1, 6);
    hangs_up("one more", large, sizeof(large), 6);
    memset(large, 0xff, sizeof(large));
    hangs_up("all bits", large, sizeof(struct keeper_message), 1);
    hangs_up("no kind", &zero, sizeof(zero), 1);
    hangs_up("unknown kind", &unknown, sizeof(unknown), 1);
    memset(endless.error.message, 'x', sizeof(endless.error.message));
    hangs_up("text without an end", &endless, sizeof(endless), 1);
    for (size_t i = 7; i <= 253; i += 82)
        hangs_up("descriptors", &endless, sizeof(endless), i);
}

static void garbage(void)
{
    AUTO(fd_close) int sock = dial();
    struct keeper_message message = { .kind = KEEPER_HELLO, .value = KEEPER_VERSION };
    static const char once[] = "a hello comes once, with one socket";

    no_messages();
    /* Before the hello, and invalid hellos. */
    is_told(sock, &message, 0, "hello without a socket", once);
    is_told(sock, &message, 2, "hello with two", once);
    is_told(sock, &message, 1, "hello with a file", once);
    message.value++;
    is_told(sock, &message, 1, "another version", "the keeper speaks version 8");
    for (uint32_t kind = KEEPER_HELLO + 1; kind < KEEPER_DONE; kind++) {
        message = (struct keeper_message){ .kind = kind, .flags = ~0U };
        is_told(sock, &message, 6, "without hello", "no hello");
    }
    greet(sock);
    message = (struct keeper_message){ .kind = KEEPER_HELLO, .value = KEEPER_VERSION };
    is_told(sock, &message, 1, "hello again", once);
    message = (struct keeper_message){ .kind = KEEPER_DONE };
    is_told(sock, &message, 6, "an answer", "unknown request 15");
    /* Unexpected descriptors, unknown numbers. */
    message = (struct keeper_message){ .kind = KEEPER_INSPECT };
    is_told(sock, &message, 6, "inspect with descriptors", "done");
    message.kind = KEEPER_PROCESSES;
    is_told(sock, &message, 6, "ps with descriptors", "done");
    message = (struct keeper_message){ .kind = KEEPER_ATTACH, .process = ~0U };
    is_told(sock, &message, 6, "attach to no process",
            "no process 4294967295; 'carrel ps' shows them");
    message = (struct keeper_message){
        .kind = KEEPER_SIGNAL, .flags = KEEPER_ANSWER, .process = 0, .value = 9
    };
    is_told(sock, &message, 6, "signal to no process",
            "no process 0 is running; 'carrel ps' shows them");
    message = (struct keeper_message){ .kind = KEEPER_RENEW, .lease_ms = UINT64_MAX - 1 };
    is_told(sock, &message, 6, "an endless lease",
            "a lease or an idle time has 106751 days at most");
    message = (struct keeper_message){ .kind = KEEPER_RENEW, .idle_ms = UINT64_MAX / 2 };
    is_told(sock, &message, 6, "an endless idle time",
            "a lease or an idle time has 106751 days at most");
}

/* --- what cannot be --- */

static void is_refused(int sock, const struct keeper_message *message, const char *text,
        const char *const *argv, const char *const *env, const char *answer)
{
    struct carrel_error err = { 0 };
    AUTO(fd_close) int payload = payload_make(text, argv, env, &err);

    if (payload < 0)
        die(err.message);
    say(sock, message, sizeof(*message), &payload, 1);
    const char *got = hear(sock);
    bool is_wrong = strcmp(got, "done") == 0 || strcmp(got, "hung up") == 0 ||
                    strncmp(got, answer, strlen(answer)) != 0;
    if (is_wrong) {
        printf("%u with '%s': '%s' instead of '%s'\n", message->kind, text, got, answer);
        n_wrong++;
    }
}

static void no_forks(int sock)
{
    static const int32_t numbers[] = { 0, -1, INT32_MIN, 1025, INT32_MAX };
    static const char *const labels[][2] = { { "none", NULL }, { "=x", NULL },
        { "a b=c", NULL }, { "a\nb=c", NULL } };
    struct keeper_message message = { .kind = KEEPER_FORK };

    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        message.value = numbers[i];
        is_refused(sock, &message, "", NULL, NULL, "1 to 1024 forks at a time");
    }
    message.value = 1;
    message.flags = KEEPER_LABELS;
    for (size_t i = 0; i < ARRAY_LEN(labels); i++)
        is_refused(sock, &message, "", labels[i], NULL, "label '");
}

static void no_files(int sock)
{
    struct keeper_message message = { .kind = KEEPER_FILE };

    message.file.op = FILE_OP_COUNT;
    is_refused(sock, &message, "/tmp", NULL, NULL, "");
    message.file.op = (enum file_op)0x7fffffff;
    is_refused(sock, &message, "/tmp", NULL, NULL, "");
    message.file = (struct file_request){ .op = FILE_RENAME };
    is_refused(sock, &message, "/tmp", NULL, NULL, ""); /* to where? */
    message.file = (struct file_request){ .op = FILE_STAT };
    is_refused(sock, &message, "", NULL, NULL, "the path of a file is empty");
    message.file = (struct file_request){ .op = FILE_WATCH };
    is_refused(sock, &message, "/tmp", NULL, NULL, ""); /* by what? */
}

static void requests(void)
{
    static const char *const none[] = { "", NULL };
    static const char *const program[] = { "true", NULL };
    static const char *const strange[] = { "NOTHING", NULL };
    static const char *const names[] = { "", ".", "..", "../x", "a/b", "/x", ".x", "a b",
        "a\nb" };
    struct keeper_message message = { .kind = KEEPER_SNAPSHOT };
    AUTO(fd_close) int sock = dial();

    greet(sock);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        is_refused(sock, &message, names[i], NULL, NULL, "");
    no_forks(sock);
    no_files(sock);
    message.kind = KEEPER_START;
    is_refused(sock, &message, "", NULL, NULL, "no program to run");
    is_refused(sock, &message, "", none, NULL, "no program to run");
    is_refused(sock, &message, "", program, strange, "environment entry 'NOTHING'");
    message.timeout_ms = UINT64_MAX;
    is_refused(sock, &message, "", program, NULL, "no such timeout");
}

/* --- streams beside the three --- */

static void extra(void)
{
    static const char *const copy[] = { "sh", "-c", "cat <&3 >&4; echo out", NULL };
    enum { OUT, ERR, TASK, REPORT, ALL };
    struct carrel_error err = { 0 };
    struct keeper_message message = { .kind = KEEPER_START, .value = 3 };
    AUTO(fd_close) int sock = dial();
    AUTO(fd_close) int payload = payload_make("", copy, NULL, &err);
    int fds[KEEPER_MAX_FDS];
    char text[16] = "";

    greet(sock);
    is_refused(sock, &message, "", copy, NULL, "runtime local: a process has at most 2");
    message.value = -1;
    is_refused(sock, &message, "", copy, NULL, "runtime local: a process has at most 2");
    message.value = 2;
    message.flags = KEEPER_DETACH;
    is_refused(sock, &message, "", copy, NULL, "a detached process has no streams beside");
    message.flags = 0;
    say(sock, &message, sizeof(message), &payload, 1);
    if (keeper_receive(sock, &message, fds, 0) != ALL ||
            fd_write_all(fds[TASK], "to and fro", 10) < 0)
        die("streams");
    fd_close(fds[TASK]);
    if (fd_read_all(fds[REPORT], text, sizeof(text)) != 10 || strcmp(text, "to and fro") != 0) {
        printf("'%s' came back\n", text);
        n_wrong++;
    }
    fd_close(fds[REPORT]);
    fd_close(fds[OUT]);
    fd_close(fds[ERR]);
}

/* --- clients that send or read nothing --- */

static void await_end(void)
{
    char byte;

    (void)puts("ready");
    (void)fflush(stdout);
    while (read(0, &byte, 1) > 0)
        ;
}

static void silent(long n)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
    for (long i = 0; i < n; i++)
        (void)dial(); /* closed when we exit */
    await_end();
}

static void unread(void)
{
    const struct keeper_message request = { .kind = KEEPER_INSPECT };
    AUTO(fd_close) int sock = dial();

    greet(sock);
    int r = 0;
    while (r == 0)
        r = keeper_send(sock, &request, NULL, 0, 0);
    if (r != -EPIPE)
        die("send");
}

/* Their answers are not read, and they are not claimed. */
static void forks(long n)
{
    struct keeper_message message = { .kind = KEEPER_FORK, .value = (int32_t)n };
    struct carrel_error err = { 0 };
    AUTO(fd_close) int sock = dial();
    AUTO(fd_close) int payload = payload_make("", NULL, NULL, &err);
    int fds[KEEPER_MAX_FDS];

    greet(sock);
    say(sock, &message, sizeof(message), &payload, 1);
    if (keeper_receive(sock, &message, fds, 0) != 1 || message.kind != KEEPER_DONE)
        die(message.error.message);
    await_end();
    fd_close(fds[0]);
}

static void half(void)
{
    struct keeper_message message = {
        .kind = KEEPER_FILE,
        .file = { .op = FILE_OPEN, .flags = O_WRONLY | O_CREAT, .mode = 0644 },
    };
    struct carrel_error err = { 0 };
    AUTO(fd_close) int sock = dial();
    AUTO(fd_close) int payload = payload_make("/tmp/held", NULL, NULL, &err);
    int fds[KEEPER_MAX_FDS];

    greet(sock);
    say(sock, &message, sizeof(message), &payload, 1);
    if (keeper_receive(sock, &message, fds, 0) != 1 || shutdown(sock, SHUT_WR) < 0)
        die("file");
    expect("half", sock, "hung up");
    await_end();
    if (write(fds[0], "late", 4) != 4)
        die("write");
    fd_close(fds[0]);
}

static void peer(void)
{
    const struct keeper_message hello = { .kind = KEEPER_HELLO, .value = KEEPER_VERSION };
    AUTO(fd_close) int sock = dial();
    int events[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, events) < 0)
        die("socketpair");
    if (keeper_send(sock, &hello, &events[1], 1, 0) < 0)
        (void)puts("hung up");
    else
        (void)puts(hear(sock));
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    path = argv[1];
    const char *name = argv[2];
    long n = argc > 3 ? strtol(argv[3], NULL, 10) : 0;
    if (strcmp(name, "payloads") == 0)
        payloads();
    else if (strcmp(name, "changing") == 0)
        changing(n);
    else if (strcmp(name, "garbage") == 0)
        garbage();
    else if (strcmp(name, "requests") == 0)
        requests();
    else if (strcmp(name, "silent") == 0)
        silent(n);
    else if (strcmp(name, "unread") == 0)
        unread();
    else if (strcmp(name, "forks") == 0)
        forks(n);
    else if (strcmp(name, "half") == 0)
        half();
    else if (strcmp(name, "peer") == 0)
        peer();
    else if (strcmp(name, "extra") == 0)
        extra();
    else
        return 2;
    return n_wrong > 0;
}
