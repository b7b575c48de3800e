/* Many communicators, each with a first collective: what one costs in time and in address space, and that many can live at once.
 *
 *     communicators [how many] [alive]
 *
 * Duplicates of the world and halves of it by turns, each with a sum of eight bytes; freed at once, or kept alive to the end, when all of
 * them are used once more. */
#include <unistd.h>

#include "check.h"

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
    MPI_Reduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (me == 0)
        printf("%d communicators in %.3f s, %.1f KiB of address space each\n", how_many, slowest,
               most / 1024.0 / how_many);
    free(comms);
    return verdict("communicators");
}
