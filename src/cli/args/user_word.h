/* user_word.h - a user of a sandbox, as a word on the command line. */
#pragma once
#include <sys/types.h>

struct carrel_error;

/* "1000", "1000:100", or one of the names that every sandbox knows: root, agent, nobody. */
int user_word_parse(const char *text, uid_t *uid, gid_t *gid, struct carrel_error *err);
