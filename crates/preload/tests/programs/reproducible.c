/* Sums under ALLHANDS_REPRODUCIBLE are exact and rounded once, in every form of every reduction. The terms of each element cancel but for a trifle that
   a plain sum loses in most orders. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define COUNT 100

static int me, ranks, wrong;

/* 1e16, 1, -1e16 in turn; exact up to any rank by integers. */
static double term(int rank, int element) {
    double scale = element % 2 ? 0.5 : 1.0;
    return scale * (rank % 3 == 0 ? 1e16 : rank % 3 == 1 ? 1.0 : -1e16);
}

static double exact(int first, int last, int element) {
    long long whole = 0;
    for (int rank = first; rank < last; rank++) whole += rank % 3 == 0 ? 10000000000000000LL : rank % 3 == 1 ? 1 : -10000000000000000LL;
    return (element % 2 ? 0.5 : 1.0) * (double)whole;
}

static void check(const double *sum, int first, int last, int count, int from, const char *what) {
    for (int i = 0; i < count; i++) {
        double expected = exact(first, last, from + i);
        if (memcmp(&sum[i], &expected, sizeof expected) && !wrong++)
            fprintf(stderr, "rank %d, %s, element %d: %.17g, not %.17g\n", me, what, i, sum[i], expected);
    }
}

int main(int argc, char **argv) {
    double mine[COUNT], sum[COUNT], whole[COUNT * 16], part[COUNT];
    MPI_Request request;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < COUNT; i++) mine[i] = term(me, i);
    for (int i = 0; i < COUNT * ranks; i++) whole[i] = term(me, i);
    for (int again = 0; again < 3; again++) {
        MPI_Allreduce(mine, sum, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        check(sum, 0, ranks, COUNT, 0, "allreduce");
        memcpy(sum, mine, sizeof sum);
        MPI_Allreduce(MPI_IN_PLACE, sum, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        check(sum, 0, ranks, COUNT, 0, "allreduce in place");
        int root = again % ranks;
        MPI_Reduce(mine, sum, COUNT, MPI_DOUBLE, MPI_SUM, root, MPI_COMM_WORLD);
        if (me == root) check(sum, 0, ranks, COUNT, 0, "reduce");
        MPI_Reduce_scatter_block(whole, part, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        check(part, 0, ranks, COUNT, COUNT * me, "reduce_scatter_block");
        MPI_Scan(mine, sum, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        check(sum, 0, me + 1, COUNT, 0, "scan");
        MPI_Exscan(mine, sum, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (me) check(sum, 0, me, COUNT, 0, "exscan");
        float single = me % 3 == 0 ? 1e8f : me % 3 == 1 ? 1.0f : -1e8f, total;
        MPI_Allreduce(&single, &total, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        double expected = 0; /* floats of this size are exact in doubles */
        for (int rank = 0; rank < ranks; rank++) expected += rank % 3 == 0 ? 1e8 : rank % 3 == 1 ? 1 : -1e8;
        if (total != (float)expected && !wrong++) fprintf(stderr, "rank %d: floats: %g, not %g\n", me, total, expected);
    }
    /* Where requests are the MPI's own, as without a way to move ours on, their sums are too: `requests` says that they are ours. */
    if (argc > 1) {
        MPI_Iallreduce(mine, sum, COUNT, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        check(sum, 0, ranks, COUNT, 0, "iallreduce");
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (me == 0 && !wrong) printf("reproducible: %d ranks, all right\n", ranks);
    MPI_Finalize();
    return wrong != 0;
}
