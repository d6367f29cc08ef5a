/* sandbox_print.c - tables; what programs chose is escaped. */
#include "cli/print/sandbox_print.h"
#include "base/auto.h"
#include "base/json_read.h"
#include "base/str.h"
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static uint64_t number(struct json_value object, const char *key)
{
    uint64_t value = 0;

    (void)json_read_u64(json_read_member(object, key), &value); /* 0: not known */
    return value;
}

static const char *text(struct json_value object, const char *key, char *out, size_t size)
{
    AUTO(buf_finish) struct buf decoded = BUF_INIT(64U << 10);

    (void)json_read_string(json_read_member(object, key), &decoded);
    return str_escape(decoded.data ? decoded.data : "", decoded.len, out, size);
}

/* "-": it was not started by name. */
static const char *process_of(struct json_value object, char out[static 16])
{
    uint64_t process = number(object, "process");

    (void)snprintf(out, 16, process ? "%" PRIu64 : "-", process);
    return out;
}

static void print_running(struct json_value p)
{
    char command[256];
    char state[8];
    char process[16];
    char memory[32];
    char cpu[32];

    printf("%7" PRIu64 " %7" PRIu64 " %6" PRIu64 "  %-5s %8s %8s %8s  %s\n", number(p, "pid"),
            number(p, "parent"), number(p, "uid"), text(p, "state", state, sizeof(state)),
            str_milli(number(p, "cpu_ms"), cpu), str_size(number(p, "memory_bytes"), memory),
            process_of(p, process), text(p, "command", command, sizeof(command)));
}

static void print_ended(struct json_value p)
{
    char command[256];
    uint64_t signal = number(p, "signal");

    printf("process %" PRIu64 " ended with %s %" PRIu64 ": %s\n", number(p, "process"),
            signal ? "signal" : "status", signal ? signal : number(p, "exit_code"),
            text(p, "command", command, sizeof(command)));
}

int sandbox_print_processes(const char *json, struct carrel_error *err)
{
    struct json_value all;
    struct json_value p;
    size_t at = 0;

    int r = json_read_check(json, strlen(json), &all, err);
    if (r < 0)
        return r;
    printf("%7s %7s %6s  %-5s %8s %8s %8s  %s\n", "PID", "PARENT", "UID", "STATE", "CPU s",
            "MEMORY", "PROCESS", "COMMAND");
    while (json_read_next(json_read_member(all, "processes"), &at, NULL, &p))
        print_running(p);
    at = 0;
    while (json_read_next(json_read_member(all, "ended"), &at, NULL, &p))
        print_ended(p);
    return 0;
}
