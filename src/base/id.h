/* id.h - names that cannot be guessed. */
#pragma once
#include <stdbool.h>

struct carrel_error;

#define ID_SIZE 20 /* "R-", 16 characters, NUL; one to spare */

/* A new id: `prefix`, '-' and 16 letters and digits. */
int id_new(char prefix, char id[static ID_SIZE], struct carrel_error *err);

/* Whether id_new() could have made it. */
bool id_is_made_up(char prefix, const char *text);
