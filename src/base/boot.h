/* boot.h - which start of the machine this is. */
#pragma once

struct carrel_error;

#define BOOT_ID_MAX 40

/* A text that is another one after each start of the machine. */
int boot_id_read(char id[static BOOT_ID_MAX], struct carrel_error *err);
