! Fortran by `use mpi`.
program f90
  use mpi
  implicit none
  integer :: comm, op, pairs, request
  external :: add
  include 'fortran.inc'

  subroutine at_bottom()
    integer :: only
    integer, volatile :: value(3)
    integer(MPI_ADDRESS_KIND) :: address(1)
    value = [me, 5, me]
    call MPI_Get_address(value, address(1), error)
    call MPI_Type_create_hindexed(1, [3], address, MPI_INTEGER, only, error)
    call MPI_Type_commit(only, error)
    call MPI_Bcast(MPI_BOTTOM, 1, only, n - 1, comm, error)
    call expect('Bcast at MPI_BOTTOM', value, [n - 1, 5, n - 1])
    call MPI_Type_free(only, error)
  end subroutine
end program

subroutine add(left, right, count, datatype)
  implicit none
  integer :: count, datatype
  integer :: left(2, count), right(2, count)
  right = right + left
end subroutine
