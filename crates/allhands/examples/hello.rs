//! Ranks of whichever MPI is there: `mpirun -n 4 target/debug/examples/hello`.

use allhands::Op;

fn main() -> Result<(), allhands::Error> {
    allhands::mpi(|comm| {
        let mut sum = [comm.rank() as f64];
        comm.allreduce_in_place(&mut sum, Op::sum())?;
        if comm.rank() == 0 {
            println!("{} ranks seated as {}: the sum of their numbers is {}", comm.size(), comm.topology(), sum[0]);
        }
        Ok(())
    })
}
