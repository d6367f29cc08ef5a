/* landlock.h - a second fence, enforced by another part of the kernel than the mounts. */
#pragma once

struct carrel_error;

/*
 * Confines this process and all that it starts: reading and executing everywhere in its root,
 * writing only below `writable` (NULL-terminated); signals and abstract sockets stay inside if
 * the ABI supports that. Called after the root is entered. Allocates nothing.
 */
int landlock_confine(int abi, const char *const *writable, struct carrel_error *err);
