/* fallback.h - workspaces without the kernel's overlay: their git dir and their files. */
#pragma once

struct carrel_error;
struct workplace;

/* What the modes other than the kernel's overlay need before the first program. */
int fallback_fill(const struct workplace *place, struct carrel_error *err);
