//! How a plan is made.

use crate::server::Server;

/// How a plan is made.
///
/// ```
/// let options = allhands::Options::new().algorithm("cyclic-shift:8(1,1,1)").identical(false);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    pub(crate) algorithm: Option<String>,
    pub(crate) identical: bool,
    pub(crate) memory: Option<u64>,
    pub(crate) unshared: bool,
    pub(crate) only_ours: bool,
    pub(crate) reproducible: bool,
    /// Why the algorithm is named, where it is not the caller's wish.
    pub(crate) learned: Option<String>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            algorithm: None,
            identical: true,
            memory: None,
            unshared: false,
            only_ours: false,
            reproducible: false,
            learned: None,
        }
    }
}

impl Options {
    /// The library chooses, and every rank gets the same bits.
    pub fn new() -> Options {
        Options::default()
    }

    /// Forces an algorithm, with parameters, as `allhands list` names them; or, as `@FILE`, the [schedule in a
    /// file](crate::Comm::written), which is proved right before it is run. If it cannot serve, that is an error.
    pub fn algorithm(self, name: &str) -> Options {
        Options { algorithm: Some(name.into()), ..self }
    }

    /// Forces who is to serve by what was [learned](crate::raw::RawComm::learn), which is why.
    ///
    /// ```
    /// let server = allhands::Server::Library;
    /// let options = allhands::Options::new().learned(&server, "what was learned here");
    /// # let _ = options;
    /// ```
    pub fn learned(self, server: &Server, why: &str) -> Options {
        Options { algorithm: Some(server.to_string()), learned: Some(why.into()), ..self }
    }

    /// Whether every rank must get the same bits, also where rounding depends on the order of operands. Without, and
    /// where [nothing is rounded](crate::kernels::Operation::is_exact_on), a few more algorithms can serve.
    pub fn identical(self, identical: bool) -> Options {
        Options { identical, ..self }
    }

    /// How many bytes a rank may take beside the caller's buffers: scratch, and its share of what its node shares, as
    /// [`allhands_model::memory`] counts them. What takes more is not chosen, and an error if it is forced; so is MPI's own
    /// collective, of which nobody can say what it takes. Must be the same on all ranks.
    ///
    /// ```
    /// use allhands::{Op, Options, Topology};
    /// allhands::threads(Topology::flat(4)?, |comm| {
    ///     let frugal = Options::new().memory(0);
    ///     let mut sum = [0.0; 100];
    ///     comm.allreduce_plan_with(100, Op::sum(), &frugal)?.run(&[1.0; 100], &mut sum)?;
    ///     assert_eq!(sum, [4.0; 100]);
    ///     let forced = frugal.algorithm("addition-chain").identical(false);
    ///     let refused = comm.allreduce_plan_with::<f64>(100, Op::sum(), &forced).err().unwrap();
    ///     assert!(refused.to_string().contains("takes 800 bytes a rank beside the caller's buffers, but 0 are allowed"));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    pub fn memory(self, bytes: u64) -> Options {
        Options { memory: Some(bytes), ..self }
    }

    /// Whether to choose among algorithms for which the ranks of a node need no memory in common. Ranks wait for each other when
    /// they get such memory, which is when the plan is made; without, making a plan waits for nobody.
    pub fn unshared(self, unshared: bool) -> Options {
        Options { unshared, ..self }
    }

    /// Whether the plan is run only if it is ours: one that finds the MPI library's own collective best then says so, and is not made
    /// ready to call it. That takes a communicator of MPI's, of which there are few thousand.
    ///
    /// ```
    /// let options = allhands::Options::new().only_ours(true);
    /// # let _ = options;
    /// ```
    pub fn only_ours(self, only_ours: bool) -> Options {
        Options { only_ours, ..self }
    }

    /// Whether sums of `f32`, `f64` and complex numbers of both give the same bits whatever algorithm serves, wherever ranks sit, and in
    /// whatever order they come: the exact sum, rounded once, of all numbers that are not very much smaller than the largest. Any algorithm may then
    /// serve. In place of 8 bytes of a double 32 travel, of 4 of a float 24: short vectors take hardly longer, long ones as much longer as that.
    /// `ALLHANDS_REPRODUCIBLE=1` asks for it for a whole job. Must be the same on all ranks.
    ///
    /// ```
    /// use allhands::{Op, Options, Topology};
    /// let terms = [1e16, 1.0, -1e16, 1.0];
    /// for algorithm in ["ring", "recursive-doubling", "nap"] {
    ///     allhands::threads(Topology::regular(2, 2)?, |comm| {
    ///         let options = Options::new().reproducible(true).algorithm(algorithm);
    ///         let mut sum = [0.0];
    ///         comm.allreduce_plan_with(1, Op::sum(), &options)?.run(&[terms[comm.rank()]], &mut sum)?;
    ///         assert_eq!(sum, [2.0]); // a plain sum of these is 0, 1 or 2, as their order has it
    ///         Ok(())
    ///     })?;
    /// }
    /// # Ok::<(), allhands::Error>(())
    /// ```
    pub fn reproducible(self, reproducible: bool) -> Options {
        Options { reproducible, ..self }
    }
}
