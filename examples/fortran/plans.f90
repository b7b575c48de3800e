! Plans from Fortran: made once, run blocking and beside other work.
!
!     prefix=$(pkg-config --variable=prefix allhands)
!     mpifort $prefix/include/allhands.f90 plans.f90 -o plans $(pkg-config --libs allhands) && mpirun -n 4 ./plans
program plans
  use mpi
  use allhands
  implicit none
  integer :: rank, ranks, ierror, done, i
  integer(c_int64_t), allocatable :: counts(:), places(:)
  integer(c_intptr_t) :: comm, double, sum
  type(c_ptr) :: plan, name
  double precision, target :: x(3), y(3)
  double precision, allocatable, target :: all(:)

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)

  ! What are integers here are handles of C for the library.
  comm = allhands_comm_f2c(MPI_COMM_WORLD)
  double = allhands_type_f2c(MPI_DOUBLE_PRECISION)
  sum = allhands_op_f2c(MPI_SUM)

  ! The library chooses the algorithm; a text such as "nap" // c_null_char would force one.
  call check(allhands_allreduce_init(c_loc(x), c_loc(y), 3_c_int64_t, double, sum, comm, plan=plan), "allreduce")
  do i = 1, 5
    x = [1, 10, 100] * (rank + i)
    y = 0
    if (mod(i, 2) == 0) then
      call check(allhands_run(plan), "run")
    else
      call check(allhands_start(plan), "start")
      done = 0
      do while (done == 0) ! ... something else in between ...
        call check(allhands_test(plan, done), "test")
      end do
    end if
    call expect(y, [1d0, 10d0, 100d0] * (ranks * (ranks - 1) / 2 + ranks * i))
  end do
  call check(allhands_algorithm(plan, name), "algorithm")
  if (rank == 0) print '(2a)', "allreduce by ", allhands_text(name)
  call check(allhands_free(plan), "free")

  ! In place: rank r (from 0) gives r + 1 numbers, at their place among all.
  counts = [(int(i, c_int64_t), i = 1, ranks)]
  places = [(int(i * (i - 1) / 2, c_int64_t), i = 1, ranks)]
  allocate (all(ranks * (ranks + 1) / 2), source=-1d0)
  all(places(rank + 1) + 1 : places(rank + 1) + rank + 1) = rank
  call check(allhands_allgatherv_init(allhands_in_place(), 0_c_int64_t, double, c_loc(all), counts, places, double, comm, &
      "ring" // c_null_char, plan), "allgatherv")
  call check(allhands_run(plan), "run")
  do i = 1, ranks
    call expect(all(places(i) + 1 : places(i) + i), spread(i - 1d0, 1, i))
  end do
  call check(allhands_free(plan), "free")

  ! What goes wrong is a code, with a sentence.
  if (allhands_barrier_init(comm, "no-such" // c_null_char, plan) /= ALLHANDS_ERR_ALGORITHM) call stop_here("no error")
  if (index(allhands_text(allhands_last_error()), "no-such") == 0) call stop_here("the error names no algorithm")

  if (rank == 0) print '(3a,i0,a)', "allhands ", allhands_text(allhands_version()), " from Fortran: all right on ", ranks, " ranks"
  call MPI_Finalize(ierror)

contains

  subroutine check(code, what)
    integer(c_int), intent(in) :: code
    character(len=*), intent(in) :: what
    if (code /= ALLHANDS_SUCCESS) call stop_here(what // ": " // allhands_text(allhands_last_error()))
  end subroutine

  subroutine expect(values, right)
    double precision, intent(in) :: values(:), right(:)
    if (any(values /= right)) call stop_here("a wrong result")
  end subroutine

  subroutine stop_here(why)
    character(len=*), intent(in) :: why
    print '(a,i0,2a)', "rank ", rank, ": ", why
    call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
  end subroutine
end program
