/*
 * What JavaScript can't do by itself. Addresses and long integers are numbers on the other side: user space ends at
 * 2^47, well within 2^53.
 */
#define _GNU_SOURCE
#include "native.h"
#include "hash.h"
#include "headers.h"
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* The functions of pkg/sys/symbols.ts, by name: build.ts writes the table. All their arguments are integers and
 * pointers, which x86-64 and arm64 pass alike, so that one call fits all. */
typedef long (*function)(long, long, long, long, long, long);
enum returns { INT, UNSIGNED, LONG, POINTER, NOTHING };
static const struct {
  const char *name;
  void *function;
  enum returns returns;
} symbols[] = {
#include "symbols.h"
};

static long integer_of(JSContext *context, JSValueConst value) {
  int64_t number = 0;
  if (JS_IsNumber(value)) JS_ToInt64(context, &number, value);
  else if (JS_IsBigInt(context, value)) JS_ToBigInt64(context, &number, value);
  return number; /* null and undefined are NULL */
}

static JSValue pointer_to(JSContext *context, const void *memory) {
  return memory == NULL ? JS_NULL : JS_NewFloat64(context, (double)(uintptr_t)memory);
}

static JSValue call(JSContext *context, JSValueConst self, int argc, JSValueConst *argv, int which) {
  (void)self;
  long a[6] = {0};
  for (int i = 0; i < argc && i < 6; i++) a[i] = integer_of(context, argv[i]);
  long result = ((function)symbols[which].function)(a[0], a[1], a[2], a[3], a[4], a[5]);
  switch (symbols[which].returns) {
    case INT: return JS_NewInt32(context, (int)result);
    case UNSIGNED: return JS_NewInt64(context, (unsigned)result);
    case LONG: return JS_NewInt64(context, result);
    case POINTER: return pointer_to(context, (void *)result);
    case NOTHING: break;
  }
  return JS_UNDEFINED;
}

/* The bytes of a typed array or an ArrayBuffer; NULL and an exception when it is neither. */
static uint8_t *bytes_of(JSContext *context, JSValueConst value, size_t *length) {
  size_t offset, size, whole;
  JSValue buffer = JS_GetTypedArrayBuffer(context, value, &offset, &size, NULL);
  if (JS_IsException(buffer)) {
    JS_FreeValue(context, JS_GetException(context));
    return JS_GetArrayBuffer(context, length, value);
  }
  uint8_t *bytes = JS_GetArrayBuffer(context, &whole, buffer);
  JS_FreeValue(context, buffer); /* the typed array keeps it alive */
  *length = size;
  return bytes == NULL ? NULL : bytes + offset;
}

/*
 * Memory goes as soon as the last reference to it does, which in f(ptr(new Uint8Array(8))) is before f is called, and the
 * bundler likes to write it so. Hence the last arrays whose addresses were asked for are kept: more than any
 * function of the C library takes.
 */
enum { KEPT = 32 };

static JSValue address(JSContext *context, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  static JSValue kept[KEPT];
  static unsigned next, filled;
  size_t length;
  uint8_t *bytes = bytes_of(context, argv[0], &length);
  if (bytes == NULL) return JS_EXCEPTION;
  if (filled == KEPT) JS_FreeValue(context, kept[next]);
  else filled++;
  kept[next] = JS_DupValue(context, argv[0]);
  next = (next + 1) % KEPT;
  return pointer_to(context, bytes);
}

static const char *const reads[] = {"u8", "u16", "u32", "i32", "u64", "ptr"};
static JSValue read_memory(JSContext *context, JSValueConst self, int argc, JSValueConst *argv, int which) {
  (void)self;
  const char *at = (const char *)integer_of(context, argv[0]) + (argc > 1 ? integer_of(context, argv[1]) : 0);
  union { uint8_t u8; uint16_t u16; uint32_t u32; int32_t i32; uint64_t u64; void *ptr; } value;
  static const size_t sizes[] = {1, 2, 4, 4, 8, sizeof(void *)};
  memcpy(&value, at, sizes[which]);
  switch (which) {
    case 0: return JS_NewInt32(context, value.u8);
    case 1: return JS_NewInt32(context, value.u16);
    case 2: return JS_NewInt64(context, value.u32);
    case 3: return JS_NewInt32(context, value.i32);
    case 4: return JS_NewBigUint64(context, value.u64);
    default: return pointer_to(context, value.ptr);
  }
}

static JSValue c_string(JSContext *context, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self;
  return JS_NewString(context, (const char *)integer_of(context, argv[0]) + (argc > 1 ? integer_of(context, argv[1]) : 0));
}

/* QuickJS writes a lone half of a surrogate pair as three bytes of its own; in UTF-8 that is U+FFFD. */
static void replace_lone_surrogates(uint8_t *text, size_t length) {
  for (size_t i = 0; i + 2 < length; i++)
    if (text[i] == 0xed && text[i + 1] >= 0xa0) memcpy(text + i, "\xef\xbf\xbd", 3);
}

/* (text, buffer): the number of bytes written, or -1 when they don't fit. */
static JSValue encode_into(JSContext *context, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  size_t length, room;
  uint8_t *buffer = bytes_of(context, argv[1], &room);
  const char *text = buffer == NULL ? NULL : JS_ToCStringLen(context, &length, argv[0]);
  if (text == NULL) return JS_EXCEPTION;
  if (length <= room) {
    memcpy(buffer, text, length);
    replace_lone_surrogates(buffer, length);
  }
  JS_FreeCString(context, text);
  return JS_NewInt64(context, length <= room ? (int64_t)length : -1);
}

static JSValue encode(JSContext *context, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  size_t length;
  const char *text = JS_ToCStringLen(context, &length, argv[0]);
  if (text == NULL) return JS_EXCEPTION;
  JSValue buffer = JS_NewArrayBufferCopy(context, (const uint8_t *)text, length);
  JS_FreeCString(context, text);
  size_t size;
  uint8_t *bytes = JS_GetArrayBuffer(context, &size, buffer);
  if (bytes != NULL) replace_lone_surrogates(bytes, size);
  return buffer;
}

static JSValue decode(JSContext *context, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  size_t length;
  const char *text = (const char *)bytes_of(context, argv[0], &length);
  if (text == NULL && length > 0) return JS_EXCEPTION;
  if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) text += 3, length -= 3; /* a byte order mark */
  return JS_NewStringLen(context, text, length);
}

static JSValue hash(JSContext *context, JSValueConst self, int argc, JSValueConst *argv, int size) {
  (void)self, (void)argc;
  size_t length;
  const char *text = JS_ToCStringLen(context, &length, argv[0]);
  if (text == NULL) return JS_EXCEPTION;
  uint8_t digest[64];
  (size == 32 ? sha256 : sha512)((const uint8_t *)text, length, digest);
  JS_FreeCString(context, text);
  char hex[128];
  for (int i = 0; i < size; i++) {
    hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
    hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
  }
  return JS_NewStringLen(context, hex, 2 * (size_t)size);
}

static JSValue nanoseconds(JSContext *context, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc, (void)argv;
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return JS_NewFloat64(context, (double)now.tv_sec * 1e9 + (double)now.tv_nsec);
}

static JSValue sleep_ms(JSContext *context, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  double ms;
  if (JS_ToFloat64(context, &ms, argv[0])) return JS_EXCEPTION;
  struct timespec left = {(time_t)(ms / 1000), (long)(ms * 1e6) % 1000000000};
  while (nanosleep(&left, &left) != 0) {}
  return JS_UNDEFINED;
}

static JSValue fill_random(JSContext *context, JSValueConst self, int argc, JSValueConst *argv) {
  (void)self, (void)argc;
  size_t length;
  uint8_t *bytes = bytes_of(context, argv[0], &length);
  if (bytes == NULL || getrandom(bytes, length, 0) != (ssize_t)length) return JS_EXCEPTION;
  return JS_DupValue(context, argv[0]);
}

extern char **environ;
static JSValue environment(JSContext *context) {
  JSValue object = JS_NewObject(context);
  for (char **variable = environ; *variable != NULL; variable++) {
    const char *equals = strchr(*variable, '=');
    if (equals == NULL) continue;
    JSAtom name = JS_NewAtomLen(context, *variable, equals - *variable);
    JS_DefinePropertyValue(context, object, name, JS_NewString(context, equals + 1), JS_PROP_C_W_E);
    JS_FreeAtom(context, name);
  }
  return object;
}

static JSValue path_of_this_executable(JSContext *context) {
  char path[4096];
  ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  return length < 0 ? JS_NewString(context, (const char *)getauxval(AT_EXECFN)) : JS_NewStringLen(context, path, length);
}

static const JSCFunctionListEntry functions[] = {
  JS_CFUNC_DEF("address", 1, address),         JS_CFUNC_DEF("cString", 2, c_string),
  JS_CFUNC_DEF("encode", 1, encode),           JS_CFUNC_DEF("encodeInto", 2, encode_into),
  JS_CFUNC_DEF("decode", 1, decode),           JS_CFUNC_DEF("nanoseconds", 0, nanoseconds),
  JS_CFUNC_DEF("sleepMs", 1, sleep_ms),        JS_CFUNC_DEF("fillRandom", 1, fill_random),
  JS_CFUNC_MAGIC_DEF("sha256", 1, hash, 32),   JS_CFUNC_MAGIC_DEF("sha512", 1, hash, 64),
};

JSValue native_object(JSContext *context, int argc, char **argv) {
  JSValue native = JS_NewObject(context), libc = JS_NewObject(context), read = JS_NewObject(context);
  JSValue arguments = JS_NewArray(context);
  JS_SetPropertyFunctionList(context, native, functions, sizeof functions / sizeof *functions);
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
    JS_SetPropertyStr(context, libc, symbols[i].name,
                      JS_NewCFunctionMagic(context, call, symbols[i].name, 6, JS_CFUNC_generic_magic, i));
  for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
    JS_SetPropertyStr(context, read, reads[i],
                      JS_NewCFunctionMagic(context, read_memory, reads[i], 2, JS_CFUNC_generic_magic, i));
  for (int i = 0; i < argc; i++) JS_SetPropertyUint32(context, arguments, i, JS_NewString(context, argv[i]));
  JS_SetPropertyStr(context, native, "libc", libc);
  JS_SetPropertyStr(context, native, "read", read);
  JS_SetPropertyStr(context, native, "environment", environment(context));
  JS_SetPropertyStr(context, native, "arguments", arguments);
  JS_SetPropertyStr(context, native, "executable", path_of_this_executable(context));
  JS_SetPropertyStr(context, native, "pid", JS_NewInt32(context, getpid()));
#ifdef __aarch64__
  JS_SetPropertyStr(context, native, "arch", JS_NewString(context, "arm64"));
#else
  JS_SetPropertyStr(context, native, "arch", JS_NewString(context, "x64"));
#endif
  return native;
}
