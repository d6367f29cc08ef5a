/* entry.h - the program's first instructions; the linker is told their name. */
#pragma once
#include <stdint.h>

/* Called with what exec left on the stack, before anything else is. */
void entry_prepare(uintptr_t *stack);
