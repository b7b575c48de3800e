/* What an MPI does wrong by itself, with the version that it was seen on: scripts keep off it, so that what fails is ours. */
#ifndef FAULTS_H
#define FAULTS_H

#if defined OPEN_MPI
#define ON_OPEN_MPI 1
#else
#define ON_OPEN_MPI 0
#endif
#if defined I_MPI_VERSION
#define ON_INTEL 1
#else
#define ON_INTEL 0
#endif
#if defined MPICH_VERSION && !ON_INTEL
#define ON_MPICH 1
#else
#define ON_MPICH 0
#endif

/* MPICH 5.0.2 takes its own persistent collectives for failed in MPI_Testall. */
#define TESTALL_REFUSES_PERSISTENT (ON_MPICH || ON_INTEL)

/* MPICH 5.0.2: after MPI_Request_get_status has found a persistent receive complete, MPI_Wait gives an empty status. */
#define STATUS_IS_LOST_AFTER_LOOKING (ON_MPICH || ON_INTEL)

/* Open MPI 5.0.11: MPI_Ialltoallw of 120 KiB in place never ends. */
#define IALLTOALLW_IN_PLACE_HANGS ON_OPEN_MPI

/* Open MPI 5.0.11: MPI_Ialltoallv of 10 KiB in place, and the persistent one, give some blocks of another rank's. */
#define IALLTOALLV_IN_PLACE_IS_WRONG ON_OPEN_MPI

/* MPICH 5.0.2 refuses null as the first rank's receive buffer in MPI_Exscan, where it means nothing. */
#define EXSCAN_WANTS_MEMORY_FOR_NOTHING (ON_MPICH || ON_INTEL)

/* Intel MPI 2021.18: the second run of a persistent allgather leaves its buffer as it was if the elements have gaps. */
#define PERSISTENT_GAPS_ARE_FORGOTTEN ON_INTEL

/* Intel MPI 2021.18: the second run of a persistent gather or scatter fails, or leaves its buffer as it was. */
#define PERSISTENT_GATHERS_RUN_ONCE ON_INTEL

/* Intel MPI 2021.18: MPI_Ialltoallw of 6 KiB in place gives wrong blocks if the elements have gaps. */
#define IALLTOALLW_IN_PLACE_FORGETS_GAPS ON_INTEL

/* Intel MPI 2021.18: a rank that only calls MPI_Request_get_status does not always move its persistent collectives on. */
#define LOOKING_MOVES_NOTHING ON_INTEL

/* Intel MPI 2021.18: MPI_Iallgatherv of 140 KiB with empty blocks stands still for seconds on ranks that call MPI_Test or MPI_Iprobe over and over. */
#define IALLGATHERV_STANDS_STILL ON_INTEL

/* MPICH 5.0.2: threads that use files at the same time wait for ever, each for other ranks with the lock that the other needs. */
#define FILES_OF_THREADS_HANG ON_MPICH

/* MPICH 5.0.2: MPI_Win_start waits without the progress engine, so that collectives that were begun, its own as well, stand still. */
#define STARTING_MOVES_NOTHING ON_MPICH

/* Open MPI 5.0.11: two threads that make windows at the same time crash while it looks for what serves them (osc/ucx). */
#define WINDOWS_OF_THREADS_CRASH ON_OPEN_MPI

/* Open MPI 5.0.11: a collective of its own that was begun crashes if its communicator is freed before it has sent everything. */
#define FREED_COMMUNICATORS_CRASH ON_OPEN_MPI

/* Intel MPI 2021.18: a collective on a duplicated intercommunicator hangs if one group has made more communicators than the other. */
#define DUPLICATED_INTERCOMMUNICATORS_HANG ON_INTEL

/* Open MPI 5.0.11: what MPI_Comm_create_group and MPI_Dist_graph_create_adjacent make from a grid or a graph is said to be one, too, and crashes
 * when asked who is a neighbour. */
#define GRIDS_AND_GRAPHS_ARE_INHERITED ON_OPEN_MPI

/* Open MPI 5.0.11: MPI_Dist_graph_create that may order ranks anew, from a communicator of some of them, ends the job: "Not enough
 * slots/constraints (1) for the communication matrix order (2)!" (topo/treematch). */
#define REORDERED_GRAPHS_END_THE_JOB ON_OPEN_MPI

#endif
