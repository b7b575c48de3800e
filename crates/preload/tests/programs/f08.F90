! Fortran by `use mpi_f08`.
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
end module

program f08
  use mpi_f08
  use operations
  implicit none
  type(MPI_Comm) :: comm
  type(MPI_Op) :: op
  type(MPI_Datatype) :: pairs
  type(MPI_Request) :: request
  include 'fortran.inc'

  subroutine at_bottom()
    type(MPI_Datatype) :: only
    integer, target, volatile :: value(3)
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
