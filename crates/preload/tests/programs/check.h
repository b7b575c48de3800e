/* What the test programs share: failures are counted and said, and the first rank says whether there were any. */
#ifndef CHECK_H
#define CHECK_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

#define CHECK(right, ...)                                                                          \
    do {                                                                                           \
        if (!(right) && __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED) < 10) {                 \
            int rank_;                                                                             \
            MPI_Comm_rank(MPI_COMM_WORLD, &rank_);                                                 \
            fprintf(stderr, "%s:%d: rank %d: ", __FILE__, __LINE__, rank_);                        \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fprintf(stderr, "\n");                                                                 \
        }                                                                                          \
    } while (0)

/* The program's exit code. */
static int verdict(const char *name) {
    int rank, size, all = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0 && all == 0) printf("%s: %d ranks, all right\n", name, size);
    MPI_Finalize();
    return all != 0;
}

/* Memory that is not there yet is filled with this: gaps must keep it. */
#define UNTOUCHED 0xa5

static inline void *filled(size_t bytes) {
    void *memory = malloc(bytes + 1);
    if (!memory) MPI_Abort(MPI_COMM_WORLD, 3);
    memset(memory, UNTOUCHED, bytes + 1);
    return memory;
}

#endif
