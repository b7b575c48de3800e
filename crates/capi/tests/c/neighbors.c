/* Plans among neighbours: on a periodic grid and on a distributed graph with edges that are repeated and lead back to where they begin, with every
 * algorithm, of ints and of a datatype with gaps. Arrays are spoilt once a plan is made, and every plan runs twice, on new data. Edges whose ends do not
 * match are named. Run by `cargo xtask capi`. */
#include <allhands.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16 /* edges of a rank */, ROOM = 1 << 14, EMPTY = -1 };

static int rank, size, plans;
/* An address that compilers would take for that of no numbers. */
static int *volatile unweighted;

#define check(condition)                                                                                       \
    do {                                                                                                       \
        if (!(condition)) {                                                                                    \
            fprintf(stderr, "rank %d, line %d: not %s; %s\n", rank, __LINE__, #condition, allhands_last_error()); \
            MPI_Abort(MPI_COMM_WORLD, 1);                                                                      \
        }                                                                                                      \
    } while (0)

static int from[ROOM], to[ROOM];

/* Whom this rank gets blocks from and which of theirs they are, and whom it has blocks for. */
typedef struct {
    MPI_Comm comm;
    int in, out, source[MOST], which[MOST], destination[MOST];
} neighbors;

static int value(int run, int source, int which, int i) { return ((run * 64 + source) * MOST + which) * 100 + i; }

/* How many ints go along an edge, by its source and its place there. */
static int length(int differs, int source, int which) { return differs ? (3 * source + 5 * which) % 7 : 4; }

static void run_twice(const char *name, const neighbors *all, int differs, int gathers, int stride, allhands_plan *plan) {
    int run, e, i;
    for (run = 0; run < 2; run++) {
        int at = 0;
        for (i = 0; i < ROOM; i++) from[i] = to[i] = EMPTY;
        for (e = 0; e < (gathers ? 1 : all->out); e++)
            for (i = 0; i < length(differs, rank, e); i++, at++) from[at] = value(run, rank, e, i);
        if (run == 0) check(allhands_run(plan) == 0);
        if (run == 1) check(allhands_start(plan) == 0 && allhands_wait(plan) == 0);
        for (e = 0, at = 0; e < all->in; e++) {
            int which = gathers ? 0 : all->which[e], many = length(differs, all->source[e], which);
            for (i = 0; i < many; i++, at += stride) {
                int wanted = value(run, all->source[e], which, i);
                if (to[at] == wanted && (stride == 1 || to[at + 1] == EMPTY)) continue;
                fprintf(stderr, "rank %d: %s, run %d: int %d of block %d is %d, not %d\n", rank, name, run, i, e, to[at], wanted);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
        check(to[at] == EMPTY);
    }
    check(allhands_free(&plan) == 0 && plan == NULL);
    plans++;
}

static void all_of_them(const neighbors *all, MPI_Datatype gaps, const char *options) {
    int64_t counts[2][MOST], places[2][MOST], bytes[2][MOST], end[2] = {0, 0};
    MPI_Datatype types[2][MOST];
    allhands_plan *plan;
    int e;
    check(allhands_neighbor_allgather_init(from, 4, MPI_INT, to, 4, gaps, all->comm, options, &plan) == 0);
    run_twice("neighbor_allgather", all, 0, 1, 2, plan);
    check(allhands_neighbor_alltoall_init(from, 4, MPI_INT, to, 4, MPI_INT, all->comm, options, &plan) == 0);
    run_twice("neighbor_alltoall", all, 0, 0, 1, plan);
    for (e = 0; e < all->in; e++) {
        counts[1][e] = length(1, all->source[e], 0), places[1][e] = end[1], end[1] += counts[1][e];
    }
    check(allhands_neighbor_allgatherv_init(from, length(1, rank, 0), MPI_INT, to, counts[1], places[1], MPI_INT, all->comm, options,
                                            &plan) == 0);
    memset(counts, 77, sizeof counts), memset(places, 77, sizeof places);
    run_twice("neighbor_allgatherv", all, 1, 1, 1, plan);
    end[0] = end[1] = 0;
    for (e = 0; e < all->out; e++) {
        counts[0][e] = length(1, rank, e), places[0][e] = end[0], end[0] += counts[0][e];
        types[0][e] = MPI_INT, bytes[0][e] = 4 * places[0][e];
    }
    for (e = 0; e < all->in; e++) {
        counts[1][e] = length(1, all->source[e], all->which[e]), places[1][e] = end[1], end[1] += counts[1][e];
        types[1][e] = gaps, bytes[1][e] = 8 * places[1][e];
    }
    check(allhands_neighbor_alltoallw_init(from, counts[0], bytes[0], types[0], to, counts[1], bytes[1], types[1], all->comm, options,
                                           &plan) == 0);
    run_twice("neighbor_alltoallw", all, 1, 0, 2, plan);
    check(allhands_neighbor_alltoallv_init(from, counts[0], places[0], MPI_INT, to, counts[1], places[1], MPI_INT, all->comm, options,
                                           &plan) == 0);
    memset(counts, 77, sizeof counts), memset(places, 77, sizeof places);
    run_twice("neighbor_alltoallv", all, 1, 0, 1, plan);
}

int main(int argc, char **argv) {
    neighbors ring = {0}, graph = {0};
    MPI_Datatype gaps;
    int e, periodic = 1;
    MPI_Init(&argc, &argv);
    unweighted = MPI_UNWEIGHTED;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &gaps);
    MPI_Type_commit(&gaps);
    /* Each rank has two blocks for the next one, one for itself and one for the rank after the next. */
    int next = (rank + 1) % size, after = (rank + 2) % size, before = (rank + size - 1) % size, two = (rank + 2 * size - 2) % size;
    int destination[] = {next, rank, next, after}, source[] = {two, rank, before, before}, which[] = {3, 1, 0, 2};
    graph.in = graph.out = 4;
    for (e = 0; e < 4; e++) graph.destination[e] = destination[e], graph.source[e] = source[e], graph.which[e] = which[e];
    if (size > 2) {
        MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 4, source, unweighted, 4, destination, unweighted, MPI_INFO_NULL, 0,
                                       &graph.comm);
        all_of_them(&graph, gaps, NULL);
        all_of_them(&graph, gaps, "direct");
        all_of_them(&graph, gaps, "node-aware");
        MPI_Comm_free(&graph.comm);
        MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring.comm);
        ring.in = ring.out = 2, ring.source[0] = ring.destination[0] = before, ring.source[1] = ring.destination[1] = next;
        ring.which[0] = 1, ring.which[1] = 0;
        all_of_them(&ring, gaps, NULL);
        all_of_them(&ring, gaps, "node-aware:lanes=1");
        MPI_Comm_free(&ring.comm);
        check(plans == 25);
    }
    /* No plan is made where there are no neighbours. */
    allhands_plan *plan;
    check(allhands_neighbor_alltoall_init(from, 1, MPI_INT, to, 1, MPI_INT, MPI_COMM_WORLD, NULL, &plan) == ALLHANDS_ERR_ARGUMENT);
    check(plan == NULL);
    MPI_Type_free(&gaps);
    if (rank == 0) printf("neighbors: %d ranks, all right\n", size);
    MPI_Finalize();
    return 0;
}
