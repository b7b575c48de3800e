! Fortran by `use mpi_f08`.
#define COMM type(MPI_Comm)
#define DATATYPE type(MPI_Datatype)
#define ERRHANDLER type(MPI_Errhandler)
#define GROUP type(MPI_Group)
#define MESSAGE type(MPI_Message)
#define OPERATION type(MPI_Op)
#define REQUEST type(MPI_Request)
#define STATUSES(name, length) type(MPI_Status) :: name(length)
#define SOURCE(status, i) status(i)%MPI_SOURCE
#define TAG(status, i) status(i)%MPI_TAG
#define ONE(status) status(1)
module operations
  implicit none
contains
  subroutine add(left, right, count, datatype)
    use, intrinsic :: iso_c_binding
    use mpi_f08
    type(c_ptr), value :: left, right
    integer :: count
    type(MPI_Datatype) :: datatype
    integer, pointer :: from(:), into(:)
    call c_f_pointer(left, from, [2 * count])
    call c_f_pointer(right, into, [2 * count])
    into = into + from
  end subroutine

  ! Maps x -> a x + b, one after the other: does not commute.
  subroutine after(left, right, count, datatype)
    use, intrinsic :: iso_c_binding
    use mpi_f08
    type(c_ptr), value :: left, right
    integer :: count
    type(MPI_Datatype) :: datatype
    integer, pointer :: from(:, :), into(:, :)
    call c_f_pointer(left, from, [2, count])
    call c_f_pointer(right, into, [2, count])
    into(2, :) = into(1, :) * from(2, :) + into(2, :)
    into(1, :) = into(1, :) * from(1, :)
  end subroutine
end module

program f08
  use mpi_f08
#ifdef OPEN_MPI_4
  use mpi_f08_ext
#endif
  use operations
  implicit none
#include "fortran.inc"
#include "requests.inc"
end program
