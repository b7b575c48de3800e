//! The algorithms: one family a file. The lines of this page are the registry.

pub(crate) mod allgather;
pub(crate) mod allreduce;
pub(crate) mod alltoall;
pub(crate) mod bine;
pub(crate) mod binomial;
pub(crate) mod composed;
pub(crate) mod neighbor;
pub(crate) mod node;
pub(crate) mod reorder;
pub(crate) mod rooted;
pub(crate) mod scan;
pub(crate) mod seats;

use crate::registry::{Algorithm, Cost, Make, Parameter, Parameters, Promise};
use crate::{Collective, Problem};
use Collective::{
    Allgather, Allreduce, Alltoall, Barrier, Bcast, Exscan, Gather, NeighborAllgather, NeighborAlltoall, Reduce,
    ReduceScatter, Scan, Scatter,
};
use Promise::{Always, Never, When};
use allgather::{
    circulant, circulant_lanes, direct, lanes, leaders, loc_bruck, neighbor_exchange, recursive_multiplying, ring,
    sparbit, windows,
};
use allreduce::{addition_chain, cyclic_shift, nap, rabenseifner, whole};
use rooted::blocks;

/// Every algorithm, in the order in which `allhands list` shows them.
#[rustfmt::skip]
pub(crate) static LINES: &[Algorithm] = &[
    line(Allgather, "linear", NONE, "any p", MOVES, "classic", Make::Gather(direct::linear), direct::linear_cost, default),
    line(Allgather, "ring", NONE, "any p", MOVES, "classic", Make::Gather(ring::ring), ring::ring_cost, default),
    line(Allgather, "neighbor-exchange", NONE, neighbor_exchange::NEEDS, MOVES, "Chen et al. 2005", Make::Gather(neighbor_exchange::neighbor_exchange), neighbor_exchange::cost, default),
    line(Allgather, "recursive-doubling", recursive_multiplying::DOUBLING, recursive_multiplying::POWER_OF_TWO, MOVES, "classic", Make::Gather(recursive_multiplying::doubling), recursive_multiplying::cost, recursive_multiplying::orders),
    line(Allgather, "recursive-multiplying", recursive_multiplying::MULTIPLYING, "factors of p", MOVES, "Ruefenacht et al. 2017", Make::Gather(recursive_multiplying::multiplying), recursive_multiplying::cost, recursive_multiplying::multiplying_variants),
    line(Allgather, "bruck", windows::BRUCK, "any p", MOVES, "Bruck et al. 1997; Jocksch et al. 2021", Make::Gather(windows::bruck), windows::bruck_cost, windows::bruck_variants),
    line(Allgather, "sparbit", sparbit::PARAMETERS, "any p", MOVES, "Loch and Koslovski 2021", Make::Gather(sparbit::sparbit), sparbit::cost, sparbit::variants),
    line(Allgather, "bine", NONE, "any p", MOVES, "De Sensi et al. 2025", Make::Gather(allgather::bine::bine), allgather::bine::cost, default),
    line(Allgather, "hierarchical", leaders::HIERARCHICAL, "any shape", MOVES, "Träff 2006", Make::Direct(leaders::hierarchical), leaders::hierarchical_cost, seats::level_variants),
    line(Allgather, "multi-leader", leaders::MULTI_LEADER, "any shape", MOVES, "Kandalla et al. 2009", Make::Direct(leaders::multi_leader), leaders::multi_leader_cost, leaders::multi_leader_variants),
    line(Allgather, "multi-lane", lanes::PARAMETERS, "any shape", MOVES, "Träff and Hunold 2020", Make::TwoLevel(lanes::movement), lanes::cost, lanes::variants),
    line(Allgather, "loc-bruck", loc_bruck::PARAMETERS, "any shape", MOVES, "Bienz et al. 2022", Make::TwoLevel(loc_bruck::movement), loc_bruck::cost, loc_bruck::variants),
    line(Allgather, "circulant", circulant::PARAMETERS, "any p", MOVES, "Träff 2024", Make::Direct(circulant::circulant), circulant::cost, circulant::variants),
    line(Allgather, "circulant-lanes", circulant_lanes::PARAMETERS, "any shape", MOVES, "Träff 2024; lanes: Träff and Hunold 2020", Make::Direct(circulant_lanes::circulant_lanes), circulant_lanes::cost, circulant_lanes::variants),
    line(Allgather, "composed", composed::PARAMETERS, composed::NEEDS, MOVES, "found by search", Make::TwoLevel(composed::movement), composed::cost, composed::variants),

    line(Alltoall, "spread-out", NONE, "any p", MOVES, "classic", Make::Direct(alltoall::direct::spread_out), alltoall::direct::spread_out_cost, default),
    line(Alltoall, "pairwise", NONE, "any p", MOVES, "classic", Make::Direct(alltoall::direct::pairwise), alltoall::direct::pairwise_cost, default),
    line(Alltoall, "bruck", alltoall::bruck::PARAMETERS, "any p", MOVES, "Bruck et al. 1997; Fan and Kumar 2022", Make::Direct(alltoall::bruck::basic), alltoall::bruck::cost, alltoall::bruck::variants),
    line(Alltoall, "modified-bruck", alltoall::bruck::PARAMETERS, "any p", MOVES, "Träff et al. 2014; Fan and Kumar 2022", Make::Direct(alltoall::bruck::modified), alltoall::bruck::cost, alltoall::bruck::variants),
    line(Alltoall, "hierarchical", leaders::HIERARCHICAL, "any shape", MOVES, "Träff 2006", Make::Direct(alltoall::leaders::hierarchical), alltoall::leaders::hierarchical_cost, seats::level_variants),
    line(Alltoall, "multi-leader", leaders::MULTI_LEADER, "any shape", MOVES, "Kinkead et al. 2025", Make::Direct(alltoall::leaders::multi_leader), alltoall::leaders::multi_leader_cost, leaders::multi_leader_variants),
    line(Alltoall, "node-aware", leaders::HIERARCHICAL, "any shape", MOVES, "Kinkead et al. 2025", Make::Direct(alltoall::node_aware::node_aware), alltoall::node_aware::cost, seats::level_variants),

    line(Allreduce, "tree", NONE, "any p", MOVES, "classic", Make::Direct(whole::tree), whole::tree_cost, default),
    line(Allreduce, "recursive-doubling", NONE, "any p", MOVES, "classic, with a fold", Make::Direct(whole::recursive_doubling), whole::recursive_doubling_cost, default),
    line(Allreduce, "ring", NONE, "any p", (Never, Always), "classic", Make::Both(ring::ring), ring::ring_cost, default),
    line(Allreduce, "rabenseifner", rabenseifner::PARAMETERS, "any p", MOVES, "Rabenseifner 2004", Make::Direct(rabenseifner::rabenseifner), rabenseifner::cost, rabenseifner::variants),
    line(Allreduce, "bine", allreduce::bine::PARAMETERS, "any p", UNORDERED, "De Sensi et al. 2025", Make::Direct(allreduce::bine::bine), allreduce::bine::cost, allreduce::bine::variants),
    line(Allreduce, "smp", whole::SMP, "any shape", (Promise::SEQUENTIAL, Always), "classic", Make::Direct(whole::smp), whole::smp_cost, whole::smp_variants),
    line(Allreduce, "nap", nap::PARAMETERS, "any shape", (Promise::SEQUENTIAL, Always), "Bienz et al. 2019", Make::Direct(nap::nap), nap::cost, nap::variants),
    line(Allreduce, "cyclic-shift", cyclic_shift::PARAMETERS, "factors of p, or of the nodes", (Never, COMPLETE), "Jocksch et al. 2021", Make::Direct(cyclic_shift::cyclic_shift), cyclic_shift::cost, cyclic_shift::variants),
    line(Allreduce, "addition-chain", addition_chain::PARAMETERS, "a chain to p, or to the nodes", (Never, Never), "after Jocksch et al. 2021", Make::Direct(addition_chain::addition_chain), addition_chain::cost, addition_chain::variants),
    line(Allreduce, "multi-lane", lanes::PARAMETERS, "any shape", UNORDERED, "Träff and Hunold 2020", Make::TwoLevel(lanes::movement), lanes::allreduce_cost, lanes::variants),
    line(Allreduce, "circulant", windows::CIRCULANT, "any p", (Never, Always), "Träff 2024", Make::Both(windows::circulant), windows::circulant_cost, default),
    line(Allreduce, "composed", composed::PARAMETERS, composed::NEEDS, UNORDERED, "found by search", Make::TwoLevel(composed::movement), composed::allreduce_cost, composed::variants),
    line(Allreduce, "composed-sums", composed::sums::PARAMETERS, composed::NEEDS, (Never, Never), "found by search", Make::Direct(composed::sums::allreduce), composed::sums::cost, composed::sums::variants),

    line(ReduceScatter, "linear", NONE, "any p", MOVES, "classic", Make::Scatter(direct::linear), direct::linear_cost, default),
    line(ReduceScatter, "pairwise", NONE, "any p", UNORDERED, "classic", Make::Scatter(direct::pairwise), direct::pairwise_cost, default),
    line(ReduceScatter, "ring", NONE, "any p", UNORDERED, "classic", Make::Scatter(ring::ring), ring::ring_cost, default),
    line(ReduceScatter, "recursive-halving", recursive_multiplying::HALVING, recursive_multiplying::POWER_OF_TWO, (NEAREST, Always), "classic", Make::Scatter(recursive_multiplying::halving), recursive_multiplying::cost, recursive_multiplying::orders),
    line(ReduceScatter, "cyclic-shift", windows::BRUCK, "any p", UNORDERED, "Jocksch et al. 2021", Make::Scatter(windows::bruck), windows::bruck_cost, windows::bruck_variants),
    line(ReduceScatter, "circulant", circulant::PARAMETERS, "any p", UNORDERED, "Träff 2024", Make::Direct(circulant::circulant), circulant::cost, circulant::variants),
    line(ReduceScatter, "circulant-lanes", circulant_lanes::PARAMETERS, "any shape", UNORDERED, "the allgather, reversed", Make::Direct(circulant_lanes::circulant_lanes), circulant_lanes::cost, circulant_lanes::variants),
    line(ReduceScatter, "sparbit", sparbit::PARAMETERS, "any p", UNORDERED, "the allgather, reversed", Make::Scatter(sparbit::sparbit), sparbit::cost, sparbit::variants),
    line(ReduceScatter, "bine", NONE, "any p", UNORDERED, "the allgather, reversed", Make::Scatter(allgather::bine::bine), allgather::bine::cost, default),
    line(ReduceScatter, "multi-lane", lanes::PARAMETERS, "any shape", UNORDERED, "Träff and Hunold 2020", Make::TwoLevel(lanes::movement), lanes::cost, lanes::variants),
    line(ReduceScatter, "loc-bruck", loc_bruck::PARAMETERS, "any shape", UNORDERED, "the allgather, reversed", Make::TwoLevel(loc_bruck::movement), loc_bruck::reversed_cost, loc_bruck::variants),
    line(ReduceScatter, "composed", composed::PARAMETERS, composed::NEEDS, UNORDERED, "the allgather, reversed", Make::TwoLevel(composed::movement), composed::cost, composed::variants),

    line(Bcast, "binomial", NONE, "any p", MOVES, "classic", Make::Spread(rooted::bcast_binomial), rooted::binomial_cost, default),
    line(Bcast, "bine", NONE, "any p", MOVES, "De Sensi et al. 2025", Make::Spread(rooted::bine::bine), rooted::binomial_cost, default),
    line(Bcast, "scatter-allgather", rooted::PIECES, "any p", MOVES, "van de Geijn", Make::Spread(rooted::scatter_allgather), rooted::scatter_allgather_cost, rooted::pieces_variants),
    line(Bcast, "cyclic-shift", rooted::CYCLIC_SHIFT, "any p", MOVES, "Jocksch et al. 2021", Make::Spread(rooted::cyclic_shift), rooted::cyclic_shift_cost, rooted::cyclic_shift_variants),
    line(Bcast, "hierarchical", rooted::hierarchical::PARAMETERS, "any shape", MOVES, "classic", Make::Direct(rooted::hierarchical::hierarchical), rooted::hierarchical::cost, rooted::hierarchical::variants),
    line(Bcast, "circulant", rooted::circulant::PARAMETERS, "any p", MOVES, "Träff 2024", Make::Spread(rooted::circulant::circulant), rooted::circulant::cost, rooted::circulant::variants),
    line(Bcast, "pipeline", rooted::pipeline::SPREAD, "any shape", MOVES, "classic; lanes: Träff and Hunold 2020", Make::Direct(rooted::pipeline::bcast), rooted::pipeline::cost, rooted::pipeline::variants),
    line(Bcast, "circulant-lanes", rooted::circulant_lanes::SPREAD, "any shape", MOVES, "Träff 2024; lanes: Träff and Hunold 2020", Make::Direct(rooted::circulant_lanes::bcast), rooted::circulant_lanes::cost, rooted::circulant_lanes::variants),

    line(Reduce, "binomial", NONE, "any p", (FROM_FIRST, Always), "classic", Make::Direct(rooted::reduce_binomial), rooted::reduce_binomial_cost, default),
    line(Reduce, "bine", NONE, "any p", UNORDERED, "the bcast, reversed", Make::Collect(rooted::bine::bine), rooted::reversed_cost, default),
    line(Reduce, "reduce-scatter-gather", rooted::PIECES, "any p", UNORDERED, "Rabenseifner 2004", Make::Direct(rooted::reduce_scatter_gather), rooted::reduce_scatter_gather_cost, rooted::pieces_variants),
    line(Reduce, "cyclic-shift", rooted::CYCLIC_SHIFT, "any p", UNORDERED, "Jocksch et al. 2021", Make::Collect(rooted::cyclic_shift), rooted::cyclic_shift_cost, rooted::cyclic_shift_variants),
    line(Reduce, "circulant", rooted::circulant::PARAMETERS, "any p", UNORDERED, "the bcast, reversed", Make::Collect(rooted::circulant::circulant), rooted::circulant::cost, rooted::circulant::variants),
    line(Reduce, "pipeline", rooted::pipeline::COLLECT, "any shape", UNORDERED, "the bcast, reversed", Make::Collect(rooted::pipeline::reduce), rooted::pipeline::cost, rooted::pipeline::by_messages),
    line(Reduce, "circulant-lanes", rooted::circulant_lanes::COLLECT, "any shape", UNORDERED, "the bcast, reversed", Make::Collect(rooted::circulant_lanes::reduce), rooted::circulant_lanes::cost, rooted::circulant_lanes::by_messages),

    line(Gather, "linear", NONE, "any p", MOVES, "classic", Make::Direct(blocks::linear), blocks::linear_cost, default),
    line(Gather, "binomial", NONE, "any p", MOVES, "classic", Make::Direct(blocks::binomial), blocks::binomial_cost, default),
    line(Gather, "node-aware", blocks::NODE_AWARE, "any shape", MOVES, "classic", Make::Direct(blocks::node_aware), blocks::node_aware_cost, default),
    line(Gather, "hierarchical", blocks::HIERARCHICAL, "any shape", MOVES, "classic", Make::Direct(blocks::hierarchical), blocks::hierarchical_cost, blocks::hierarchical_variants),

    line(Scatter, "linear", NONE, "any p", MOVES, "classic", Make::Direct(blocks::linear), blocks::linear_cost, default),
    line(Scatter, "binomial", NONE, "any p", MOVES, "classic", Make::Direct(blocks::binomial), blocks::binomial_cost, default),
    line(Scatter, "node-aware", blocks::NODE_AWARE, "any shape", MOVES, "classic", Make::Direct(blocks::node_aware), blocks::node_aware_cost, default),
    line(Scatter, "hierarchical", blocks::HIERARCHICAL, "any shape", MOVES, "classic", Make::Direct(blocks::hierarchical), blocks::hierarchical_cost, blocks::hierarchical_variants),

    line(Scan, "linear", scan::LINEAR, "any p", MOVES, "classic", Make::Direct(scan::linear), scan::linear_cost, scan::linear_variants),
    line(Scan, "recursive-doubling", NONE, "any p", MOVES, "Kogge and Stone 1973", Make::Direct(scan::recursive_doubling), scan::recursive_doubling_cost, default),
    line(Scan, "hierarchical", scan::hierarchical::PARAMETERS, scan::hierarchical::NEEDS, MOVES, "classic", Make::Direct(scan::hierarchical::hierarchical), scan::hierarchical::cost, scan::hierarchical::variants),

    line(Exscan, "linear", scan::LINEAR, "any p", MOVES, "classic", Make::Direct(scan::linear), scan::linear_cost, scan::linear_variants),
    line(Exscan, "recursive-doubling", NONE, "any p", MOVES, "Kogge and Stone 1973", Make::Direct(scan::recursive_doubling), scan::recursive_doubling_cost, default),
    line(Exscan, "123-doubling", NONE, "any p", MOVES, "Träff 2025", Make::Direct(scan::doubling_123), scan::doubling_123_cost, default),
    line(Exscan, "hierarchical", scan::hierarchical::PARAMETERS, scan::hierarchical::NEEDS, MOVES, "classic", Make::Direct(scan::hierarchical::hierarchical), scan::hierarchical::cost, scan::hierarchical::variants),

    line(NeighborAllgather, "direct", NONE, "any graph", MOVES, "classic", Make::Direct(neighbor::direct::direct), neighbor::direct::cost, default),
    line(NeighborAllgather, "node-aware", neighbor::node_aware::PARAMETERS, "any graph", MOVES, "Bienz et al. 2019; Collom et al. 2023", Make::Direct(neighbor::node_aware::node_aware), neighbor::node_aware::cost, neighbor::node_aware::variants),

    line(NeighborAlltoall, "direct", NONE, "any graph", MOVES, "classic", Make::Direct(neighbor::direct::direct), neighbor::direct::cost, default),
    line(NeighborAlltoall, "node-aware", neighbor::node_aware::PARAMETERS, "any graph", MOVES, "Bienz et al. 2019; Collom et al. 2023", Make::Direct(neighbor::node_aware::node_aware), neighbor::node_aware::cost, neighbor::node_aware::variants),

    line(Barrier, "dissemination", rooted::CYCLIC_SHIFT, "any p", MOVES, "Hensgen et al. 1988", Make::Meet(windows::bruck), windows::bruck_cost, windows::bruck_variants),
    line(Barrier, "node-aware", loc_bruck::PARAMETERS, "any shape", MOVES, "loc-bruck with empty messages", Make::TwoLevel(loc_bruck::movement), loc_bruck::barrier_cost, loc_bruck::variants),
    line(Barrier, "composed", composed::PARAMETERS, composed::NEEDS, MOVES, "the allgather, empty", Make::TwoLevel(composed::movement), composed::barrier_cost, composed::variants),
];

/// No parameters.
const NONE: &[Parameter] = &[];
/// Nothing is combined out of order, or at all: ordered and identical.
const MOVES: (Promise, Promise) = (Always, Always);
/// Each result is made in one place, in an order of its own.
const UNORDERED: (Promise, Promise) = (Never, Always);
const NEAREST: Promise = When("with order=nearest", |_, parameters| parameters.get("order") == Some("nearest"));

const COMPLETE: Promise = When("with complete reduce_scatters", cyclic_shift::identical);
const FROM_FIRST: Promise = When("with root 0, or a non-commutative operation", |problem, _| {
    problem.root == 0 || !problem.reduction.commutative
});

/// The only setting of an algorithm without parameters.
fn default(_: &Problem) -> Vec<String> {
    vec![String::new()]
}

#[allow(clippy::too_many_arguments)] // a line of a table
const fn line(
    collective: Collective,
    name: &'static str,
    parameters: &'static [Parameter],
    needs: &'static str,
    (ordered, identical): (Promise, Promise),
    source: &'static str,
    make: Make,
    cost: fn(&Problem, &Parameters) -> Cost,
    variants: fn(&Problem) -> Vec<String>,
) -> Algorithm {
    Algorithm { name, collective, parameters, needs, ordered, identical, source, make, cost, variants }
}
