/*
 * seccomp_gen.c - writes the seccomp filter of the sandbox as a C header; runs at build time.
 *
 *     seccomp_gen ARCH OUTPUT_FILE
 *
 * libseccomp only provides the number of a name on the architecture. Its own compiler cannot
 * express "the lower 32 bits differ from TIOCSTI" in a list of things to allow, and its filters
 * compare one number after the other. When a filter is installed, the kernel runs it once for
 * every number to learn which calls it always allows (Linux 5.11), so a long chain costs time
 * at each start of a sandbox. This one is a binary search over ranges of numbers that share a
 * rule, with a few checks of arguments at its leaves.
 *
 * BPF only jumps forwards. So the program is generated from its end to its start: the target of
 * a jump exists before the jump. The position of an instruction also counts from the end.
 */
#include "base/auto.h"
#include "runtime/serving/seccomp_rules.h"
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define NUMBERS 512 /* above every number that an architecture has */
#define NOWHERE SIZE_MAX

struct arch {
    const char *name;
    const char *guard; /* true where the program may be compiled in */
    uint32_t audit;
    uint32_t libseccomp;
    bool has_x32;
};

static const struct arch archs[] = {
    { "x86_64", "defined(__x86_64__) && !defined(__ILP32__)", AUDIT_ARCH_X86_64,
            SCMP_ARCH_X86_64, true },
    { "aarch64", "defined(__aarch64__) && !defined(__ILP32__)", AUDIT_ARCH_AARCH64,
            SCMP_ARCH_AARCH64, false },
};

/* Numbers from `first` to the next range's first. */
struct range {
    uint32_t first;
    enum seccomp_rule rule;
};

struct code {
    struct sock_filter insns[BPF_MAXINSNS]; /* the last instruction of the program first */
    size_t len;
    size_t place_of[CHECK_COUNT];
};

static void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

static void fail(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)fputs("seccomp_gen: ", stderr);
    (void)vfprintf(stderr, fmt, ap);
    (void)fputc('\n', stderr);
    va_end(ap);
    exit(1);
}

/*
 * The number of a call, or -1 if the architecture does not have it. A misspelt name is an
 * error.
 */
static int number_of(const char *name, const struct arch *arch)
{
    int known = seccomp_syscall_resolve_name_arch(arch->libseccomp, name);

    for (size_t i = 0; i < ARRAY_LEN(seccomp_numbers); i++) {
        const struct seccomp_number *own = &seccomp_numbers[i];
        if (strcmp(own->name, name) != 0)
            continue;
        if (own->where == ON_X86_64 && arch->libseccomp != SCMP_ARCH_X86_64)
            return -1;
        if (known >= 0 && known != own->number)
            fail("'%s' is %d here and %d in libseccomp", name, own->number, known);
        return own->number;
    }
    if (known == __NR_SCMP_ERROR)
        fail("no system call is named '%s'", name);
    return known < 0 ? -1 : known; /* libseccomp numbers foreign calls downwards from -100 */
}

static void take_group(const struct seccomp_group *group, const struct arch *arch,
        enum seccomp_rule rule_of[NUMBERS], bool is_taken[NUMBERS])
{
    char names[2048];
    char *rest = names;

    if (snprintf(names, sizeof(names), "%s", group->names) >= (int)sizeof(names))
        fail("a group of more than %zu bytes: '%s'", sizeof(names), group->reason);
    for (char *name = strsep(&rest, " "); name; name = strsep(&rest, " ")) {
        int number = number_of(name, arch);
        if (number < 0)
            continue;
        if (number >= NUMBERS)
            fail("'%s' has number %d", name, number);
        if (is_taken[number])
            fail("'%s' (%d) is in two groups", name, number);
        is_taken[number] = true;
        rule_of[number] = group->rule;
    }
}

static void add_range(struct range *ranges, size_t *n, uint32_t first, enum seccomp_rule rule)
{
    if (*n > 0 && ranges[*n - 1].rule == rule)
        return;
    ranges[(*n)++] = (struct range){ first, rule };
}

/* Fills `ranges` with all 2^32 numbers, in order; returns how many there are. */
static size_t make_ranges(const struct arch *arch, struct range ranges[NUMBERS + 3])
{
    enum seccomp_rule rule_of[NUMBERS];
    bool is_taken[NUMBERS] = { false };
    size_t n = 0;

    for (size_t i = 0; i < NUMBERS; i++)
        rule_of[i] = RULE_ABSENT;
    for (size_t i = 0; i < ARRAY_LEN(seccomp_groups); i++)
        take_group(&seccomp_groups[i], arch, rule_of, is_taken);
    rule_of[number_of(SECCOMP_INIT_ALONE, arch)] = RULE_ALLOW;

    for (uint32_t i = 0; i < NUMBERS; i++)
        add_range(ranges, &n, i, rule_of[i]);
    add_range(ranges, &n, NUMBERS, RULE_ABSENT);
    if (arch->has_x32) {
        add_range(ranges, &n, SECCOMP_X32_FIRST, RULE_KILL);
        add_range(ranges, &n, SECCOMP_X32_LAST + 1, RULE_ABSENT);
    }
    return n;
}

static size_t emit(struct code *code, unsigned op, size_t jt, size_t jf, uint32_t k)
{
    if (code->len == ARRAY_LEN(code->insns))
        fail("the program is too long");
    code->insns[code->len] = (struct sock_filter){ (uint16_t)op, (uint8_t)jt, (uint8_t)jf, k };
    return code->len++;
}

/* How many instructions the next one would skip to reach `place`. */
static size_t distance(const struct code *code, size_t place)
{
    return code->len - 1 - place;
}

static size_t branch(struct code *code, unsigned test, uint32_t k, size_t yes, size_t no)
{
    size_t jt = distance(code, yes);
    size_t jf = distance(code, no);

    if (jt > UINT8_MAX || jf > UINT8_MAX)
        fail("a branch reaches 255 instructions far, and the program has outgrown that");
    return emit(code, BPF_JMP | test | BPF_K, jt, jf, k);
}

static size_t place_rule(struct code *code, enum seccomp_rule rule);

static size_t emit_check(struct code *code, const struct seccomp_check *check)
{
    size_t yes = place_rule(code, check->if_in);
    size_t no = place_rule(code, check->if_not);
    size_t arg = offsetof(struct seccomp_data, args) + 8 * check->arg;

    if (check->n_values == 0)
        fail("a check without values");
    if (check->n_values == 1 && check->values[0] == 0) {
        (void)branch(code, BPF_JSET, check->mask, no, yes);
    } else {
        for (size_t i = check->n_values; i-- > 0;)
            no = branch(code, BPF_JEQ, check->values[i], yes, no);
        if (check->mask != ANY_BIT)
            emit(code, BPF_ALU | BPF_AND | BPF_K, 0, 0, check->mask);
    }
    /* Both architectures store the lower half first. */
    return emit(code, BPF_LD | BPF_W | BPF_ABS, 0, 0,
            (uint32_t)(check->half == HIGH_HALF ? arg + 4 : arg));
}

/* The position of a rule's instructions, which are generated on first use. */
static size_t place_rule(struct code *code, enum seccomp_rule rule)
{
    if (code->place_of[rule] == NOWHERE) {
        if (rule < RULE_COUNT)
            code->place_of[rule] = emit(code, BPF_RET | BPF_K, 0, 0, seccomp_answers[rule]);
        else
            code->place_of[rule] = emit_check(code, &seccomp_checks[rule]);
    }
    return code->place_of[rule];
}

/* A single number amid numbers of another rule: one comparison instead of two. */
static bool is_exception(const struct range *ranges, size_t n)
{
    return n == 3 && ranges[0].rule == ranges[2].rule && ranges[1].first + 1 == ranges[2].first;
}

/* The search among `n` ranges, with the number in the accumulator. Returns where it starts. */
static size_t emit_search(struct code *code, const struct range *ranges, size_t n)
{
    size_t half = n / 2;

    if (n == 1)
        return place_rule(code, ranges[0].rule);
    if (is_exception(ranges, n))
        return branch(code, BPF_JEQ, ranges[1].first, place_rule(code, ranges[1].rule),
                place_rule(code, ranges[0].rule));

    size_t upper = emit_search(code, ranges + half, n - half);
    size_t lower = emit_search(code, ranges, half);
    return branch(code, BPF_JGE, ranges[half].first, upper, lower);
}

static void compile(const struct arch *arch, struct code *code)
{
    struct range ranges[NUMBERS + 3];
    size_t n = make_ranges(arch, ranges);

    for (size_t i = 0; i < CHECK_COUNT; i++)
        code->place_of[i] = NOWHERE;
    for (unsigned rule = 0; rule < CHECK_COUNT; rule++)
        place_rule(code, (enum seccomp_rule)rule);
    emit_search(code, ranges, n);
    size_t start =
            emit(code, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr));
    /* First of all: a number only has a meaning together with its architecture. */
    branch(code, BPF_JEQ, arch->audit, start, place_rule(code, RULE_KILL));
    emit(code, BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, arch));
}

static void write_start(FILE *out, const struct arch *arch)
{
    fprintf(out, "/* The seccomp filter for %s. Made by seccomp_gen; do not edit. */\n",
            arch->name);
    fprintf(out, "#pragma once\n#include <linux/filter.h>\n\n");
    fprintf(out, "#if !(%s)\n#error \"this filter is for %s\"\n#endif\n", arch->guard,
            arch->name);
}

static void write_program(FILE *out, const struct arch *arch)
{
    static struct code code;

    compile(arch, &code);
    fprintf(out, "\nstatic const struct sock_filter seccomp_program[] = {\n");
    for (size_t i = code.len; i-- > 0;) {
        const struct sock_filter *insn = &code.insns[i];
        fprintf(out, "    { 0x%02x, %u, %u, 0x%08x }, /* %zu */\n", insn->code, insn->jt,
                insn->jf, insn->k, code.len - 1 - i);
    }
    fprintf(out, "};\n");
}

int main(int argc, char **argv)
{
    const struct arch *arch = NULL;

    if (argc != 3)
        fail("usage: seccomp_gen ARCH OUTPUT_FILE");
    for (size_t i = 0; i < ARRAY_LEN(archs); i++)
        if (strcmp(archs[i].name, argv[1]) == 0)
            arch = &archs[i];
    if (!arch)
        fail("no filter for architecture '%s': only for x86_64 and aarch64", argv[1]);

    FILE *out = fopen(argv[2], "we");
    if (!out)
        fail("open '%s': %s", argv[2], strerror(errno));
    write_start(out, arch);
    write_program(out, arch);
    if (ferror(out) || fclose(out) != 0)
        fail("write '%s': %s", argv[2], strerror(errno));
    return 0;
}
