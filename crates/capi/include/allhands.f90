! allhands for Fortran: the functions of allhands.h, which documents them, through iso_c_binding. Compile this file with your program.
!
!     use mpi
!     use allhands
!     type(c_ptr) :: plan
!     code = allhands_allreduce_init(c_loc(x), c_loc(y), n, allhands_type_f2c(MPI_DOUBLE_PRECISION), &
!                                    allhands_op_f2c(MPI_SUM), allhands_comm_f2c(MPI_COMM_WORLD), plan=plan)
!     code = allhands_run(plan)
!     code = allhands_free(plan)
!
! Buffers are targets, passed by c_loc; allhands_in_place() stands for MPI_IN_PLACE. Handles are passed through the functions whose
! names end in f2c; with mpi_f08, it is MPI_COMM_WORLD%MPI_VAL and so on. The datatypes of an alltoallw go through allhands_types_f2c all
! at once, because in an array of C's they may lie closer together. Counts and displacements have 64 bits. Options, if there are any, end
! in c_null_char: "nap" // c_null_char.
module allhands
  use, intrinsic :: iso_c_binding
  implicit none
  private :: c_length

  enum, bind(c)
    enumerator :: ALLHANDS_SUCCESS = 0
    enumerator :: ALLHANDS_ERR_ARGUMENT, ALLHANDS_ERR_PLAN, ALLHANDS_ERR_COMM, ALLHANDS_ERR_TYPE, ALLHANDS_ERR_OP
    enumerator :: ALLHANDS_ERR_ALGORITHM, ALLHANDS_ERR_UNSUPPORTED, ALLHANDS_ERR_ACTIVE, ALLHANDS_ERR_NOT_INITIALIZED
    enumerator :: ALLHANDS_ERR_FINALIZED, ALLHANDS_ERR_MISMATCH, ALLHANDS_ERR_RANK, ALLHANDS_ERR_MPI, ALLHANDS_ERR_SYSTEM
    enumerator :: ALLHANDS_ERR_INTERNAL
  end enum

  interface
    function allhands_allgather_init(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, options, plan) &
        result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: sendcount, recvcount
      integer(c_intptr_t), value :: sendtype, recvtype, comm
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_allgatherv_init(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm, options, &
        plan) result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: sendcount
      integer(c_int64_t), intent(in) :: recvcounts(*), displs(*)
      integer(c_intptr_t), value :: sendtype, recvtype, comm
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_alltoall_init(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, options, plan) &
        result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: sendcount, recvcount
      integer(c_intptr_t), value :: sendtype, recvtype, comm
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_alltoallv_init(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm, &
        options, plan) result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), intent(in) :: sendcounts(*), sdispls(*), recvcounts(*), rdispls(*)
      integer(c_intptr_t), value :: sendtype, recvtype, comm
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_alltoallw_init(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm, &
        options, plan) result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), intent(in) :: sendcounts(*), sdispls(*), recvcounts(*), rdispls(*)
      integer(c_intptr_t), intent(in) :: sendtypes(*), recvtypes(*)
      integer(c_intptr_t), value :: comm
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_neighbor_allgather_init(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, options, plan) &
        result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: sendcount, recvcount
      integer(c_intptr_t), value :: sendtype, recvtype, comm
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_neighbor_allgatherv_init(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, &
        recvtype, comm, options, plan) result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: sendcount
      integer(c_int64_t), intent(in) :: recvcounts(*), displs(*)
      integer(c_intptr_t), value :: sendtype, recvtype, comm
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_neighbor_alltoall_init(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, options, plan) &
        result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: sendcount, recvcount
      integer(c_intptr_t), value :: sendtype, recvtype, comm
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_neighbor_alltoallv_init(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, &
        rdispls, recvtype, comm, options, plan) result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), intent(in) :: sendcounts(*), sdispls(*), recvcounts(*), rdispls(*)
      integer(c_intptr_t), value :: sendtype, recvtype, comm
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_neighbor_alltoallw_init(sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, &
        rdispls, recvtypes, comm, options, plan) result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), intent(in) :: sendcounts(*), sdispls(*), recvcounts(*), rdispls(*)
      integer(c_intptr_t), intent(in) :: sendtypes(*), recvtypes(*)
      integer(c_intptr_t), value :: comm
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_gather_init(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, options, plan) &
        result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: sendcount, recvcount
      integer(c_intptr_t), value :: sendtype, recvtype, comm
      integer(c_int), value :: root
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_gatherv_init(sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm, options, &
        plan) result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: sendcount
      integer(c_int64_t), intent(in) :: recvcounts(*), displs(*)
      integer(c_intptr_t), value :: sendtype, recvtype, comm
      integer(c_int), value :: root
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_scatter_init(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm, options, plan) &
        result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: sendcount, recvcount
      integer(c_intptr_t), value :: sendtype, recvtype, comm
      integer(c_int), value :: root
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_scatterv_init(sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm, options, &
        plan) result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), intent(in) :: sendcounts(*), displs(*)
      integer(c_int64_t), value :: recvcount
      integer(c_intptr_t), value :: sendtype, recvtype, comm
      integer(c_int), value :: root
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_allreduce_init(sendbuf, recvbuf, count, datatype, op, comm, options, plan) result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: count
      integer(c_intptr_t), value :: datatype, op, comm
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_reduce_scatter_init(sendbuf, recvbuf, recvcounts, datatype, op, comm, options, plan) result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), intent(in) :: recvcounts(*)
      integer(c_intptr_t), value :: datatype, op, comm
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_reduce_scatter_block_init(sendbuf, recvbuf, recvcount, datatype, op, comm, options, plan) &
        result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: recvcount
      integer(c_intptr_t), value :: datatype, op, comm
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_bcast_init(buffer, count, datatype, root, comm, options, plan) result(code) bind(c)
      import
      type(c_ptr), value :: buffer
      integer(c_int64_t), value :: count
      integer(c_intptr_t), value :: datatype, comm
      integer(c_int), value :: root
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_reduce_init(sendbuf, recvbuf, count, datatype, op, root, comm, options, plan) result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: count
      integer(c_intptr_t), value :: datatype, op, comm
      integer(c_int), value :: root
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_scan_init(sendbuf, recvbuf, count, datatype, op, comm, options, plan) result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: count
      integer(c_intptr_t), value :: datatype, op, comm
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_exscan_init(sendbuf, recvbuf, count, datatype, op, comm, options, plan) result(code) bind(c)
      import
      type(c_ptr), value :: sendbuf, recvbuf
      integer(c_int64_t), value :: count
      integer(c_intptr_t), value :: datatype, op, comm
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_barrier_init(comm, options, plan) result(code) bind(c)
      import
      integer(c_intptr_t), value :: comm
      character(kind=c_char), intent(in), optional :: options(*)
      type(c_ptr), intent(out) :: plan
      integer(c_int) :: code
    end function

    function allhands_start(plan) result(code) bind(c)
      import
      type(c_ptr), value :: plan
      integer(c_int) :: code
    end function

    function allhands_test(plan, done) result(code) bind(c)
      import
      type(c_ptr), value :: plan
      integer(c_int), intent(out) :: done
      integer(c_int) :: code
    end function

    function allhands_wait(plan) result(code) bind(c)
      import
      type(c_ptr), value :: plan
      integer(c_int) :: code
    end function

    function allhands_run(plan) result(code) bind(c)
      import
      type(c_ptr), value :: plan
      integer(c_int) :: code
    end function

    function allhands_free(plan) result(code) bind(c)
      import
      type(c_ptr), intent(inout) :: plan
      integer(c_int) :: code
    end function

    function allhands_algorithm(plan, name) result(code) bind(c)
      import
      type(c_ptr), value :: plan
      type(c_ptr), intent(out) :: name
      integer(c_int) :: code
    end function

    function allhands_explain(plan, text) result(code) bind(c)
      import
      type(c_ptr), value :: plan
      type(c_ptr), intent(out) :: text
      integer(c_int) :: code
    end function

    function allhands_version() result(text) bind(c)
      import
      type(c_ptr) :: text
    end function

    function allhands_abi_version() result(version) bind(c)
      import
      integer(c_int) :: version
    end function

    function allhands_error_string(code) result(text) bind(c)
      import
      integer(c_int), value :: code
      type(c_ptr) :: text
    end function

    function allhands_last_error() result(text) bind(c)
      import
      type(c_ptr) :: text
    end function

    function allhands_comm_f2c(comm) result(handle) bind(c)
      import
      integer(c_int), value :: comm
      integer(c_intptr_t) :: handle
    end function

    function allhands_type_f2c(datatype) result(handle) bind(c)
      import
      integer(c_int), value :: datatype
      integer(c_intptr_t) :: handle
    end function

    subroutine allhands_types_f2c(datatypes, number, handles) bind(c)
      import
      integer(c_int), intent(in) :: datatypes(*)
      integer(c_int64_t), value :: number
      integer(c_intptr_t), intent(out) :: handles(*)
    end subroutine

    function allhands_op_f2c(op) result(handle) bind(c)
      import
      integer(c_int), value :: op
      integer(c_intptr_t) :: handle
    end function

    function allhands_in_place() result(place) bind(c)
      import
      type(c_ptr) :: place
    end function

    function c_length(text) result(length) bind(c, name="strlen")
      import
      type(c_ptr), value :: text
      integer(c_size_t) :: length
    end function
  end interface

contains

  ! A text of the library's.
  function allhands_text(text) result(copy)
    type(c_ptr), intent(in) :: text
    character(len=:), allocatable :: copy
    character(kind=c_char), pointer :: letters(:)
    integer :: i
    call c_f_pointer(text, letters, [c_length(text)])
    allocate (character(len=size(letters)) :: copy)
    do i = 1, size(letters)
      copy(i:i) = letters(i)
    end do
  end function
end module
