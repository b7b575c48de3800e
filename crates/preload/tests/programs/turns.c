/* Calls of more kinds than are known at a time, by turns, as the loops of programs have them: other counts, roots, arrays, buffers, datatypes and
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

/* Datatypes: of two words side by side, of two words of which the second comes first, of two words with a gap between them, and one that is
 * freed and made anew, mostly under the handle of the one before, as one word or as two, or as the other one of two words. */
static MPI_Datatype side, swapped, gap, passing;

static MPI_Datatype words_at(int first, int second) {
    const int one[] = {1, 1};
    const MPI_Aint at[] = {first * sizeof(long), second * sizeof(long)};
    MPI_Datatype made;
    MPI_Type_create_hindexed(2, one, at, MPI_LONG, &made);
    MPI_Type_commit(&made);
    return made;
}

static void types_made(void) {
    MPI_Type_contiguous(2, MPI_LONG, &side);
    MPI_Type_commit(&side);
    swapped = words_at(1, 0), gap = words_at(0, 2);
}

static void types_freed(void) {
    MPI_Type_free(&side);
    MPI_Type_free(&swapped);
    MPI_Type_free(&gap);
}

/* Which word of two comes there, of a type. */
static int word_of(MPI_Datatype type, int i) { return type == swapped ? i ^ 1 : i; }

static void derived(MPI_Comm comm, int rank, int ranks, long round) {
    const MPI_Datatype dense[] = {side, swapped};
    for (int given_as = 0; given_as < 2; given_as++)
        for (int taken_as = 0; taken_as < 2; taken_as++) {
            written(in, round, rank);
            MPI_Allgather(in, 2, dense[given_as], out, 2, dense[taken_as], comm);
            for (int r = 0; r < ranks; r++)
                for (int i = 0; i < 4; i++) {
                    int from = word_of(dense[given_as], word_of(dense[taken_as], i));
                    CHECK(out[4 * r + i] == given(round, r, from), "allgather of %d as %d: %d of rank %d is %ld", given_as, taken_as, i, r, out[4 * r + i]);
                }
        }
    written(in, round, rank);
    MPI_Alltoall(in, 1, side, out, 2, MPI_LONG, comm);
    for (int i = 0; i < 2 * ranks; i++) CHECK(out[i] == given(round, i / 2, 2 * rank + i % 2), "alltoall: %d is %ld", i, out[i]);
    MPI_Bcast(in, 1, gap, 0, comm);
    for (int i = 0; i < 4; i++) {
        int source = i == 0 || i == 2 ? 0 : rank;
        CHECK(in[i] == given(round, source, i), "bcast with a gap: %d is %ld", i, in[i]);
    }
    /* Twice each, since a type is known from its second call on. */
    int two = round % 3;
    if (two == 2) passing = words_at(1, 0);
    else MPI_Type_contiguous(1 + two, MPI_LONG, &passing), MPI_Type_commit(&passing);
    for (int call = 0; call < 3; call++) {
        int length = two ? 2 : 1;
        written(in, round + call, rank);
        MPI_Allgather(in, 1, passing, out, length, MPI_LONG, comm);
        for (int i = 0; i < length * ranks; i++) {
            int from = two == 2 ? i % 2 ^ 1 : i % length;
            CHECK(out[i] == given(round + call, i / length, from), "a passing type, %d: %d is %ld", two, i, out[i]);
        }
    }
    MPI_Type_free(&passing);
}

int main(int count, char **words) {
    long rounds = count > 1 ? atol(words[1]) : 60;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm turned, twin;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &turned);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    types_made();
    for (long round = 0; round < rounds; round++) {
        for (int length = 1; length <= MOST; length++) {
            reductions(MPI_COMM_WORLD, me, n, round, length);
            reductions(turned, n - 1 - me, n, round, length);
            moves(length % 2 ? twin : turned, length % 2 ? me : n - 1 - me, n, round, length);
        }
        derived(MPI_COMM_WORLD, me, n, round);
        derived(turned, n - 1 - me, n, round);
        if (round % 5 == 4) {
            types_freed();
            types_made();
        }
        if (round % 7 == 6) {
            /* Its handle may name another one afterwards, in which ranks have another order. */
            MPI_Comm_free(round % 2 ? &turned : &twin);
            MPI_Comm_split(MPI_COMM_WORLD, 0, round % 2 ? -me : me, round % 2 ? &turned : &twin);
        }
    }
    types_freed();
    MPI_Comm_free(&turned);
    MPI_Comm_free(&twin);
    return verdict("turns");
}
