/* Every error that a program can make is a code and a sentence. Run by `cargo xtask capi` on 1, 2, 3 and 4 ranks. */
#include <allhands.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, failures;

/* The code, and a part of the sentence. */
static void expect_at(int line, int code, int expected, const char *part) {
    if (code != expected || (code != ALLHANDS_SUCCESS && !strstr(allhands_last_error(), part))) {
        fprintf(stderr, "rank %d, line %d: code %d (%s) instead of %d: %s\n", rank, line, code, allhands_error_string(code),
                expected, allhands_last_error());
        failures++;
    }
}
#define expect(code, expected, part) expect_at(__LINE__, code, expected, part)

static void before_init(void) {
    allhands_plan *plan = (allhands_plan *)&failures;
    if (strlen(allhands_last_error()) != 0) failures++;
    expect(allhands_barrier_init(MPI_COMM_WORLD, NULL, &plan), ALLHANDS_ERR_NOT_INITIALIZED, "call MPI_Init");
    if (plan != NULL) failures++;
}

static void strings(void) {
    int i, j;
    for (i = ALLHANDS_SUCCESS; i <= ALLHANDS_ERR_INTERNAL; i++)
        for (j = ALLHANDS_SUCCESS; j < i; j++)
            if (strcmp(allhands_error_string(i), allhands_error_string(j)) == 0) failures++;
    if (strcmp(allhands_error_string(-7), "no error code of this library") != 0) failures++;
    if (allhands_abi_version() != ALLHANDS_ABI_VERSION || strchr(allhands_version(), '.') == NULL) failures++;
}

static void arguments(void) {
    MPI_Comm comm = MPI_COMM_WORLD;
    allhands_plan *plan;
    int64_t counts[4] = {1, 1, 1, -1};
    int x[8] = {0}, y[8] = {0};
    expect(allhands_barrier_init(comm, NULL, NULL), ALLHANDS_ERR_ARGUMENT, "plan is NULL");
    expect(allhands_barrier_init(MPI_COMM_NULL, NULL, &plan), ALLHANDS_ERR_COMM, "MPI_COMM_NULL");
    expect(allhands_allreduce_init(x, y, -1, MPI_INT, MPI_SUM, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "count -1");
    expect(allhands_allreduce_init(x, y, 1, MPI_DATATYPE_NULL, MPI_SUM, comm, NULL, &plan), ALLHANDS_ERR_TYPE,
           "MPI_DATATYPE_NULL");
    expect(allhands_allreduce_init(x, y, 1, MPI_INT, MPI_OP_NULL, comm, NULL, &plan), ALLHANDS_ERR_OP, "MPI_OP_NULL");
    expect(allhands_allreduce_init(x, y, 1, MPI_CHAR, MPI_SUM, comm, NULL, &plan), ALLHANDS_ERR_OP, "call MPI's");
    expect(allhands_allreduce_init(x, x, 1, MPI_INT, MPI_SUM, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "MPI_IN_PLACE");
    expect(allhands_allreduce_init(NULL, y, 1, MPI_INT, MPI_SUM, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "NULL");
    expect(allhands_allreduce_init(x, y, 1, MPI_INT, MPI_SUM, comm, "no-such", &plan), ALLHANDS_ERR_ALGORITHM, "no-such");
    expect(allhands_allreduce_init(x, y, 1, MPI_INT, MPI_SUM, comm, "\xff", &plan), ALLHANDS_ERR_ALGORITHM, "no text");
    expect(allhands_bcast_init(x, 1, MPI_INT, size, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "is no rank");
    expect(allhands_bcast_init(x, 1, MPI_INT, -1, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "root -1");
    expect(allhands_bcast_init(x, INT64_C(1) << 40, MPI_INT, 0, comm, NULL, &plan), ALLHANDS_ERR_UNSUPPORTED, "1 GiB");
    expect(allhands_allgather_init(x, 1, MPI_INT, y, 2, MPI_INT, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "as many bytes");
    expect(allhands_allgatherv_init(x, 1, MPI_INT, y, NULL, counts, MPI_INT, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT,
           "array");
    if (size == 4)
        expect(allhands_reduce_scatter_init(x, y, counts, MPI_INT, MPI_SUM, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT,
               "MPI refuses");
    if (plan != NULL) failures++;
}

/* Of the collectives with a root, with a datatype for each rank, and of those that combine what comes before. */
static void more_arguments(void) {
    MPI_Comm comm = MPI_COMM_WORLD, self = MPI_COMM_SELF;
    MPI_Datatype types[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT}, no_types[4];
    allhands_plan *plan = NULL;
    int64_t ones[4] = {1, 1, 1, 1}, less[4] = {-1, -1, -1, -1}, places[4] = {0, 4, 8, 12};
    int x[8] = {0}, y[8] = {0}, i, bad;
    for (i = 0; i < 4; i++) no_types[i] = MPI_DATATYPE_NULL;
    expect(allhands_gather_init(x, 1, MPI_INT, y, 1, MPI_INT, 0, comm, NULL, NULL), ALLHANDS_ERR_ARGUMENT, "plan is NULL");
    expect(allhands_gatherv_init(x, 1, MPI_INT, y, ones, places, MPI_INT, 0, comm, NULL, NULL), ALLHANDS_ERR_ARGUMENT, "plan is");
    expect(allhands_scatter_init(x, 1, MPI_INT, y, 1, MPI_INT, 0, comm, NULL, NULL), ALLHANDS_ERR_ARGUMENT, "plan is NULL");
    expect(allhands_scatterv_init(x, ones, places, MPI_INT, y, 1, MPI_INT, 0, comm, NULL, NULL), ALLHANDS_ERR_ARGUMENT, "plan is");
    expect(allhands_scan_init(x, y, 1, MPI_INT, MPI_SUM, comm, NULL, NULL), ALLHANDS_ERR_ARGUMENT, "plan is NULL");
    expect(allhands_exscan_init(x, y, 1, MPI_INT, MPI_SUM, comm, NULL, NULL), ALLHANDS_ERR_ARGUMENT, "plan is NULL");
    expect(allhands_alltoallw_init(x, ones, places, types, y, ones, places, types, comm, NULL, NULL), ALLHANDS_ERR_ARGUMENT,
           "plan is NULL");
    for (i = 0; i < 2; i++) {
        bad = i == 0 ? -1 : size;
        expect(allhands_gather_init(x, 1, MPI_INT, y, 1, MPI_INT, bad, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "is no rank");
        expect(allhands_gatherv_init(x, 1, MPI_INT, y, ones, places, MPI_INT, bad, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT,
               "is no rank");
        expect(allhands_scatter_init(x, 1, MPI_INT, y, 1, MPI_INT, bad, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "is no rank");
        expect(allhands_scatterv_init(x, ones, places, MPI_INT, y, 1, MPI_INT, bad, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT,
               "is no rank");
    }
    /* What every rank says. */
    expect(allhands_gather_init(x, -1, MPI_INT, y, 1, MPI_INT, 0, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "count -1");
    expect(allhands_gather_init(x, 1, MPI_DATATYPE_NULL, y, 1, MPI_INT, 0, comm, NULL, &plan), ALLHANDS_ERR_TYPE, "MPI_DATATYPE");
    expect(allhands_gatherv_init(x, -1, MPI_INT, y, ones, places, MPI_INT, 0, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "count -1");
    expect(allhands_gatherv_init(x, 1, MPI_DATATYPE_NULL, y, ones, places, MPI_INT, 0, comm, NULL, &plan), ALLHANDS_ERR_TYPE,
           "MPI_DATATYPE_NULL");
    expect(allhands_scatter_init(x, 1, MPI_INT, y, -1, MPI_INT, 0, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "count -1");
    expect(allhands_scatter_init(x, 1, MPI_INT, y, 1, MPI_DATATYPE_NULL, 0, comm, NULL, &plan), ALLHANDS_ERR_TYPE, "MPI_DATATYPE");
    expect(allhands_scatterv_init(x, ones, places, MPI_INT, y, -1, MPI_INT, 0, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "count -1");
    expect(allhands_scatterv_init(x, ones, places, MPI_INT, y, 1, MPI_DATATYPE_NULL, 0, comm, NULL, &plan), ALLHANDS_ERR_TYPE,
           "MPI_DATATYPE_NULL");
    expect(allhands_gather_init(x, INT64_C(1) << 40, MPI_INT, y, INT64_C(1) << 40, MPI_INT, 0, comm, NULL, &plan),
           ALLHANDS_ERR_UNSUPPORTED, "1 GiB");
    expect(allhands_scan_init(x, y, -1, MPI_INT, MPI_SUM, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "count -1");
    expect(allhands_scan_init(x, y, 1, MPI_DATATYPE_NULL, MPI_SUM, comm, NULL, &plan), ALLHANDS_ERR_TYPE, "MPI_DATATYPE_NULL");
    expect(allhands_scan_init(x, y, 1, MPI_CHAR, MPI_SUM, comm, NULL, &plan), ALLHANDS_ERR_OP, "call MPI's");
    expect(allhands_scan_init(x, x, 1, MPI_INT, MPI_SUM, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "MPI_IN_PLACE");
    expect(allhands_exscan_init(x, y, -1, MPI_INT, MPI_SUM, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "count -1");
    expect(allhands_exscan_init(x, y, 1, MPI_INT, MPI_OP_NULL, comm, NULL, &plan), ALLHANDS_ERR_OP, "MPI_OP_NULL");
    expect(allhands_exscan_init(x, y, 1, MPI_INT, MPI_SUM, comm, "no-such", &plan), ALLHANDS_ERR_ALGORITHM, "no-such");
    expect(allhands_alltoallw_init(x, less, places, types, y, ones, places, types, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT,
           "MPI refuses");
    expect(allhands_alltoallw_init(x, ones, places, types, y, ones, NULL, types, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT,
           "array of counts");
    expect(allhands_alltoallw_init(x, ones, places, NULL, y, ones, places, types, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT,
           "array of datatypes");
    expect(allhands_alltoallw_init(x, ones, places, types, y, ones, places, no_types, comm, NULL, &plan), ALLHANDS_ERR_TYPE,
           "MPI_DATATYPE_NULL");
    /* What only the root says, and this rank is the root of one. */
    expect(allhands_gather_init(x, 1, MPI_INT, y, -1, MPI_INT, 0, self, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "count -1");
    expect(allhands_gather_init(x, 1, MPI_INT, y, 2, MPI_INT, 0, self, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "as many bytes");
    expect(allhands_gather_init(x, 1, MPI_INT, NULL, 1, MPI_INT, 0, self, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "NULL");
    expect(allhands_gather_init(x, 1, MPI_INT, x, 1, MPI_INT, 0, self, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "MPI_IN_PLACE");
    expect(allhands_gatherv_init(x, 1, MPI_INT, y, less, places, MPI_INT, 0, self, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "MPI refuses");
    expect(allhands_gatherv_init(x, 1, MPI_INT, y, NULL, places, MPI_INT, 0, self, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "array");
    expect(allhands_scatter_init(x, 1, MPI_DATATYPE_NULL, y, 1, MPI_INT, 0, self, NULL, &plan), ALLHANDS_ERR_TYPE, "MPI_DATATYPE");
    expect(allhands_scatter_init(x, 1, MPI_INT, x, 1, MPI_INT, 0, self, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "MPI_IN_PLACE");
    expect(allhands_scatterv_init(x, less, places, MPI_INT, y, 1, MPI_INT, 0, self, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "MPI refuses");
    expect(allhands_scatterv_init(x, ones, NULL, MPI_INT, y, 1, MPI_INT, 0, self, NULL, &plan), ALLHANDS_ERR_ARGUMENT, "array");
    if (rank > 0) {
        expect(allhands_gather_init(MPI_IN_PLACE, 1, MPI_INT, y, 1, MPI_INT, 0, comm, NULL, &plan), ALLHANDS_ERR_ARGUMENT,
               "which is rank 0");
        expect(allhands_scatterv_init(x, ones, places, MPI_INT, MPI_IN_PLACE, 1, MPI_INT, 0, comm, NULL, &plan),
               ALLHANDS_ERR_ARGUMENT, "which is rank 0");
    }
    if (plan != NULL) failures++;
}

/* A communicator between two groups. */
static void between(void) {
    MPI_Comm half, inter;
    allhands_plan *plan;
    if (size == 1) return;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - rank % 2, 7, &inter);
    expect(allhands_barrier_init(inter, NULL, &plan), ALLHANDS_ERR_COMM, "MPI_Intercomm_merge");
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

static void plans(void) {
    allhands_plan *plan = NULL, *copy;
    const char *text = NULL;
    int x = rank + 1, y = 0, done = -1;
    expect(allhands_run(NULL), ALLHANDS_ERR_PLAN, "the plan is NULL");
    expect(allhands_start((allhands_plan *)&x), ALLHANDS_ERR_PLAN, "this is no plan");
    expect(allhands_free(NULL), ALLHANDS_ERR_ARGUMENT, "plan is NULL");
    expect(allhands_free(&plan), ALLHANDS_SUCCESS, "");
    expect(allhands_allreduce_init(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, NULL, &plan), ALLHANDS_SUCCESS, "");
    expect(allhands_test(plan, &done), ALLHANDS_SUCCESS, "");
    if (done != 1) failures++;
    expect(allhands_wait(plan), ALLHANDS_SUCCESS, "");
    expect(allhands_test(plan, NULL), ALLHANDS_ERR_ARGUMENT, "done is NULL");
    expect(allhands_algorithm(plan, NULL), ALLHANDS_ERR_ARGUMENT, "name is NULL");
    expect(allhands_explain(plan, NULL), ALLHANDS_ERR_ARGUMENT, "text is NULL");
    expect(allhands_explain(plan, &text), ALLHANDS_SUCCESS, "");
    if (text == NULL || strncmp(text, "allreduce on ", 13) != 0) failures++;
    expect(allhands_start(plan), ALLHANDS_SUCCESS, "");
    expect(allhands_start(plan), ALLHANDS_ERR_ACTIVE, "allhands_wait");
    expect(allhands_run(plan), ALLHANDS_ERR_ACTIVE, "under way");
    copy = plan;
    expect(allhands_free(&plan), ALLHANDS_SUCCESS, ""); /* waits */
    if (plan != NULL || y != size * (size + 1) / 2) failures++;
    expect(allhands_run(copy), ALLHANDS_ERR_PLAN, "was freed");
    expect(allhands_free(&copy), ALLHANDS_ERR_PLAN, "was freed");
    if (copy != NULL) failures++;
}

/* Ranks that do not agree: each expects one number more than it gets, the root one more of each or has one more for each, and each reduces as
 * many as its rank says. */
static void mismatch(void) {
    int64_t sent[4] = {1, 1, 1, 1}, awaited[4] = {2, 2, 2, 2}, places[4] = {0, 2, 4, 6};
    int x[8] = {0}, y[8] = {0}, code;
    MPI_Datatype types[4] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT};
    MPI_Comm comm;
    allhands_plan *plan;
    if (size == 1) return;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    expect(allhands_alltoallv_init(x, sent, places, MPI_INT, y, awaited, places, MPI_INT, comm, NULL, &plan),
           ALLHANDS_ERR_MISMATCH, "matching counts");
    expect(allhands_alltoallw_init(x, sent, places, types, y, awaited, places, types, comm, NULL, &plan), ALLHANDS_ERR_MISMATCH,
           "matching counts");
    /* Only the root knows; others have a plan that cannot run. Its own block has as many at both ends. */
    awaited[0] = 1;
    code = allhands_gatherv_init(x, 1, MPI_INT, y, awaited, places, MPI_INT, 0, comm, NULL, &plan);
    expect(code, rank == 0 ? ALLHANDS_ERR_MISMATCH : ALLHANDS_SUCCESS, "matching counts");
    allhands_free(&plan);
    MPI_Comm_free(&comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    code = allhands_scatterv_init(x, awaited, places, MPI_INT, y, 1, MPI_INT, 0, comm, NULL, &plan);
    expect(code, rank == 0 ? ALLHANDS_ERR_MISMATCH : ALLHANDS_SUCCESS, "matching counts");
    allhands_free(&plan);
    MPI_Comm_free(&comm);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Barrier(comm); /* what follows breaks the communicator */
    code = allhands_allreduce_init(x, y, rank + 1, MPI_INT, MPI_SUM, comm, NULL, &plan);
    if (code == ALLHANDS_SUCCESS) {
        code = allhands_run(plan);
        if (code != ALLHANDS_ERR_RANK) expect(code, ALLHANDS_ERR_MISMATCH, "");
    } else if (code != ALLHANDS_ERR_RANK) {
        expect(code, ALLHANDS_ERR_MISMATCH, "same calls");
    }
    allhands_free(&plan);
    MPI_Comm_free(&comm);
}

int main(int argc, char **argv) {
    allhands_plan *left, *copy;
    before_init();
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    strings();
    arguments();
    more_arguments();
    between();
    plans();
    mismatch();
    expect(allhands_barrier_init(MPI_COMM_WORLD, NULL, &left), ALLHANDS_SUCCESS, "");
    copy = left;
    MPI_Finalize();
    expect(allhands_run(left), ALLHANDS_ERR_FINALIZED, "before MPI_Finalize");
    expect(allhands_free(&left), ALLHANDS_ERR_FINALIZED, "before MPI_Finalize");
    expect(allhands_barrier_init(MPI_COMM_WORLD, NULL, &copy), ALLHANDS_ERR_FINALIZED, "before MPI_Finalize");
    if (rank == 0 && failures == 0) printf("every error is told\n");
    return failures == 0 ? 0 : 1;
}
