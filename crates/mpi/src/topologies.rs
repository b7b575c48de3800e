//! Who a rank's neighbours are: the topologies that MPI attaches to communicators.

use std::ffi::c_int;
use std::ptr::null_mut;

use crate::functions::Functions;
use crate::{Handle, Mpi, Result};

/// What a communicator says of neighbours. MPI's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Neighborhood {
    /// Nothing.
    None,
    /// A grid, the same on every rank.
    Cartesian {
        /// Ranks along each dimension.
        dims: Vec<usize>,
        /// Whether its ends are connected.
        periods: Vec<bool>,
    },
    /// Of each rank its neighbours, the same on every rank.
    Graph(Vec<Vec<c_int>>),
    /// Of this rank whom it gets something from, and whom it has something for.
    Distributed {
        /// From whom.
        sources: Vec<c_int>,
        /// For whom.
        destinations: Vec<c_int>,
    },
}

/// A function that older libraries lack.
macro_rules! function {
    ($mpi:ident, $field:ident, $name:literal) => {
        $mpi.raw().$field.ok_or_else(|| $mpi.lacks($name))?
    };
}

impl Mpi {
    /// The topology of a communicator, as far as this rank knows it. Waits for nobody.
    pub fn neighborhood(&self, comm: Handle) -> Result<Neighborhood> {
        let Functions { topo_test: Some(topo_test), .. } = self.raw() else { return Ok(Neighborhood::None) };
        // SAFETY: the result is writable.
        let kind = self.integer("MPI_Topo_test", |kind| unsafe { topo_test(comm, kind) })?;
        let integers = &self.constants().integers;
        match kind {
            _ if kind == integers.cart => self.cartesian(comm),
            _ if kind == integers.graph => self.graph(comm),
            _ if kind == integers.dist_graph => self.distributed(comm),
            _ => Ok(Neighborhood::None),
        }
    }

    fn cartesian(&self, comm: Handle) -> Result<Neighborhood> {
        let cartdim_get = function!(self, cartdim_get, "MPI_Cartdim_get");
        let cart_get = function!(self, cart_get, "MPI_Cart_get");
        // SAFETY: the result is writable.
        let length = self.integer("MPI_Cartdim_get", |length| unsafe { cartdim_get(comm, length) })?;
        let many = length as usize;
        let (mut dims, mut periods, mut coordinates) = (vec![0; many], vec![0; many], vec![0; many]);
        // SAFETY: arrays of as many numbers.
        let code = unsafe { cart_get(comm, length, dims.as_mut_ptr(), periods.as_mut_ptr(), coordinates.as_mut_ptr()) };
        self.check("MPI_Cart_get", code)?;
        let dims = dims.into_iter().map(|size: c_int| size as usize).collect();
        Ok(Neighborhood::Cartesian { dims, periods: periods.into_iter().map(|flag: c_int| flag != 0).collect() })
    }

    fn graph(&self, comm: Handle) -> Result<Neighborhood> {
        let graphdims_get = function!(self, graphdims_get, "MPI_Graphdims_get");
        let graph_get = function!(self, graph_get, "MPI_Graph_get");
        let (mut nodes, mut edges) = (0, 0);
        // SAFETY: both are writable.
        self.check("MPI_Graphdims_get", unsafe { graphdims_get(comm, &mut nodes, &mut edges) })?;
        let (mut ends, mut all) = (vec![0; nodes as usize], vec![0; edges as usize]);
        // SAFETY: arrays of as many numbers.
        let code = unsafe { graph_get(comm, nodes, edges, ends.as_mut_ptr(), all.as_mut_ptr()) };
        self.check("MPI_Graph_get", code)?;
        let mut begin = 0;
        let mut of = |end: c_int| all[std::mem::replace(&mut begin, end as usize)..end as usize].to_vec();
        Ok(Neighborhood::Graph(ends.into_iter().map(&mut of).collect()))
    }

    fn distributed(&self, comm: Handle) -> Result<Neighborhood> {
        let neighbors_count = function!(self, dist_graph_neighbors_count, "MPI_Dist_graph_neighbors_count");
        let neighbors = function!(self, dist_graph_neighbors, "MPI_Dist_graph_neighbors");
        let (mut incoming, mut outgoing, mut weighted) = (0, 0, 0);
        // SAFETY: all are writable.
        let code = unsafe { neighbors_count(comm, &mut incoming, &mut outgoing, &mut weighted) };
        self.check("MPI_Dist_graph_neighbors_count", code)?;
        // An array of nothing has no address that every library takes.
        let room = |many: c_int| vec![0; (many as usize).max(1)];
        let (mut sources, mut destinations) = (room(incoming), room(outgoing));
        let (mut weights, mut other_weights) = (room(incoming), room(outgoing));
        let (from, to) = (sources.as_mut_ptr(), destinations.as_mut_ptr());
        // SAFETY: arrays of as many numbers.
        let code =
            unsafe { neighbors(comm, incoming, from, weights.as_mut_ptr(), outgoing, to, other_weights.as_mut_ptr()) };
        self.check("MPI_Dist_graph_neighbors", code)?;
        sources.truncate(incoming as usize);
        destinations.truncate(outgoing as usize);
        Ok(Neighborhood::Distributed { sources, destinations })
    }

    /// Whether this library has what is sent one way along a ring come from the other, as MPI says, where that cannot be told from the rank: tried on
    /// a ring of this rank alone. Some have the first that is sent be the first that comes, and some do so only in calls that wait (`blocking`).
    pub fn pairs_by_direction(&self, blocking: bool) -> Result<bool> {
        let cart_create = function!(self, cart_create, "MPI_Cart_create");
        let (size, period) = (1, 1);
        let ring = self.handle("MPI_Cart_create", |ring| {
            // SAFETY: one dimension, and the handle is writable and zero.
            unsafe { cart_create(self.comm_self(), 1, &size, &period, 0, ring) }
        })?;
        let outcome = self.exchanged_on(ring, blocking);
        self.comm_free(ring)?;
        outcome.map(|came| came == [1, 0])
    }

    /// What comes if 0 is sent one way, and 1 the other.
    fn exchanged_on(&self, ring: Handle, blocking: bool) -> Result<[c_int; 2]> {
        let (given, mut came, int) = ([0, 1], [0; 2], self.constants().types.int);
        let (from, to) = (given.as_ptr().cast(), came.as_mut_ptr().cast());
        if blocking {
            let exchange = function!(self, neighbor_alltoall, "MPI_Neighbor_alltoall");
            // SAFETY: an integer for each neighbour, and one from each.
            self.check("MPI_Neighbor_alltoall", unsafe { exchange(from, 1, int, to, 1, int, ring) })?;
            return Ok(came);
        }
        let exchange = function!(self, ineighbor_alltoall, "MPI_Ineighbor_alltoall");
        let mut request = self.handle("MPI_Ineighbor_alltoall", |request| {
            // SAFETY: the same, and they stay until the wait is over.
            unsafe { exchange(from, 1, int, to, 1, int, ring, request) }
        })?;
        let ignore = self.constants().addresses.status_ignore;
        // SAFETY: the request, of which no status is wanted.
        let code = unsafe { (self.raw().wait)(&mut request, null_mut::<u8>().wrapping_offset(ignore).cast()) };
        self.check("MPI_Wait", code)?;
        Ok(came)
    }
}
