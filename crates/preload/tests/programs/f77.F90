! Fortran by `mpif.h`.
#include "handles.inc"
program f77
  implicit none
  include 'mpif.h'
#ifdef OPEN_MPI_4
  include 'mpif-ext.h'
#endif
  external :: add, after
#include "fortran.inc"
#include "requests.inc"
end program

#include "operations.inc"
