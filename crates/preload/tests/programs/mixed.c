/* A program that calls what we serve, in a job where not all ranks have us, or have us set alike. */
#include "check.h"

enum { COUNT = 3000 };

static int me, n;

static void collectives(MPI_Comm comm, int round) {
    static long in[COUNT], out[8 * COUNT];
    MPI_Request request;
    for (int i = 0; i < COUNT; i++) in[i] = 100L * me + i + round;
    MPI_Allreduce(in, out, COUNT, MPI_LONG, MPI_SUM, comm);
    for (int i = 0; i < COUNT; i++) CHECK(out[i] == 50L * n * (n - 1) + (long)n * (i + round), "sum %d is %ld", i, out[i]);
    MPI_Iallreduce(in, out, COUNT, MPI_LONG, MPI_MAX, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < COUNT; i++) CHECK(out[i] == 100L * (n - 1) + i + round, "maximum %d is %ld", i, out[i]);
    MPI_Allgather(in, COUNT, MPI_LONG, out, COUNT, MPI_LONG, comm);
    for (int r = 0; r < n; r++)
        for (int i = 0; i < COUNT; i++) CHECK(out[r * COUNT + i] == 100L * r + i + round, "word %d of rank %d is %ld", i, r, out[r * COUNT + i]);
    for (int i = 0; i < COUNT; i++) out[i] = me == round % n ? i - round : -1;
    MPI_Bcast(out, COUNT, MPI_LONG, round % n, comm);
    for (int i = 0; i < COUNT; i++) CHECK(out[i] == i - round, "word %d is %ld", i, out[i]);
    MPI_Barrier(comm);
}

int main(int count, char **words) {
    MPI_Comm copy;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    for (int round = 0; round < 20; round++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        collectives(MPI_COMM_WORLD, round);
        collectives(copy, round);
        MPI_Comm_free(&copy);
    }
    return verdict("mixed");
}
