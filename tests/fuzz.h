/* fuzz.h - the one function that a fuzz target (X_fuzz.c beside X.c) defines. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/*
 * Feeds foreign bytes to a parser; returns 0. `make fuzz` calls it with bytes that the fuzzer
 * makes up, and corpus_test.c with every file in tests/corpus/<target>/.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
