/*
 * QuickJS asks for some ten thousand small pieces of memory in the milliseconds that a plugin lives. Pieces of up to
 * SMALL bytes come from a list of freed ones of their size, or else from the end of an arena that grows by whole
 * chunks, which the kernel fills in at once instead of by a page fault for every 4 KiB. Larger ones are libc's.
 */
#define _GNU_SOURCE
#include "alloc.h"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { STEP = 16, SMALL = 1024, CHUNK = 512 << 10 };

/** Stands before every piece; 16 bytes, so that what follows is aligned for anything. */
typedef struct {
  size_t size; /* of what follows, a multiple of STEP when small */
  size_t unused;
} head;

typedef struct freed {
  struct freed *next;
} freed;

static freed *lists[SMALL / STEP + 1];
static char *arena, *arena_end;

static int more(void) {
  void *chunk = mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (chunk == MAP_FAILED) return 0;
  arena = chunk;
  arena_end = arena + CHUNK;
  return 1;
}

static void *take(JSMallocState *state, size_t size) {
  if (size == 0) size = 1;
  if (state->malloc_size + size > state->malloc_limit) return NULL;
  head *piece;
  if (size > SMALL) {
    piece = malloc(sizeof(head) + size);
    if (piece == NULL) return NULL;
  } else {
    size = (size + STEP - 1) & ~(size_t)(STEP - 1);
    freed **list = &lists[size / STEP];
    if (*list != NULL) {
      void *memory = *list;
      *list = (*list)->next;
      piece = (head *)memory - 1;
    } else {
      if (arena_end - arena < (ptrdiff_t)(sizeof(head) + size) && !more()) return NULL;
      piece = (head *)arena;
      arena += sizeof(head) + size;
    }
  }
  piece->size = size;
  state->malloc_count++;
  state->malloc_size += size;
  return piece + 1;
}

static void give(JSMallocState *state, void *memory) {
  if (memory == NULL) return;
  head *piece = (head *)memory - 1;
  state->malloc_count--;
  state->malloc_size -= piece->size;
  if (piece->size > SMALL) {
    free(piece);
    return;
  }
  freed *entry = memory;
  freed **list = &lists[piece->size / STEP];
  entry->next = *list;
  *list = entry;
}

static void *resize(JSMallocState *state, void *memory, size_t size) {
  if (memory == NULL) return size == 0 ? NULL : take(state, size);
  if (size == 0) {
    give(state, memory);
    return NULL;
  }
  head *piece = (head *)memory - 1;
  size_t old = piece->size;
  if (size <= old && old <= SMALL) return memory;
  if (old > SMALL && size > SMALL) {
    if (state->malloc_size - old + size > state->malloc_limit) return NULL;
    piece = realloc(piece, sizeof(head) + size);
    if (piece == NULL) return NULL;
    state->malloc_size += size - old;
    piece->size = size;
    return piece + 1;
  }
  void *moved = take(state, size);
  if (moved == NULL) return NULL;
  memcpy(moved, memory, old < size ? old : size);
  give(state, memory);
  return moved;
}

static size_t usable(const void *memory) { return memory == NULL ? 0 : ((const head *)memory - 1)->size; }

const JSMallocFunctions arena_functions = {take, give, resize, usable};
