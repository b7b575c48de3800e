/* Many communicators, each with a first collective: what one costs in time and in address space, and that many can live at once.
 *
 *     communicators [how many] [alive]
 *
 * Duplicates of the world and halves of it by turns, each with a sum of eight bytes; freed at once, or kept alive to the end, when all of
 * them are used once more. In the end some that are made in other ways, from one another, and used in another order than they were made. */
#include <unistd.h>

#include "check.h"

#ifdef OPEN_MPI
#define FREED_COMMUNICATORS_CRASH 1
#else
#define FREED_COMMUNICATORS_CRASH 0
#endif

/* Bytes of address space that this process has. */
static long mapped(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%ld", &pages) != 1) pages = 0;
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static void sum_on(MPI_Comm comm, int number) {
    int me, n;
    double one, all = -1, wanted;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    one = me + number;
    wanted = n * (n - 1) / 2.0 + (double)n * number;
    MPI_Allreduce(&one, &all, 1, MPI_DOUBLE, MPI_SUM, comm);
    CHECK(all == wanted, "communicator %d: the sum is %g, not %g", number, all, wanted);
}

/* Sums on communicators of which ranks must know alike which one is meant, whatever made it, and whatever had its handle before. */
static void related(void) {
    int me, n, sizes[2] = {1, 0}, periods[2] = {0, 0}, kept[2] = {0, 1}, some[1] = {0};
    MPI_Comm first, grouped, copy, half, begun, one, other, part, after, grid, line;
    MPI_Group all, low;
    MPI_Request request;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    /* By a call that is not collective over the world, perhaps with a handle that was freed just now. */
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    sum_on(first, 1);
    MPI_Comm_free(&first);
    MPI_Comm_create_group(MPI_COMM_WORLD, all, 7, &grouped);
    sum_on(grouped, 2);
    MPI_Comm_dup(grouped, &copy);
    MPI_Comm_split(copy, me % 2, -me, &half);
    sum_on(half, 3);
    sum_on(copy, 4);
    MPI_Comm_idup(MPI_COMM_WORLD, &begun, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_free(&copy);
    MPI_Comm_dup(begun, &copy);
    sum_on(copy, 5);
    sum_on(begun, 6);
    MPI_Comm_free(&half);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&begun);
    MPI_Comm_free(&grouped);
    /* Siblings, and their children, of which the later one is used first; halves come to them at different times. */
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
    MPI_Comm_dup(half, &one);
    MPI_Comm_dup(half, &other);
    if (me % 2) sum_on(half, 7);
    sum_on(other, 8 + me % 2);
    sum_on(one, 10 + me % 2);
    if (!(me % 2)) sum_on(half, 12);
    MPI_Comm_free(&one);
    MPI_Comm_dup(half, &one);
    sum_on(one, 13);
    sum_on(other, 14);
    MPI_Comm_free(&half);
    MPI_Comm_free(&one);
    MPI_Comm_free(&other);
    /* Some ranks get none, and all count it. */
    MPI_Group_incl(all, 1, some, &low);
    MPI_Comm_create(MPI_COMM_WORLD, low, &part);
    MPI_Comm_split(MPI_COMM_WORLD, me == 0 ? MPI_UNDEFINED : 1, -me, &after);
    if (after != MPI_COMM_NULL) sum_on(after, 15), MPI_Comm_free(&after);
    MPI_Comm_dup(MPI_COMM_WORLD, &after);
    sum_on(after, 16);
    if (part != MPI_COMM_NULL) sum_on(part, 17), MPI_Comm_free(&part);
    MPI_Comm_free(&after);
    sizes[1] = n;
    MPI_Cart_create(MPI_COMM_WORLD, 2, sizes, periods, 1, &grid);
    MPI_Cart_sub(grid, kept, &line);
    sum_on(line, 18);
    sum_on(grid, 19);
    MPI_Comm_free(&line);
    MPI_Comm_free(&grid);
    MPI_Group_free(&low);
    MPI_Group_free(&all);
}

/* A new communicator may begin with what one of the same ranks has left, and the ranks may have it from different ones, or not at all: what
 * is called on it, how often, how many are alive at once, who is where in it, and which threads of life came before must not matter. */
static void inherited(int turns) {
    int me, n;
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    for (int i = 0; i < turns; i++) {
        MPI_Comm one, other, half, turned;
        MPI_Request request;
        double mine[3] = {me, me + 1, me + 2}, all[3], *every = filled(n * sizeof *every);
        int size, rank;
        MPI_Comm_dup(MPI_COMM_WORLD, &one);
        sum_on(one, i);
        /* The same call, another one, or none at all on what comes next; alive together with the first or after it. */
        if (i % 2) MPI_Comm_free(&one);
        MPI_Comm_dup(MPI_COMM_WORLD, &other);
        for (int more = 0; more < i % 4; more++) sum_on(other, i + more);
        if (i % 3 == 0) {
            MPI_Allreduce(mine, all, 3, MPI_DOUBLE, MPI_MAX, other);
            CHECK(all[0] == n - 1 && all[2] == n + 1, "turn %d: the greatest are %g and %g", i, all[0], all[2]);
        }
        if (i % 5 == 0) {
            MPI_Allgather(mine, 1, MPI_DOUBLE, every, 1, MPI_DOUBLE, other);
            for (int r = 0; r < n; r++) CHECK(every[r] == r, "turn %d: rank %d has %g", i, r, every[r]);
        }
        if (i % 7 == 0) {
            /* Open MPI 5 itself crashes where a communicator with requests under way is freed. */
            MPI_Iallreduce(mine, all, 3, MPI_DOUBLE, MPI_SUM, other, &request);
            if (i % 2 || FREED_COMMUNICATORS_CRASH) MPI_Wait(&request, MPI_STATUS_IGNORE);
            MPI_Comm_free(&other);
            if (request != MPI_REQUEST_NULL) MPI_Wait(&request, MPI_STATUS_IGNORE);
            CHECK(all[0] == n * (n - 1) / 2.0, "turn %d: the sum is %g", i, all[0]);
        } else MPI_Comm_free(&other);
        /* As many ranks, but others, or in another order. */
        MPI_Comm_split(MPI_COMM_WORLD, (me + i) % 2, i % 3 ? me : -me, &half);
        sum_on(half, i);
        MPI_Comm_size(half, &size);
        MPI_Comm_rank(half, &rank);
        MPI_Comm_split(MPI_COMM_WORLD, 0, i % 2 ? -me : (me + i) % n, &turned);
        sum_on(turned, i);
        every[0] = rank;
        MPI_Bcast(every, 1, MPI_DOUBLE, size - 1, half);
        CHECK(every[0] == size - 1, "turn %d: %g came from the last of %d", i, every[0], size);
        MPI_Comm_free(&half);
        MPI_Comm_free(&turned);
        if (i % 2 == 0) {
            sum_on(one, 2 * i);
            MPI_Comm_free(&one);
        }
        free(every);
    }
}

int main(int count, char **words) {
    int me, how_many = count > 1 ? atoi(words[1]) : 200, alive = count > 2;
    long before, most = 0;
    double began, took, slowest;
    MPI_Comm *comms;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    comms = filled(how_many * sizeof *comms);
    sum_on(MPI_COMM_WORLD, 0);
    before = mapped();
    began = MPI_Wtime();
    for (int i = 0; i < how_many; i++) {
        if (i % 2)
            MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &comms[i]);
        else
            MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
        sum_on(comms[i], i);
        if (!alive) MPI_Comm_free(&comms[i]);
    }
    took = MPI_Wtime() - began;
    most = mapped() - before;
    if (alive)
        for (int i = how_many - 1; i >= 0; i--) {
            sum_on(comms[i], 2 * i);
            MPI_Comm_free(&comms[i]);
        }
    related();
    inherited(60);
    MPI_Reduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (me == 0)
        printf("%d communicators in %.3f s, %.1f KiB of address space each\n", how_many, slowest,
               most / 1024.0 / how_many);
    free(comms);
    return verdict("communicators");
}
