/*
 * The executable: one of the programs that it holds, by the name that it was called by. The same source with COMPILE
 * defined is the compiler that turns a program into the bytecode that the executable holds.
 */
#define _GNU_SOURCE
#include "alloc.h"
#include "native.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/** Exit statuses of sysexits.h: our own program failed, in a way that it did not answer for itself. */
enum { EX_SOFTWARE = 70 };

static _Noreturn void fail(JSContext *context) {
  JSValue error = JS_GetException(context), stack = JS_GetPropertyStr(context, error, "stack");
  const char *text = JS_ToCString(context, error), *trace = JS_IsString(stack) ? JS_ToCString(context, stack) : "";
  fprintf(stderr, "%s\n%s", text ? text : "no message", trace ? trace : "");
  _exit(EX_SOFTWARE);
}

/* Recursion is to end in an error, not in a signal: at most half of the stack that the system gives us. */
static size_t stack_size(void) {
  struct rlimit limit;
  const rlim_t most = 4 << 20;
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur / 2 > most) return most;
  return limit.rlim_cur / 2;
}

static JSRuntime *new_runtime(void) {
  JSRuntime *runtime = JS_NewRuntime2(&arena_functions, NULL);
  if (runtime == NULL) {
    fputs("tscni: no memory\n", stderr);
    _exit(EX_SOFTWARE);
  }
  JS_SetMaxStackSize(runtime, stack_size());
  JS_SetGCThreshold(runtime, 32 << 20); /* counting references frees nearly all; circles may wait */
  return runtime;
}

/* Only what programs use: each of these costs every start. There is no eval. */
static JSContext *new_context(JSRuntime *runtime) {
  JSContext *context = JS_NewContextRaw(runtime);
  JS_AddIntrinsicBaseObjects(context);
  JS_AddIntrinsicRegExp(context);
  JS_AddIntrinsicRegExpCompiler(context);
  JS_AddIntrinsicJSON(context);
  JS_AddIntrinsicMapSet(context);
  JS_AddIntrinsicTypedArrays(context);
  JS_AddIntrinsicPromise(context);
  JS_AddIntrinsicBigInt(context);
  JS_AddIntrinsicDate(context);
  return context;
}

#ifdef COMPILE

static char *text_of(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) return NULL;
  *length = ftell(file);
  rewind(file);
  char *text = malloc(*length + 1);
  if (text == NULL || fread(text, 1, *length, file) != *length) return NULL;
  text[*length] = 0;
  fclose(file);
  return text;
}

int main(int argc, char **argv) {
  JSContext *context = new_context(new_runtime());
  JS_AddIntrinsicEval(context);
  size_t length, size;
  char *source = argc == 3 ? text_of(argv[1], &length) : NULL;
  if (source == NULL) {
    fprintf(stderr, "usage: %s SOURCE BYTECODE\n", argv[0]);
    return 2;
  }
  JSValue program = JS_Eval(context, source, length, "tscni", JS_EVAL_TYPE_MODULE | JS_EVAL_FLAG_COMPILE_ONLY);
  if (JS_IsException(program)) fail(context);
  uint8_t *bytecode = JS_WriteObject(context, &size, program, JS_WRITE_OBJ_BYTECODE);
  FILE *file = fopen(argv[2], "wb");
  if (bytecode == NULL || file == NULL || fwrite(bytecode, 1, size, file) != size || fclose(file) != 0) {
    perror(argv[2]);
    return 1;
  }
  return 0;
}

#else

/** The programs, in the order of their names; the linker puts them in (build.ts). */
typedef struct {
  const char *name;
  const uint8_t *start, *end;
} program;
extern const program programs[];
extern const size_t program_count;

static const program *program_named(const char *name) {
  for (size_t i = 0; i < program_count; i++)
    if (strcmp(programs[i].name, name) == 0) return &programs[i];
  return NULL;
}

/* By the name of the link that was called, or `tscni NAME`; "about" answers for all the rest. With arguments, which no
 * runtime gives a plugin, NAME.command where there is one: what plugins have for people stays out of their calls. */
static const program *chosen(int argc, char **argv) {
  const char *called = argc > 0 ? argv[0] : "tscni", *slash = strrchr(called, '/');
  const char *name = slash == NULL ? called : slash + 1;
  if (strcmp(name, "tscni") == 0 && argc > 1) name = argv[1], argc--;
  if (argc > 1) {
    char command[64];
    snprintf(command, sizeof command, "%s.command", name);
    const program *found = program_named(command);
    if (found != NULL) return found;
  }
  const program *found = program_named(name);
  return found != NULL ? found : program_named("about");
}

/* What a program expects of its surroundings: nobody to read is an error of write(2), not a signal; and no file that
 * it opens becomes its standard input, output or error because its parent left these closed. */
static void settle(void) {
  signal(SIGPIPE, SIG_IGN);
  for (int fd = 0; fd <= 2; fd++)
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", O_RDWR);
}

int main(int argc, char **argv) {
  settle();
  const program *program = chosen(argc, argv);
  if (program == NULL) {
    fprintf(stderr, "%s: there is no such program in this executable\n", argc > 0 ? argv[0] : "tscni");
    _exit(EX_SOFTWARE);
  }
  JSRuntime *runtime = new_runtime();
  JSContext *context = new_context(runtime), *failed;
  JSValue global = JS_GetGlobalObject(context);
  JS_SetPropertyStr(context, global, "tscniNative", native_object(context, argc, argv));

  JSValue code = JS_ReadObject(context, program->start, program->end - program->start, JS_READ_OBJ_BYTECODE);
  if (JS_IsException(code) || JS_ResolveModule(context, code) < 0) fail(context);
  if (JS_IsException(JS_EvalFunction(context, code))) fail(context);
  int jobs;
  while ((jobs = JS_ExecutePendingJob(runtime, &failed)) > 0) {}
  if (jobs < 0) fail(failed);
  fputs("tscni: the program came to no end\n", stderr); /* programs leave by _exit */
  _exit(EX_SOFTWARE);
}

#endif
