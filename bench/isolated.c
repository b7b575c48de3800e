/* How long a collective takes as programs call it: alone, on data that were just written, after a message.
 *
 *     isolated [ITERATIONS] [LARGEST] [rest] [turns]      (bytes; all sizes up to 4 MiB without)
 *
 * Six collectives and the barrier; with `rest` the other ones, those among neighbours on a periodic ring. Before every call each rank writes
 * its send buffer anew and exchanges a message with a neighbour, so that nothing of the call before is left in the caches' first lines and
 * ranks begin together. One collective is called again and again, then the next one; with `turns` all of a size take turns, so that no call
 * is like the one before. A call takes as long as on the rank where it takes longest. Every line is
 * `collective bytes median p10 p90`, in microseconds. On two ranks of one node a yardstick is measured in the same
 * way, as `limit-...`: what the collective has to do, by hand, in memory that both ranks see. A program's own
 * buffers are not such memory: of long messages something more has to be copied; but then both ranks may copy at the same
 * time, so that it is no bound from 8 KiB on. */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LARGEST = 4 << 20, SIZES = 7, WARM_UP = 20, MOST_CALLS = 16 };
static const int sizes[SIZES] = {8, 128, 1 << 10, 8 << 10, 64 << 10, 1 << 20, LARGEST};

static int me, n, iterations = 400, largest = LARGEST, turns;
static double *send, *receive;
static double *times, *slowest;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * t.tv_sec + 1e-3 * t.tv_nsec;
}

typedef void call(int bytes);

static void barrier(int bytes) {
    (void)bytes;
    MPI_Barrier(MPI_COMM_WORLD);
}
static void bcast(int bytes) { MPI_Bcast(send, bytes / 8, MPI_DOUBLE, 0, MPI_COMM_WORLD); }
static void reduce(int bytes) { MPI_Reduce(send, receive, bytes / 8, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); }
static void allreduce(int bytes) { MPI_Allreduce(send, receive, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }
static void allgather(int bytes) { MPI_Allgather(send, bytes / 8, MPI_DOUBLE, receive, bytes / 8, MPI_DOUBLE, MPI_COMM_WORLD); }
static void alltoall(int bytes) { MPI_Alltoall(send, bytes / 8, MPI_DOUBLE, receive, bytes / 8, MPI_DOUBLE, MPI_COMM_WORLD); }
static void reduce_scatter_block(int bytes) { MPI_Reduce_scatter_block(send, receive, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }

/* Memory of both ranks: a line with a flag and up to 56 bytes for each, then a buffer for each. */
typedef struct {
    _Atomic uint64_t flag;
    double word[7];
    char rest[64];
} Line;
static Line *lines[2];
static double *buffers[2], *results[2];
static uint64_t round_number;

static void shared_made(void) {
    MPI_Comm node;
    MPI_Win window;
    void *mine;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Win_allocate_shared(2 * sizeof(Line) + 3 * LARGEST, 1, MPI_INFO_NULL, node, &mine, &window);
    for (int rank = 0; rank < 2; rank++) {
        MPI_Aint bytes;
        int unit;
        void *at;
        MPI_Win_shared_query(window, rank, &bytes, &unit, &at);
        lines[rank] = (Line *)(((uintptr_t)at + 127) & ~(uintptr_t)127);
        buffers[rank] = (double *)(lines[rank] + 1);
        results[rank] = buffers[rank] + 2 * LARGEST / 8;
    }
    memset((void *)lines[me], 0, sizeof *lines[me] + 3 * LARGEST);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void raised(void) { atomic_store_explicit(&lines[me]->flag, ++round_number, memory_order_release); }
static void awaited(void) {
    while (atomic_load_explicit(&lines[1 - me]->flag, memory_order_acquire) < round_number) {}
}

/* What each collective has to do where both ranks see both buffers: telling each other by flags, and moving or adding each byte once.
 * Eight bytes travel in the line of the flag. */
static void given(int bytes, int blocks) {
    if (blocks * bytes <= (int)sizeof lines[me]->word) memcpy(lines[me]->word, buffers[me], blocks * bytes);
    raised();
}
static const double *taken(int rank, int bytes, int blocks) {
    return blocks * bytes <= (int)sizeof lines[me]->word ? lines[rank]->word : buffers[rank];
}
__attribute__((optimize("O3"))) static void added(double *into, const double *one, const double *two, int words) {
    for (int w = 0; w < words; w++) into[w] = one[w] + two[w];
}

static void limit_barrier(int bytes) {
    (void)bytes;
    raised();
    awaited();
}
/* The first gives, and does not wait. */
static void limit_bcast(int bytes) {
    if (me == 0) return given(bytes, 1);
    round_number++;
    awaited();
    memcpy(receive, taken(0, bytes, 1), bytes);
}
static void limit_reduce(int bytes) {
    if (me == 1) return given(bytes, 1);
    round_number++;
    awaited();
    added(receive, buffers[0], taken(1, bytes, 1), bytes / 8);
}
static void limit_allgather(int bytes) {
    given(bytes, 1);
    memcpy(receive + me * (bytes / 8), buffers[me], bytes);
    awaited();
    memcpy(receive + (1 - me) * (bytes / 8), taken(1 - me, bytes, 1), bytes);
}
static void limit_alltoall(int bytes) {
    given(bytes, 2);
    memcpy(receive + me * (bytes / 8), buffers[me] + me * (bytes / 8), bytes);
    awaited();
    memcpy(receive + (1 - me) * (bytes / 8), taken(1 - me, bytes, 2) + me * (bytes / 8), bytes);
}
static void limit_reduce_scatter_block(int bytes) {
    given(bytes, 2);
    awaited();
    added(receive, buffers[me] + me * (bytes / 8), taken(1 - me, bytes, 2) + me * (bytes / 8), bytes / 8);
}
/* Short ones are added by both; of long ones each adds a half, in memory that both see, and copies the other's. */
static void limit_allreduce(int bytes) {
    given(bytes, 1);
    awaited();
    if (bytes < 64 << 10) return added(receive, buffers[me], taken(1 - me, bytes, 1), bytes / 8);
    int half = bytes / 16;
    double *mine = results[me] + me * half;
    added(mine, buffers[me] + me * half, buffers[1 - me] + me * half, half);
    raised();
    awaited();
    memcpy(results[me] + (1 - me) * half, results[1 - me] + (1 - me) * half, half * 8);
}

/* Of each rank: as many doubles, and where they begin, in doubles and in bytes. */
enum { MOST_RANKS = 64 };
static int counts[MOST_RANKS], places[MOST_RANKS], in_bytes[MOST_RANKS];
static MPI_Datatype types[MOST_RANKS];
static MPI_Comm ring;

static void alltoallv(int bytes) {
    MPI_Alltoallv(send, counts, places, MPI_DOUBLE, receive, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
    (void)bytes;
}
static void alltoallw(int bytes) {
    MPI_Alltoallw(send, counts, in_bytes, types, receive, counts, in_bytes, types, MPI_COMM_WORLD);
    (void)bytes;
}
static void gather(int bytes) { MPI_Gather(send, bytes / 8, MPI_DOUBLE, receive, bytes / 8, MPI_DOUBLE, 0, MPI_COMM_WORLD); }
static void scatter(int bytes) { MPI_Scatter(send, bytes / 8, MPI_DOUBLE, receive, bytes / 8, MPI_DOUBLE, 0, MPI_COMM_WORLD); }
static void gatherv(int bytes) {
    MPI_Gatherv(send, bytes / 8, MPI_DOUBLE, receive, counts, places, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}
static void scatterv(int bytes) {
    MPI_Scatterv(send, counts, places, MPI_DOUBLE, receive, bytes / 8, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}
static void scan(int bytes) { MPI_Scan(send, receive, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }
static void exscan(int bytes) { MPI_Exscan(send, receive, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }
static void neighbor_allgather(int bytes) {
    MPI_Neighbor_allgather(send, bytes / 8, MPI_DOUBLE, receive, bytes / 8, MPI_DOUBLE, ring);
}
static void neighbor_alltoall(int bytes) {
    MPI_Neighbor_alltoall(send, bytes / 8, MPI_DOUBLE, receive, bytes / 8, MPI_DOUBLE, ring);
}
static void neighbor_alltoallv(int bytes) {
    MPI_Neighbor_alltoallv(send, counts, places, MPI_DOUBLE, receive, counts, places, MPI_DOUBLE, ring);
    (void)bytes;
}

/* What the vector forms are called with, for blocks of one size. */
static void listed(int bytes) {
    for (int r = 0; r < n || r < 2; r++)
        counts[r] = bytes / 8, places[r] = r * (bytes / 8), in_bytes[r] = r * bytes, types[r] = MPI_DOUBLE;
}

/* Blocks that the caller of a collective gives. */
static int blocks_of(call *act) {
    if (act == alltoall || act == reduce_scatter_block || act == alltoallv || act == alltoallw) return n;
    if (act == scatter || act == scatterv) return me == 0 ? n : 0;
    return act == neighbor_alltoall || act == neighbor_alltoallv ? 2 : 1;
}

static int compared(const void *a, const void *b) { return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b); }

/* What is measured under a name, and whose blocks it is called with. */
typedef struct {
    const char *name;
    call *act, *like;
} collective;

static double timed(const collective *one, int bytes, int i, double *source) {
    int next = (me + 1) % n, before = (me + n - 1) % n, blocks = blocks_of(one->like);
    double token = i;
    for (int w = 0; w < blocks * bytes / 8; w++) source[w] = i + w;
    MPI_Sendrecv_replace(&token, 1, MPI_DOUBLE, next, 5, before, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double begun = now();
    one->act(bytes);
    return now() - begun;
}

static void told(const char *name, int bytes, double *of_all, int rounds) {
    MPI_Reduce(of_all, slowest, rounds, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (me != 0) return;
    qsort(slowest, rounds, sizeof *slowest, compared);
    printf("%s %d %.3f %.3f %.3f\n", name, bytes, slowest[rounds / 2], slowest[rounds / 10], slowest[rounds - 1 - rounds / 10]);
    fflush(stdout);
}

static void measured(const collective *all, int many, int bytes, double *source) {
    int rounds = iterations;
    /* Long ones say enough with fewer. */
    if (bytes >= 1 << 20) rounds = rounds / 8 + 10;
    else if (bytes >= 64 << 10) rounds = rounds / 2;
    /* All rounds of one, then of the next; or all of a round, then those of the next. */
    for (int c = 0; c < (turns ? 1 : many); c++)
        for (int i = -WARM_UP; i < rounds; i++)
            for (int turn = c; turn < (turns ? many : c + 1); turn++) {
                double took = timed(&all[turn], bytes, i, source);
                if (i >= 0) times[turn * rounds + i] = took;
            }
    for (int c = 0; c < many; c++) told(all[c].name, bytes, times + c * rounds, rounds);
}

int main(int count, char **words) {
    static const collective meeting[] = {{"barrier", barrier, barrier}};
    static const collective six[] = {{"allreduce", allreduce, allreduce}, {"allgather", allgather, allgather},
        {"alltoall", alltoall, alltoall}, {"reduce_scatter_block", reduce_scatter_block, reduce_scatter_block},
        {"bcast", bcast, bcast}, {"reduce", reduce, reduce}};
    static const collective limit_meeting[] = {{"limit-barrier", limit_barrier, barrier}};
    static const collective limits[] = {{"limit-allreduce", limit_allreduce, allreduce}, {"limit-allgather", limit_allgather, allgather},
        {"limit-alltoall", limit_alltoall, alltoall}, {"limit-reduce_scatter_block", limit_reduce_scatter_block, reduce_scatter_block},
        {"limit-bcast", limit_bcast, bcast}, {"limit-reduce", limit_reduce, reduce}};
    static const collective others[] = {{"alltoallv", alltoallv, alltoallv}, {"alltoallw", alltoallw, alltoallw}, {"gather", gather, gather},
        {"gatherv", gatherv, gatherv}, {"scatter", scatter, scatter}, {"scatterv", scatterv, scatterv}, {"scan", scan, scan},
        {"exscan", exscan, exscan}, {"neighbor_allgather", neighbor_allgather, neighbor_allgather},
        {"neighbor_alltoall", neighbor_alltoall, neighbor_alltoall}, {"neighbor_alltoallv", neighbor_alltoallv, neighbor_alltoallv}};
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    if (count > 1) iterations = atoi(words[1]);
    if (count > 2) largest = atoi(words[2]);
    int rest = 0, periodic = 1;
    for (int word = 3; word < count; word++) rest |= !strcmp(words[word], "rest"), turns |= !strcmp(words[word], "turns");
    if (iterations < 1 || n < 2 || n > MOST_RANKS) {
        if (me == 0) fprintf(stderr, "isolated: give a number of iterations, and two to %d ranks\n", MOST_RANKS);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    send = aligned_alloc(4096, (size_t)n * LARGEST);
    receive = aligned_alloc(4096, (size_t)n * LARGEST);
    size_t rounds = iterations + 10;
    times = malloc(sizeof *times * rounds * MOST_CALLS), slowest = malloc(sizeof *slowest * rounds);
    memset(send, 0, (size_t)n * LARGEST), memset(receive, 0, (size_t)n * LARGEST);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &n, &periodic, 0, &ring);
    if (!rest) measured(meeting, 1, 0, send);
    const collective *collectives = rest ? others : six;
    int many = rest ? sizeof others / sizeof *others : sizeof six / sizeof *six;
    for (int size = 0; size < SIZES && sizes[size] <= largest; size++) {
        listed(sizes[size]);
        measured(collectives, many, sizes[size], send);
    }
    if (n == 2 && !rest) {
        shared_made();
        measured(limit_meeting, 1, 0, buffers[me]);
        for (int size = 0; size < SIZES && sizes[size] <= largest; size++) measured(limits, many, sizes[size], buffers[me]);
    }
    MPI_Finalize();
    return 0;
}
