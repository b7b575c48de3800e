/* Collectives of short and long messages, whose results are known: contained WORDS, the most of a block. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int me, n, wrong;

static void check(const char *what, int words, const long *got, int count, long (*wanted)(int)) {
    for (int i = 0; i < count; i++)
        if (got[i] != wanted(i)) {
            fprintf(stderr, "%s of %d words: %ld at %d, not %ld\n", what, words, got[i], i, wanted(i));
            wrong = 1;
            return;
        }
}

static int block;

static long summed(int i) { return (long)n * i + (long)n * (n - 1) / 2; }
static long from_last(int i) { return (long)i + n - 1; }
static long gathered(int i) { return (long)(i % block) + i / block; }
static long exchanged(int i) { return (long)me * block + i % block + i / block; }

/* Of every kind one, with as many words. */
static void all(int words, MPI_Comm comm) {
    long *mine = malloc(sizeof *mine * words * n), *theirs = malloc(sizeof *theirs * words * n);
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    block = words;
    for (int i = 0; i < words * n; i++) mine[i] = i + me;
    MPI_Allreduce(mine, theirs, words, MPI_LONG, MPI_SUM, comm);
    check("MPI_Allreduce", words, theirs, words, summed);
    MPI_Allgather(mine, words, MPI_LONG, theirs, words, MPI_LONG, comm);
    check("MPI_Allgather", words, theirs, words * n, gathered);
    MPI_Alltoall(mine, words, MPI_LONG, theirs, words, MPI_LONG, comm);
    check("MPI_Alltoall", words, theirs, words * n, exchanged);
    MPI_Bcast(mine, words, MPI_LONG, n - 1, comm);
    check("MPI_Bcast", words, mine, words, from_last);
    free(mine), free(theirs);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm later;
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    /* All but the first, so that another rank is the one that makes memory. */
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, rank, &later);
    for (int most = atoi(words[1]), length = 1; length <= most; length *= 8)
        for (int again = 0; again < 2; again++) {
            MPI_Comm_size(MPI_COMM_WORLD, &n);
            all(length, MPI_COMM_WORLD);
            all(length, later);
        }
    int any;
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0 && !any) printf("done\n");
    MPI_Comm_free(&later);
    MPI_Finalize();
    return any;
}
