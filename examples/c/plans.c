/* Every collective as a plan, made once and run three times: blocking, and beside other work.
 *
 *     mpicc plans.c -o plans $(pkg-config --cflags --libs allhands) && mpirun -n 4 ./plans
 *
 * Rank r begins with the number r + 1, so what must come out is easily said, and is checked. */
#include <allhands.h>
#include <stdio.h>

#define MOST 16 /* ranks */

static int rank, size;

/* Every function returns 0, or a code; the sentence behind it says what to do. */
static void check(int code, const char *what) {
    if (code != ALLHANDS_SUCCESS) {
        fprintf(stderr, "rank %d: %s: %s: %s\n", rank, what, allhands_error_string(code), allhands_last_error());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* Runs a plan in all ways, from the same beginning, and looks at the result each time. */
static void use(const char *name, allhands_plan *plan, int *x, const int *begin, const int *result, int count) {
    const char *algorithm;
    int way, i, done;
    for (way = 0; way < 3; way++) {
        for (i = 0; i < count; i++) x[i] = begin[i];
        if (way == 0) {
            check(allhands_run(plan), name);
        } else {
            check(allhands_start(plan), name);
            /* ... something else; a test now and then moves the collective on ... */
            for (done = 0; way == 2 && !done;) check(allhands_test(plan, &done), name);
            check(allhands_wait(plan), name);
        }
        for (i = 0; i < count; i++) {
            if (x[i] != result[i]) {
                fprintf(stderr, "rank %d: %s: place %d holds %d, not %d\n", rank, name, i, x[i], result[i]);
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
    }
    check(allhands_algorithm(plan, &algorithm), name);
    if (rank == 0) printf("%-20s %s\n", name, algorithm);
    check(allhands_free(&plan), name); /* and sets it to NULL */
}

int main(int argc, char **argv) {
    int x[MOST * MOST], begin[MOST * MOST], result[MOST * MOST], mine[MOST * MOST];
    int64_t counts[MOST], places[MOST], theirs[MOST], there[MOST];
    MPI_Datatype types[MOST];
    int i, j, k, sum, all, code;
    MPI_Comm comm = MPI_COMM_WORLD;
    allhands_plan *plan;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (size > MOST) MPI_Abort(comm, 2);
    sum = size * (size + 1) / 2;
    for (i = 0; i < MOST * MOST; i++) {
        begin[i] = -1;
        mine[i] = rank + 1;
    }

    /* The arguments are those of MPI's persistent collectives; NULL: the library chooses the algorithm. */
    for (i = 0; i < size; i++) result[i] = i + 1;
    check(allhands_allgather_init(mine, 1, MPI_INT, x, 1, MPI_INT, comm, NULL, &plan), "allgather");
    use("allgather", plan, x, begin, result, size);

    /* Rank i has i + 1 numbers. Counts and displacements have 64 bits. */
    for (i = all = 0; i < size; i++) {
        counts[i] = i + 1;
        places[i] = all;
        for (j = 0; j <= i; j++) result[all++] = i + 1;
    }
    check(allhands_allgatherv_init(mine, rank + 1, MPI_INT, x, counts, places, MPI_INT, comm, NULL, &plan), "allgatherv");
    use("allgatherv", plan, x, begin, result, all);

    /* Rank r has the number 100 r + i for rank i. */
    for (i = 0; i < size; i++) {
        mine[i] = 100 * rank + i;
        result[i] = 100 * i + rank;
    }
    check(allhands_alltoall_init(mine, 1, MPI_INT, x, 1, MPI_INT, comm, NULL, &plan), "alltoall");
    use("alltoall", plan, x, begin, result, size);

    /* Rank r has i + 1 numbers for rank i: each gets as many from all. */
    for (i = j = all = 0; i < size; i++) {
        counts[i] = i + 1;
        places[i] = j;
        theirs[i] = rank + 1;
        there[i] = all;
        for (k = 0; k <= i; k++) mine[j++] = 100 * rank + i;
        for (k = 0; k <= rank; k++) result[all++] = 100 * i + rank;
    }
    check(allhands_alltoallv_init(mine, counts, places, MPI_INT, x, theirs, there, MPI_INT, comm, NULL, &plan), "alltoallv");
    use("alltoallv", plan, x, begin, result, all);

    /* The same with a datatype for each block; places are in bytes. */
    for (i = 0; i < size; i++) {
        types[i] = MPI_INT;
        places[i] *= sizeof(int);
        there[i] *= sizeof(int);
    }
    check(allhands_alltoallw_init(mine, counts, places, types, x, theirs, there, types, comm, NULL, &plan), "alltoallw");
    use("alltoallw", plan, x, begin, result, all);

    /* To the last rank. What it alone receives, others need not say. */
    for (i = 0; i < size; i++) result[i] = rank == size - 1 ? 100 * i : -1;
    if (rank == size - 1) code = allhands_gather_init(mine, 1, MPI_INT, x, 1, MPI_INT, size - 1, comm, NULL, &plan);
    else code = allhands_gather_init(mine, 1, MPI_INT, NULL, 0, MPI_DATATYPE_NULL, size - 1, comm, NULL, &plan);
    check(code, "gather");
    use("gather", plan, x, begin, result, size);

    /* Rank i has i + 1 numbers, and the root places for them. */
    for (i = all = 0; i < size; i++) {
        counts[i] = i + 1;
        places[i] = all;
        for (j = 0; j <= i; j++) result[all++] = rank == 0 ? i + 1 : -1;
    }
    for (i = 0; i < MOST * MOST; i++) mine[i] = rank + 1;
    check(allhands_gatherv_init(mine, rank + 1, MPI_INT, x, counts, places, MPI_INT, 0, comm, NULL, &plan), "gatherv");
    use("gatherv", plan, x, begin, result, all);

    /* The root's own block stays where it is. */
    for (i = 0; i < size; i++) mine[i] = 100 * rank + i;
    result[0] = rank == 0 ? -1 : rank;
    check(allhands_scatter_init(mine, 1, MPI_INT, rank == 0 ? MPI_IN_PLACE : x, 1, MPI_INT, 0, comm, NULL, &plan), "scatter");
    use("scatter", plan, x, begin, result, 1);

    for (i = j = 0; i < size; i++)
        for (k = 0; k <= i; k++) mine[j++] = 100 * rank + i;
    for (i = 0; i <= rank; i++) result[i] = rank;
    check(allhands_scatterv_init(mine, counts, places, MPI_INT, x, rank + 1, MPI_INT, 0, comm, NULL, &plan), "scatterv");
    use("scatterv", plan, x, begin, result, rank + 1);

    /* In place, with an algorithm that is named: if it could not serve, that would be an error. */
    for (i = 0; i < MOST * MOST; i++) mine[i] = rank + 1;
    for (i = 0; i < 10; i++) result[i] = sum;
    check(allhands_allreduce_init(MPI_IN_PLACE, x, 10, MPI_INT, MPI_SUM, comm, "ring", &plan), "allreduce");
    use("allreduce", plan, x, mine, result, 10);

    /* Rank i gets i + 1 of the sums. */
    for (i = 0; i < size; i++) counts[i] = i + 1;
    for (i = 0; i < MOST; i++) result[i] = i <= rank ? sum : -1;
    check(allhands_reduce_scatter_init(mine, x, counts, MPI_INT, MPI_SUM, comm, NULL, &plan), "reduce_scatter");
    use("reduce_scatter", plan, x, begin, result, MOST);

    for (i = 0; i < MOST; i++) result[i] = i < 2 ? size : -1;
    check(allhands_reduce_scatter_block_init(mine, x, 2, MPI_INT, MPI_MAX, comm, NULL, &plan), "reduce_scatter_block");
    use("reduce_scatter_block", plan, x, begin, result, MOST);

    for (i = 0; i < 5; i++) result[i] = size;
    check(allhands_bcast_init(x, 5, MPI_INT, size - 1, comm, NULL, &plan), "bcast");
    use("bcast", plan, x, mine, result, 5);

    for (i = 0; i < 5; i++) result[i] = rank == 0 ? sum : -1;
    check(allhands_reduce_init(mine, x, 5, MPI_INT, MPI_SUM, 0, comm, NULL, &plan), "reduce");
    use("reduce", plan, x, begin, result, 5);

    /* Of all ranks up to this one, and of all before it. */
    for (i = 0; i < 5; i++) result[i] = (rank + 1) * (rank + 2) / 2;
    check(allhands_scan_init(mine, x, 5, MPI_INT, MPI_SUM, comm, NULL, &plan), "scan");
    use("scan", plan, x, begin, result, 5);

    for (i = 0; i < 5; i++) result[i] = rank > 0 ? rank : -1;
    check(allhands_exscan_init(mine, x, 5, MPI_INT, MPI_MAX, comm, NULL, &plan), "exscan");
    use("exscan", plan, x, begin, result, 5);

    check(allhands_barrier_init(comm, NULL, &plan), "barrier");
    use("barrier", plan, x, begin, begin, 0);

    if (rank == 0) printf("allhands %s: all right on %d ranks\n", allhands_version(), size);
    MPI_Finalize();
    return 0;
}
