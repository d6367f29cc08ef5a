/* carrel.h - everything of libcarrel. */
#pragma once
#include <carrel/error.h>
#include <carrel/run.h>
