/* Collectives whose number and times are known: the report of a job is held to what this program prints.
 *
 *   counted counts   every collective, so many times on three communicators and more; prints `count NAME RANKS CALLS`, of all ranks
 *                    together, `seconds` of a rank in blocking collectives, the mean of all ranks, and `waited RANK SECONDS` in those of
 *                    the world that nobody leaves before all have come
 *   counted turns    allreduces of 512 bytes to which the last rank comes late; prints `ours` and `mpi`, the seconds that all of them
 *                    would take by those at every turn of one and of the other, the mean of all ranks
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static int rank, ranks;
/* Seconds in blocking collectives, and in those of the world that nobody leaves before all have come. */
static double spent[2];

static void late(long microseconds) {
    struct timespec pause = {0, microseconds * 1000};
    nanosleep(&pause, NULL);
}

static void told(const char *name, int size, int calls) {
    if (rank == 0)
        printf("count %s %d %d\n", name, size, calls * ranks);
}

#define TIMED(call, waits)                                                                                             \
    do {                                                                                                               \
        double began = MPI_Wtime();                                                                                    \
        call;                                                                                                          \
        double took = MPI_Wtime() - began;                                                                             \
        spent[0] += took;                                                                                              \
        spent[1] += (waits) ? took : 0;                                                                                \
    } while (0)

/* Every blocking collective, so many times. */
static void blocking(MPI_Comm comm, int times) {
    enum { MOST = 64 };
    int send[MOST], receive[MOST], counts[8], places[8], bytes[8], size, me;
    MPI_Datatype types[8];
    memset(send, 0, sizeof send);
    MPI_Comm_size(comm, &size);
    MPI_Comm_rank(comm, &me);
    int world = comm == MPI_COMM_WORLD;
    for (int i = 0; i < 8; i++) {
        counts[i] = 2, places[i] = 2 * i, bytes[i] = 2 * i * (int)sizeof(int), types[i] = MPI_INT;
    }
    for (int i = 0; i < times; i++) {
        TIMED(MPI_Barrier(comm), world);
        TIMED(MPI_Bcast(send, 2, MPI_INT, 0, comm), 0);
        TIMED(MPI_Allgather(send, 2, MPI_INT, receive, 2, MPI_INT, comm), world);
        TIMED(MPI_Allgatherv(send, 2, MPI_INT, receive, counts, places, MPI_INT, comm), world);
        TIMED(MPI_Alltoall(send, 2, MPI_INT, receive, 2, MPI_INT, comm), world);
        TIMED(MPI_Alltoallv(send, counts, places, MPI_INT, receive, counts, places, MPI_INT, comm), world);
        TIMED(MPI_Alltoallw(send, counts, bytes, types, receive, counts, bytes, types, comm), world);
        TIMED(MPI_Allreduce(send, receive, 2, MPI_INT, MPI_SUM, comm), world);
        TIMED(MPI_Reduce(send, receive, 2, MPI_INT, MPI_SUM, 0, comm), 0);
        TIMED(MPI_Reduce_scatter_block(send, receive, 2, MPI_INT, MPI_SUM, comm), world);
        TIMED(MPI_Reduce_scatter(send, receive, counts, MPI_INT, MPI_SUM, comm), world);
        TIMED(MPI_Gather(send, 2, MPI_INT, receive, 2, MPI_INT, 0, comm), 0);
        TIMED(MPI_Gatherv(send, 2, MPI_INT, receive, counts, places, MPI_INT, 0, comm), 0);
        TIMED(MPI_Scatter(send, 2, MPI_INT, receive, 2, MPI_INT, 0, comm), 0);
        TIMED(MPI_Scatterv(send, counts, places, MPI_INT, receive, 2, MPI_INT, 0, comm), 0);
        TIMED(MPI_Scan(send, receive, 2, MPI_INT, MPI_SUM, comm), 0);
        TIMED(MPI_Exscan(send, receive, 2, MPI_INT, MPI_SUM, comm), 0);
    }
    static const char *names[] = {"barrier", "bcast", "allgather", "allgatherv", "alltoall", "alltoallv", "alltoallw",
        "allreduce", "reduce", "reduce_scatter_block", "reduce_scatter", "gather", "gatherv", "scatter", "scatterv",
        "scan", "exscan"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        told(names[i], size, times);
}

/* Of several sizes, which are several rows of the report; the last rank comes late. */
static void sizes(void) {
    static double send[512], receive[512];
    for (int i = 0; i < 30; i++) {
        if (rank == ranks - 1)
            late(2000);
        TIMED(MPI_Allreduce(send, receive, 1 << i % 10, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD), 1);
    }
    told("allreduce", ranks, 30);
}

static void requests(void) {
    int send = 1, receive = 0;
    MPI_Request request;
    for (int i = 0; i < 4; i++) {
        MPI_Iallreduce(&send, &receive, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Ibarrier(MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    told("iallreduce", ranks, 4);
    told("ibarrier", ranks, 4);
#if MPI_VERSION >= 4
    TIMED(MPI_Allreduce_init(&send, &receive, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request), 0);
    for (int i = 0; i < 6; i++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
    told("allreduce_init", ranks, 1);
    told("allreduce_start", ranks, 6);
    for (int i = 0; i < 2; i++)
        TIMED(MPI_Allreduce_c(&send, &receive, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD), 1);
    told("allreduce", ranks, 2);
#endif
}

static void neighbors(void) {
    int size[1] = {ranks}, periodic[1] = {1}, send = rank, receive[2];
    MPI_Comm ring;
    MPI_Cart_create(MPI_COMM_WORLD, 1, size, periodic, 0, &ring);
    for (int i = 0; i < 3; i++)
        TIMED(MPI_Neighbor_allgather(&send, 1, MPI_INT, receive, 1, MPI_INT, ring), 0);
    told("neighbor_allgather", ranks, 3);
    MPI_Comm_free(&ring);
}

static void between(MPI_Comm half) {
    MPI_Comm both;
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank < ranks / 2 ? ranks / 2 : 0, 0, &both);
    for (int i = 0; i < 2; i++)
        TIMED(MPI_Barrier(both), 0);
    told("barrier", ranks / 2, 2);
    MPI_Comm_free(&both);
}

static void point_to_point(void) {
    int mine = rank, other, next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    if (rank == ranks - 1)
        late(20000);
    MPI_Sendrecv(&mine, 1, MPI_INT, next, 0, &other, 1, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void turns(void) {
    enum { CALLS = 42 };
    static double send[64], receive[64];
    double sums[2] = {0, 0}, all[2];
    int counts[2] = {0, 0};
    for (int i = 0; i < CALLS; i++) {
        if (rank == ranks - 1)
            late(2000);
        double began = MPI_Wtime();
        MPI_Allreduce(send, receive, 64, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        double took = MPI_Wtime() - began;
        int theirs = i % 4 == 1 || i % 4 == 2;
        if (i >= 2)
            sums[theirs] += took, counts[theirs]++;
    }
    for (int side = 0; side < 2; side++)
        sums[side] *= (double)CALLS / counts[side] / ranks;
    MPI_Reduce(sums, all, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("ours %.9f\nmpi %.9f\n", all[0], all[1]);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 1 && strcmp(argv[1], "turns") == 0) {
        turns();
    } else {
        MPI_Comm half;
        MPI_Comm_split(MPI_COMM_WORLD, rank / (ranks / 2), rank, &half);
        blocking(MPI_COMM_WORLD, 3);
        blocking(half, 5);
        blocking(MPI_COMM_SELF, 2);
        sizes();
        requests();
        neighbors();
        between(half);
        point_to_point();
        MPI_Comm_free(&half);
        /* By messages: a collective would be one more. */
        if (rank > 0)
            MPI_Send(spent, 2, MPI_DOUBLE, 0, 1, MPI_COMM_WORLD);
        double all = spent[0], of[2] = {spent[0], spent[1]};
        for (int other = 0; rank == 0 && other < ranks; other++) {
            if (other > 0) {
                MPI_Recv(of, 2, MPI_DOUBLE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                all += of[0];
            }
            printf("waited %d %.9f\n", other, of[1]);
        }
        if (rank == 0)
            printf("seconds %.9f\n", all / ranks);
    }
    if (rank == 0)
        printf("done\n");
    MPI_Finalize();
    return 0;
}
