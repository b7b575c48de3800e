/* What outlasts the call that gives a request: operations and datatypes that the program frees, arrays of large counts, and runs that
 * fail when they are under way.
 *
 * usage: lasting [faults] */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include "requests.h"

/* Maps x -> a x + b one after the other, modulo 2^64: does not commute. A datatype with a gap, which is looked at. */
typedef struct {
    uint64_t a;
    int32_t gap;
    uint32_t b;
} Map;

static MPI_Datatype map;

static void applied(void *left, void *right, int *count, MPI_Datatype *datatype) {
    Map *f = left, *g = right;
    CHECK(*datatype == map);
    for (int i = 0; i < *count; i++) {
        g[i].b += (uint32_t)g[i].a * f[i].b;
        g[i].a *= f[i].a;
    }
}

/* Operations and datatypes of the program's own that are freed before the collectives are through. */
static void operations_outlast(MPI_Comm comm) {
    enum { MAPS = 5000 };
    Map *in = malloc(MAPS * sizeof *in), *out[3];
    for (int k = 0; k < 3; k++) out[k] = malloc(MAPS * sizeof **out);
    for (int run = 0; run < 6; run++) {
        MPI_Datatype types[2] = {MPI_UINT64_T, MPI_UINT32_T}, packed;
        MPI_Aint places[2] = {offsetof(Map, a), offsetof(Map, b)};
        MPI_Op op;
        MPI_Request requests[3];
        OK(MPI_Type_create_struct(2, (int[]){1, 1}, places, types, &packed));
        OK(MPI_Type_create_resized(packed, 0, sizeof(Map), &map));
        OK(MPI_Type_commit(&map));
        OK(MPI_Type_free(&packed));
        OK(MPI_Op_create(applied, 0, &op));
        for (int i = 0; i < MAPS; i++) in[i] = (Map){2 * (me + i) + 1, 7, me + run};
        for (int k = 0; k < 3; k++)
            for (int i = 0; i < MAPS; i++) out[k][i].gap = 9;
        OK(MPI_Iallreduce(in, out[0], MAPS, map, op, comm, &requests[0]));
        OK(MPI_Ireduce(in, out[1], 3, map, op, run % p, comm, &requests[1]));
        OK(INIT(Allreduce)(in, out[2], 10, map, op, comm, MPI_INFO_NULL, &requests[2]));
        /* The MPI's own have no way to know the handle that this program has freed. */
        MPI_Op freed_op = op;
        MPI_Datatype freed = map;
        OK(MPI_Op_free(&freed_op));
        OK(MPI_Type_free(&freed));
        CHECK(freed_op == MPI_OP_NULL && freed == MPI_DATATYPE_NULL);
        OK(MPI_Start(&requests[2]));
        completed(requests, 2, run + me);
        OK(MPI_Wait(&requests[2], MPI_STATUS_IGNORE));
        OK(MPI_Start(&requests[2]));
        OK(MPI_Wait(&requests[2], MPI_STATUS_IGNORE));
        OK(MPI_Request_free(&requests[2]));
        for (int i = 0; i < MAPS; i++) {
            Map all = {1, 0, 0};
            for (int r = 0; r < p; r++) all = (Map){all.a * (2 * (r + i) + 1), 0, all.b * (2 * (r + i) + 1) + r + run};
            CHECK(out[0][i].a == all.a && out[0][i].b == all.b && out[0][i].gap == 9);
            if (i < 3 && me == run % p) CHECK(out[1][i].a == all.a && out[1][i].b == all.b);
            if (i < 10) CHECK(out[2][i].a == all.a && out[2][i].b == all.b && out[2][i].gap == 9);
        }
    }
    free(in);
    for (int k = 0; k < 3; k++) free(out[k]);
}

/* Where the MPI has none with large counts, a program that looks for them finds ours: their arrays go with their requests. */
static void large_counts_leave_nothing(void) {
    typedef int Exchange(const void *, const MPI_Count *, const MPI_Aint *, MPI_Datatype, void *, const MPI_Count *,
                         const MPI_Aint *, MPI_Datatype, MPI_Comm, MPI_Request *);
    enum { CYCLES = 20000 };
    Exchange *exchange = (Exchange *)dlsym(RTLD_DEFAULT, "MPI_Ialltoallv_c");
    CHECK(exchange);
    long before = 0;
    for (int cycle = 0; cycle <= CYCLES; cycle++) {
        if (cycle == CYCLES / 10) before = pages();
        MPI_Count count = 1;
        MPI_Aint place = 0;
        int32_t in = cycle, out = -1;
        MPI_Request request;
        OK(exchange(&in, &count, &place, MPI_INT32_T, &out, &count, &place, MPI_INT32_T, MPI_COMM_SELF, &request));
        if (cycle % 2) OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
        else OK(MPI_Waitall(1, &request, MPI_STATUSES_IGNORE));
        CHECK(out == cycle);
    }
    /* Four arrays of each would be 128 bytes or more. */
    CHECK((pages() - before) * 4096 < 32L * CYCLES);
}

/* How often the error handler was called, and with what class. */
static int handled, class;

static void handle(MPI_Comm *comm, int *code, ...) {
    (void)comm;
    handled++;
    MPI_Error_class(*code, &class);
}

/* Rank 0 begins or starts a run before the others come with another count: every rank gets an error, in the call or when it waits,
 * and no rank waits for ever. */
static void runs_fail(int persistent, int together) {
    MPI_Comm comm;
    MPI_Errhandler handler;
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    MPI_Status statuses[2];
    int64_t in[8] = {0}, out[8];
    int token = me, got = -1, code;
    OK(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    OK(MPI_Barrier(comm));
    OK(MPI_Comm_create_errhandler(handle, &handler));
    OK(MPI_Comm_set_errhandler(comm, handler));
    handled = 0;
    int number = me ? 8 : 4;
    if (persistent) code = INIT(Allreduce)(in, out, number, MPI_INT64_T, MPI_SUM, comm, MPI_INFO_NULL, &requests[0]);
    else {
        if (me) OK(MPI_Recv(&got, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        code = MPI_Iallreduce(in, out, number, MPI_INT64_T, MPI_SUM, comm, &requests[0]);
        if (!me) CHECK(code == MPI_SUCCESS);
        if (!me) for (int r = 1; r < p; r++) OK(MPI_Send(&token, 1, MPI_INT, r, 0, MPI_COMM_WORLD));
    }
    if (code == MPI_SUCCESS && persistent) code = MPI_Start(&requests[0]);
    if (code == MPI_SUCCESS) {
        CHECK(requests[0] != MPI_REQUEST_NULL && handled == 0);
        if (together) {
            /* A message of the program's own beside it is received. */
            OK(MPI_Irecv(&got, 1, MPI_INT, me, 7, MPI_COMM_WORLD, &requests[1]));
            OK(MPI_Send(&token, 1, MPI_INT, me, 7, MPI_COMM_WORLD));
            code = MPI_Waitall(2, requests, statuses);
            CHECK(code == MPI_ERR_IN_STATUS && requests[1] == MPI_REQUEST_NULL && got == me);
            CHECK(statuses[0].MPI_ERROR != MPI_SUCCESS && statuses[1].MPI_ERROR == MPI_SUCCESS);
        } else {
            code = MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        }
        if (persistent) OK(MPI_Request_free(&requests[0]));
    }
    CHECK(code != MPI_SUCCESS && handled == 1 && class != MPI_SUCCESS);
    CHECK(requests[0] == MPI_REQUEST_NULL);
    OK(MPI_Errhandler_free(&handler));
}

int main(int count, char **words) {
    begun_with(&count, &words);
    if (count > 1) {
        for (int way = 0; way < 4; way++) runs_fail(way / 2, way % 2);
    } else {
        /* The MPIs do not keep what they need themselves. */
        if (!theirs) operations_outlast(MPI_COMM_WORLD);
        if (MPI_VERSION < 4) large_counts_leave_nothing();
    }
    if (me == 0) printf("lasting: %d ranks, all right\n", p);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
