/* Long collectives, as programs call them: fresh data, and a barrier before each call. For every collective and size a line
 *
 *   COLLECTIVE BYTES us=A,B,C...   microseconds of the slowest rank, call by call
 *
 *   long [CALLS]
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LONGEST = 4 << 20, WARM = 2, MOST = 100 };

static int rank, ranks;
static double send[LONGEST / 8], receive[LONGEST / 8];

static void bcast(int count) { MPI_Bcast(send, count, MPI_DOUBLE, 0, MPI_COMM_WORLD); }
static void reduce(int count) { MPI_Reduce(send, receive, count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); }
static void allreduce(int count) { MPI_Allreduce(send, receive, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }

static const struct {
    const char *name;
    void (*call)(int count);
} collectives[] = {{"bcast", bcast}, {"reduce", reduce}, {"allreduce", allreduce}};

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int calls = argc > 1 ? atoi(argv[1]) : 10;
    calls = calls < 1 ? 1 : calls > MOST ? MOST : calls;
    for (int bytes = 1 << 20; bytes <= LONGEST; bytes *= 4) {
        for (size_t which = 0; which < sizeof collectives / sizeof *collectives; which++) {
            int count = bytes / (int)sizeof(double), wrong = 0, anywhere = 0;
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
                int holds = collectives[which].call != reduce || rank == 0, copies = collectives[which].call == bcast ? 1 : ranks;
                for (int i = 0; holds && i < count; i++)
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
