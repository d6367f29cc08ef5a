/*
 * entry.c - where the static program begins, before the C library does.
 *
 * The kernel puts the heap of such a program far away from all else that it has, so that the
 * way to it takes three pages of page tables, in the program and in each copy of it: 24 KB of a
 * sandbox that stays (keeper and init). So the heap gets a room in the program's own image
 * instead, which the tables cover anyway. Nobody has asked for memory yet: the C library finds
 * the heap where we say it is, and where the room ends it goes on elsewhere, with mmap(). A
 * kernel that refuses leaves everything as it was.
 *
 * What it costs: the program lies at a random place, and the heap with it, no longer at one of
 * its own; between the two are a hundred possible distances.
 *
 * The kernel's page of functions that tell the time without a call (vdso(7)) mostly lies two
 * megabytes away from all else, and takes a page of tables in each process for itself; the C
 * library keeps 1.5 KB about it on the heap. We look at the clock a few dozen times in a run,
 * and a call takes a tenth of a microsecond: the C library is not told that there is such a
 * page.
 *
 * Nothing is relocated here and no thread has its variables: no function of the library can be
 * called, and none is.
 */
#include "cli/entry.h"
#include <elf.h>
#include <linux/prctl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#define BARE __attribute__((no_stack_protector)) /* the guard is a thread's variable */
#define ROOM (12U << 16)      /* with it the image still fits into 4 MB: two pages of tables */
#define PAGE_MOST (64U << 10) /* of all kernels that we run on */

static char room[ROOM] __attribute__((aligned(PAGE_MOST)));

/* Of the linker: the image, and the first variable. */
extern char __executable_start[] __attribute__((visibility("hidden")));
extern char etext[] __attribute__((visibility("hidden")));
extern char edata[] __attribute__((visibility("hidden")));
extern char data_start[] __attribute__((visibility("hidden")));

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl carrel_entry\n"
        ".hidden carrel_entry\n"
        ".type carrel_entry, @function\n"
        "carrel_entry:\n"
        "    mov %rsp, %rdi\n"
        "    push %rdx\n" /* for _start; twice, so that the stack is aligned */
        "    push %rdx\n"
        "    call entry_prepare\n"
        "    pop %rdx\n"
        "    pop %rdx\n"
        "    xor %ebp, %ebp\n"
        "    jmp _start\n");

BARE static long call(long number, long a, long b, long c, long d)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = 0;
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
__asm__(".text\n"
        ".globl carrel_entry\n"
        ".hidden carrel_entry\n"
        ".type carrel_entry, %function\n"
        "carrel_entry:\n"
        "    mov x19, x0\n" /* for _start */
        "    mov x0, sp\n"
        "    bl entry_prepare\n"
        "    mov x0, x19\n"
        "    mov x29, #0\n"
        "    mov x30, #0\n"
        "    b _start\n");

BARE static long call(long number, long a, long b, long c, long d)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = 0;

    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4)
                     : "memory");
    return x0;
}
#else
#error "an entry for this machine is missing"
#endif

/* What exec left above the stack pointer: argc, argv, environment, auxiliary vector. */
struct given {
    uint64_t arguments;
    uint64_t environment;
    uint64_t end; /* the name of the executable, behind both */
    uint64_t page_size;
    const unsigned char *random;
};

BARE static bool take_given(uintptr_t *stack, struct given *given)
{
    const uintptr_t argc = stack[0];
    uintptr_t *at = stack + 1 + argc + 1;

    if (argc == 0)
        return false;
    given->arguments = stack[1];
    given->environment = *at;
    given->end = given->page_size = 0;
    given->random = NULL;
    while (*at)
        at++;
    for (at++; at[0] != AT_NULL; at += 2) {
        if (at[0] == AT_EXECFN)
            given->end = at[1];
        else if (at[0] == AT_PAGESZ)
            given->page_size = at[1];
        else if (at[0] == AT_RANDOM)
            given->random =
                    (const unsigned char *)at[1]; /* NOLINT(performance-no-int-to-ptr) */
        else if (at[0] == AT_SYSINFO_EHDR)
            at[0] = AT_IGNORE;
    }
    if (!given->environment)
        given->environment = given->end;
    return given->end && given->page_size && given->page_size <= PAGE_MOST && given->random;
}

/*
 * The first of the random bytes: the C library makes a zero of it in what it keeps of them, and
 * so gives nothing away that guards something.
 */
BARE __attribute__((used)) void entry_prepare(uintptr_t *stack)
{
    struct given given;
    struct prctl_mm_map map;

    if (!take_given(stack, &given))
        return;
    map.start_code = (uintptr_t)__executable_start;
    map.end_code = (uintptr_t)etext;
    map.start_data = (uintptr_t)data_start;
    map.end_data = (uintptr_t)edata;
    uint64_t pages_off = *given.random % (ROOM / 2 / given.page_size);
    map.start_brk = (uintptr_t)room + pages_off * given.page_size;
    map.brk = map.start_brk;
    map.start_stack = (uintptr_t)stack;
    map.arg_start = given.arguments;
    map.arg_end = map.env_start = given.environment;
    map.env_end = given.end;
    map.auxv = NULL;
    map.auxv_size = 0;
    map.exe_fd = (uint32_t)-1;
    if (call(SYS_prctl, PR_SET_MM, PR_SET_MM_MAP, (long)(uintptr_t)&map, sizeof(map)) == 0)
        (void)call(SYS_munmap, (long)(uintptr_t)room, ROOM, 0, 0); /* the heap maps it anew */
}
