//! MPI ranks: joining a running MPI job, or starting MPI, on whichever MPI is there.
//!
//! Joining is collective. The ranks find out who sits on which node, map memory together there, try whether the kernel lets
//! them read each other's, and agree on a topology. A node whose ranks cannot share memory works by MPI messages.

mod seating;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use allhands_mpi::{Handle, Mpi, ThreadLevel};
use allhands_schedule::Topology;

use crate::choose::{Evidence, Texts};
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::far::{Communicator, Job};
use crate::node::memory::{Address, Mapping, Offer};
use crate::node::{Node, Reach, readable};
use crate::world::World;

/// Runs `body` on this process, as one rank of the MPI job it belongs to.
///
/// The MPI is found at run time: the one that is loaded already, else the library that `ALLHANDS_MPI` names, else the one
/// that the launcher belongs to, else what the loader finds. MPI is started if the program has not done so, and then ended
/// with the last successful return; after an error it is not, so that the process can report it and the launcher ends
/// the others. `ALLHANDS_TOPOLOGY=4x4` makes ranks behave as if they sat on nodes like that. `ALLHANDS_PROGRESS=thread` starts
/// a thread that moves non-blocking collectives on while the rank computes; it needs `MPI_THREAD_MULTIPLE`.
/// `ALLHANDS_SINGLE_COPY=off` keeps ranks from reading each other's memory. `ALLHANDS_TUNING` names a tuning file and
/// `ALLHANDS_MACHINE` a machine (or a machine file) to choose algorithms by; rank 0 reads them for all.
///
/// ```no_run
/// use allhands::Op;
/// let sum = allhands::mpi(|comm| {
///     let mut sum = [comm.rank() as u64];
///     comm.allreduce_in_place(&mut sum, Op::sum())?;
///     Ok(sum[0])
/// })?;
/// println!("{sum}");
/// # Ok::<(), allhands::Error>(())
/// ```
///
/// Linux only. Every rank must call it, at the same point of the program.
pub fn mpi<R>(body: impl FnOnce(&Comm) -> Result<R>) -> Result<R> {
    let mpi = allhands_mpi::load()?;
    let started = !mpi.initialized()?;
    if started {
        mpi.init(if progress_thread()? { ThreadLevel::Multiple } else { ThreadLevel::Funneled })?;
    }
    mpi.check_launcher(mpi.comm_size(mpi.world())?)?;
    let comm = join(mpi, mpi.world())?;
    let result = body(&comm)?;
    drop(comm);
    if started {
        mpi.finalize()?;
    }
    Ok(result)
}

impl Comm {
    /// The ranks of a communicator of the running MPI, given by its handle: an `MPI_Comm` as the program has it, widened to
    /// 64 bits. Collective over the communicator; messages go on one of our own.
    ///
    /// # Safety
    /// The handle is a communicator of the MPI in this process that is not freed before this returns, and no
    /// intercommunicator.
    pub unsafe fn from_mpi(handle: usize) -> Result<Comm> {
        let mpi = allhands_mpi::load()?;
        // MPICH's handles have 32 bits; sign extension of a C int must not count.
        let wide = mpi.abi() != allhands_mpi::Abi::Mpich;
        join(mpi, if wide { handle } else { handle & 0xffff_ffff })
    }
}

/// Whether the user wants a thread that moves non-blocking collectives on while the rank computes.
fn progress_thread() -> Result<bool> {
    match std::env::var("ALLHANDS_PROGRESS").as_deref() {
        Err(_) | Ok("") => Ok(false),
        Ok("thread") => Ok(true),
        Ok(other) => Err(Error::Setting {
            name: "ALLHANDS_PROGRESS",
            value: other.into(),
            remedy: "set it to thread, or not at all",
        }),
    }
}

/// Slots of this many bytes between processes; longer messages are several letters, or read from the sender's memory.
const BODY: usize = 8 * 1024;
/// On nodes of more ranks than this, to save memory.
const BODY_OF_MANY: usize = 2 * 1024;

/// Memory that the ranks of a communicator on one machine have in common, for what they want each other to see.
///
/// ```no_run
/// use std::sync::atomic::Ordering;
/// # let world = 0;
/// // SAFETY: a communicator of the MPI in this process.
/// if let Some(memory) = unsafe { allhands::raw::NodeMemory::of_mpi(world, 1)? } {
///     memory.words()[0].fetch_add(1, Ordering::Relaxed); // in the end: how many ranks this machine has
/// }
/// # Ok::<(), allhands::Error>(())
/// ```
#[derive(Debug)]
pub struct NodeMemory {
    memory: Mapping,
    words: usize,
    ranks: Vec<usize>,
}

/// What the maker of a node's memory tells the others.
type Invitation = [u64; 4];

fn join(mpi: &'static Mpi, handle: Handle) -> Result<Comm> {
    let helped = progress_thread()?;
    mpi.ensure(if helped { ThreadLevel::Multiple } else { ThreadLevel::Single })?;
    if mpi.comm_test_inter(handle)? {
        let text = "an intercommunicator has no ranks that all call the same collective; merge its groups first";
        return Err(Error::Operation(text.into()));
    }
    let (me, ranks) = (mpi.comm_rank(handle)?, mpi.comm_size(handle)?);
    // A duplicate would come with the program's attributes, whose functions would be called, and with its hints.
    let communicator = mpi.comm_split(handle, Some(0), me as i32)?.expect("a color was given");
    let communicator = Communicator::own(mpi, communicator)?;
    let comm = communicator.handle();
    let local = Communicator::own(mpi, mpi.comm_split_shared(comm, me as i32)?)?;
    let neighbours: Vec<usize> =
        gather(mpi, local.handle(), [me as u64])?.into_iter().map(|[rank]| rank as usize).collect();
    let topology = topology(mpi, comm, neighbours[0], ranks)?;
    let (node, neighbours) = match share(mpi, &local)? {
        Some(node) => (node, neighbours),
        None => {
            let alone =
                Mapping::private(Node::bytes(1, BODY)).map_err(|error| Error::Memory { reason: error.to_string() })?;
            (Node::new(Arc::new(alone), 1, 0, BODY, Reach::Nowhere), vec![me])
        }
    };
    let homes = gather(mpi, comm, [neighbours[0] as u64])?.into_iter().map(|[home]| home as usize).collect();
    let world = World::of_job(Job::new(communicator.clone()), me, homes, node, neighbours);
    let evidence = evidence(mpi, comm, me)?;
    let comm = Comm::of_world(world, topology, Some(communicator), evidence);
    if helped {
        comm.hire();
    }
    Ok(comm)
}

/// Where the ranks sit: as `ALLHANDS_TOPOLOGY` says, or as they do.
fn topology(mpi: &Mpi, comm: Handle, node: usize, ranks: usize) -> Result<Topology> {
    if let Ok(text) = std::env::var("ALLHANDS_TOPOLOGY") {
        let topology: Topology = text.parse()?;
        let seats = topology.ranks();
        return if seats == ranks { Ok(topology) } else { Err(Error::Seats { topology: text, seats, ranks }) };
    }
    let (socket, numa) = seating::mine();
    let places = gather(mpi, comm, [node as u64, socket, numa])?;
    Ok(Topology::grouped(&places.into_iter().map(Vec::from).collect::<Vec<_>>())?)
}

/// Maps memory with the other ranks of the node; none if one of them cannot.
fn share(mpi: &Mpi, local: &Communicator) -> Result<Option<Node>> {
    let comm = local.handle();
    let (me, ranks) = (mpi.comm_rank(comm)?, mpi.comm_size(comm)?);
    let body = if ranks <= 64 { BODY } else { BODY_OF_MANY };
    let common = Common::map(mpi, comm, Node::bytes(ranks, body))?;
    let stamp = common.stamp;
    // Whether the kernel lets us read a neighbour's memory: by the word that it names.
    let probe = Box::new(stamp ^ me as u64);
    let node = common.memory.map(|memory| Node::new(Arc::new(memory), ranks, me, body, Reach::Nowhere));
    let all = gather(mpi, comm, [std::process::id().into(), &raw const *probe as u64, u64::from(node.is_some())])?;
    drop(common.offer);
    let other = (me + 1) % ranks;
    let wanted = std::env::var("ALLHANDS_SINGLE_COPY").as_deref() != Ok("off");
    let can_read = wanted && readable(all[other][0] as u32, all[other][1] as usize, stamp ^ other as u64);
    let can = gather(mpi, comm, [u64::from(can_read)])?;
    drop(probe);
    let Some(mut node) = node.filter(|_| all.iter().all(|[_, _, mapped]| *mapped == 1)) else { return Ok(None) };
    if can.iter().all(|[can]| *can == 1) {
        node.reach = Reach::kernel(all.iter().map(|[process, ..]| *process as u32).collect());
    }
    Ok(Some(node))
}

/// Memory that the ranks of a node have mapped, each as far as it could.
struct Common {
    memory: Option<Mapping>,
    /// In its first word; the same on every rank.
    stamp: u64,
    offer: Option<Offer>,
}

impl Common {
    /// Made by the first rank, mapped by the others. Collective.
    fn map(mpi: &Mpi, comm: Handle, bytes: usize) -> Result<Common> {
        let me = mpi.comm_rank(comm)?;
        let mut invitation: Invitation = [0; 4];
        let (mut memory, mut offer) = (None, None);
        if me == 0
            && let Ok((made, offered)) = Mapping::offered(bytes)
        {
            let Address { process, descriptor } = offered.address();
            // Tells this memory from any other file of that number, should processes not see each other's numbers.
            let stamp = u64::from(process) << 32 ^ made.as_ptr() as u64 ^ 0x616c_6c68_616e_6473;
            made.words()[0].store(stamp, Ordering::Release);
            invitation = [1, process.into(), descriptor.into(), stamp];
            (memory, offer) = (Some(made), Some(offered));
        }
        // SAFETY: four words on every rank.
        unsafe {
            let word = mpi.constants().types.uint64_t;
            mpi.bcast(invitation.as_mut_ptr().cast(), 4, word, 0, comm)?;
        }
        let [offered, process, descriptor, stamp] = invitation;
        if me != 0 && offered == 1 {
            let address = Address { process: process as u32, descriptor: descriptor as u32 };
            memory = Mapping::attach(address, bytes).ok();
        }
        let memory = memory.filter(|memory| memory.words()[0].load(Ordering::Acquire) == stamp);
        Ok(Common { memory, stamp, offer })
    }
}

impl NodeMemory {
    /// Collective over the communicator; none on the ranks of a machine where one of them cannot map it.
    ///
    /// # Safety
    /// The handle is a communicator of the MPI in this process that is not freed before this returns, and no
    /// intercommunicator.
    pub unsafe fn of_mpi(handle: usize, words: usize) -> Result<Option<NodeMemory>> {
        let mpi = allhands_mpi::load()?;
        let me = mpi.comm_rank(handle)?;
        let local = Communicator::own(mpi, mpi.comm_split_shared(handle, me as i32)?)?;
        let ranks: Vec<usize> =
            gather(mpi, local.handle(), [me as u64])?.into_iter().map(|[rank]| rank as usize).collect();
        // The first word tells that the memory is the one that was offered.
        let common = Common::map(mpi, local.handle(), (1 + words) * size_of::<u64>())?;
        let mapped = gather(mpi, local.handle(), [u64::from(common.memory.is_some())])?;
        let memory = common.memory.filter(|_| mapped.iter().all(|[mapped]| *mapped == 1));
        Ok(memory.map(|memory| NodeMemory { memory, words, ranks }))
    }

    /// The memory, which starts as zeros.
    pub fn words(&self) -> &[AtomicU64] {
        &self.memory.words()[1..][..self.words]
    }

    /// The communicator's ranks on this machine.
    pub fn ranks(&self) -> &[usize] {
        &self.ranks
    }
}

/// What the ranks of this process went by last: communicators that go by the same think about each question once.
static KNOWN: Mutex<Option<(Texts, Arc<Evidence>)>> = Mutex::new(None);

/// What rank 0 finds in the files that the user names, for all ranks.
fn evidence(mpi: &Mpi, comm: Handle, me: usize) -> Result<Arc<Evidence>> {
    let Texts { tuning, machine } = if me == 0 { Texts::named() } else { Texts::default() };
    let texts = Texts { tuning: of_first(mpi, comm, tuning)?, machine: of_first(mpi, comm, machine)? };
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, evidence)) = known.as_ref().filter(|(known, _)| *known == texts) {
        return Ok(evidence.clone());
    }
    let evidence = Arc::new(Evidence::of_texts(&texts, Some(&version(mpi)), me == 0));
    *known = Some((texts, evidence.clone()));
    Ok(evidence)
}

/// Rank 0's text, on all ranks.
fn of_first(mpi: &Mpi, comm: Handle, text: Option<String>) -> Result<Option<String>> {
    // One more than its length, or 0 for none.
    let mut length = text.as_ref().map_or(0, |text| text.len() as u64 + 1);
    // SAFETY: one word on every rank.
    unsafe { mpi.bcast((&raw mut length).cast(), 1, mpi.constants().types.uint64_t, 0, comm)? };
    let Some(length) = length.checked_sub(1) else { return Ok(None) };
    let mut bytes = text.map_or_else(|| vec![0; length as usize], String::into_bytes);
    if length > 0 {
        // SAFETY: as many bytes on every rank.
        unsafe { mpi.bcast(bytes.as_mut_ptr().cast(), bytes.len(), mpi.constants().types.byte, 0, comm)? };
    }
    Ok(Some(String::from_utf8_lossy(&bytes).into_owned()))
}

/// What an MPI calls itself, in a few words: `Open MPI v5.0.11`, `MPICH Version: 5.0.2`.
pub(crate) fn version(mpi: &Mpi) -> String {
    mpi.library_version().map_or_else(|_| "an MPI without a name".into(), |text| short(&text))
}

/// The first line up to a comma or semicolon: what follows tells who built it, and where.
fn short(version: &str) -> String {
    let line = version.lines().find(|line| !line.trim().is_empty()).unwrap_or("an MPI without a name");
    line.split([',', ';']).next().unwrap_or(line).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Some words of every rank, by MPI's own allgather.
fn gather<const N: usize>(mpi: &Mpi, comm: Handle, mine: [u64; N]) -> Result<Vec<[u64; N]>> {
    let mut all = vec![[0; N]; mpi.comm_size(comm)?];
    let word = mpi.constants().types.uint64_t;
    // SAFETY: N words of every rank, and room for all of them.
    unsafe { mpi.allgather(mine.as_ptr().cast(), all.as_mut_ptr().cast(), N, word, comm)? };
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_a_few_words() {
        assert_eq!(short("Open MPI v5.0.11, package: Open MPI root@builder, ident: 5.0.11"), "Open MPI v5.0.11");
        assert_eq!(short("MPICH Version:      5.0.2; MPICH Release date: today"), "MPICH Version: 5.0.2");
        assert_eq!(
            short("\nIntel(R) MPI Library 2021.18 for Linux* OS\n"),
            "Intel(R) MPI Library 2021.18 for Linux* OS"
        );
        assert_eq!(short(""), "an MPI without a name");
    }
}
