//! The collectives of a communicator, one definition each: a plan, the same with options, and calls that make or find their plan themselves.

use std::sync::Arc;

use allhands_schedule::{Collective, Graph};

use super::Comm;
use crate::error::{Error, Result};
use crate::kernels::Element;
use crate::layout::Amount;
use crate::op::Op;
use crate::plan::{Options, Plan};

/// The methods of one collective. What is asked for, from a plan's arguments or a call's, is the amount, the operation and the root.
macro_rules! collective {
    (
        $(#[$about:meta])*
        $collective:ident $generics:tt $element:ty, $arguments:tt => |$planner:pat_param| $asked:expr;
        $(#[$plan_doc:meta])* plan $plan:ident;
        $(#[$with_doc:meta])* plan $plan_with:ident;
        $($(#[$call_doc:meta])* call $call:ident $given:tt => |$caller:pat_param| $wanted:expr, $run:ident $buffers:tt;)*
    ) => {
        $(#[$about])*
        impl Comm {
            collective!(@plan [$(#[$plan_doc])*] [$(#[$with_doc])*] $plan, $plan_with, $generics, $element, $arguments,
                $planner, ($asked), $collective);
            $(collective!(@call [$(#[$call_doc])*] $call, $generics, $element, $given, $caller, ($wanted), $collective,
                $run, $buffers);)*
        }
    };

    (@plan [$($plan_doc:tt)*] [$($with_doc:tt)*] $plan:ident, $plan_with:ident, [$($generic:tt)*], $element:ty,
        ($($argument:ident: $type:ty),*), $planner:pat_param, $asked:expr, $collective:ident
    ) => {
        $($plan_doc)*
        pub fn $plan $($generic)* (&self, $($argument: $type),*) -> Result<Plan<$element>> {
            self.$plan_with($($argument,)* &Options::default())
        }

        #[doc = concat!("As [`", stringify!($plan), "`](Comm::", stringify!($plan), "), with options.")]
        ///
        /// They say which algorithm to use ([`Options::algorithm`]), whether every rank must get the same bits
        /// ([`Options::identical`]), how much memory a rank may take ([`Options::memory`]), and whether to do without memory
        /// that ranks share ([`Options::unshared`]). What is left out the library decides. Every rank passes the same.
        $($with_doc)*
        pub fn $plan_with $($generic)* (&self, $($argument: $type,)* options: &Options) -> Result<Plan<$element>> {
            let $planner = self;
            let (amount, op, root) = $asked;
            self.plan(Collective::$collective, amount, op, root, options)
        }
    };

    (@call [$($doc:tt)*] $call:ident, [$($generic:tt)*], $element:ty, ($($given:ident: $type:ty),*), $caller:pat_param,
        $wanted:expr, $collective:ident, $run:ident, ($($buffer:expr),*)
    ) => {
        $($doc)*
        pub fn $call $($generic)* (&self, $($given: $type),*) -> Result<()> {
            let $caller = self;
            let (amount, op, root) = $wanted;
            self.one_off::<$element>(Collective::$collective, amount, op, root, |plan| plan.$run($($buffer),*))
        }
    };
}

collective! {
    /// Every rank's elements, on every rank.
    Allgather [<T: Element>] T, (count: usize) => |_| (Amount::Each(count), None, 0);

    /// A plan to gather `count` elements of every rank, in rank order. The input has `count` elements, the output as many for each rank.
    plan allgather_plan;

    ///
    /// ```
    /// use allhands::{Options, Topology};
    /// allhands::threads(Topology::regular(2, 2)?, |comm| {
    ///     let options = Options::new().algorithm("bruck:radix=4");
    ///     let mut plan = comm.allgather_plan_with(1, &options)?;
    ///     let mut all = [0; 4];
    ///     plan.run(&[comm.rank() as u32], &mut all)?;
    ///     assert_eq!((all, plan.algorithm().as_str()), ([0, 1, 2, 3], "bruck:radix=4"));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    plan allgather_plan_with;

    /// Gathers `mine` of every rank into `all`, in rank order.
    ///
    /// ```
    /// use allhands::Topology;
    /// allhands::threads(Topology::flat(3)?, |comm| {
    ///     let mut all = [0; 6];
    ///     comm.allgather(&[comm.rank() as u32, 7], &mut all)?;
    ///     assert_eq!(all, [0, 7, 1, 7, 2, 7]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call allgather(mine: &[T], all: &mut [T]) => |_| (Amount::Each(mine.len()), None, 0), run(mine, all);
}

collective! {
    /// Every rank's elements, which may be more on one than on another, on every rank.
    Allgatherv [<T: Element>] T, (counts: &[usize]) => |_| (Amount::Listed(counts.into()), None, 0);

    /// A plan to gather `counts[r]` elements of every rank r, one rank's after the other's. Every rank passes the same counts.
    plan allgatherv_plan;
    plan allgatherv_plan_with;

    /// Gathers `counts[r]` elements of every rank r into `all`, one rank's after the other's.
    ///
    /// ```
    /// use allhands::Topology;
    /// allhands::threads(Topology::flat(3)?, |comm| {
    ///     let mine = vec![comm.rank() as u32; comm.rank()]; // as many as the rank's number
    ///     let mut all = [9; 3];
    ///     comm.allgatherv(&mine, &mut all, &[0, 1, 2])?;
    ///     assert_eq!(all, [1, 2, 2]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call allgatherv(mine: &[T], all: &mut [T], counts: &[usize])
        => |_| (Amount::Listed(counts.into()), None, 0), run(mine, all);
}

collective! {
    /// Something from every rank for every rank.
    Alltoall [<T: Element>] T, (count: usize) => |_| (Amount::Each(count), None, 0);

    /// A plan to exchange `count` elements between every two ranks. Input and output have `count` elements for each rank.
    plan alltoall_plan;

    ///
    /// ```
    /// use allhands::{Options, Topology};
    /// allhands::threads(Topology::flat(4)?, |comm| {
    ///     let mut plan = comm.alltoall_plan_with(1, &Options::new().memory(0))?; // nothing beside the buffers
    ///     let mut received = [0; 4];
    ///     plan.run(&[10, 11, 12, 13], &mut received)?;
    ///     assert_eq!(received, [10 + comm.rank() as u32; 4]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    plan alltoall_plan_with;

    /// Sends part r of `send` to rank r and receives its part into part r of `recv`, all parts equal.
    ///
    /// ```
    /// use allhands::Topology;
    /// allhands::threads(Topology::flat(2)?, |comm| {
    ///     let mine = 10 * comm.rank() as u32;
    ///     let mut theirs = [0; 4];
    ///     comm.alltoall(&[mine, mine + 1, mine + 2, mine + 3], &mut theirs)?; // two elements for each
    ///     assert_eq!(theirs, if comm.rank() == 0 { [0, 1, 10, 11] } else { [2, 3, 12, 13] });
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call alltoall(send: &[T], recv: &mut [T])
        => |comm| (Amount::Each(comm.equal_part(send.len())?), None, 0), run(send, recv);
}

collective! {
    /// Something from every rank for every rank, which may be more for one than for another.
    Alltoallv [<T: Element>] T, (send_counts: &[usize]) => |comm| (comm.count_matrix(send_counts)?, None, 0);

    /// A plan to send `send_counts[r]` elements to every rank r, and to receive what each has for this one, one rank's after the other's. Ranks tell
    /// each other their counts when the plan is made.
    plan alltoallv_plan;
    plan alltoallv_plan_with;

    /// Sends `send_counts[r]` elements to every rank r, and receives what each has for this one, one rank's after the other's.
    ///
    /// ```
    /// use allhands::Topology;
    /// allhands::threads(Topology::flat(2)?, |comm| {
    ///     let mine = [comm.rank() as u32; 3];
    ///     let mut theirs = vec![9; if comm.rank() == 0 { 2 } else { 4 }];
    ///     comm.alltoallv(&mine, &[1, 2], &mut theirs)?; // one for rank 0, two for rank 1
    ///     assert_eq!(theirs, if comm.rank() == 0 { vec![0, 1] } else { vec![0, 0, 1, 1] });
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call alltoallv(send: &[T], send_counts: &[usize], recv: &mut [T])
        => |comm| (comm.count_matrix(send_counts)?, None, 0), run(send, recv);
}

collective! {
    /// The reduction of all vectors, on every rank.
    Allreduce [<T: Element>] T, (count: usize, op: Op<T>) => |_| (Amount::Each(count), Some(op), 0);

    /// A plan to reduce vectors of `count` elements, the result on every rank.
    plan allreduce_plan;

    ///
    /// ```
    /// use allhands::{Op, Options, Topology};
    /// allhands::threads(Topology::regular(2, 2)?, |comm| {
    ///     let options = Options::new().algorithm("nap").identical(false);
    ///     let mut plan = comm.allreduce_plan_with(3, Op::sum(), &options)?;
    ///     let mut sum = [0.0; 3];
    ///     plan.run(&[0.5; 3], &mut sum)?;
    ///     assert_eq!((sum, plan.algorithm().as_str()), ([2.0; 3], "nap"));
    ///     let unknown = Options::new().algorithm("telepathy");
    ///     assert!(comm.allreduce_plan_with::<f64>(3, Op::sum(), &unknown).is_err());
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    plan allreduce_plan_with;

    /// Reduces `input` of all ranks into `output` on every rank.
    ///
    /// ```
    /// use allhands::{Op, Topology};
    /// allhands::threads(Topology::flat(3)?, |comm| {
    ///     let mut most = [0, 0];
    ///     comm.allreduce(&[comm.rank() as u32, 5], &mut most, Op::max())?;
    ///     assert_eq!(most, [2, 5]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call allreduce(input: &[T], output: &mut [T], op: Op<T>)
        => |_| (Amount::Each(input.len()), Some(op), 0), run(input, output);

    /// Reduces `buffer` of all ranks into `buffer`, on every rank.
    ///
    /// ```
    /// use allhands::{Op, Topology};
    /// allhands::threads(Topology::flat(3)?, |comm| {
    ///     let mut sum = [comm.rank() as f64, 1.0];
    ///     comm.allreduce_in_place(&mut sum, Op::sum())?;
    ///     assert_eq!(sum, [3.0, 3.0]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call allreduce_in_place(buffer: &mut [T], op: Op<T>)
        => |_| (Amount::Each(buffer.len()), Some(op), 0), run_in_place(buffer);
}

collective! {
    /// The reduction of all vectors, a part of it on each rank, which may be more on one than on another.
    ReduceScatter [<T: Element>] T, (counts: &[usize], op: Op<T>) => |_| (Amount::Listed(counts.into()), Some(op), 0);

    /// A plan to reduce vectors, of which rank r gets the next `counts[r]` elements. Every rank passes the same counts; the input has as many
    /// elements as all of them together.
    plan reduce_scatter_plan;
    plan reduce_scatter_plan_with;

    /// Reduces `input` of all ranks; rank r gets the next `counts[r]` elements of the result.
    ///
    /// ```
    /// use allhands::{Op, Topology};
    /// allhands::threads(Topology::flat(2)?, |comm| {
    ///     let mut mine = vec![0; 1 + comm.rank()];
    ///     comm.reduce_scatter(&[1, 2, 3], &mut mine, &[1, 2], Op::sum())?;
    ///     assert_eq!(mine, if comm.rank() == 0 { vec![2] } else { vec![4, 6] });
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call reduce_scatter(input: &[T], output: &mut [T], counts: &[usize], op: Op<T>)
        => |_| (Amount::Listed(counts.into()), Some(op), 0), run(input, output);
}

collective! {
    /// The reduction of all vectors, an equal part of it on each rank.
    ReduceScatterBlock [<T: Element>] T, (count: usize, op: Op<T>) => |_| (Amount::Each(count), Some(op), 0);

    /// A plan to reduce vectors, of which every rank gets `count` elements. The input has as many for each rank.
    plan reduce_scatter_block_plan;
    plan reduce_scatter_block_plan_with;

    /// Reduces `input` of all ranks; every rank gets as many elements of the result as `output` has, in rank order.
    ///
    /// ```
    /// use allhands::{Op, Topology};
    /// allhands::threads(Topology::flat(2)?, |comm| {
    ///     let mut mine = [0];
    ///     comm.reduce_scatter_block(&[1, 2], &mut mine, Op::sum())?;
    ///     assert_eq!(mine, [2 * (comm.rank() as u32 + 1)]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call reduce_scatter_block(input: &[T], output: &mut [T], op: Op<T>)
        => |_| (Amount::Each(output.len()), Some(op), 0), run(input, output);
}

collective! {
    /// The reduction of all vectors, on one rank.
    Reduce [<T: Element>] T, (count: usize, op: Op<T>, root: usize) => |_| (Amount::Each(count), Some(op), root);

    /// A plan to reduce vectors of `count` elements, the result on `root` only: other ranks pass an empty output.
    plan reduce_plan;
    plan reduce_plan_with;

    /// Reduces `input` of all ranks into `output` on `root`; other ranks pass an empty output.
    ///
    /// ```
    /// use allhands::{Op, Topology};
    /// allhands::threads(Topology::flat(3)?, |comm| {
    ///     let mut product = vec![0; if comm.rank() == 2 { 1 } else { 0 }];
    ///     comm.reduce(&[comm.rank() as u32 + 1], &mut product, Op::product(), 2)?;
    ///     assert_eq!(product, if comm.rank() == 2 { vec![6] } else { vec![] });
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call reduce(input: &[T], output: &mut [T], op: Op<T>, root: usize)
        => |_| (Amount::Each(input.len()), Some(op), root), run(input, output);
}

collective! {
    /// One rank's elements, on every rank.
    Bcast [<T: Element>] T, (count: usize, root: usize) => |_| (Amount::Each(count), None, root);

    /// A plan to give `count` elements of `root` to every rank; run it in place.
    plan bcast_plan;

    ///
    /// ```
    /// use allhands::{Options, Topology};
    /// allhands::threads(Topology::flat(3)?, |comm| {
    ///     // Nobody waits for another while the plan is made.
    ///     let mut plan = comm.bcast_plan_with(2, 1, &Options::new().unshared(true))?;
    ///     let mut both = [comm.rank() as u32, 4];
    ///     plan.run_in_place(&mut both)?;
    ///     assert_eq!(both, [1, 4]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    plan bcast_plan_with;

    /// Gives `buffer` of `root` to every rank.
    ///
    /// ```
    /// use allhands::Topology;
    /// allhands::threads(Topology::flat(3)?, |comm| {
    ///     let mut from = [comm.rank() as u32];
    ///     comm.bcast(&mut from, 2)?;
    ///     assert_eq!(from, [2]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call bcast(buffer: &mut [T], root: usize) => |_| (Amount::Each(buffer.len()), None, root), run_in_place(buffer);
}

collective! {
    /// Every rank's elements, on one rank.
    Gather [<T: Element>] T, (count: usize, root: usize) => |_| (Amount::Each(count), None, root);

    /// A plan to gather `count` elements of every rank on `root`, in rank order: other ranks pass an empty output.
    plan gather_plan;
    plan gather_plan_with;

    /// Gathers `mine` of every rank into `all` on `root`, in rank order; other ranks pass an empty output.
    ///
    /// ```
    /// use allhands::Topology;
    /// allhands::threads(Topology::flat(3)?, |comm| {
    ///     let mut all = vec![0; if comm.rank() == 1 { 3 } else { 0 }];
    ///     comm.gather(&[10 * comm.rank() as u32], &mut all, 1)?;
    ///     assert_eq!(all, if comm.rank() == 1 { vec![0, 10, 20] } else { vec![] });
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call gather(mine: &[T], all: &mut [T], root: usize) => |_| (Amount::Each(mine.len()), None, root), run(mine, all);
}

collective! {
    /// Every rank's elements, which may be more on one than on another, on one rank.
    Gatherv [<T: Element>] T, (count: usize, root: usize) => |comm| (comm.counts_of_all(count)?, None, root);

    /// A plan to gather as many elements of every rank as it says on `root`, one rank's after the other's: other ranks pass an empty output. Ranks
    /// tell each other their counts when the plan is made.
    plan gatherv_plan;
    plan gatherv_plan_with;

    /// Gathers `mine` of every rank, of whatever length, into `all` on `root`; other ranks pass an empty output. Ranks tell each other how many
    /// elements they have; with a [plan](Comm::gatherv_plan) they do so once.
    ///
    /// ```
    /// use allhands::Topology;
    /// allhands::threads(Topology::flat(3)?, |comm| {
    ///     let mine = vec![comm.rank() as u32; comm.rank()]; // as many as the rank's number
    ///     let mut all = vec![9; if comm.rank() == 0 { 3 } else { 0 }];
    ///     comm.gatherv(&mine, &mut all, 0)?;
    ///     assert_eq!(all, if comm.rank() == 0 { vec![1, 2, 2] } else { vec![] });
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call gatherv(mine: &[T], all: &mut [T], root: usize)
        => |comm| (comm.counts_of_all(mine.len())?, None, root), run(mine, all);
}

collective! {
    /// One rank's elements, a part of them on each rank.
    Scatter [<T: Element>] T, (count: usize, root: usize) => |_| (Amount::Each(count), None, root);

    /// A plan to give every rank the next `count` elements of `root`'s, in rank order: other ranks pass an empty input.
    plan scatter_plan;
    plan scatter_plan_with;

    /// Gives every rank as many elements of `all` on `root` as `mine` has, in rank order; other ranks pass an empty input.
    ///
    /// ```
    /// use allhands::Topology;
    /// allhands::threads(Topology::flat(3)?, |comm| {
    ///     let all = if comm.rank() == 2 { vec![5, 6, 7] } else { vec![] };
    ///     let mut mine = [0];
    ///     comm.scatter(&all, &mut mine, 2)?;
    ///     assert_eq!(mine, [5 + comm.rank() as u32]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call scatter(all: &[T], mine: &mut [T], root: usize) => |_| (Amount::Each(mine.len()), None, root), run(all, mine);
}

collective! {
    /// One rank's elements, a part of them on each rank, which may be more on one than on another.
    Scatterv [<T: Element>] T, (count: usize, root: usize) => |comm| (comm.counts_of_all(count)?, None, root);

    /// A plan to give every rank as many elements of `root`'s as it says, one rank's after the other's: other ranks pass an empty input. Ranks
    /// tell each other their counts when the plan is made.
    plan scatterv_plan;
    plan scatterv_plan_with;

    /// Gives every rank as many elements of `all` on `root` as its `mine` has; other ranks pass an empty input. Ranks tell each other how many
    /// elements they take; with a [plan](Comm::scatterv_plan) they do so once.
    ///
    /// ```
    /// use allhands::Topology;
    /// allhands::threads(Topology::flat(3)?, |comm| {
    ///     let all = if comm.rank() == 0 { vec![1, 2, 2] } else { vec![] };
    ///     let mut mine = vec![0; comm.rank()];
    ///     comm.scatterv(&all, &mut mine, 0)?;
    ///     assert_eq!(mine, vec![comm.rank() as u32; comm.rank()]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call scatterv(all: &[T], mine: &mut [T], root: usize)
        => |comm| (comm.counts_of_all(mine.len())?, None, root), run(all, mine);
}

collective! {
    /// The reduction of the vectors of all ranks up to each.
    Scan [<T: Element>] T, (count: usize, op: Op<T>) => |_| (Amount::Each(count), Some(op), 0);

    /// A plan to reduce vectors of `count` elements: rank r gets the reduction of those of ranks 0 to r, in this order.
    plan scan_plan;
    plan scan_plan_with;

    /// Reduces `input` of ranks 0 to r into `output` of rank r.
    ///
    /// ```
    /// use allhands::{Op, Topology};
    /// allhands::threads(Topology::flat(4)?, |comm| {
    ///     let mut sum = [0];
    ///     comm.scan(&[comm.rank() as u32 + 1], &mut sum, Op::sum())?;
    ///     assert_eq!(sum, [[1], [3], [6], [10]][comm.rank()]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call scan(input: &[T], output: &mut [T], op: Op<T>)
        => |_| (Amount::Each(input.len()), Some(op), 0), run(input, output);
}

collective! {
    /// The reduction of the vectors of all ranks before each.
    Exscan [<T: Element>] T, (count: usize, op: Op<T>) => |_| (Amount::Each(count), Some(op), 0);

    /// A plan to reduce vectors of `count` elements: rank r gets the reduction of those of ranks 0 to r - 1, in this order. Rank 0, before which there
    /// is none, passes an empty output.
    plan exscan_plan;
    plan exscan_plan_with;

    /// Reduces `input` of ranks 0 to r - 1 into `output` of rank r; rank 0 passes an empty output.
    ///
    /// ```
    /// use allhands::{Op, Topology};
    /// allhands::threads(Topology::flat(4)?, |comm| {
    ///     let mut before = vec![0; if comm.rank() == 0 { 0 } else { 1 }];
    ///     comm.exscan(&[comm.rank() as u32 + 1], &mut before, Op::sum())?;
    ///     assert_eq!(before, [vec![], vec![1], vec![3], vec![6]][comm.rank()]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call exscan(input: &[T], output: &mut [T], op: Op<T>)
        => |_| (Amount::Each(input.len()), Some(op), 0), run(input, output);
}

collective! {
    /// The elements of all neighbours.
    NeighborAllgather [<T: Element>] T, (graph: &Arc<Graph>, count: usize) => |_| (Amount::Each(count), None, graph);

    /// A plan to gather `count` elements of every neighbour, in the order of the graph's edges that end at this rank. Every rank passes the same graph.
    plan neighbor_allgather_plan;
    plan neighbor_allgather_plan_with;

    /// Gathers `mine` of every neighbour into `theirs`, in the order of the graph's edges that end at this rank.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use allhands::{Graph, Topology};
    /// let ring = Arc::new(Graph::parse("torus:4", 4)?);
    /// allhands::threads(Topology::regular(2, 2)?, |comm| {
    ///     let mut theirs = [0; 2];
    ///     comm.neighbor_allgather(&ring, &[comm.rank() as u32], &mut theirs)?;
    ///     assert_eq!(theirs, [[3, 1], [0, 2], [1, 3], [2, 0]][comm.rank()]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call neighbor_allgather(graph: &Arc<Graph>, mine: &[T], theirs: &mut [T])
        => |_| (Amount::Each(mine.len()), None, graph), run(mine, theirs);
}

collective! {
    /// The elements of all neighbours, which may be more of one than of another.
    NeighborAllgatherv [<T: Element>] T, (graph: &Arc<Graph>, counts: &[usize])
        => |_| (Amount::Listed(counts.into()), None, graph);

    /// A plan to gather `counts[r]` elements of every neighbour r. Every rank passes the same graph, and counts for all ranks.
    plan neighbor_allgatherv_plan;
    plan neighbor_allgatherv_plan_with;

    /// Gathers `counts[r]` elements of every neighbour r into `theirs`, in the order of the graph's edges that end at this rank.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use allhands::{Graph, Topology};
    /// let line = Arc::new(Graph::parse("grid:3", 3)?);
    /// allhands::threads(Topology::flat(3)?, |comm| {
    ///     let mine = vec![comm.rank() as u32; comm.rank()]; // as many as the rank's number
    ///     let mut theirs = vec![9; [1, 2, 1][comm.rank()]];
    ///     comm.neighbor_allgatherv(&line, &mine, &mut theirs, &[0, 1, 2])?;
    ///     assert_eq!(theirs, [vec![1], vec![2, 2], vec![1]][comm.rank()]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call neighbor_allgatherv(graph: &Arc<Graph>, mine: &[T], theirs: &mut [T], counts: &[usize])
        => |_| (Amount::Listed(counts.into()), None, graph), run(mine, theirs);
}

collective! {
    /// Something for every neighbour.
    NeighborAlltoall [<T: Element>] T, (graph: &Arc<Graph>, count: usize) => |_| (Amount::Each(count), None, graph);

    /// A plan to exchange `count` elements along every edge of a graph. The input has as many for each edge that begins at this rank, in their order, the
    /// output for each that ends there. Every rank passes the same graph.
    plan neighbor_alltoall_plan;
    plan neighbor_alltoall_plan_with;

    /// Exchanges `count` elements along every edge of a graph.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use allhands::{Graph, Topology};
    /// let ring = Arc::new(Graph::parse("torus:3", 3)?);
    /// allhands::threads(Topology::flat(3)?, |comm| {
    ///     let me = comm.rank() as u32;
    ///     let mut theirs = [0; 2];
    ///     // To the rank before, and to the one after.
    ///     comm.neighbor_alltoall(&ring, 1, &[10 * me, 10 * me + 1], &mut theirs)?;
    ///     assert_eq!(theirs, [[21, 10], [1, 20], [11, 0]][comm.rank()]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call neighbor_alltoall(graph: &Arc<Graph>, count: usize, mine: &[T], theirs: &mut [T])
        => |_| (Amount::Each(count), None, graph), run(mine, theirs);
}

collective! {
    /// Something for every neighbour, which may be more for one than for another.
    NeighborAlltoallv [<T: Element>] T, (graph: &Arc<Graph>, counts: &[usize])
        => |_| (Amount::Listed(counts.into()), None, graph);

    /// A plan to exchange `counts[e]` elements along every edge e of a graph. Every rank passes the same graph, and counts for all edges.
    plan neighbor_alltoallv_plan;
    plan neighbor_alltoallv_plan_with;

    /// Exchanges `counts[e]` elements along every edge e of a graph.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use allhands::{Graph, Topology};
    /// let line = Arc::new(Graph::parse("grid:2", 2)?); // edge 0 from rank 0 to rank 1, edge 1 back
    /// allhands::threads(Topology::flat(2)?, |comm| {
    ///     let (mine, mut theirs) = ([vec![7, 8], vec![9]], [vec![0], vec![0, 0]]);
    ///     comm.neighbor_alltoallv(&line, &mine[comm.rank()], &mut theirs[comm.rank()], &[2, 1])?;
    ///     assert_eq!(theirs[comm.rank()], [vec![9], vec![7, 8]][comm.rank()]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call neighbor_alltoallv(graph: &Arc<Graph>, mine: &[T], theirs: &mut [T], counts: &[usize])
        => |_| (Amount::Listed(counts.into()), None, graph), run(mine, theirs);
}

collective! {
    /// Waiting for all ranks.
    Barrier [] u8, () => |_| (Amount::Each(0), None, 0);

    /// A plan for barriers; run it with empty buffers.
    plan barrier_plan;
    plan barrier_plan_with;

    /// Waits until every rank has come.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use allhands::Topology;
    /// let come = AtomicUsize::new(0);
    /// allhands::threads(Topology::flat(3)?, |comm| {
    ///     come.fetch_add(1, Ordering::Relaxed);
    ///     comm.barrier()?;
    ///     assert_eq!(come.load(Ordering::Relaxed), 3);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), allhands::Error>(())
    /// ```
    call barrier() => |_| (Amount::Each(0), None, 0), run(&[], &mut []);
}

impl Comm {
    /// How many elements each rank has of so many, all equally many.
    fn equal_part(&self, elements: usize) -> Result<usize> {
        let count = elements / self.size();
        match elements.is_multiple_of(self.size()) {
            true => Ok(count),
            false => {
                let needed = (count + 1) * self.size();
                Err(Error::Length { which: "input", collective: "alltoall", given: elements, needed })
            }
        }
    }

    /// How many elements every rank has, or takes.
    fn counts_of_all(&self, mine: usize) -> Result<Amount> {
        let mut all = vec![0u64; self.size()];
        self.allgather(&[mine as u64], &mut all)?;
        Ok(Amount::Listed(all.into_iter().map(|count| count as usize).collect()))
    }

    /// What every rank sends to every other, source-major.
    fn count_matrix(&self, send_counts: &[usize]) -> Result<Amount> {
        let ranks = self.size();
        if send_counts.len() != ranks {
            let given = send_counts.len();
            return Err(
                allhands_schedule::Error::Counts { collective: "alltoallv", given, ranks, wanted: ranks }.into()
            );
        }
        let mine: Vec<u64> = send_counts.iter().map(|&count| count as u64).collect();
        let mut all = vec![0u64; ranks * ranks];
        self.allgather(&mine, &mut all)?;
        Ok(Amount::Listed(all.into_iter().map(|count| count as usize).collect()))
    }
}
