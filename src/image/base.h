/* base.h - the directory that lies below the layers of every image. */
#pragma once

struct carrel_error;

#define IMAGE_BASE "base"

/* Makes what is missing of it in the store's directory; nothing of it is ever removed. */
int image_base_make(int store, struct carrel_error *err);
