/* Collectives that ranks call differently, late, or many times over; the first argument says which. */

#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CASE(name) (strcmp(which, name) == 0)

static int me, ranks;
/* An address that compilers would take for that of no numbers. */
static int *volatile unweighted;
static double from[64], to[64];

static void larger(void *in, void *inout, int *length, MPI_Datatype *type) {
    (void)type;
    for (int i = 0; i < *length; i++)
        if (((double *)in)[i] > ((double *)inout)[i]) ((double *)inout)[i] = ((double *)in)[i];
}

/* What MPI allows: types that differ and amount to the same, in place, nothing, other communicators, no group at all. */
static int right(void) {
    int numbers[8] = {0}, counts[8], places[8], given[8], expected[8], from_places[8], to_places[8];
    MPI_Datatype four;
    MPI_Type_contiguous(4, MPI_INT, &four);
    MPI_Type_commit(&four);
    if (me == 1) for (int i = 0; i < 8; i++) numbers[i] = i;
    MPI_Bcast(numbers, me == 1 ? 2 : 8, me == 1 ? four : MPI_INT, 1, MPI_COMM_WORLD);
    for (int i = 0; i < 8; i++) if (numbers[i] != i) return 1;
    MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) { counts[i] = i; places[i] = i * (i - 1) / 2; }
    for (int i = 0; i < me; i++) to[places[me] + i] = me;
    MPI_Allgatherv(me == 0 ? (void *)from : MPI_IN_PLACE, 0, MPI_DOUBLE, to, counts, places, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) for (int k = 0; k < i; k++) if (to[places[i] + k] != i) return 2;
    for (int i = 0; i < ranks; i++) {
        given[i] = me + 2 * i; expected[i] = i + 2 * me;
        from_places[i] = 16 * i; to_places[i] = 16 * i;
    }
    MPI_Alltoallv(from, given, from_places, MPI_DOUBLE, to, expected, to_places, MPI_DOUBLE, MPI_COMM_WORLD);
    MPI_Comm pair, alone;
    MPI_Comm_split(MPI_COMM_WORLD, me / 2, me, &pair);
    double one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, pair);
    if (sum != (me / 2 == ranks / 2 ? 1 : 2)) return 3;
    MPI_Comm_free(&pair);
    MPI_Comm_dup(MPI_COMM_SELF, &alone);
    MPI_Barrier(alone);
    MPI_Comm_free(&alone);
    MPI_Op largest;
    MPI_Op_create(larger, 1, &largest);
    one = me;
    MPI_Reduce(&one, &sum, 1, MPI_DOUBLE, largest, 1, MPI_COMM_WORLD);
    if (me == 1 && sum != ranks - 1) return 4;
    MPI_Op_free(&largest);
    MPI_Type_free(&four);
    return 0;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    unweighted = MPI_UNWEIGHTED;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *which = argc > 1 ? argv[1] : "";
    MPI_Comm world = MPI_COMM_WORLD;
    int odd = me == 1, result = 0;
    int counts[3] = {1, 2, 3}, places[3] = {0, 1, 3}, wrong[3] = {1, 3, 2}, even[3] = {0, 8, 16}, ones[3] = {1, 1, 1}, more[3] = {1, 1, 2};

    if (CASE("right")) result = right();
    if (CASE("counts")) MPI_Allreduce(from, to, odd ? 5 : 4, MPI_DOUBLE, MPI_SUM, world);
    if (CASE("roots")) MPI_Bcast(to, 4, MPI_INT, odd ? 2 : 0, world);
    if (CASE("collectives")) {
        if (odd) MPI_Reduce(from, to, 4, MPI_DOUBLE, MPI_SUM, 1, world);
        else MPI_Bcast(to, 16, MPI_BYTE, 0, world);
    }
    if (CASE("operations")) MPI_Allreduce(from, to, 4, MPI_DOUBLE, odd ? MPI_MAX : MPI_SUM, world);
    if (CASE("types")) MPI_Allreduce(from, to, 4, odd ? MPI_FLOAT : MPI_INT, MPI_SUM, world);
    if (CASE("passed")) {
        MPI_Op largest;
        MPI_Op_create(larger, 1, &largest);
        MPI_Allreduce(from, to, 4, MPI_DOUBLE, odd ? largest : MPI_MAX, world);
    }
    if (CASE("refused")) MPI_Bcast(to, odd ? -1 : 4, MPI_INT, 0, world);
    if (CASE("blocks")) MPI_Reduce_scatter(from, to, odd ? wrong : counts, MPI_DOUBLE, MPI_SUM, world);
    if (CASE("gathered")) MPI_Allgatherv(from, odd ? 1 : counts[me], MPI_INT, to, counts, places, MPI_INT, world);
    if (CASE("exchanged"))
        MPI_Alltoallv(from, odd ? more : ones, even, MPI_INT, to, ones, even, MPI_INT, world);
    if (CASE("collected")) MPI_Gather(from, odd ? 2 : 1, MPI_INT, to, 1, MPI_INT, 0, world);
    if (CASE("gatherv")) MPI_Gatherv(from, odd ? 2 : 1, MPI_INT, to, ones, even, MPI_INT, 0, world);
    if (CASE("scatterv")) MPI_Scatterv(from, ones, even, MPI_INT, to, odd ? 2 : 1, MPI_INT, 0, world);
    if (CASE("neighbors")) {
        MPI_Comm ring;
        MPI_Cart_create(world, 1, &ranks, ones, 0, &ring);
        MPI_Neighbor_allgather(from, odd ? 2 : 1, MPI_INT, to, 1, MPI_INT, ring);
    }
    if (CASE("edges")) {
        /* Of the edge from the second rank to the third only the second knows. */
        MPI_Comm graph;
        int last = 2;
        MPI_Dist_graph_create_adjacent(world, 0, NULL, unweighted, odd, &last, unweighted, MPI_INFO_NULL, 0, &graph);
        MPI_Neighbor_alltoallv(from, ones, places, MPI_INT, to, ones, places, MPI_INT, graph);
    }
    if (CASE("summed")) MPI_Scan(from, to, 2, odd ? MPI_FLOAT : MPI_DOUBLE, MPI_SUM, world);
    if (CASE("typed")) {
        MPI_Datatype types[] = {MPI_INT, MPI_INT, MPI_INT, MPI_INT, MPI_INT, MPI_INT, MPI_INT, MPI_INT};
        MPI_Alltoallw(from, odd ? more : ones, even, types, to, ones, even, types, world);
    }
    if (CASE("begun")) {
        MPI_Request request;
        if (odd) MPI_Bcast(to, 4, MPI_INT, 0, world);
        else {
            MPI_Ibcast(to, 4, MPI_INT, 0, world, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        MPI_Barrier(world);
    }
    if (CASE("part")) {
        MPI_Comm part;
        MPI_Comm_split(world, me > 0, me, &part);
        if (me > 0) MPI_Bcast(to, odd ? 1 : 2, MPI_INT, 0, part);
        MPI_Barrier(world);
    }
    if (CASE("late")) {
        /* The last rank comes when the file that the second argument names is there. */
        while (me == ranks - 1 && access(argv[2], F_OK) != 0) usleep(1000);
        MPI_Allreduce(from, to, 1, MPI_DOUBLE, MPI_SUM, world);
        MPI_Bcast(to, 1, MPI_INT, 0, world);
    }
    if (CASE("often"))
        for (int i = 0; i < 40; i++) MPI_Allreduce(from, to, 1 + i % 3, MPI_DOUBLE, MPI_SUM, world);

    if (me == 0 && result == 0) puts("done");
    MPI_Finalize();
    return result;
}
