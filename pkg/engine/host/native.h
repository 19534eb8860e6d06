#pragma once
#include "quickjs.h"

/** The object by which JavaScript reaches the process, memory and the C library; globals.ts is its only user. */
JSValue native_object(JSContext *context, int argc, char **argv);
