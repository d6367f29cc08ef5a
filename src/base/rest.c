/* rest.c - see rest.h. */
#include "base/rest.h"
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define BELOW (1U << 20)   /* of the stack: as far as the kernel keeps mappings away from it */
#define FAR (64U << 20)    /* more than a stack or a heap of ours ever has */
#define OWN_FRAMES 1024U   /* of the functions here, with those they call */
#define THREAD_BYTES 4096U /* more than the C library has beside a thread's variables */

static uintptr_t page_below(uintptr_t at)
{
    return at - at % (uintptr_t)getpagesize();
}

static uintptr_t page_above(uintptr_t at)
{
    return page_below(at + (uintptr_t)getpagesize() - 1);
}

/* Not that of a thread, below which lies what is somebody else's. */
static bool is_main_stack(uintptr_t at)
{
    uintptr_t top = (uintptr_t)getauxval(AT_RANDOM); /* where exec put it: above all frames */

    return at < top && top - at < FAR;
}

void rest_trim(void)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    uintptr_t end = page_below(frame - OWN_FRAMES);

    (void)malloc_trim(0);
    if (is_main_stack(frame))
        (void)madvise((void *)(end - BELOW), BELOW, MADV_DONTNEED); /* ENOMEM: it was shorter */
}

/* A static program has the variables of its only thread at the beginning of its heap. */
static bool has_heap_alone(void)
{
    uintptr_t top = (uintptr_t)sbrk(0);
    uintptr_t thread = (uintptr_t)&errno;

    return thread < top && top - thread < FAR;
}

void rest_trim_program(void)
{
    if (has_heap_alone())
        rest_trim();
}

void rest_trim_own(char *stack, size_t size)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    uintptr_t from = page_above((uintptr_t)stack);
    uintptr_t end = page_below(frame - OWN_FRAMES);

    if (frame < (uintptr_t)stack + size && from < end)
        (void)madvise((void *)from, end - from, MADV_DONTNEED);
}

static void unmap(uintptr_t from, uintptr_t to)
{
    if (from < to)
        (void)munmap((void *)from, to - from); /* else it stays, and costs what it costs */
}

/* What the new stack has to know of the old one, and where it begins. */
static uintptr_t old_frame;
static void (*after_move)(void);

static void leave(void)
{
    const char *last = (const char *)getauxval(AT_EXECFN); /* the topmost of all */
    const uintptr_t heap = (uintptr_t)&errno + THREAD_BYTES;

    environ = NULL;
    unmap(page_below(old_frame) - BELOW, page_above((uintptr_t)last + strlen(last) + 1));
    explicit_bzero((void *)heap, page_above(heap) - heap); /* of the page that has to stay */
    unmap(page_above(heap), (uintptr_t)sbrk(0));
    after_move();
    _exit(1); /* it must not return: there is nothing to return to */
}

_Noreturn void rest_move(char *stack, size_t size, void (*next)(void))
{
    ucontext_t there;

    old_frame = (uintptr_t)__builtin_frame_address(0);
    after_move = next;
    if (has_heap_alone() && is_main_stack(old_frame) && getcontext(&there) == 0) {
        there.uc_stack = (stack_t){ .ss_sp = stack, .ss_size = size };
        there.uc_link = NULL;
        makecontext(&there, leave, 0);
        (void)setcontext(&there);
    }
    next();
    _exit(1);
}
