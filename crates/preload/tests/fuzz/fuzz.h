/* An interpreter of random MPI programs. A script is a text of lines, each one operation, the same on every rank; what ranks do differently
 * follows from a line's seed and the rank. Every result is computed once more from the same numbers, and compared to the last byte, gaps
 * included.
 *
 * Why a script cannot wait for ever, whichever lines are taken out of it: whatever an operation waits for is done by other ranks at the same
 * line or at an earlier one. Take the rank that has come least far: all that it waits for has been done or is being done. (That needs
 * MPI's progress: a rank inside of any MPI function does its part of what it has begun.) A line that names what is not there, because the
 * line that made it was taken out or because this rank is not a member, does nothing. */
#ifndef FUZZ_H
#define FUZZ_H

#define _GNU_SOURCE
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "faults.h"

enum { GROUPS = 8, WINDOWS = 3, MOST_RANKS = 16, MOST_EDGES = 64 };

/* A line of the script: an operation, then words such as `count=12`. */
typedef struct {
    int number;
    const char *text;
} Line;

/* Who sends to this rank and who receives from it, MPI_PROC_NULL where there is nobody, and of each block that comes which one it is among those
 * of its source. */
typedef struct {
    int there, grid, in, out;
    int source[MOST_EDGES], destination[MOST_EDGES], which[MOST_EDGES];
} Neighbors;

/* A communicator as this rank sees it. */
typedef struct {
    MPI_Comm comm;
    int there, inter;
    int me, n;
    /* Of an intercommunicator: the other group's ranks, and which of the two groups is ours. */
    int remote, side;
    /* The rank in the world of the first member: members of another group have other data. */
    int leader;
    /* From which others may be duplicated. */
    int duplicated;
    /* Of one with a topology. */
    Neighbors neighbors;
} Group;

struct Pending;

typedef struct {
    MPI_Win window;
    Group group;
    int there, allocated, slot;
    int64_t *memory;
} Window;

/* A thread of this process, with what it has made. */
typedef struct {
    int thread;
    const Line *line;
    Group groups[GROUPS];
    Window windows[WINDOWS];
    struct Pending **pending;
    int count, room;
    /* Buffers of sends whose requests were freed. */
    void **kept;
    int kept_count;
} Actor;

/* main.c */
extern int world_rank, world_size, several_threads;
long number(const Line *line, const char *key, long otherwise);
int word(const Line *line, const char *key, char *into, size_t room);
int is(const Line *line, const char *key, const char *value);
/* Says what is wrong and ends the job. */
void wrong(const Actor *actor, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
void checked_code(const Actor *actor, int code, const char *call);
#define OK(call) checked_code(actor, (call), #call)
void *memory(size_t bytes);

/* data.c: numbers, kinds of elements and how they lie in memory */
uint64_t hash(uint64_t a, uint64_t b, uint64_t c, uint64_t d);

typedef struct {
    int64_t x, y;
} Element;

typedef enum { SIGNED, UNSIGNED, FLOATING, COMPLEX, LOGICAL, BYTES, PAIR, AFFINE, STRUCTURE } Class;

typedef struct {
    const char *name;
    Class class;
    /* Of an element in memory, and of a pair's first part. */
    int size, first;
    MPI_Datatype type;
} Kind;

/* Elements with gaps between them. */
typedef struct {
    const char *name;
    int elements, at[6], extent; /* in elements */
    MPI_Datatype type;
    const Kind *kind;
    int mine; /* whether the type is to be freed */
} Layout;

enum { FORMS_OF_LAYOUT = 6 };

void kinds_made(void);
void kinds_freed(void);
const Kind *kind_named(const char *name);
Layout layout_made(const Actor *actor, const Kind *kind, int which);
/* One of those whose elements divide `count`. */
Layout layout_drawn(const Actor *actor, const Kind *kind, long count, uint64_t draw);
void layout_freed(Layout *layout);
size_t layout_bytes(const Layout *layout, long elements);
char *element_at(const Layout *layout, char *start, long index);
void store(const Kind *kind, char *to, Element element);
Element moved(const Kind *kind, uint64_t draw);
/* Padding inside of elements is made as it was before. */
void blanked(const Layout *layout, char *start, long elements);
enum { UNTOUCHED = 0xa5 };
void compared(const Actor *actor, const Kind *kind, const char *what, const char *want, const char *got, size_t bytes);

typedef enum { SUM, PROD, MAX, MIN, BAND, BOR, BXOR, LAND, LOR, LXOR, MINLOC, MAXLOC, MODULAR, COMPOSED, OPERATIONS } Operation;
Operation operation_named(const char *name);
int operation_suits(Operation operation, const Kind *kind);
MPI_Op operation_made(const Actor *actor, Operation operation, int *mine);
Element combined(Operation operation, Element a, Element b);
Element reduced_from(Operation operation, uint64_t draw, int rank);

/* pending.c: requests under way */
typedef struct Pending {
    MPI_Request request;
    int line, id, persistent, active, run;
    /* Where the communicator was; -1 when it does not matter. */
    int slot;
    void *of;
    void (*completed)(Actor *, struct Pending *, const MPI_Status *);
    /* Prepares buffers for another run. */
    void (*prepared)(Actor *, struct Pending *);
    void (*dropped)(Actor *, struct Pending *);
} Pending;
Pending *added(Actor *actor, void *of);
void complete_some(Actor *actor, const char *way, uint64_t draw, int all);
void complete_one(Actor *actor, Pending *pending);
void run_complete(Actor *actor);
void run_start(Actor *actor);
void run_release(Actor *actor);
void released_of_slot(Actor *actor, int slot);
void all_ended(Actor *actor);

/* The operations of scripts. */
void rings_probed(void);
void run_collective(Actor *actor);
void run_message(Actor *actor);
void run_shift(Actor *actor);
void run_relay(Actor *actor);
void run_group(Actor *actor);
void run_free(Actor *actor);
void run_window(Actor *actor);
void run_file(Actor *actor);
void run_local(Actor *actor);
void window_freed(Actor *actor, Window *window);
void group_freed(Actor *actor, int slot);
Group group_of(const Actor *actor, MPI_Comm comm);

/* topologies.c: who is whose neighbour */
MPI_Comm topology_made(Actor *actor, const Group *from, uint64_t seed);
Neighbors neighbors_of(const Actor *actor, const Group *group);

#endif
