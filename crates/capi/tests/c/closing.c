/* A library that is opened by a plugin, has plans, and is closed before MPI ends: MPI calls it at the end all the same. Run by
 * `cargo xtask capi`. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct allhands_plan allhands_plan;
typedef int init_function(MPI_Comm, const char *, allhands_plan **);
typedef int run_function(allhands_plan *);

static void *library;

static void found(const char *name, void *function) {
    void *address = dlsym(library, name);
    if (!address) {
        fprintf(stderr, "no %s: %s\n", name, dlerror());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memcpy(function, &address, sizeof address);
}

int main(int count, char **words) {
    int rank, size;
    init_function *init;
    run_function *run;
    allhands_plan *plan;
    MPI_Comm comm;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    library = dlopen("liballhands.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    found("allhands_barrier_init", &init);
    found("allhands_run", &run);
    if (init(comm, NULL, &plan) || run(plan)) MPI_Abort(MPI_COMM_WORLD, 2);
    dlclose(library);
    /* Freeing a communicator and finalising call functions of the library. */
    MPI_Comm_free(&comm);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) printf("closed before MPI ended, on %d ranks\n", size);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
