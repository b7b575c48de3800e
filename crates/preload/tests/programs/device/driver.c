/* A stand-in for a driver, whose device memory is memory that the processor may not touch: only its copies open it. Which driver it
 * stands in for is said when it is compiled: CUDA, HIP (with its version) or LEVEL_ZERO. Programs allocate by the functions that begin
 * with stand_in, which all of them have. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct memory { char *at; size_t bytes; } known[4096];
static int knows, copies, faults;

static struct memory *find(const void *at) {
    for (int i = 0; i < knows; i++)
        if ((const char *)at >= known[i].at && (const char *)at < known[i].at + known[i].bytes) return &known[i];
    return NULL;
}

/* Room for so many bytes at the end of pages, so that a byte too many is noticed. */
void *stand_in_allocate(size_t bytes) {
    size_t page = sysconf(_SC_PAGESIZE), all = (bytes + page - 1) / page * page;
    char *at = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED || knows == 4096) abort();
    char *begin = at + (all - bytes) / 16 * 16;
    known[knows++] = (struct memory){begin, bytes};
    return begin;
}

void stand_in_free(void *at) {
    struct memory *memory = find(at);
    if (!memory || memory->at != at) abort();
    uintptr_t page = sysconf(_SC_PAGESIZE), first = (uintptr_t)at / page * page;
    munmap((void *)first, (uintptr_t)at + memory->bytes - first);
    *memory = known[--knows];
}

static int opened(const void *at, size_t bytes, int protection) {
    struct memory *memory = find(at);
    if (!memory) return 0;
    if ((const char *)at + bytes > memory->at + memory->bytes) return 1;
    uintptr_t page = sysconf(_SC_PAGESIZE), first = (uintptr_t)memory->at / page * page;
    return mprotect((void *)first, (uintptr_t)memory->at + memory->bytes - first, protection) != 0;
}

int stand_in_copy(void *to, const void *from, size_t bytes) {
    int wrong = opened(to, bytes, PROT_READ | PROT_WRITE) | opened(from, bytes, PROT_READ | PROT_WRITE);
    if (!wrong) memcpy(to, from, bytes);
    opened(to, bytes, PROT_NONE);
    opened(from, bytes, PROT_NONE);
    return wrong;
}

/* Copies that were made through the driver's own functions, and what was wrong with how these were called. */
int stand_in_copies(void) { return copies; }
int stand_in_faults(void) { return faults; }

static int copied(void *to, const void *from, size_t bytes) {
    copies++;
    return stand_in_copy(to, from, bytes) ? 1 : 0;
}

#ifdef CUDA
static void *const context = (void *)0xc0de;
static void *current[8];
static int depth;

int cuPointerGetAttribute(void *data, int attribute, uintptr_t at) {
    if (!find((void *)at)) return 1;
    switch (attribute) {
    case 1: *(void **)data = context; return 0;
    case 2: *(unsigned *)data = 2; return 0;
    case 8: *(unsigned *)data = 0; return 0;
    case 9: *(int *)data = 0; return 0;
    }
    return 1;
}
int cuCtxPushCurrent_v2(void *pushed) { current[++depth] = pushed; return 0; }
int cuCtxPopCurrent_v2(void **popped) { *popped = current[depth--]; return 0; }
int cuStreamSynchronize(void *stream) { return stream != NULL; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return 0; }
int cuDevicePrimaryCtxRetain(void **retained, int device) { *retained = context; return device; }
int cuMemcpyDtoH_v2(void *to, uintptr_t from, size_t bytes) {
    faults += current[depth] != context || find(to) || !find((void *)from);
    return copied(to, (void *)from, bytes);
}
int cuMemcpyHtoD_v2(uintptr_t to, const void *from, size_t bytes) {
    faults += current[depth] != context || !find((void *)to) || find(from);
    return copied((void *)to, from, bytes);
}
#endif

#ifdef HIP
static int last, device;

int hipPointerGetAttributes(int *attributes, const void *at) {
    if (!find(at)) return last = 1;
    memset(attributes, 0, 32);
    attributes[0] = HIP < 6 ? 1 : 2;
    attributes[1] = 3;
    return 0;
}
int hipMemcpy(void *to, const void *from, size_t bytes, int kind) {
    faults += kind != 4 || device != 3 || !find(to) == !find(from);
    return copied(to, from, bytes);
}
int hipStreamSynchronize(void *stream) { return stream != NULL; }
int hipGetDevice(int *now) { *now = device; return 0; }
int hipSetDevice(int now) { device = now; return 0; }
int hipRuntimeGetVersion(int *version) { *version = HIP * 10000000 + 12345; return 0; }
int hipPeekAtLastError(void) { return last; }
int hipGetLastError(void) { int was = last; last = 0; return was; }
#endif

#ifdef LEVEL_ZERO
struct queue { uint32_t kind; void *next; uint32_t ordinal, index, flags, mode, priority; };
struct properties { uint32_t kind; void *next; uint32_t memory; uint64_t id, page; };
static char driver, devices[2], own, lists[2];

int zeInit(uint32_t flags) { return flags != 0; }
int zeDriverGet(uint32_t *count, void **found) { *count = 1; *found = &driver; return 0; }
int zeDeviceGet(void *of, uint32_t *count, void **found) { *count = 1; *found = &devices[0]; return of != &driver; }
int zeContextCreate(void *of, const uint32_t *wanted, void **made) { *made = &own; return of != &driver || *wanted != 0xd; }
int zeMemGetAllocProperties(void *context, const void *at, struct properties *properties, void **device) {
    faults += context != &own || properties->kind != 0x17;
    properties->memory = find(at) ? 2 : 0;
    *device = find(at) ? &devices[1] : NULL;
    return 0;
}
int zeCommandListCreateImmediate(void *context, void *device, const struct queue *queue, void **list) {
    faults += context != &own || device != &devices[1] || queue->kind != 0xe || queue->mode != 1;
    *list = &lists[1];
    return 0;
}
int zeCommandListAppendMemoryCopy(void *list, void *to, const void *from, size_t bytes, void *event, uint32_t count, void **events) {
    faults += list != &lists[1] || !find(to) == !find(from) || event || count || events;
    return copied(to, from, bytes);
}
#endif
