/* Shapes in turn, as an adaptive code has them: every result is checked, and the time of a call is said, which decides nothing.
 *
 * usage: shapes [SHAPES] [ROUNDS] */
#include "check.h"

static int me, n;

static long given(int rank, int shape, int i) { return 13L * rank + 5L * shape + i; }

static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* In nanoseconds; a mean would tell of other programs on this machine. */
static double median(double *times, int count) {
    qsort(times, count, sizeof *times, order);
    return 1e9 * times[count / 2];
}

/* The i-th of the sums over all ranks. */
static long summed(int shape, int i) { return 13L * (n * (n - 1) / 2) + (long)n * (5L * shape + i); }

int main(int count, char **words) {
    int shapes = count > 1 ? atoi(words[1]) : 800, rounds = count > 2 ? atoi(words[2]) : 5;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    long *in = filled((size_t)(shapes + 1) * sizeof *in), *out = filled((size_t)(shapes + 1) * n * sizeof *out);
    int calls = 0;
    double *reducing = malloc((size_t)shapes * rounds * sizeof *reducing), *gathering = malloc((size_t)shapes * rounds * sizeof *gathering);
    for (int round = 0; round < rounds; round++) {
        /* The first round makes plans. */
        if (round == 1) calls = 0;
        for (int shape = 1; shape <= shapes; shape++) {
            for (int i = 0; i < shape; i++) in[i] = given(me, shape, i);
            double begun = MPI_Wtime();
            MPI_Allreduce(in, out, shape, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
            reducing[calls] = MPI_Wtime() - begun;
            for (int i = 0; i < shape; i++) CHECK(out[i] == summed(shape, i), "shape %d: sum %d is %ld", shape, i, out[i]);
            begun = MPI_Wtime();
            MPI_Allgather(in, shape, MPI_LONG, out, shape, MPI_LONG, MPI_COMM_WORLD);
            gathering[calls++] = MPI_Wtime() - begun;
            for (int r = 0; r < n; r++)
                for (int i = 0; i < shape; i++)
                    CHECK(out[r * shape + i] == given(r, shape, i), "shape %d: word %d of rank %d is %ld", shape, i, r, out[r * shape + i]);
        }
    }
    /* Counts of each pair of their own, in an alltoallv. */
    int *counts = malloc(4 * n * sizeof *counts), *places = counts + n, *sent = counts + 2 * n, *from = counts + 3 * n, most = shapes < 300 ? shapes : 300;
    long *gives = filled((size_t)n * 8 * sizeof *gives), *takes = filled((size_t)n * 8 * sizeof *takes);
    for (int shape = 0; shape < most; shape++) {
        for (int r = 0; r < n; r++) {
            sent[r] = (shape >> (me + r) % 8) % 3, counts[r] = (shape >> (r + me) % 8) % 3;
            from[r] = places[r] = 8 * r;
            for (int i = 0; i < 8; i++) gives[8 * r + i] = given(me, shape, 8 * r + i), takes[8 * r + i] = -1;
        }
        MPI_Alltoallv(gives, sent, from, MPI_LONG, takes, counts, places, MPI_LONG, MPI_COMM_WORLD);
        for (int r = 0; r < n; r++)
            for (int i = 0; i < 8; i++)
                CHECK(takes[8 * r + i] == (i < counts[r] ? given(r, shape, 8 * me + i) : -1), "alltoallv %d: word %d of rank %d", shape, i, r);
    }
    if (me == 0) printf("shapes: %d in turn: an allreduce takes %.0f ns, an allgather %.0f ns\n", shapes, median(reducing, calls), median(gathering, calls));
    return verdict("shapes");
}
