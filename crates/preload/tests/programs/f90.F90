! Fortran by `use mpi`.
#include "handles.inc"
program f90
  use mpi
#ifdef OPEN_MPI_4
  use mpi_ext
#endif
  implicit none
  external :: add, after
#include "fortran.inc"
#include "requests.inc"
end program

#include "operations.inc"
