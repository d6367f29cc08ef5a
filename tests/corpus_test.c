/*
 * corpus_test.c - runs every file of a corpus through its fuzz target as an ordinary test.
 *
 * Compiled once per target, with CORPUS_DIR set. What the fuzzer once found is kept there as a
 * file, so every build tries it again, with and without sanitizers.
 */
#include "fuzz.h"
#include "harness.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void feed(int dir, const char *name)
{
    struct stat st;
    int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);

    fprintf(stderr, "with %s/%s\n", CORPUS_DIR, name); /* shown if the target fails */
    CHECK(fd >= 0);
    CHECK(fstat(fd, &st) == 0);
    /* Exactly as large as the file: the sanitizer detects a read past its end. */
    uint8_t *data = malloc((size_t)st.st_size);
    CHECK(data || st.st_size == 0);
    CHECK_EQ(read(fd, data, (size_t)st.st_size), st.st_size);
    CHECK_EQ(LLVMFuzzerTestOneInput(data, (size_t)st.st_size), 0);
    free(data);
    (void)close(fd);
}

TEST(every_file_of_the_corpus_is_survived)
{
    int n_files = 0;
    DIR *dir = opendir(CORPUS_DIR);

    CHECK(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (entry->d_name[0] == '.')
            continue;
        feed(dirfd(dir), entry->d_name);
        n_files++;
    }
    closedir(dir);
    CHECK(n_files > 0);
}
