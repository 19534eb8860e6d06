#pragma once
#include "quickjs.h"

/** The memory of a program that lives for milliseconds: see alloc.c. */
extern const JSMallocFunctions arena_functions;
