/* A mix of eight collectives and four sizes, called in turn, as programs call: fresh data before every call, and a barrier of messages so that ranks come
 * about together. Prints, for each kind, the median over calls of the slowest rank's time in the last part of the run, and the time of it all.
 *
 *   mix [CALLS of each kind [LAST that count [double]]]
 *
 * Sums are of integers, which learning may change at any time, or of doubles, whose bits stay. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 8, SIZES = 4, LARGEST = 65536 };
static const char *const names[KINDS] = {"allreduce", "allgather", "alltoall", "bcast", "reduce", "reduce_scatter_block", "gather", "scan"};
static const int sizes[SIZES] = {8, 512, 8192, LARGEST};

static int by_time(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    int calls = count > 1 ? atoi(words[1]) : 200, last = count > 2 ? atoi(words[2]) : 50, doubles = count > 3;
    int me, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Datatype type = doubles ? MPI_DOUBLE : MPI_INT64_T;
    char *from = calloc((size_t)ranks, LARGEST), *to = calloc((size_t)ranks, LARGEST);
    double *times = calloc((size_t)KINDS * SIZES * last, sizeof *times);
    MPI_Comm quiet;
    MPI_Comm_dup(MPI_COMM_WORLD, &quiet);
    double begin = MPI_Wtime();
    for (int call = 0; call < calls; call++) {
        for (int kind = 0; kind < KINDS; kind++) {
            for (int size = 0; size < SIZES; size++) {
                int bytes = sizes[size], words_of = bytes / 8;
                /* A block for every rank of a long alltoall is not moved on small clusters of one machine. */
                memset(from, call & 1, (size_t)(kind == 2 || kind == 5 ? ranks : 1) * bytes);
                int left = (me + ranks - 1) % ranks, right = (me + 1) % ranks;
                for (int step = 1; step < ranks; step *= 2) {
                    int to_rank = (me + step) % ranks, from_rank = (me + ranks - step) % ranks;
                    MPI_Sendrecv(&left, 0, MPI_INT, to_rank, 7, &right, 0, MPI_INT, from_rank, 7, quiet, MPI_STATUS_IGNORE);
                }
                double at = MPI_Wtime();
                switch (kind) {
                case 0: MPI_Allreduce(from, to, words_of, type, MPI_SUM, MPI_COMM_WORLD); break;
                case 1: MPI_Allgather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD); break;
                case 2: MPI_Alltoall(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, MPI_COMM_WORLD); break;
                case 3: MPI_Bcast(from, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); break;
                case 4: MPI_Reduce(from, to, words_of, type, MPI_SUM, 0, MPI_COMM_WORLD); break;
                case 5: MPI_Reduce_scatter_block(from, to, words_of, type, MPI_SUM, MPI_COMM_WORLD); break;
                case 6: MPI_Gather(from, bytes, MPI_BYTE, to, bytes, MPI_BYTE, 0, MPI_COMM_WORLD); break;
                default: MPI_Scan(from, to, words_of, type, MPI_SUM, MPI_COMM_WORLD); break;
                }
                double took = MPI_Wtime() - at;
                if (call >= calls - last) times[(kind * SIZES + size) * last + call - (calls - last)] = took;
            }
        }
    }
    double all = MPI_Wtime() - begin, longest;
    int cells = KINDS * SIZES * last;
    double *slowest = calloc((size_t)cells, sizeof *slowest);
    PMPI_Reduce(times, slowest, cells, MPI_DOUBLE, MPI_MAX, 0, quiet);
    PMPI_Reduce(&all, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, quiet);
    if (me == 0) {
        for (int cell = 0; cell < KINDS * SIZES; cell++) {
            qsort(slowest + cell * last, last, sizeof *slowest, by_time);
            printf("%s %d %.2f\n", names[cell / SIZES], sizes[cell % SIZES], 1e6 * slowest[cell * last + last / 2]);
        }
        printf("total %.3f s\n", longest);
    }
    free(slowest), free(times), free(from), free(to);
    MPI_Comm_free(&quiet);
    MPI_Finalize();
    return 0;
}
