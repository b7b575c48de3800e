/* Long collectives, as programs call them: fresh data, and a barrier before each call. For every collective and size a line
 *
 *   COLLECTIVE BYTES us=A,B,C...   microseconds of the slowest rank, call by call
 *
 *   long [CALLS [equal | unequal]]
 *
 * equal: bcast, reduce and allreduce. unequal: an allgatherv to which one rank gives the bytes and every other one element, and a reduce_scatter of which
 * it gets as much. Without either, all.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 4 << 20, WARM = 2, MOST = 100, MOST_RANKS = 1024 };

static int rank, ranks;
static double send[LONGEST / 8 + MOST_RANKS], receive[LONGEST / 8 + MOST_RANKS];
/* Of an unequal collective. */
static int counts[MOST_RANKS], places[MOST_RANKS];

static void bcast(int count) { MPI_Bcast(send, count, MPI_DOUBLE, 0, MPI_COMM_WORLD); }
static void reduce(int count) { MPI_Reduce(send, receive, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); }
static void allreduce(int count) { MPI_Allreduce(send, receive, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }

static void allgatherv(int count) {
    (void)count;
    MPI_Allgatherv(send + places[rank], counts[rank], MPI_DOUBLE, receive, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
}
static void reduce_scatter(int count) {
    (void)count;
    MPI_Reduce_scatter(send, receive + places[rank], counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static const struct {
    const char *name;
    void (*call)(int count);
    int unequal;
} collectives[] = {{"bcast", bcast, 0},
                   {"reduce", reduce, 0},
                   {"allreduce", allreduce, 0},
                   {"allgatherv", allgatherv, 1},
                   {"reduce_scatter", reduce_scatter, 1}};

/* How many elements an unequal call has: one rank has as many as are asked for, every other one. */
static int deal(int count) {
    for (int other = 0; other < ranks; other++) {
        counts[other] = other == ranks / 3 ? count : 1;
        places[other] = other == 0 ? 0 : places[other - 1] + counts[other - 1];
    }
    return count + ranks - 1;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int calls = argc > 1 ? atoi(argv[1]) : 10;
    const char *kind = argc > 2 ? argv[2] : "";
    calls = calls < 1 ? 1 : calls > MOST ? MOST : calls;
    if (ranks > MOST_RANKS) {
        fprintf(stderr, "long: %d ranks are more than %d\n", ranks, MOST_RANKS);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int bytes = 1 << 20; bytes <= LONGEST; bytes *= 4) {
        for (size_t which = 0; which < sizeof collectives / sizeof *collectives; which++) {
            int unequal = collectives[which].unequal;
            if (*kind && strcmp(kind, unequal ? "unequal" : "equal"))
                continue;
            int count = bytes / (int)sizeof(double), wrong = 0, anywhere = 0;
            count = unequal ? deal(count) : count;
            double took[WARM + MOST], slowest[WARM + MOST];
            for (int call = 0; call < WARM + calls; call++) {
                int mine = collectives[which].call == bcast ? rank == 0 : 1;
                for (int i = 0; i < count; i++)
                    send[i] = mine ? call + i % 7 : -1;
                MPI_Barrier(MPI_COMM_WORLD);
                double began = MPI_Wtime();
                collectives[which].call(count);
                took[call] = MPI_Wtime() - began;
                const double *got = collectives[which].call == bcast ? send : receive;
                int holds = collectives[which].call != reduce || rank == 0;
                int copies = collectives[which].call == bcast || collectives[which].call == allgatherv ? 1 : ranks;
                int scattered = collectives[which].call == reduce_scatter;
                int first = scattered ? places[rank] : 0, end = scattered ? first + counts[rank] : count;
                for (int i = first; holds && i < end; i++)
                    wrong |= got[i] != copies * (double)(call + i % 7);
            }
            MPI_Reduce(took, slowest, WARM + calls, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
            MPI_Reduce(&wrong, &anywhere, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
            if (rank == 0) {
                printf("%s %d us=", collectives[which].name, bytes);
                for (int call = 0; call < calls; call++)
                    printf("%s%.0f", call ? "," : "", 1e6 * slowest[WARM + call]);
                printf(anywhere ? " WRONG\n" : "\n");
                fflush(stdout);
            }
        }
    }
    MPI_Finalize();
    return 0;
}
