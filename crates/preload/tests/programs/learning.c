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

/* What rank `from` has for rank `to` in a call: nothing at times, and much at others. */
static int portion(int from, int to, int call) { return (from * 5 + to * 3 + call) % 4 * ((call / 7 + from) % 5 == 0 ? 100 : 1); }

static int item(int from, int to, int call, int i) { return from * 100003 + to * 1009 + call * 31 + i; }

/* Calls of which each rank knows its own counts. */
static void of_own_counts(MPI_Comm comm, int call) {
    static int from[MOST * 300], to[MOST * 300], given[MOST], gotten[MOST], give_at[MOST], get_at[MOST];
    int root = call % n, sent = 0, received = 0;
    for (int r = 0; r < n; r++) {
        give_at[r] = sent, get_at[r] = received;
        sent += given[r] = portion(me, r, call), received += gotten[r] = portion(r, me, call);
        for (int i = 0; i < given[r]; i++) from[give_at[r] + i] = item(me, r, call, i);
    }
    memset(to, -1, sizeof to);
    MPI_Alltoallv(from, given, give_at, MPI_INT, to, gotten, get_at, MPI_INT, comm);
    for (int r = 0; r < n; r++)
        for (int i = 0; i < gotten[r]; i++) CHECK(to[get_at[r] + i] == item(r, me, call, i), "call %d, alltoallv from %d", call, r);
    memset(to, -1, sizeof to);
    int mine = portion(me, root, call);
    MPI_Gatherv(from + give_at[root], mine, MPI_INT, to, gotten, get_at, MPI_INT, root, comm);
    for (int r = 0; me == root && r < n; r++)
        for (int i = 0; i < gotten[r]; i++) CHECK(to[get_at[r] + i] == item(r, root, call, i), "call %d, gatherv from %d", call, r);
    memset(to, -1, sizeof to);
    mine = portion(root, me, call);
    MPI_Scatterv(from, given, give_at, MPI_INT, to, mine, MPI_INT, root, comm);
    for (int i = 0; i < mine; i++) CHECK(to[i] == item(root, me, call, i), "call %d, scatterv from %d", call, root);
}

/* With the ranks that are one and two further on: everybody gives to as many as it gets from. */
static void among_neighbors(MPI_Comm graph, int call) {
    int from[2 * 300], to[2 * 300], given[2], gotten[2], give_at[2] = {0, 300}, get_at[2] = {0, 300}, neighbors = n > 2 ? 2 : 1;
    for (int k = 0; k < neighbors; k++) {
        int next = (me + k + 1) % n, last = (me + n - k - 1) % n;
        given[k] = portion(me, next, call), gotten[k] = portion(last, me, call);
        for (int i = 0; i < given[k]; i++) from[give_at[k] + i] = item(me, next, call, i);
    }
    memset(to, -1, sizeof to);
    MPI_Neighbor_alltoallv(from, given, give_at, MPI_INT, to, gotten, get_at, MPI_INT, graph);
    for (int k = 0; k < neighbors; k++)
        for (int i = 0; i < gotten[k]; i++)
            CHECK(to[get_at[k] + i] == item((me + n - k - 1) % n, me, call, i), "call %d, from neighbour %d", call, k);
    from[0] = me + call;
    MPI_Neighbor_allgather(from, 1, MPI_INT, to, 1, MPI_INT, graph);
    for (int k = 0; k < neighbors; k++) CHECK(to[k] == (me + n - k - 1) % n + call, "call %d, of neighbour %d", call, k);
}

int main(int count, char **words) {
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm same;
    MPI_Comm_dup(MPI_COMM_WORLD, &same);
    int sources[] = {(me + n - 1) % n, (me + n - 2) % n}, destinations[] = {(me + 1) % n, (me + 2) % n}, degree = n > 2 ? 2 : 1, weights[] = {1, 1};
    MPI_Comm graph;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, degree, sources, weights, degree, destinations, weights, MPI_INFO_NULL, 0, &graph);
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
        of_own_counts(comm, call);
        among_neighbors(graph, call);
    }
    MPI_Comm_free(&graph);
    MPI_Comm_free(&same);
    return verdict("learning");
}
