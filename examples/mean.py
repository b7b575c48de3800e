"""A mean over all ranks with mpi4py: mpirun -n 4 allhands exec python examples/mean.py"""
from array import array

from mpi4py import MPI

comm = MPI.COMM_WORLD
mine = array("d", [comm.rank, 1.0])
total = array("d", [0.0, 0.0])
comm.Allreduce(mine, total)  # by allhands, if it runs under `allhands exec`
if comm.rank == 0:
    print(f"mean rank {total[0] / total[1]} of {int(total[1])}")
