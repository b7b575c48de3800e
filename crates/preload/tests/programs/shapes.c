/* Shapes in turn, as an adaptive code has them: every result is checked, and the time of a call is said, which decides nothing.
 * Few shapes and many have counts from the same range, so that their times tell what the number of shapes costs, not the bytes.
 *
 * usage: shapes [SHAPES] [ROUNDS], with as many rounds that there are some thousand calls */
#include "check.h"

static int me, n;

/* Words of the longest shape, where there are not more shapes than that. */
#define LONGEST 800

/* Words of a shape, from 1 on, of so many. */
static int words_of(int shape, int shapes) { return shapes < LONGEST ? 1 + (shape - 1) * LONGEST / shapes : shape; }

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
    int shapes = count > 1 ? atoi(words[1]) : 800, rounds = count > 2 ? atoi(words[2]) : 1 + 3200 / shapes;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    int most = words_of(shapes, shapes);
    long *in = filled((size_t)most * sizeof *in), *out = filled((size_t)most * n * sizeof *out);
    int calls = 0, gathers = 0;
    double *reducing = malloc((size_t)shapes * rounds * sizeof *reducing), *gathering = malloc((size_t)shapes * rounds * sizeof *gathering);
    for (int round = 0; round < rounds; round++) {
        /* The first round makes plans. */
        if (round == 1) calls = 0;
        for (int shape = 1; shape <= shapes; shape++) {
            int length = words_of(shape, shapes);
            for (int i = 0; i < length; i++) in[i] = given(me, shape, i);
            double begun = MPI_Wtime();
            MPI_Allreduce(in, out, length, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
            reducing[calls++] = MPI_Wtime() - begun;
            for (int i = 0; i < length; i++) CHECK(out[i] == summed(shape, i), "shape %d: sum %d is %ld", shape, i, out[i]);
        }
    }
    for (int round = 0; round < rounds; round++) {
        if (round == 1) gathers = 0;
        for (int shape = 1; shape <= shapes; shape++) {
            int length = words_of(shape, shapes);
            for (int i = 0; i < length; i++) in[i] = given(me, shape, i);
            double begun = MPI_Wtime();
            MPI_Allgather(in, length, MPI_LONG, out, length, MPI_LONG, MPI_COMM_WORLD);
            gathering[gathers++] = MPI_Wtime() - begun;
            for (int r = 0; r < n; r++)
                for (int i = 0; i < length; i++)
                    CHECK(out[r * length + i] == given(r, shape, i), "shape %d: word %d of rank %d is %ld", shape, i, r, out[r * length + i]);
        }
    }
    /* Counts of each pair of their own, in an alltoallv. */
    int *counts = malloc(4 * n * sizeof *counts), *places = counts + n, *sent = counts + 2 * n, *from = counts + 3 * n, exchanges = shapes < 300 ? shapes : 300;
    long *gives = filled((size_t)n * 8 * sizeof *gives), *takes = filled((size_t)n * 8 * sizeof *takes);
    for (int shape = 0; shape < exchanges; shape++) {
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
    if (me == 0) printf("shapes: %d in turn: an allreduce takes %.0f ns, an allgather %.0f ns\n", shapes, median(reducing, calls), median(gathering, gathers));
    return verdict("shapes");
}
