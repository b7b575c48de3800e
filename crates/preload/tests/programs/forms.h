/* A collective in its three forms. `RUNS`: how often one that is prepared runs. */
#ifndef FORMS_H
#define FORMS_H

#include <mpi.h>

/* Open MPI 4.1 has the persistent ones under names of its own. */
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5
#include <mpi-ext.h>
#define INIT(name) MPIX_##name##_init
#else
#define INIT(name) MPI_##name##_init
#endif

enum { BLOCKING, BEGUN, PREPARED, FORMS };

/* A call in one of its forms, completed. */
#define RUN(form, name, lower, ...)                                                                \
    do {                                                                                           \
        MPI_Request request_;                                                                      \
        if ((form) == BLOCKING) MPI_##name(__VA_ARGS__);                                           \
        else if ((form) == BEGUN) {                                                                \
            MPI_I##lower(__VA_ARGS__, &request_);                                                  \
            MPI_Wait(&request_, MPI_STATUS_IGNORE);                                                \
        } else {                                                                                   \
            INIT(name)(__VA_ARGS__, MPI_INFO_NULL, &request_);                                     \
            for (int run_ = 0; run_ < RUNS; run_++) {                                                 \
                MPI_Start(&request_);                                                              \
                MPI_Wait(&request_, MPI_STATUS_IGNORE);                                            \
            }                                                                                      \
            MPI_Request_free(&request_);                                                           \
        }                                                                                          \
    } while (0)

#endif
