/*
 * harness.h - tests whose names are sentences.
 *
 *     TEST(a_misspelt_limit_is_refused)
 *     {
 *         CHECK_EQ(parse("memroy=1G", &err), -EINVAL);
 *         CHECK_STR(err.message, "unknown limit 'memroy'");
 *     }
 *
 * A test registers itself; harness.c has main() and prints TAP. Each test runs in its own
 * process, so a crash, a leak or a changed working directory affects only that test. A failing
 * check ends its test at once. In a process that the test itself has forked, a failing check
 * ends only that process, with status 1: the test must check the status.
 */
#pragma once
#include <stddef.h>

struct test {
    const char *name; /* an identifier; printed with spaces for underscores */
    void (*run)(void);
    struct test *next;
};

void test_register(struct test *test);

_Noreturn void test_fail(const char *file, int line, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
_Noreturn void test_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/*
 * mkdtemp for tests. What still exists when the test has ended, in any way, is removed then:
 * after a failed check or a timeout a test cannot clean up. Returns `path`, or NULL.
 */
char *test_mkdtemp(char *path);

/* 128 bits hold every 64-bit value with its sign: -1 never equals UINT64_MAX. */
void test_check_eq(
        const char *file, int line, const char *expr, __int128 actual, __int128 expected);
void test_check_str(
        const char *file, int line, const char *expr, const char *actual, const char *expected);
void test_check_mem(const char *file, int line, const char *expr, const void *actual,
        size_t actual_len, const void *expected, size_t expected_len);

/* With sanitizers, for which a part of many similar cases is enough. */
#ifndef __has_feature /* clang's way to say what gcc says with __SANITIZE_ADDRESS__ */
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define TEST_IS_SLOW 1
#else
#define TEST_IS_SLOW 0
#endif

#define TEST(sentence)                                                                         \
    static void sentence(void);                                                                \
    __attribute__((constructor)) static void register_##sentence(void)                         \
    {                                                                                          \
        static struct test test = { .name = #sentence, .run = sentence };                      \
        test_register(&test);                                                                  \
    }                                                                                          \
    static void sentence(void)

#define CHECK(condition)                                                                       \
    do {                                                                                       \
        if (!(condition))                                                                      \
            test_fail(__FILE__, __LINE__, "%s", "not true: " #condition);                      \
    } while (0)

#define CHECK_EQ(actual, expected)                                                             \
    test_check_eq(__FILE__, __LINE__, #actual, (actual), (expected))

/* NULL equals only NULL. */
#define CHECK_STR(actual, expected)                                                            \
    test_check_str(__FILE__, __LINE__, #actual, (actual), (expected))

#define CHECK_MEM(actual, actual_len, expected, expected_len)                                  \
    test_check_mem(                                                                            \
            __FILE__, __LINE__, #actual, (actual), (actual_len), (expected), (expected_len))

/* Ends the test as skipped; the reason, printf-like, says what is missing. */
#define SKIP(...) test_skip(__VA_ARGS__)
