/* Calls of more kinds than are known at a time, by turns, as the loops of programs have them: other counts, roots, arrays, buffers and
 * communicators, some of which are freed and made anew. Every result is checked.
 *
 * usage: turns [ROUNDS] */
#include "check.h"

enum { MOST = 9, ROOM = 512 };
static int me, n;
static long in[ROOM], other[ROOM], out[ROOM];

static long given(long round, int rank, int i) { return 1000 * round + 31L * rank + i; }

/* The i-th of the sums over so many ranks from the first on. */
static long summed(long round, int ranks, int i) {
    return ranks * (1000 * round + i) + 31L * (ranks * (ranks - 1L) / 2);
}

static void written(long *buffer, long round, int rank) {
    for (int i = 0; i < ROOM; i++) buffer[i] = given(round, rank, i), out[i] = -1;
}

/* As many elements of each rank, by two patterns, one behind the other. */
static void laid(int pattern, int ranks, int counts[], int places[]) {
    for (int r = 0, at = 0; r < ranks; at += counts[r++]) counts[r] = 1 + (r + pattern) % 3, places[r] = at;
}

static void reductions(MPI_Comm comm, int rank, int ranks, long round, int count) {
    long *buffer = round % 3 ? in : other;
    written(buffer, round, rank);
    MPI_Allreduce(buffer, out, count, MPI_LONG, MPI_SUM, comm);
    for (int i = 0; i < count; i++) CHECK(out[i] == summed(round, ranks, i), "allreduce: %d of %d is %ld", i, count, out[i]);
    MPI_Allreduce(buffer, out, count, MPI_LONG, MPI_MAX, comm);
    for (int i = 0; i < count; i++) CHECK(out[i] == given(round, ranks - 1, i), "greatest: %d of %d is %ld", i, count, out[i]);
    memcpy(out, buffer, sizeof out);
    MPI_Allreduce(MPI_IN_PLACE, out, count, MPI_LONG, MPI_SUM, comm);
    for (int i = 0; i < count; i++) CHECK(out[i] == summed(round, ranks, i), "in place: %d of %d is %ld", i, count, out[i]);
    int root = round % ranks;
    MPI_Reduce(buffer, out, count, MPI_LONG, MPI_SUM, root, comm);
    for (int i = 0; i < count && rank == root; i++) CHECK(out[i] == summed(round, ranks, i), "reduce to %d: %ld", root, out[i]);
    MPI_Scan(buffer, out, count, MPI_LONG, MPI_SUM, comm);
    for (int i = 0; i < count; i++) CHECK(out[i] == summed(round, rank + 1, i), "scan: %d of %d is %ld", i, count, out[i]);
}

static void moves(MPI_Comm comm, int rank, int ranks, long round, int count) {
    int root = (round / 2) % ranks, counts[ROOM], places[ROOM], mine = count % 4 + 1;
    written(in, round, rank);
    MPI_Allgather(in, mine, MPI_LONG, out, mine, MPI_LONG, comm);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < mine; i++) CHECK(out[r * mine + i] == given(round, r, i), "allgather: %d of rank %d", i, r);
    MPI_Alltoall(in, mine, MPI_LONG, out, mine, MPI_LONG, comm);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < mine; i++) CHECK(out[r * mine + i] == given(round, r, rank * mine + i), "alltoall: %d of rank %d", i, r);
    MPI_Bcast(in, count, MPI_LONG, root, comm);
    for (int i = 0; i < count; i++) CHECK(in[i] == given(round, root, i), "bcast from %d: %ld", root, in[i]);
    written(in, round, rank);
    laid(round % 2, ranks, counts, places);
    MPI_Allgatherv(in, counts[rank], MPI_LONG, out, counts, places, MPI_LONG, comm);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < counts[r]; i++) CHECK(out[places[r] + i] == given(round, r, i), "allgatherv: %d of rank %d", i, r);
    MPI_Reduce_scatter(in, out, counts, MPI_LONG, MPI_SUM, comm);
    for (int i = 0; i < counts[rank]; i++) CHECK(out[i] == summed(round, ranks, places[rank] + i), "reduce_scatter: %ld", out[i]);
    /* What a rank gets from another is what that gives: as many, whoever looks. */
    for (int r = 0; r < ranks; r++) counts[r] = 1 + (r + rank + round) % 2, places[r] = 2 * r;
    MPI_Alltoallv(in, counts, places, MPI_LONG, out, counts, places, MPI_LONG, comm);
    for (int r = 0; r < ranks; r++)
        for (int i = 0; i < counts[r]; i++)
            CHECK(out[2 * r + i] == given(round, r, 2 * rank + i), "alltoallv: %d of rank %d is %ld", i, r, out[2 * r + i]);
    MPI_Barrier(comm);
}

int main(int count, char **words) {
    long rounds = count > 1 ? atol(words[1]) : 60;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm turned, twin;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &turned);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    for (long round = 0; round < rounds; round++) {
        for (int length = 1; length <= MOST; length++) {
            reductions(MPI_COMM_WORLD, me, n, round, length);
            reductions(turned, n - 1 - me, n, round, length);
            moves(length % 2 ? twin : turned, length % 2 ? me : n - 1 - me, n, round, length);
        }
        if (round % 7 == 6) {
            /* Its handle may name another one afterwards, in which ranks have another order. */
            MPI_Comm_free(round % 2 ? &turned : &twin);
            MPI_Comm_split(MPI_COMM_WORLD, 0, round % 2 ? -me : me, round % 2 ? &turned : &twin);
        }
    }
    MPI_Comm_free(&turned);
    MPI_Comm_free(&twin);
    return verdict("turns");
}
