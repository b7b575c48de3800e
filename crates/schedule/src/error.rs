//! What can be wrong with a request, each with the fact and what would be legal.

use thiserror::Error;

/// A request that cannot be served. Every message names the fact and the remedy.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A topology that cannot be read or has no ranks.
    #[error(
        "topology {text:?}: {fact}; write nodes x ranks (4x16), nodes x sockets x ranks (64x2x8), uneven nodes (3,5,4), a plain rank count (16), or nested lists of ranks ([[0,2],[1,3]])"
    )]
    Topology {
        /// What was given.
        text: String,
        /// What is wrong with it.
        fact: String,
    },
    /// A placement that is not a permutation of the ranks.
    #[error("placement: {fact}; list each of the {ranks} ranks 0..={} once, in the order of the seats", .ranks - 1)]
    Placement {
        /// What is wrong with it.
        fact: String,
        /// How many ranks there are.
        ranks: usize,
    },
    /// A name that is no collective.
    #[error("there is no collective {name:?}{}; known are {known}", .meant.map(|meant| format!("; did you mean {meant}")).unwrap_or_default())]
    UnknownCollective {
        /// What was given.
        name: String,
        /// What may have been meant.
        meant: Option<&'static str>,
        /// All names.
        known: String,
    },
    /// A name that is no algorithm of this collective.
    #[error("{collective} has no algorithm {name:?}; known are {known}")]
    UnknownAlgorithm {
        /// The collective asked for.
        collective: &'static str,
        /// What was given.
        name: String,
        /// All names for this collective.
        known: String,
    },
    /// A parameter the algorithm does not have.
    #[error("{algorithm} has no parameter {name:?}; {known}")]
    UnknownParameter {
        /// The algorithm.
        algorithm: &'static str,
        /// What was given.
        name: String,
        /// What it has instead.
        known: String,
    },
    /// A parameter value out of its range, or not of its form.
    #[error("{algorithm}: {parameter}={value} {fact}; legal is {legal}")]
    Parameter {
        /// The algorithm.
        algorithm: &'static str,
        /// Which parameter.
        parameter: &'static str,
        /// What was given.
        value: String,
        /// What is wrong with it.
        fact: String,
        /// What would be right.
        legal: String,
    },
    /// An algorithm that cannot serve this many ranks or this shape.
    #[error("{algorithm} needs {needs}, but {fact}; {remedy}")]
    Unservable {
        /// The algorithm.
        algorithm: &'static str,
        /// Its requirement.
        needs: &'static str,
        /// How the request misses it.
        fact: String,
        /// What would be legal.
        remedy: String,
    },
    /// An algorithm that does not keep the order or the identity of results that the reduction asks for.
    #[error("{algorithm} does not promise {property} here; these do: {remedy}")]
    NotGuaranteed {
        /// The algorithm.
        algorithm: &'static str,
        /// What was asked for.
        property: &'static str,
        /// Algorithms that do.
        remedy: String,
    },
    /// An algorithm that takes more memory beside the caller's buffers than a rank may.
    #[error(
        "{algorithm} takes {needed} bytes a rank beside the caller's buffers, but {limit} are allowed; allow {needed}{remedy}"
    )]
    Memory {
        /// With its parameters.
        algorithm: String,
        /// Bytes that it takes.
        needed: u64,
        /// Bytes that it may take.
        limit: u64,
        /// What else would do, after a comma; or nothing.
        remedy: &'static str,
    },
    /// A root that is not a rank.
    #[error("root {root} is not a rank; legal is 0..={}", .ranks - 1)]
    Root {
        /// What was given.
        root: usize,
        /// How many ranks there are.
        ranks: usize,
    },
    /// Counts for a collective whose blocks have one size, or belong to no rank.
    #[error("{collective} has no counts; leave them out{}", .vector.map(|name| format!(", or ask for {name}")).unwrap_or_default())]
    NoCounts {
        /// The collective.
        collective: &'static str,
        /// The one that has counts, where there is one.
        vector: Option<&'static str>,
    },
    /// Counts of the wrong number.
    #[error("{given} counts for {collective} on {ranks} ranks; give {wanted}")]
    Counts {
        /// The collective.
        collective: &'static str,
        /// How many were given.
        given: usize,
        /// How many ranks there are.
        ranks: usize,
        /// How many would be right.
        wanted: usize,
    },
    /// A graph that is none, or not of these ranks.
    #[error("{fact}; {remedy}")]
    Graph {
        /// What is wrong with it.
        fact: String,
        /// What would be right.
        remedy: String,
    },
    /// A schedule file that does not parse.
    #[error("line {line}: {fact}")]
    Text {
        /// Counted from 1.
        line: usize,
        /// What is wrong and what was expected.
        fact: String,
    },
    /// A file of a schedule that cannot be read.
    #[error("{file}{fact}")]
    Unreadable {
        /// What it is called.
        file: String,
        /// Where, and what is wrong, after a comma or a colon.
        fact: String,
    },
    /// A file whose schedule is wrong: it is not run.
    #[error("{file}{} is wrong: {fault}", .line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Wrong {
        /// What it is called.
        file: String,
        /// At which the blame begins, counted from 1.
        line: Option<usize>,
        /// What the verifier found.
        fault: String,
    },
    /// A file whose schedule is one for something else.
    #[error("{file} is a schedule of {collective}{is}, but the call {asked}; run it there, or name another algorithm")]
    Misfit {
        /// As it is named.
        file: String,
        /// What its schedule is of.
        collective: &'static str,
        /// What else it is for, with a blank before it.
        is: String,
        /// What the call is instead.
        asked: String,
    },
}

/// The result of everything that takes a request.
pub type Result<T> = std::result::Result<T, Error>;
