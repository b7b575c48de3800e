/* While it is learned who serves: results are right whoever does, and a reduction that rounds gives the same bits in every call of a job, on every
 * communicator. Run with learning at its most eager, so that candidates take turns all the time. */
#include "check.h"

enum { CALLS = 500, KINDS = 4, SIZES = 3, LONGEST = 3000, MOST = 16 };
static const int sizes[SIZES] = {1, 40, LONGEST};

static int me, n;

/* Numbers whose sums depend on the order. */
static double given(int rank, int i) { return ((rank * 37 + i * 11) % 19 - 9) * (1.0 + 1e-7 * i) / (1 + rank * 3.3); }

static void reduced(MPI_Comm comm, int kind, const double *from, double *to, int count) {
    switch (kind) {
    case 0: MPI_Allreduce(from, to, count, MPI_DOUBLE, MPI_SUM, comm); break;
    case 1: MPI_Reduce(from, to, count, MPI_DOUBLE, MPI_SUM, n - 1, comm); break;
    case 2: MPI_Scan(from, to, count, MPI_DOUBLE, MPI_SUM, comm); break;
    default: MPI_Reduce_scatter_block(from, to, count / n, MPI_DOUBLE, MPI_SUM, comm); break;
    }
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm same;
    MPI_Comm_dup(MPI_COMM_WORLD, &same);
    static double from[LONGEST], to[LONGEST], first[KINDS][SIZES][LONGEST];
    static int ints[MOST * LONGEST], sums[MOST * LONGEST];
    for (int i = 0; i < LONGEST; i++) from[i] = given(me, i);
    for (int call = 0; call < CALLS; call++) {
        MPI_Comm comm = call % 3 == 2 ? same : MPI_COMM_WORLD;
        for (int kind = 0; kind < KINDS; kind++) {
            int length = sizes[(call + kind) % SIZES];
            double *known = first[kind][(call + kind) % SIZES];
            memset(to, 0, sizeof to);
            reduced(comm, kind, from, to, length);
            if (call < SIZES) memcpy(known, to, sizeof to);
            CHECK(memcmp(known, to, sizeof to) == 0, "reduction %d of %d numbers: other bits in call %d", kind, length, call);
        }
        int length = sizes[call % SIZES], root = call % n;
        for (int i = 0; i < length; i++) ints[i] = me + i + call;
        MPI_Allreduce(ints, sums, length, MPI_INT, MPI_SUM, comm);
        for (int i = 0; i < length; i++) CHECK(sums[i] == n * (n - 1) / 2 + n * (i + call), "call %d, sum %d is %d", call, i, sums[i]);
        MPI_Allgather(ints, length, MPI_INT, sums, length, MPI_INT, comm);
        for (int r = 0; r < n; r++) CHECK(sums[r * length + length - 1] == r + length - 1 + call, "call %d, block %d", call, r);
        for (int i = 0; i < n * length; i++) ints[i] = me * 1000 + i;
        MPI_Alltoall(ints, length, MPI_INT, sums, length, MPI_INT, comm);
        for (int r = 0; r < n; r++) CHECK(sums[r * length] == r * 1000 + me * length, "call %d, exchange with %d", call, r);
        sums[0] = me == root ? call : -1;
        MPI_Bcast(sums, 1, MPI_INT, root, comm);
        CHECK(sums[0] == call, "call %d, bcast from %d: %d", call, root, sums[0]);
    }
    MPI_Comm_free(&same);
    return verdict("learning");
}
