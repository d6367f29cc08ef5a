/* trim.c - stacks that are left and free memory that is given back. */
#include "base/trim.h"
#include <errno.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define BELOW (1U << 20)      /* of the stack: as far as the kernel keeps mappings from it */
#define FAR (64U << 20)       /* more than a stack or a heap of ours ever has */
#define OWN_STACK (8UL << 20) /* as exec gives by default; only what is used costs */
#define OWN_FRAMES 512U       /* of the functions here, with those they call */
#define THREAD_BYTES 3072U    /* more than the C library has beside a thread's variables */

static uintptr_t page_below(uintptr_t at)
{
    return at - at % (uintptr_t)getpagesize();
}

static uintptr_t page_above(uintptr_t at)
{
    return page_below(at + (uintptr_t)getpagesize() - 1);
}

static void unmap(uintptr_t from, uintptr_t to)
{
    if (from < to)
        (void)munmap((void *)from, to - from); /* else it stays, and costs what it costs */
}

/* --- which stacks there are --- */

static struct {
    bool has_main;     /* that of exec is there */
    char *own;         /* that of trim_call(); NULL: none */
    uintptr_t outside; /* the last frame of the one that was left */
    int (*call)(void *arg);
    void *arg;
    int result;
    void (*next)(void);
} stacks = { .has_main = true };

bool trim_has_stack(void)
{
    return stacks.has_main;
}

static bool is_own_stack(uintptr_t at)
{
    return stacks.own && at - (uintptr_t)stacks.own < OWN_STACK;
}

/* False on the stack of a thread: the memory below it belongs to others. */
static bool is_main_stack(uintptr_t at)
{
    if (!stacks.has_main)
        return false;
    uintptr_t top = (uintptr_t)getauxval(AT_RANDOM); /* where exec put it: above all frames */

    return at < top && top - at < FAR;
}

static void unmap_main_stack(void)
{
    if (!stacks.has_main)
        return;
    const char *last = (const char *)getauxval(AT_EXECFN); /* the topmost of all */

    unmap(page_below(stacks.outside) - BELOW, page_above((uintptr_t)last + strlen(last) + 1));
    stacks.has_main = false;
}

static void unmap_own_stack(void)
{
    uintptr_t from = (uintptr_t)stacks.own;

    if (stacks.own)
        unmap(from - (uintptr_t)getpagesize(), from + OWN_STACK);
    stacks.own = NULL;
}

/* --- the heap --- */

/* A static program has the variables of its only thread at the beginning of its heap. */
static bool has_heap_alone(void)
{
    uintptr_t top = (uintptr_t)sbrk(0);
    uintptr_t thread = (uintptr_t)&errno;

    return thread < top && top - thread < FAR;
}

/* --- a stack of our own --- */

static char *make_own_stack(void)
{
    const size_t guard = (size_t)getpagesize();
    char *all = mmap(NULL, guard + OWN_STACK, PROT_READ | PROT_WRITE,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);

    if (all == MAP_FAILED)
        return NULL;
    (void)madvise(all, guard + OWN_STACK, MADV_NOHUGEPAGE); /* EINVAL: there are none */
    if (mprotect(all, guard, PROT_NONE) == 0)
        return all + guard;
    unmap((uintptr_t)all, (uintptr_t)all + guard + OWN_STACK);
    return NULL;
}

static void call_inside(void)
{
    stacks.result = stacks.call(stacks.arg);
}

int trim_call(int (*call)(void *arg), void *arg)
{
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    ucontext_t here;
    ucontext_t inside;

    if (!has_heap_alone() || !is_main_stack(frame) || getcontext(&inside) < 0)
        return call(arg);
    stacks.own = make_own_stack();
    if (!stacks.own)
        return call(arg);
    stacks.outside = frame;
    stacks.call = call;
    stacks.arg = arg;
    inside.uc_stack = (stack_t){ .ss_sp = stacks.own, .ss_size = OWN_STACK };
    inside.uc_link = &here;
    makecontext(&inside, call_inside, 0);
    (void)swapcontext(&here, &inside);
    unmap_own_stack();
    return stacks.result;
}

void trim_leave_stack(void)
{
    if (is_own_stack((uintptr_t)__builtin_frame_address(0)))
        unmap_main_stack();
}

/* --- memory that is free --- */

static void trim_stack(uintptr_t from, uintptr_t frame)
{
    uintptr_t end = page_below(frame - OWN_FRAMES);

    if (from < end)
        (void)madvise((void *)from, end - from, MADV_DONTNEED); /* ENOMEM: it was shorter */
}

void trim_memory(void)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

    (void)malloc_trim(0);
    if (is_own_stack(frame))
        trim_stack((uintptr_t)stacks.own, frame);
    else if (is_main_stack(frame))
        trim_stack(page_below(frame) - BELOW, frame);
}

void trim_program(void)
{
    if (has_heap_alone())
        trim_memory();
}

void trim_own_stack(char *stack, size_t size)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);

    if (frame < (uintptr_t)stack + size)
        trim_stack(page_above((uintptr_t)stack), frame);
}

/* --- for good --- */

static void leave(void)
{
    const uintptr_t heap = (uintptr_t)&errno + THREAD_BYTES;

    environ = NULL;
    unmap_own_stack();
    unmap_main_stack();
    explicit_bzero((void *)heap, page_above(heap) - heap); /* of the page that has to stay */
    unmap(page_above(heap), (uintptr_t)sbrk(0));
    stacks.next();
    _exit(1); /* it must not return: there is nothing to return to */
}

_Noreturn void trim_move_stack(char *stack, size_t size, void (*next)(void))
{
    const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    ucontext_t there;

    if (has_heap_alone() && (is_own_stack(frame) || is_main_stack(frame)) &&
            getcontext(&there) == 0) {
        if (!stacks.own)
            stacks.outside = frame;
        stacks.next = next;
        there.uc_stack = (stack_t){ .ss_sp = stack, .ss_size = size };
        there.uc_link = NULL;
        makecontext(&there, leave, 0);
        (void)setcontext(&there);
    }
    next();
    _exit(1);
}
