/* allhands.h: collective communication that knows where ranks sit, planned once and run many times, on any MPI communicator.
 *
 *     allhands_plan *plan;
 *     allhands_allreduce_init(x, y, n, MPI_DOUBLE, MPI_SUM, comm, NULL, &plan);
 *     for (...) allhands_run(plan);       (or allhands_start, something else, allhands_wait)
 *     allhands_free(&plan);
 *
 * Compiled against the mpi.h of the program; the library itself works with every MPI. Build with `pkg-config --cflags --libs allhands`.
 * Functions return ALLHANDS_SUCCESS or another allhands_code; allhands_last_error() is the sentence behind the last one. MPI's error
 * handlers are not called. A program that is linked with the library keeps the collectives of its MPI.
 *
 * Made by `cargo xtask header`: change crates/capi/src instead. */

#ifndef ALLHANDS_H
#define ALLHANDS_H

#include <stdint.h>
#include <mpi.h>

/**
 * The version of the C interface, which is in the name of the library that programs ask for (`liballhands.so.1`). It changes when
 * a program that was built before would no longer run.
 */
#define ALLHANDS_ABI_VERSION 1

/**
 * What functions return. `allhands_last_error` has the full sentence.
 */
typedef enum {
  /**
   * It is done.
   */
  ALLHANDS_SUCCESS = 0,
  /**
   * An argument that means nothing: a null pointer, a negative count, a root that is no rank.
   */
  ALLHANDS_ERR_ARGUMENT = 1,
  /**
   * No plan: a null pointer, or a plan that was freed.
   */
  ALLHANDS_ERR_PLAN = 2,
  /**
   * No communicator, or one between two groups.
   */
  ALLHANDS_ERR_COMM = 3,
  /**
   * No datatype.
   */
  ALLHANDS_ERR_TYPE = 4,
  /**
   * No operation, or none that is served for the datatype.
   */
  ALLHANDS_ERR_OP = 5,
  /**
   * No such algorithm, or one that cannot serve what is asked for.
   */
  ALLHANDS_ERR_ALGORITHM = 6,
  /**
   * Something that is not served here.
   */
  ALLHANDS_ERR_UNSUPPORTED = 7,
  /**
   * A run of the plan is under way.
   */
  ALLHANDS_ERR_ACTIVE = 8,
  /**
   * MPI is not initialised, or there is none.
   */
  ALLHANDS_ERR_NOT_INITIALIZED = 9,
  /**
   * MPI was finalised.
   */
  ALLHANDS_ERR_FINALIZED = 10,
  /**
   * Ranks ask for different things in the same place.
   */
  ALLHANDS_ERR_MISMATCH = 11,
  /**
   * Another rank has failed, ended, or keeps this one waiting too long.
   */
  ALLHANDS_ERR_RANK = 12,
  /**
   * MPI says that something is wrong.
   */
  ALLHANDS_ERR_MPI = 13,
  /**
   * The system has no memory to share, or no thread.
   */
  ALLHANDS_ERR_SYSTEM = 14,
  /**
   * A fault of this library.
   */
  ALLHANDS_ERR_INTERNAL = 15,
} allhands_code;

/**
 * A collective on a communicator and on buffers: made once by a function that ends in `_init`, run as often as one likes, freed by
 * `allhands_free` or, at the latest, by `MPI_Finalize`.
 *
 * A plan is used by one thread at a time. Threads may use different plans at once if MPI was initialised with
 * `MPI_THREAD_MULTIPLE`.
 */
typedef struct allhands_plan allhands_plan;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * Makes a plan for an allgather: every rank gets the blocks of all, in the order of ranks.
 *
 * The arguments are those of `MPI_Allgather_init`, with an algorithm in place of the info; so it is with all functions that end in
 * `_init`. `options` is NULL, and the library chooses, or the name of an algorithm with its parameters, such as
 * "loc-bruck:fan=full" (`allhands list` prints them all; "mpi" is the MPI's own); one that cannot serve is an error. The send
 * buffer may be `MPI_IN_PLACE` where MPI allows it. Buffers must stay until the plan is freed; communicator and datatypes may be
 * freed before.
 *
 * Making a plan is collective: all ranks of the communicator make their plans in the same order with matching arguments, and the first
 * one on a communicator takes longer. Runs that are under way do not move on meanwhile. A rank that gets an error here has no plan
 * (`*plan` is NULL), and the others cannot run theirs.
 *
 * Limits: a block, or the vector of a reduction, has at most 1 GiB; no intercommunicators; reductions of MPI's own datatypes.
 *
 * Errors: `ALLHANDS_ERR_ARGUMENT`, `ALLHANDS_ERR_COMM`, `ALLHANDS_ERR_TYPE`, `ALLHANDS_ERR_OP`, `ALLHANDS_ERR_ALGORITHM`,
 * `ALLHANDS_ERR_UNSUPPORTED`, `ALLHANDS_ERR_NOT_INITIALIZED`, `ALLHANDS_ERR_FINALIZED`, `ALLHANDS_ERR_MISMATCH`, `ALLHANDS_ERR_RANK`,
 * `ALLHANDS_ERR_MPI`, `ALLHANDS_ERR_SYSTEM`.
 */
int allhands_allgather_init(const void *sendbuf,
                            int64_t sendcount,
                            MPI_Datatype sendtype,
                            void *recvbuf,
                            int64_t recvcount,
                            MPI_Datatype recvtype,
                            MPI_Comm comm,
                            const char *options,
                            allhands_plan **plan);

/**
 * Makes a plan for an allgather of blocks that differ in size: as `MPI_Allgatherv_init`, with arrays of 64-bit numbers, which are read
 * at once. All ranks pass the same counts. Otherwise as `allhands_allgather_init`.
 */
int allhands_allgatherv_init(const void *sendbuf,
                             int64_t sendcount,
                             MPI_Datatype sendtype,
                             void *recvbuf,
                             const int64_t *recvcounts,
                             const int64_t *displs,
                             MPI_Datatype recvtype,
                             MPI_Comm comm,
                             const char *options,
                             allhands_plan **plan);

/**
 * Makes a plan for an alltoall: every rank has a block for each rank. As `MPI_Alltoall_init`; otherwise as `allhands_allgather_init`.
 */
int allhands_alltoall_init(const void *sendbuf,
                           int64_t sendcount,
                           MPI_Datatype sendtype,
                           void *recvbuf,
                           int64_t recvcount,
                           MPI_Datatype recvtype,
                           MPI_Comm comm,
                           const char *options,
                           allhands_plan **plan);

/**
 * Makes a plan for an alltoall of blocks that differ in size: as `MPI_Alltoallv_init`, with arrays of 64-bit numbers, which are read at
 * once. Ranks tell each other their counts here; runs do not. Otherwise as `allhands_allgather_init`.
 */
int allhands_alltoallv_init(const void *sendbuf,
                            const int64_t *sendcounts,
                            const int64_t *sdispls,
                            MPI_Datatype sendtype,
                            void *recvbuf,
                            const int64_t *recvcounts,
                            const int64_t *rdispls,
                            MPI_Datatype recvtype,
                            MPI_Comm comm,
                            const char *options,
                            allhands_plan **plan);

/**
 * Makes a plan for an alltoall of blocks that differ in size and in datatype: as `MPI_Alltoallw_init`, with arrays of 64-bit numbers,
 * which are read at once, as are those of datatypes. Displacements are in bytes. The datatype of a block of nothing is not looked at. Ranks
 * tell each other their counts here; runs do not. Algorithms are those of an alltoallv, whose bytes these blocks are. Otherwise as
 * `allhands_allgather_init`.
 */
int allhands_alltoallw_init(const void *sendbuf,
                            const int64_t *sendcounts,
                            const int64_t *sdispls,
                            const MPI_Datatype *sendtypes,
                            void *recvbuf,
                            const int64_t *recvcounts,
                            const int64_t *rdispls,
                            const MPI_Datatype *recvtypes,
                            MPI_Comm comm,
                            const char *options,
                            allhands_plan **plan);

/**
 * Makes a plan for a gather: the root gets the blocks of all, in the order of ranks. As `MPI_Gather_init`: on other ranks the receive
 * buffer, its count and its datatype are not looked at, and only the root's send buffer may be `MPI_IN_PLACE`. Otherwise as
 * `allhands_allgather_init`.
 */
int allhands_gather_init(const void *sendbuf,
                         int64_t sendcount,
                         MPI_Datatype sendtype,
                         void *recvbuf,
                         int64_t recvcount,
                         MPI_Datatype recvtype,
                         int root,
                         MPI_Comm comm,
                         const char *options,
                         allhands_plan **plan);

/**
 * Makes a plan for a gather of blocks that differ in size: as `MPI_Gatherv_init`, with arrays of 64-bit numbers, which are read at once,
 * and only at the root. Ranks tell each other their counts here; runs do not. Otherwise as `allhands_gather_init`.
 */
int allhands_gatherv_init(const void *sendbuf,
                          int64_t sendcount,
                          MPI_Datatype sendtype,
                          void *recvbuf,
                          const int64_t *recvcounts,
                          const int64_t *displs,
                          MPI_Datatype recvtype,
                          int root,
                          MPI_Comm comm,
                          const char *options,
                          allhands_plan **plan);

/**
 * Makes a plan for a scatter: rank i gets the i-th block of the root. As `MPI_Scatter_init`: on other ranks the send buffer, its count and
 * its datatype are not looked at, and only the root's receive buffer may be `MPI_IN_PLACE`: its own block stays where it is. Otherwise as
 * `allhands_allgather_init`.
 */
int allhands_scatter_init(const void *sendbuf,
                          int64_t sendcount,
                          MPI_Datatype sendtype,
                          void *recvbuf,
                          int64_t recvcount,
                          MPI_Datatype recvtype,
                          int root,
                          MPI_Comm comm,
                          const char *options,
                          allhands_plan **plan);

/**
 * Makes a plan for a scatter of blocks that differ in size: as `MPI_Scatterv_init`, with arrays of 64-bit numbers, which are read at once,
 * and only at the root. Ranks tell each other their counts here; runs do not. Otherwise as `allhands_scatter_init`.
 */
int allhands_scatterv_init(const void *sendbuf,
                           const int64_t *sendcounts,
                           const int64_t *displs,
                           MPI_Datatype sendtype,
                           void *recvbuf,
                           int64_t recvcount,
                           MPI_Datatype recvtype,
                           int root,
                           MPI_Comm comm,
                           const char *options,
                           allhands_plan **plan);

/**
 * Makes a plan for an allreduce: every rank gets the combination of all vectors, the same bits everywhere. As `MPI_Allreduce_init`;
 * otherwise as `allhands_allgather_init`.
 */
int allhands_allreduce_init(const void *sendbuf,
                            void *recvbuf,
                            int64_t count,
                            MPI_Datatype datatype,
                            MPI_Op op,
                            MPI_Comm comm,
                            const char *options,
                            allhands_plan **plan);

/**
 * Makes a plan for a reduce_scatter: the vectors are combined, and rank i gets the i-th block, of `recvcounts[i]` elements. As
 * `MPI_Reduce_scatter_init`, with an array of 64-bit numbers, which is read at once; otherwise as `allhands_allgather_init`.
 */
int allhands_reduce_scatter_init(const void *sendbuf,
                                 void *recvbuf,
                                 const int64_t *recvcounts,
                                 MPI_Datatype datatype,
                                 MPI_Op op,
                                 MPI_Comm comm,
                                 const char *options,
                                 allhands_plan **plan);

/**
 * Makes a plan for a reduce_scatter with blocks of one size. As `MPI_Reduce_scatter_block_init`; otherwise as `allhands_allgather_init`.
 */
int allhands_reduce_scatter_block_init(const void *sendbuf,
                                       void *recvbuf,
                                       int64_t recvcount,
                                       MPI_Datatype datatype,
                                       MPI_Op op,
                                       MPI_Comm comm,
                                       const char *options,
                                       allhands_plan **plan);

/**
 * Makes a plan for a broadcast from the root. As `MPI_Bcast_init`; otherwise as `allhands_allgather_init`.
 */
int allhands_bcast_init(void *buffer,
                        int64_t count,
                        MPI_Datatype datatype,
                        int root,
                        MPI_Comm comm,
                        const char *options,
                        allhands_plan **plan);

/**
 * Makes a plan for a reduction to the root. As `MPI_Reduce_init`; otherwise as `allhands_allgather_init`.
 */
int allhands_reduce_init(const void *sendbuf,
                         void *recvbuf,
                         int64_t count,
                         MPI_Datatype datatype,
                         MPI_Op op,
                         int root,
                         MPI_Comm comm,
                         const char *options,
                         allhands_plan **plan);

/**
 * Makes a plan for a scan: rank i gets the combination of the vectors of ranks 0 to i, in this order. As `MPI_Scan_init`; otherwise as
 * `allhands_allgather_init`.
 */
int allhands_scan_init(const void *sendbuf,
                       void *recvbuf,
                       int64_t count,
                       MPI_Datatype datatype,
                       MPI_Op op,
                       MPI_Comm comm,
                       const char *options,
                       allhands_plan **plan);

/**
 * Makes a plan for an exclusive scan: rank i gets the combination of the vectors of ranks 0 to i - 1, in this order. Rank 0, before which
 * there is none, gets nothing: its receive buffer is not looked at, and in place it means nothing afterwards. As `MPI_Exscan_init`;
 * otherwise as `allhands_allgather_init`.
 */
int allhands_exscan_init(const void *sendbuf,
                         void *recvbuf,
                         int64_t count,
                         MPI_Datatype datatype,
                         MPI_Op op,
                         MPI_Comm comm,
                         const char *options,
                         allhands_plan **plan);

/**
 * Makes a plan for a barrier: no rank completes before all have started. Otherwise as `allhands_allgather_init`.
 */
int allhands_barrier_init(MPI_Comm comm, const char *options, allhands_plan **plan);

/**
 * Makes a plan for an allgather among neighbours: a rank gets the blocks of those from which it has edges, in their order. As
 * `MPI_Neighbor_allgather_init`, on a communicator with a cartesian, graph or distributed graph topology. Nobody works in place. Ranks tell
 * each other here what they need to know; runs do not. Otherwise as `allhands_allgather_init`.
 */
int allhands_neighbor_allgather_init(const void *sendbuf,
                                     int64_t sendcount,
                                     MPI_Datatype sendtype,
                                     void *recvbuf,
                                     int64_t recvcount,
                                     MPI_Datatype recvtype,
                                     MPI_Comm comm,
                                     const char *options,
                                     allhands_plan **plan);

/**
 * A plan to gather blocks of different sizes from neighbours: as `MPI_Neighbor_allgatherv_init`, with arrays of 64-bit numbers, which are read at once.
 */
int allhands_neighbor_allgatherv_init(const void *sendbuf,
                                      int64_t sendcount,
                                      MPI_Datatype sendtype,
                                      void *recvbuf,
                                      const int64_t *recvcounts,
                                      const int64_t *displs,
                                      MPI_Datatype recvtype,
                                      MPI_Comm comm,
                                      const char *options,
                                      allhands_plan **plan);

/**
 * Makes a plan for an alltoall among neighbours: a rank has a block for each of those to which it has edges, and gets one from each from which it has
 * some. As `MPI_Neighbor_alltoall_init`; otherwise as `allhands_neighbor_allgather_init`.
 */
int allhands_neighbor_alltoall_init(const void *sendbuf,
                                    int64_t sendcount,
                                    MPI_Datatype sendtype,
                                    void *recvbuf,
                                    int64_t recvcount,
                                    MPI_Datatype recvtype,
                                    MPI_Comm comm,
                                    const char *options,
                                    allhands_plan **plan);

/**
 * A plan to exchange blocks of different sizes with neighbours: as `MPI_Neighbor_alltoallv_init`, with arrays of 64-bit numbers, which are read at once.
 */
int allhands_neighbor_alltoallv_init(const void *sendbuf,
                                     const int64_t *sendcounts,
                                     const int64_t *sdispls,
                                     MPI_Datatype sendtype,
                                     void *recvbuf,
                                     const int64_t *recvcounts,
                                     const int64_t *rdispls,
                                     MPI_Datatype recvtype,
                                     MPI_Comm comm,
                                     const char *options,
                                     allhands_plan **plan);

/**
 * A plan to exchange blocks of different sizes and datatypes with neighbours: as `MPI_Neighbor_alltoallw_init`, with displacements in bytes. The datatype of a block of
 * nothing is not looked at.
 */
int allhands_neighbor_alltoallw_init(const void *sendbuf,
                                     const int64_t *sendcounts,
                                     const int64_t *sdispls,
                                     const MPI_Datatype *sendtypes,
                                     void *recvbuf,
                                     const int64_t *recvcounts,
                                     const int64_t *rdispls,
                                     const MPI_Datatype *recvtypes,
                                     MPI_Comm comm,
                                     const char *options,
                                     allhands_plan **plan);

/**
 * The version of the library, such as "0.1.0".
 */
const char *allhands_version(void);

/**
 * The version of the C interface of the library that the program runs with; `ALLHANDS_ABI_VERSION` is that of this header.
 */
int allhands_abi_version(void);

/**
 * What a code means, in a few words; never NULL.
 */
const char *allhands_error_string(int code);

/**
 * What the last function that failed in this thread has to say: the fact, and what to do about it. Empty before one has failed,
 * never NULL. The text stays until a function fails again in this thread.
 */
const char *allhands_last_error(void);

/**
 * Begins a run of the plan: reads the send buffer, writes the receive buffer. Until it is completed by `allhands_wait` or
 * `allhands_test` the program touches neither (it may read what it sends). All ranks of the communicator start the plan.
 *
 * A run moves on while the program is in a function of this library, or with `ALLHANDS_PROGRESS=thread`.
 *
 * Errors: `ALLHANDS_ERR_PLAN`, `ALLHANDS_ERR_ACTIVE` if a run of the plan is under way, `ALLHANDS_ERR_FINALIZED`,
 * `ALLHANDS_ERR_RANK` if another rank has failed, `ALLHANDS_ERR_MPI`.
 */
int allhands_start(allhands_plan *plan);

/**
 * Moves the run under way on, without waiting, and sets `*done` to 1 if it is complete, else to 0. Without a run it is complete.
 *
 * Errors: `ALLHANDS_ERR_PLAN`, `ALLHANDS_ERR_ARGUMENT` if `done` is NULL, `ALLHANDS_ERR_FINALIZED`, and what happened to the run,
 * which is then over: `ALLHANDS_ERR_MISMATCH`, `ALLHANDS_ERR_RANK`, `ALLHANDS_ERR_MPI`.
 */
int allhands_test(allhands_plan *plan,
                  int *done);

/**
 * Waits until the run under way is complete. Without one it returns at once.
 *
 * Errors: as `allhands_test`.
 */
int allhands_wait(allhands_plan *plan);

/**
 * Runs the plan from beginning to end: what `allhands_start` and `allhands_wait` do, a little faster.
 *
 * Errors: as both.
 */
int allhands_run(allhands_plan *plan);

/**
 * Frees a plan and sets `*plan` to NULL. A run that is under way is completed first. NULL in `*plan` is no error.
 *
 * All ranks of the communicator free the plan.
 *
 * Errors: `ALLHANDS_ERR_ARGUMENT` if `plan` is NULL, `ALLHANDS_ERR_PLAN` if it was freed by another name, and what happened to a
 * run under way; the plan is gone all the same.
 */
int allhands_free(allhands_plan **plan);

/**
 * Sets `*name` to the algorithm that the plan runs, with its parameters, such as "loc-bruck:fan=full"; "mpi" is the MPI's own. The
 * text stays until the plan is freed.
 *
 * Errors: `ALLHANDS_ERR_PLAN`, `ALLHANDS_ERR_ARGUMENT` if `name` is NULL, `ALLHANDS_ERR_FINALIZED`.
 */
int allhands_algorithm(const allhands_plan *plan,
                       const char **name);

/**
 * Sets `*text` to a few lines that say which algorithm the plan runs, why, and what it sends. The text stays until the plan is freed.
 *
 * Errors: as `allhands_algorithm`.
 */
int allhands_explain(const allhands_plan *plan,
                     const char **text);

/**
 * For Fortran: the communicator that is this integer there (`comm%MPI_VAL` of `mpi_f08`). C has `MPI_Comm_f2c`.
 */
MPI_Comm allhands_comm_f2c(int comm);

/**
 * For Fortran: the datatype that is this integer there.
 */
MPI_Datatype allhands_type_f2c(int datatype);

/**
 * For Fortran: as many datatypes that are integers there, as C has them in an array: for `allhands_alltoallw_init`. `handles` has a word
 * for each, of which an MPI whose handles are shorter leaves some as they are.
 */
void allhands_types_f2c(const int *datatypes,
                        int64_t number,
                        MPI_Datatype *handles);

/**
 * For Fortran: the operation that is this integer there.
 */
MPI_Op allhands_op_f2c(int op);

/**
 * For Fortran: what C calls `MPI_IN_PLACE`, to be passed for a send buffer.
 */
void *allhands_in_place(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ALLHANDS_H */

