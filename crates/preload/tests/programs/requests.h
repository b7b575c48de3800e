/* What the programs with requests share. The first thing that is not so ends the job. */
#ifndef REQUESTS_H
#define REQUESTS_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLLECTIVES = 10 };

static int me, p;
/* Whether collectives that give a request are the MPI's own: on one rank, and where we are switched off. */
static int theirs;

/* The first thing that is not so. */
static void failed(int line, const char *fact) {
    fprintf(stderr, "rank %d of %d, line %d: not so: %s\n", me, p, line, fact);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

#define CHECK(fact) ((fact) ? (void)0 : failed(__LINE__, #fact))
#define OK(call) CHECK((call) == MPI_SUCCESS)

/* Open MPI 4.1 has the persistent ones under names of its own; 5.0 has MPI's, though it is no MPI 4. */
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define INIT(name) MPIX_##name##_init
#else
#define INIT(name) MPI_##name##_init
#endif

/* Completes requests, null ones among them, in the n-th way. Persistent ones stay. */
static inline void completed(MPI_Request *requests, int count, int way) {
    int flag = 0, index, done, left = 0, indices[64];
    MPI_Status statuses[64];
    for (int i = 0; i < count; i++) left += requests[i] != MPI_REQUEST_NULL;
    /* MPICH 5 takes its own persistent collectives for failed in MPI_Testall. */
    if (theirs && count == COLLECTIVES && way % 8 == 5) way = 0;
    switch (way % 8) {
    case 0: OK(MPI_Waitall(count, requests, MPI_STATUSES_IGNORE)); break;
    case 1:
        for (int i = 0; i < count; i++) OK(MPI_Wait(&requests[i], &statuses[i]));
        break;
    case 2:
        for (int i = count - 1; i >= 0; i--)
            for (flag = 0; !flag;) OK(MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE));
        break;
    case 3:
        for (; left > 0; left--) {
            OK(MPI_Waitany(count, requests, &index, &statuses[0]));
            CHECK(index >= 0 && index < count);
        }
        break;
    case 4:
        while (left > 0) {
            OK(MPI_Waitsome(count, requests, &done, indices, statuses));
            CHECK(done > 0 && done <= left);
            left -= done;
        }
        break;
    case 5:
        while (!flag) OK(MPI_Testall(count, requests, &flag, statuses));
        break;
    case 6:
        while (left > 0) {
            OK(MPI_Testany(count, requests, &index, &flag, MPI_STATUS_IGNORE));
            if (flag) CHECK(index >= 0 && index < count);
            left -= flag;
        }
        break;
    case 7:
        while (left > 0) {
            OK(MPI_Testsome(count, requests, &done, indices, MPI_STATUSES_IGNORE));
            CHECK(done >= 0 && done <= left);
            left -= done;
        }
        break;
    }
    /* Nothing is active any more. */
    OK(MPI_Waitany(count, requests, &index, &statuses[0]));
    CHECK(index == MPI_UNDEFINED);
    OK(MPI_Testsome(count, requests, &done, indices, statuses));
    CHECK(done == MPI_UNDEFINED);
    if (!theirs || requests[0] == MPI_REQUEST_NULL) {
        OK(MPI_Testall(count, requests, &flag, MPI_STATUSES_IGNORE));
        CHECK(flag);
    }
}

static inline long pages(void) {
    long size, resident;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld %ld", &size, &resident) == 2);
    fclose(file);
    return resident;
}

/* The level of threads that MPI provides: with ONE_THREAD set, one that has no locks. */
static int begun_with(int *count, char ***words) {
    int provided;
    MPI_Init_thread(count, words, getenv("ONE_THREAD") ? MPI_THREAD_FUNNELED : MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &me);
    MPI_Comm_size(MPI_COMM_WORLD, &p);
    const char *switched = getenv("ALLHANDS");
    /* Who starts us may know that nothing would move requests on. */
    theirs = p == 1 || getenv("THEIRS") || (switched && !strcmp(switched, "off"));
    return provided;
}

#endif
