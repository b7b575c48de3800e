/* A table of the MPI functions that may wait for another rank, or look for what it has done. The last rank begins a collective with all
 * others, and then calls nothing but one of these functions; the others complete the collective first, and only then do what lets the
 * function end. By MPI's progress rule it does: whatever that rank has begun is moved on in every one of them.
 *
 * usage: progress FORM [FIRST]     FORM: begun or persistent; FIRST: the number of the function to begin with
 *
 * The name of each is printed before it is called. What takes longer than a minute hangs, and is named.
 *
 * Left out: on MPICH 5.0.2 MPI_Intercomm_create, MPI_Win_wait, MPI_Win_complete, and MPI_Win_lock of what another rank has locked, which
 * hang without us as well;
 * MPI_Comm_spawn, MPI_Comm_accept and their like, which need a launcher that can start and find processes. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <unistd.h>

#include "requests.h"

#if defined MPICH_VERSION && !defined I_MPI_VERSION
#define ON_MPICH 1
#else
#define ON_MPICH 0
#endif

enum { COUNT = 200000, WORDS = 100000, TAG = 9, DEADLINE = 60 };

enum phase { BEFORE, ACT, AFTER };

static int in[COUNT], out[COUNT];
static int waits, last;
/* Made before anything is begun. */
static MPI_Comm quiet;
/* What some functions work on, made before the collective is begun. */
static MPI_Comm made;
static MPI_Win window;
static MPI_File file;
static MPI_Group all, first_group, last_group;
static char name[256];
static const char *current = "MPI_Init";

/* Buffers of messages: too long to be sent before they are asked for. */
static int out_words[16 * WORDS], in_words[16 * WORDS], counts[16], places[16], bytes[16];
static MPI_Datatype types[16];

/* ---- messages: the first rank's part ---- */

static void told(void) {
    int word = 41;
    if (me == 0) OK(MPI_Send(&word, 1, MPI_INT, last, TAG, MPI_COMM_WORLD));
}

static void heard(int length) {
    if (me == 0) OK(MPI_Recv(in_words, length, MPI_INT, last, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
}

/* The function of a rank that receives a word. */
#define RECEIVES(name, ...)                                                                                                              \
    static void in_##name(enum phase phase) {                                                                                            \
        if (phase != ACT) return;                                                                                                        \
        if (!waits) {                                                                                                                    \
            told();                                                                                                                      \
            return;                                                                                                                      \
        }                                                                                                                                \
        int word = -1, flag = 0;                                                                                                         \
        MPI_Request request = MPI_REQUEST_NULL;                                                                                          \
        MPI_Status status;                                                                                                               \
        (void)flag, (void)request, (void)status;                                                                                         \
        __VA_ARGS__                                                                                                                      \
        CHECK(word == 41);                                                                                                               \
    }

/* The same, when the receive has been posted. */
#define POSTED(name, ...) RECEIVES(name, OK(MPI_Irecv(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request)); __VA_ARGS__)

/* The function of a rank that sends what the first rank receives afterwards. */
#define SENDS(name, length, ...)                                                                                                         \
    static void in_##name(enum phase phase) {                                                                                            \
        if (phase != ACT) return;                                                                                                        \
        if (!waits) {                                                                                                                    \
            heard(length);                                                                                                               \
            return;                                                                                                                      \
        }                                                                                                                                \
        MPI_Request request = MPI_REQUEST_NULL;                                                                                          \
        int flag = 0;                                                                                                                    \
        (void)flag, (void)request;                                                                                                       \
        __VA_ARGS__                                                                                                                      \
    }

/* A function that all ranks call. */
#define TOGETHER(name, ...)                                                                                                              \
    static void in_##name(enum phase phase) {                                                                                            \
        if (phase == ACT) OK(__VA_ARGS__);                                                                                               \
    }

/* The same, of a non-blocking one, which is then waited for or tested. */
#define BEGUN(name, ...)                                                                                                                 \
    static void in_##name(enum phase phase) {                                                                                            \
        MPI_Request other;                                                                                                               \
        if (phase != ACT) return;                                                                                                        \
        OK(__VA_ARGS__);                                                                                                                 \
        OK(MPI_Wait(&other, MPI_STATUS_IGNORE));                                                                                         \
    }

RECEIVES(Iprobe, {
    while (!flag) OK(MPI_Iprobe(0, TAG, MPI_COMM_WORLD, &flag, &status));
    OK(MPI_Recv(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &status));
})
RECEIVES(Iprobe_any, {
    while (!flag) OK(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status));
    OK(MPI_Recv(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &status));
})
RECEIVES(Improbe, {
    MPI_Message message;
    while (!flag) OK(MPI_Improbe(0, TAG, MPI_COMM_WORLD, &flag, &message, &status));
    OK(MPI_Mrecv(&word, 1, MPI_INT, &message, &status));
})
RECEIVES(Probe, {
    OK(MPI_Probe(0, TAG, MPI_COMM_WORLD, &status));
    OK(MPI_Recv(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &status));
})
RECEIVES(Mprobe, {
    MPI_Message message;
    OK(MPI_Mprobe(0, TAG, MPI_COMM_WORLD, &message, &status));
    OK(MPI_Mrecv(&word, 1, MPI_INT, &message, &status));
})
RECEIVES(Recv, OK(MPI_Recv(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &status));)
RECEIVES(Recv_any, OK(MPI_Recv(&word, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status));)
POSTED(Wait, OK(MPI_Wait(&request, &status));)
POSTED(Waitall, OK(MPI_Waitall(1, &request, &status));)
POSTED(Waitany, OK(MPI_Waitany(1, &request, &flag, &status));)
POSTED(Waitsome, {
    int index;
    OK(MPI_Waitsome(1, &request, &flag, &index, &status));
    CHECK(flag == 1);
})
POSTED(Test, while (!flag) OK(MPI_Test(&request, &flag, &status));)
POSTED(Testall, while (!flag) OK(MPI_Testall(1, &request, &flag, &status));)
POSTED(Testany, {
    int index;
    while (!flag) OK(MPI_Testany(1, &request, &index, &flag, &status));
})
POSTED(Testsome, {
    int index;
    while (!flag) OK(MPI_Testsome(1, &request, &flag, &index, &status));
})
POSTED(Request_get_status, {
    while (!flag) OK(MPI_Request_get_status(request, &flag, &status));
    OK(MPI_Wait(&request, &status));
})
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
POSTED(Request_get_status_any, {
    int index;
    while (!flag) OK(MPI_Request_get_status_any(1, &request, &index, &flag, &status));
    OK(MPI_Wait(&request, &status));
})
POSTED(Request_get_status_all, {
    while (!flag) OK(MPI_Request_get_status_all(1, &request, &flag, &status));
    OK(MPI_Wait(&request, &status));
})
POSTED(Request_get_status_some, {
    int index;
    while (!flag) OK(MPI_Request_get_status_some(1, &request, &flag, &index, &status));
    OK(MPI_Wait(&request, &status));
})
#endif
RECEIVES(Start, {
    OK(MPI_Recv_init(&word, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request));
    OK(MPI_Start(&request));
    OK(MPI_Wait(&request, &status));
    OK(MPI_Request_free(&request));
})
SENDS(Send, WORDS, OK(MPI_Send(out_words, WORDS, MPI_INT, 0, TAG, MPI_COMM_WORLD));)
SENDS(Ssend, 1, OK(MPI_Ssend(out_words, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD));)
SENDS(Issend, 1, {
    OK(MPI_Issend(out_words, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request));
    while (!flag) OK(MPI_Test(&request, &flag, MPI_STATUS_IGNORE));
})
SENDS(Isend, WORDS, {
    OK(MPI_Isend(out_words, WORDS, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request));
    OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
})
SENDS(Startall, 1, {
    OK(MPI_Ssend_init(out_words, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request));
    OK(MPI_Startall(1, &request));
    OK(MPI_Waitall(1, &request, MPI_STATUSES_IGNORE));
    OK(MPI_Request_free(&request));
})
/* What is sent with a buffer is gone when the buffer is given back. */
SENDS(Buffer_detach, WORDS, {
    int room = WORDS * (int)sizeof(int) + MPI_BSEND_OVERHEAD;
    void *buffer = malloc(room);
    OK(MPI_Buffer_attach(buffer, room));
    OK(MPI_Bsend(out_words, WORDS, MPI_INT, 0, TAG, MPI_COMM_WORLD));
    OK(MPI_Buffer_detach(&buffer, &room));
    free(buffer);
})

/* The ready receive is posted before the others wait; they take the message afterwards. */
static void in_Rsend(enum phase phase) {
    static MPI_Request posted;
    if (phase == BEFORE && me == 0) OK(MPI_Irecv(in_words, WORDS, MPI_INT, last, TAG, MPI_COMM_WORLD, &posted));
    if (phase == BEFORE) OK(MPI_Barrier(MPI_COMM_WORLD));
    if (phase == ACT && waits) OK(MPI_Rsend(out_words, WORDS, MPI_INT, 0, TAG, MPI_COMM_WORLD));
    if (phase == ACT && me == 0) OK(MPI_Wait(&posted, MPI_STATUS_IGNORE));
}

static void in_Sendrecv(enum phase phase) {
    int word = 40 + (me == 0), other = -1, partner = me == 0 ? last : 0;
    if (phase != ACT || (!waits && me != 0)) return;
    OK(MPI_Sendrecv(&word, 1, MPI_INT, partner, TAG, &other, 1, MPI_INT, partner, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    CHECK(other == 40 + (me != 0));
}

static void in_Sendrecv_replace(enum phase phase) {
    int word = 40 + (me == 0), partner = me == 0 ? last : 0;
    MPI_Status status;
    if (phase != ACT || (!waits && me != 0)) return;
    OK(MPI_Sendrecv_replace(&word, 1, MPI_INT, partner, TAG, partner, TAG, MPI_COMM_WORLD, &status));
    CHECK(word == 40 + (me != 0));
    CHECK(status.MPI_SOURCE == partner && status.MPI_TAG == TAG);
}

/* ---- collectives on another communicator ---- */

TOGETHER(Barrier, MPI_Barrier(quiet))
TOGETHER(Bcast, MPI_Bcast(out_words, 4, MPI_INT, 0, quiet))
TOGETHER(Bcast_long, MPI_Bcast(out_words, WORDS, MPI_INT, 0, quiet))
TOGETHER(Gather, MPI_Gather(out_words, 4, MPI_INT, in_words, 4, MPI_INT, last, quiet))
TOGETHER(Gatherv, MPI_Gatherv(out_words, 1, MPI_INT, in_words, counts, places, MPI_INT, last, quiet))
TOGETHER(Scatter, MPI_Scatter(out_words, 4, MPI_INT, in_words, 4, MPI_INT, 0, quiet))
TOGETHER(Scatterv, MPI_Scatterv(out_words, counts, places, MPI_INT, in_words, 1, MPI_INT, 0, quiet))
TOGETHER(Allgather, MPI_Allgather(out_words, 4, MPI_INT, in_words, 4, MPI_INT, quiet))
TOGETHER(Allgatherv, MPI_Allgatherv(out_words, 1, MPI_INT, in_words, counts, places, MPI_INT, quiet))
TOGETHER(Alltoall, MPI_Alltoall(out_words, WORDS, MPI_INT, in_words, WORDS, MPI_INT, quiet))
TOGETHER(Alltoallv, MPI_Alltoallv(out_words, counts, places, MPI_INT, in_words, counts, places, MPI_INT, quiet))
TOGETHER(Alltoallw, MPI_Alltoallw(out_words, counts, bytes, types, in_words, counts, bytes, types, quiet))
TOGETHER(Reduce, MPI_Reduce(out_words, in_words, 4, MPI_INT, MPI_SUM, last, quiet))
TOGETHER(Allreduce, MPI_Allreduce(out_words, in_words, WORDS, MPI_INT, MPI_SUM, quiet))
TOGETHER(Reduce_scatter, MPI_Reduce_scatter(out_words, in_words, counts, MPI_INT, MPI_SUM, quiet))
TOGETHER(Reduce_scatter_block, MPI_Reduce_scatter_block(out_words, in_words, 4, MPI_INT, MPI_SUM, quiet))
TOGETHER(Scan, MPI_Scan(out_words, in_words, 4, MPI_INT, MPI_SUM, quiet))
TOGETHER(Exscan, MPI_Exscan(out_words, in_words, 4, MPI_INT, MPI_SUM, quiet))

BEGUN(Ibarrier, MPI_Ibarrier(quiet, &other))
BEGUN(Ibcast, MPI_Ibcast(out_words, WORDS, MPI_INT, 0, quiet, &other))
BEGUN(Igather, MPI_Igather(out_words, 4, MPI_INT, in_words, 4, MPI_INT, last, quiet, &other))
BEGUN(Igatherv, MPI_Igatherv(out_words, 1, MPI_INT, in_words, counts, places, MPI_INT, last, quiet, &other))
BEGUN(Iscatter, MPI_Iscatter(out_words, 4, MPI_INT, in_words, 4, MPI_INT, 0, quiet, &other))
BEGUN(Iscatterv, MPI_Iscatterv(out_words, counts, places, MPI_INT, in_words, 1, MPI_INT, 0, quiet, &other))
BEGUN(Iallgather, MPI_Iallgather(out_words, 4, MPI_INT, in_words, 4, MPI_INT, quiet, &other))
BEGUN(Iallgatherv, MPI_Iallgatherv(out_words, 1, MPI_INT, in_words, counts, places, MPI_INT, quiet, &other))
BEGUN(Ialltoall, MPI_Ialltoall(out_words, 4, MPI_INT, in_words, 4, MPI_INT, quiet, &other))
BEGUN(Ialltoallv, MPI_Ialltoallv(out_words, counts, places, MPI_INT, in_words, counts, places, MPI_INT, quiet, &other))
BEGUN(Ialltoallw, MPI_Ialltoallw(out_words, counts, bytes, types, in_words, counts, bytes, types, quiet, &other))
BEGUN(Ireduce, MPI_Ireduce(out_words, in_words, 4, MPI_INT, MPI_SUM, last, quiet, &other))
BEGUN(Iallreduce, MPI_Iallreduce(out_words, in_words, WORDS, MPI_INT, MPI_SUM, quiet, &other))
BEGUN(Ireduce_scatter, MPI_Ireduce_scatter(out_words, in_words, counts, MPI_INT, MPI_SUM, quiet, &other))
BEGUN(Ireduce_scatter_block, MPI_Ireduce_scatter_block(out_words, in_words, 4, MPI_INT, MPI_SUM, quiet, &other))
BEGUN(Iscan, MPI_Iscan(out_words, in_words, 4, MPI_INT, MPI_SUM, quiet, &other))
BEGUN(Iexscan, MPI_Iexscan(out_words, in_words, 4, MPI_INT, MPI_SUM, quiet, &other))

static void in_Ibarrier_tested(enum phase phase) {
    MPI_Request other;
    int flag = 0;
    if (phase != ACT) return;
    OK(MPI_Ibarrier(quiet, &other));
    while (!flag) OK(MPI_Test(&other, &flag, MPI_STATUS_IGNORE));
}

static void in_Neighbor_allgather(enum phase phase) {
    int dimensions[1] = {p}, periods[1] = {1};
    if (phase == BEFORE) OK(MPI_Cart_create(quiet, 1, dimensions, periods, 0, &made));
    if (phase == ACT) OK(MPI_Neighbor_allgather(out_words, 4, MPI_INT, in_words, 4, MPI_INT, made));
    if (phase == AFTER) OK(MPI_Comm_free(&made));
}

static void in_Neighbor_alltoall(enum phase phase) {
    int dimensions[1] = {p}, periods[1] = {1};
    if (phase == BEFORE) OK(MPI_Cart_create(quiet, 1, dimensions, periods, 0, &made));
    if (phase == ACT) OK(MPI_Neighbor_alltoall(out_words, 4, MPI_INT, in_words, 4, MPI_INT, made));
    if (phase == AFTER) OK(MPI_Comm_free(&made));
}

/* ---- communicators ---- */

/* A function that makes one. */
#define MAKES(name, ...)                                                                                                                 \
    static void in_##name(enum phase phase) {                                                                                            \
        if (phase == ACT) OK(__VA_ARGS__);                                                                                               \
        if (phase == AFTER) OK(MPI_Comm_free(&made));                                                                                    \
    }

MAKES(Comm_dup, MPI_Comm_dup(quiet, &made))
MAKES(Comm_dup_with_info, MPI_Comm_dup_with_info(quiet, MPI_INFO_NULL, &made))
MAKES(Comm_split, MPI_Comm_split(quiet, 0, me, &made))
MAKES(Comm_split_of_world, MPI_Comm_split(MPI_COMM_WORLD, 0, me, &made))
MAKES(Comm_split_type, MPI_Comm_split_type(quiet, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &made))
MAKES(Comm_create, MPI_Comm_create(quiet, all, &made))
MAKES(Comm_create_group, MPI_Comm_create_group(quiet, all, 3, &made))
MAKES(Cart_create, MPI_Cart_create(quiet, 1, (int[]){p}, (int[]){1}, 0, &made))
MAKES(Dist_graph_create_adjacent,
    MPI_Dist_graph_create_adjacent(quiet, 1, (int[]){(me + 1) % p}, (int[]){1}, 1, (int[]){(me + p - 1) % p}, (int[]){1}, MPI_INFO_NULL, 0,
        &made))
MAKES(Dist_graph_create, MPI_Dist_graph_create(quiet, 1, (int[]){me}, (int[]){1}, (int[]){(me + 1) % p}, (int[]){1}, MPI_INFO_NULL, 0, &made))

static void in_Comm_idup(enum phase phase) {
    MPI_Request other;
    if (phase == ACT) {
        OK(MPI_Comm_idup(quiet, &made, &other));
        OK(MPI_Wait(&other, MPI_STATUS_IGNORE));
    }
    if (phase == AFTER) OK(MPI_Comm_free(&made));
}

static void in_Comm_free(enum phase phase) {
    if (phase == BEFORE) OK(MPI_Comm_dup(quiet, &made));
    if (phase == ACT) OK(MPI_Comm_free(&made));
}

static void in_Comm_disconnect(enum phase phase) {
    if (phase == BEFORE) OK(MPI_Comm_dup(quiet, &made));
    if (phase == ACT) OK(MPI_Comm_disconnect(&made));
}

static MPI_Comm part;

/* The last rank, and all others. */
static void parted(void) { OK(MPI_Comm_split(quiet, waits, me, &part)); }

__attribute__((unused)) static void in_Intercomm_create(enum phase phase) {
    if (phase == BEFORE) parted();
    if (phase == ACT) OK(MPI_Intercomm_create(part, 0, quiet, waits ? 0 : last, 4, &made));
    if (phase != AFTER) return;
    OK(MPI_Comm_free(&made));
    OK(MPI_Comm_free(&part));
}

static void joined(void) {
    parted();
    OK(MPI_Intercomm_create(part, 0, quiet, waits ? 0 : last, 4, &made));
}

static void unjoined(void) {
    OK(MPI_Comm_free(&made));
    OK(MPI_Comm_free(&part));
}

static void in_Intercomm_merge(enum phase phase) {
    static MPI_Comm merged;
    if (phase == BEFORE) joined();
    if (phase == ACT) OK(MPI_Intercomm_merge(made, waits, &merged));
    if (phase != AFTER) return;
    OK(MPI_Comm_free(&merged));
    unjoined();
}

static void in_Barrier_between_groups(enum phase phase) {
    if (phase == BEFORE) joined();
    if (phase == ACT) OK(MPI_Barrier(made));
    if (phase == AFTER) unjoined();
}

static void in_Allreduce_between_groups(enum phase phase) {
    if (phase == BEFORE) joined();
    if (phase == ACT) OK(MPI_Allreduce(out_words, in_words, 4, MPI_INT, MPI_SUM, made));
    if (phase == AFTER) unjoined();
}

/* ---- windows ---- */

static int exposed[4 * 16];

static void opened(void) { OK(MPI_Win_create(exposed, sizeof exposed, sizeof *exposed, MPI_INFO_NULL, quiet, &window)); }
static void closed(void) { OK(MPI_Win_free(&window)); }

#define MAKES_WINDOW(name, ...)                                                                                                          \
    static void in_##name(enum phase phase) {                                                                                            \
        void *base;                                                                                                                      \
        (void)base;                                                                                                                      \
        if (phase == ACT) OK(__VA_ARGS__);                                                                                               \
        if (phase == AFTER) closed();                                                                                                    \
    }

MAKES_WINDOW(Win_create, MPI_Win_create(exposed, sizeof exposed, sizeof *exposed, MPI_INFO_NULL, quiet, &window))
MAKES_WINDOW(Win_allocate, MPI_Win_allocate(64, 4, MPI_INFO_NULL, quiet, &base, &window))
MAKES_WINDOW(Win_allocate_shared, MPI_Win_allocate_shared(64, 4, MPI_INFO_NULL, quiet, &base, &window))
MAKES_WINDOW(Win_create_dynamic, MPI_Win_create_dynamic(MPI_INFO_NULL, quiet, &window))

static void in_Win_free(enum phase phase) {
    if (phase == BEFORE) opened();
    if (phase == ACT) closed();
}

static void in_Win_fence(enum phase phase) {
    if (phase == BEFORE) {
        opened();
        OK(MPI_Win_fence(0, window));
    }
    if (phase == ACT) {
        OK(MPI_Put(&me, 1, MPI_INT, (me + 1) % p, 0, 1, MPI_INT, window));
        OK(MPI_Win_fence(0, window));
        CHECK(exposed[0] == (me + p - 1) % p);
    }
    if (phase == AFTER) closed();
}

/* The first rank holds the lock that the last one wants. */
__attribute__((unused)) static void in_Win_lock(enum phase phase) {
    if (phase == BEFORE) {
        opened();
        if (me == 0) OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window));
        OK(MPI_Barrier(quiet));
    }
    if (phase == ACT && me == 0) OK(MPI_Win_unlock(0, window));
    if (phase == ACT && waits) {
        OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window));
        OK(MPI_Put(&me, 1, MPI_INT, 0, 1, 1, MPI_INT, window));
        OK(MPI_Win_unlock(0, window));
    }
    if (phase == AFTER) closed();
}

__attribute__((unused)) static void in_Win_flush(enum phase phase) {
    if (phase == BEFORE) {
        opened();
        if (me == 0) OK(MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window));
        OK(MPI_Barrier(quiet));
    }
    if (phase == ACT && me == 0) OK(MPI_Win_unlock(0, window));
    if (phase == ACT && waits) {
        int got = -1;
        OK(MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window));
        OK(MPI_Get(&got, 1, MPI_INT, 0, 2, 1, MPI_INT, window));
        OK(MPI_Win_flush(0, window));
        CHECK(got == exposed[2]);
        OK(MPI_Win_unlock(0, window));
    }
    if (phase == AFTER) closed();
}

/* The last rank waits for an access of the first one's. */
static void access_awaited(enum phase phase, int tests) {
    int flag = 0;
    if (phase == BEFORE) {
        opened();
        if (waits) OK(MPI_Win_post(first_group, 0, window));
    }
    if (phase == ACT && me == 0) {
        OK(MPI_Win_start(last_group, 0, window));
        OK(MPI_Put(&p, 1, MPI_INT, last, 3, 1, MPI_INT, window));
        OK(MPI_Win_complete(window));
    }
    if (phase == ACT && waits) {
        while (tests && !flag) OK(MPI_Win_test(window, &flag));
        if (!tests) OK(MPI_Win_wait(window));
        CHECK(exposed[3] == p);
    }
    if (phase == AFTER) closed();
}

static void in_Win_test(enum phase phase) { access_awaited(phase, 1); }
__attribute__((unused)) static void in_Win_wait(enum phase phase) { access_awaited(phase, 0); }

/* The last rank accesses what the first one has yet to offer. */
__attribute__((unused)) static void in_Win_complete(enum phase phase) {
    if (phase == BEFORE) opened();
    if (phase == ACT && waits) {
        OK(MPI_Win_start(first_group, 0, window));
        OK(MPI_Put(&p, 1, MPI_INT, 0, 3, 1, MPI_INT, window));
        OK(MPI_Win_complete(window));
    }
    if (phase == ACT && me == 0) {
        OK(MPI_Win_post(last_group, 0, window));
        OK(MPI_Win_wait(window));
        CHECK(exposed[3] == p);
    }
    if (phase == AFTER) closed();
}

/* ---- files ---- */

static void file_opened(void) {
    OK(MPI_File_open(quiet, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file));
}

#define OF_FILE(name, ...)                                                                                                               \
    static void in_##name(enum phase phase) {                                                                                            \
        if (phase == BEFORE) file_opened();                                                                                              \
        if (phase == ACT) OK(__VA_ARGS__);                                                                                               \
        if (phase == AFTER) OK(MPI_File_close(&file));                                                                                   \
    }

static void in_File_open(enum phase phase) {
    if (phase == ACT) file_opened();
    if (phase == AFTER) OK(MPI_File_close(&file));
}

static void in_File_close(enum phase phase) {
    if (phase == BEFORE) file_opened();
    if (phase == ACT) OK(MPI_File_close(&file));
}

OF_FILE(File_write_at_all, MPI_File_write_at_all(file, 400 * me, out_words, 100, MPI_INT, MPI_STATUS_IGNORE))
OF_FILE(File_read_at_all, MPI_File_read_at_all(file, 0, in_words, 0, MPI_INT, MPI_STATUS_IGNORE))
OF_FILE(File_write_all, MPI_File_write_all(file, out_words, 100, MPI_INT, MPI_STATUS_IGNORE))
OF_FILE(File_set_view, MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL))
OF_FILE(File_set_size, MPI_File_set_size(file, 4096))
OF_FILE(File_preallocate, MPI_File_preallocate(file, 4096))
OF_FILE(File_sync, MPI_File_sync(file))

/* ---- the table ---- */

#define NAMED(name) {#name, in_##name}
static const struct {
    const char *name;
    void (*run)(enum phase);
} functions[] = {
    NAMED(Iprobe),
    NAMED(Iprobe_any),
    NAMED(Improbe),
    NAMED(Probe),
    NAMED(Mprobe),
    NAMED(Recv),
    NAMED(Recv_any),
    NAMED(Wait),
    NAMED(Waitall),
    NAMED(Waitany),
    NAMED(Waitsome),
    NAMED(Test),
    NAMED(Testall),
    NAMED(Testany),
    NAMED(Testsome),
    NAMED(Request_get_status),
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    NAMED(Request_get_status_any),
    NAMED(Request_get_status_all),
    NAMED(Request_get_status_some),
#endif
    NAMED(Start),
    NAMED(Send),
    NAMED(Ssend),
    NAMED(Rsend),
    NAMED(Issend),
    NAMED(Isend),
    NAMED(Startall),
    NAMED(Buffer_detach),
    NAMED(Sendrecv),
    NAMED(Sendrecv_replace),
    NAMED(Barrier),
    NAMED(Bcast),
    NAMED(Bcast_long),
    NAMED(Gather),
    NAMED(Gatherv),
    NAMED(Scatter),
    NAMED(Scatterv),
    NAMED(Allgather),
    NAMED(Allgatherv),
    NAMED(Alltoall),
    NAMED(Alltoallv),
    NAMED(Alltoallw),
    NAMED(Reduce),
    NAMED(Allreduce),
    NAMED(Reduce_scatter),
    NAMED(Reduce_scatter_block),
    NAMED(Scan),
    NAMED(Exscan),
    NAMED(Ibarrier),
    NAMED(Ibarrier_tested),
    NAMED(Ibcast),
    NAMED(Igather),
    NAMED(Igatherv),
    NAMED(Iscatter),
    NAMED(Iscatterv),
    NAMED(Iallgather),
    NAMED(Iallgatherv),
    NAMED(Ialltoall),
    NAMED(Ialltoallv),
    NAMED(Ialltoallw),
    NAMED(Ireduce),
    NAMED(Iallreduce),
    NAMED(Ireduce_scatter),
    NAMED(Ireduce_scatter_block),
    NAMED(Iscan),
    NAMED(Iexscan),
    NAMED(Neighbor_allgather),
    NAMED(Neighbor_alltoall),
    NAMED(Comm_dup),
    NAMED(Comm_dup_with_info),
    NAMED(Comm_idup),
    NAMED(Comm_split),
    NAMED(Comm_split_of_world),
    NAMED(Comm_split_type),
    NAMED(Comm_create),
    NAMED(Comm_create_group),
    NAMED(Cart_create),
    NAMED(Dist_graph_create),
    NAMED(Dist_graph_create_adjacent),
    NAMED(Comm_free),
    NAMED(Comm_disconnect),
#if !ON_MPICH
    NAMED(Intercomm_create),
#endif
    NAMED(Intercomm_merge),
    NAMED(Barrier_between_groups),
    NAMED(Allreduce_between_groups),
    NAMED(Win_create),
    NAMED(Win_allocate),
    NAMED(Win_allocate_shared),
    NAMED(Win_create_dynamic),
    NAMED(Win_free),
    NAMED(Win_fence),
#if !ON_MPICH
    NAMED(Win_lock),
    NAMED(Win_flush),
#endif
    NAMED(Win_test),
#if !ON_MPICH
    NAMED(Win_wait),
    NAMED(Win_complete),
#endif
    NAMED(File_open),
    NAMED(File_write_at_all),
    NAMED(File_read_at_all),
    NAMED(File_write_all),
    NAMED(File_set_view),
    NAMED(File_set_size),
    NAMED(File_preallocate),
    NAMED(File_sync),
    NAMED(File_close),
};

static void hangs(int signal) {
    char text[200];
    (void)signal;
    int length = snprintf(text, sizeof text, "progress: rank %d hangs with %s\n", me, current);
    if (write(2, text, length) < 0) _exit(5);
    _exit(4);
}

static void tried(int index, MPI_Request *persistent) {
    MPI_Request begun;
    current = functions[index].name;
    alarm(DEADLINE);
    if (waits) {
        printf("progress: %d %s\n", index, current);
        fflush(stdout);
    }
    functions[index].run(BEFORE);
    for (int i = 0; i < COUNT; i++) in[i] = me + i + index, out[i] = -1;
    if (persistent) OK(MPI_Start(persistent));
    else OK(MPI_Iallreduce(in, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &begun));
    if (!waits) OK(MPI_Wait(persistent ? persistent : &begun, MPI_STATUS_IGNORE));
    functions[index].run(ACT);
    if (waits) OK(MPI_Wait(persistent ? persistent : &begun, MPI_STATUS_IGNORE));
    for (int i = 0; i < COUNT; i++) CHECK(out[i] == p * (p - 1) / 2 + p * (i + index));
    functions[index].run(AFTER);
}

int main(int count, char **words) {
    MPI_Request persistent = MPI_REQUEST_NULL;
    int process = getpid(), of = sizeof functions / sizeof *functions;
    int lasting = count > 1 && !strcmp(words[1], "persistent"), from = count > 2 ? atoi(words[2]) : 0;
    const char *folder = getenv("TMPDIR");
    signal(SIGALRM, hangs);
    begun_with(&count, &words);
    last = p - 1;
    waits = me == last;
    OK(MPI_Bcast(&process, 1, MPI_INT, 0, MPI_COMM_WORLD));
    snprintf(name, sizeof name, "%s/allhands-progress-%d", folder ? folder : "/tmp", process);
    for (int r = 0; r < p; r++) counts[r] = 1, places[r] = r, bytes[r] = 4 * r, types[r] = MPI_INT;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &quiet));
    OK(MPI_Comm_group(quiet, &all));
    OK(MPI_Group_incl(all, 1, (int[]){0}, &first_group));
    OK(MPI_Group_incl(all, 1, &last, &last_group));
    if (lasting) OK(INIT(Allreduce)(in, out, COUNT, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent));
    for (int index = from; index < of && p > 1; index++) tried(index, lasting ? &persistent : NULL);
    if (lasting) OK(MPI_Request_free(&persistent));
    OK(MPI_Group_free(&all));
    OK(MPI_Group_free(&first_group));
    OK(MPI_Group_free(&last_group));
    OK(MPI_Comm_free(&quiet));
    MPI_Finalize();
    if (me == 0) printf("progress: %d ranks, all right\n", p);
    return 0;
}
