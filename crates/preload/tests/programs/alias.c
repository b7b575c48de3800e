/* Buffers that MPI does not allow to be the same: programs do it all the same, and an MPI may accept it. What a rank has done so must not
 * decide who serves its call: the results are those that MPI_IN_PLACE would have.
 *
 * The calls are those that we serve: the MPIs themselves refuse most of them, which is their right. */
#include "check.h"

enum { WORDS = 5000, MOST = 16 };

static int me, n;

static int given(int rank, int i, int round) { return 1000 * rank + i + 7 * round; }

/* Every rank's block is where it belongs in its own buffer. */
static void gathered(int block, int round) {
    static int b[MOST * WORDS];
    int counts[MOST], places[MOST];
    for (int form = 0; form < 2; form++) {
        for (int i = 0; i < n * block; i++) b[i] = -1;
        for (int i = 0; i < block; i++) b[me * block + i] = given(me, i, round);
        for (int r = 0; r < n; r++) counts[r] = block, places[r] = r * block;
        int code = form == 0 ? MPI_Allgather(&b[me * block], block, MPI_INT, b, block, MPI_INT, MPI_COMM_WORLD)
                             : MPI_Allgatherv(&b[me * block], block, MPI_INT, b, counts, places, MPI_INT, MPI_COMM_WORLD);
        CHECK(code == MPI_SUCCESS, "form %d of an allgather was refused", form);
        for (int r = 0; r < n; r++)
            for (int i = 0; i < block; i++)
                CHECK(b[r * block + i] == given(r, i, round), "form %d, word %d of rank %d is %d", form, i, r, b[r * block + i]);
    }
}

/* The same buffer gives and takes. */
static void reduced(int count, int round) {
    static int b[MOST * WORDS], other[WORDS];
    for (int i = 0; i < count; i++) b[i] = given(me, i, round);
    CHECK(MPI_Allreduce(b, b, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS, "an allreduce was refused");
    int ranks = 1000 * (n * (n - 1) / 2);
    for (int i = 0; i < count; i++) CHECK(b[i] == ranks + n * (i + 7 * round), "allreduce: word %d is %d", i, b[i]);
    /* One rank alone does it. */
    for (int i = 0; i < count; i++) b[i] = given(me, i, round), other[i] = -1;
    int *to = me == round % n ? b : other;
    CHECK(MPI_Allreduce(b, to, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS, "an allreduce was refused");
    for (int i = 0; i < count; i++) CHECK(to[i] == ranks + n * (i + 7 * round), "allreduce: word %d is %d", i, to[i]);
    int root = round % n;
    for (int i = 0; i < count; i++) b[i] = given(me, i, round);
    CHECK(MPI_Reduce(b, b, count, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD) == MPI_SUCCESS, "a reduce was refused");
    for (int i = 0; me == root && i < count; i++) CHECK(b[i] == ranks + n * (i + 7 * round), "reduce: word %d is %d", i, b[i]);
    for (int i = 0; i < n * count; i++) b[i] = given(me, i, round);
    CHECK(MPI_Reduce_scatter_block(b, b, count, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS, "a reduce_scatter_block was refused");
    for (int i = 0; i < count; i++)
        CHECK(b[i] == ranks + n * (me * count + i + 7 * round), "reduce_scatter_block: word %d is %d", i, b[i]);
}

static void exchanged(int block, int round) {
    static int b[MOST * WORDS];
    for (int i = 0; i < n * block; i++) b[i] = given(me, i, round);
    CHECK(MPI_Alltoall(b, block, MPI_INT, b, block, MPI_INT, MPI_COMM_WORLD) == MPI_SUCCESS, "an alltoall was refused");
    for (int r = 0; r < n; r++)
        for (int i = 0; i < block; i++)
            CHECK(b[r * block + i] == given(r, me * block + i, round), "alltoall: word %d of rank %d is %d", i, r, b[r * block + i]);
}

int main(int count, char **words) {
    static const int counts[] = {1, 7, 600, WORDS};
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int round = 0; round < 12; round++) {
        gathered(counts[round % 4], round);
        reduced(counts[round % 4], round);
        exchanged(counts[round % 4], round);
    }
    return verdict("alias");
}
