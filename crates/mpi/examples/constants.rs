//! Prints the constants of the MPI that is found, one per line: the C expression and its value.

use allhands_mpi::Constant;

fn main() -> Result<(), allhands_mpi::Error> {
    let mpi = allhands_mpi::load()?;
    println!("# {}, {}", mpi.path().display(), mpi.abi());
    for (name, value) in mpi.constants().list() {
        match value {
            Constant::Handle(handle) => println!("{name} {handle:#x}"),
            Constant::Number(number) => println!("{name} {number}"),
            Constant::Symbol(symbol) => println!("{name} {symbol}"),
        }
    }
    Ok(())
}
