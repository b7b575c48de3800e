//! MPI ranks: joining a running MPI job, or starting MPI, on whichever MPI is there.
//!
//! Joining is collective. The first time, the ranks of a communicator make a *world*: they find out who sits on which node, map memory
//! together there, try whether the kernel lets them read each other's, and agree on a topology and on settings. A node whose ranks cannot
//! share memory works by MPI messages. What is joined later and has no other ranks is *derived*: it uses the world's channels, and costs a
//! number that its first rank tells the others. A world is known from its making until MPI ends.

mod obstacles;
mod seating;
mod speeds;

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::{Instant, SystemTime};

use allhands_model::Fit;
use allhands_mpi::{Handle, Mpi, ThreadLevel};
use allhands_schedule::Topology;

use crate::choose::{Evidence, Texts};
use crate::comm::{Comm, Far, hash};
use crate::error::{Error, Result};
use crate::learn::{LEARN, Memory, Setting};
use crate::log::note;
use crate::mpi_transport::{Communicator, Job, Lane};
use crate::node::memory::{Address, Mapping, Offer, longest_file};
use crate::node::{Node, PeerMemory, readable};
use crate::rank::{Origin, RankState};
use crate::raw::Fellows;
use crate::switch::switched;
use crate::world::World;

use obstacles::Sharing;
pub use obstacles::{Obstacle, Surroundings, needs_reading};
use speeds::Partners;

/// Runs `body` on this process, as one rank of the MPI job it belongs to.
///
/// The MPI is found at run time: the one that is loaded already, else the library that `ALLHANDS_MPI` names, else the one
/// that the launcher belongs to, else what the loader finds. MPI is started if the program has not done so, and then ended
/// with the last successful return; after an error it is not, so that the process can report it and the launcher ends
/// the others. `ALLHANDS_TOPOLOGY=4x4` makes ranks behave as if they sat on nodes like that. `ALLHANDS_PROGRESS=thread` starts
/// a thread that moves non-blocking collectives on while the rank computes; it needs `MPI_THREAD_MULTIPLE`.
/// `ALLHANDS_SINGLE_COPY=off` keeps ranks from reading each other's memory. `ALLHANDS_TUNING` names a tuning file and
/// `ALLHANDS_MACHINE` a machine (or a machine file) to choose algorithms by; rank 0 reads them for all. Where no machine is named, the
/// first ranks exchange a few messages before anything else, in about 5 ms, and the machine `generic` is fitted to what they took, unless
/// `ALLHANDS_LEARN=off`: [`Plan::explain`](crate::Plan::explain) tells the numbers. Of calls without a plan that come often the best few algorithms and the MPI's own
/// take turns then, until it is [learned](crate::learn) who is fastest; the next job begins with that.
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
        let wanted = std::env::var("ALLHANDS_PROGRESS").ok();
        mpi.init(if wants_thread(wanted.as_deref())? { ThreadLevel::Multiple } else { ThreadLevel::Funneled })?;
    }
    mpi.check_launcher(mpi.comm_size(mpi.world())?)?;
    let comm = join(mpi, mpi.world())?;
    let end = (!comm.is_derived()).then(|| End(comm.state().clone()));
    let result = body(&comm)?;
    drop(comm);
    drop(end);
    if started {
        mpi.finalize()?;
    }
    Ok(result)
}

/// The world that `mpi` has made is known no longer when it returns, as on every rank: others who wait for this one get to know.
struct End(Arc<RankState>);

impl Drop for End {
    fn drop(&mut self) {
        RankState::forget(Some(&self.0));
    }
}

impl Comm {
    /// The ranks of a communicator of the running MPI, given by its handle: an `MPI_Comm` as the program has it, widened to
    /// 64 bits. Collective over the communicator. The first time it takes a communicator of our own and memory for all pairs of ranks
    /// on a node, which last until MPI ends; a communicator without other ranks then costs next to nothing.
    ///
    /// Where MPI was started with `MPI_THREAD_MULTIPLE`, communicators may be used by different threads at the same time; otherwise
    /// every call on one counts as a call of MPI's.
    ///
    /// # Safety
    /// The handle is a communicator of the MPI in this process that is not freed before this returns, and no
    /// intercommunicator.
    pub unsafe fn from_mpi(handle: usize) -> Result<Comm> {
        let mpi = allhands_mpi::load()?;
        join(mpi, widened(mpi, handle))
    }
}

impl Fellows {
    /// Those of a communicator of the running MPI, if a world that this process has joined has all of them; the same on every rank.
    /// Waits for nobody.
    ///
    /// # Safety
    /// As for [`Comm::from_mpi`].
    pub unsafe fn of_mpi(handle: usize) -> Result<Option<Fellows>> {
        let mpi = allhands_mpi::load()?;
        mpi.ensure(ThreadLevel::Single)?;
        let handle = widened(mpi, handle);
        fellows(mpi, handle, mpi.comm_rank(handle)?, mpi.comm_size(handle)?)
    }

    /// The number of a communicator of theirs, by that of its making.
    pub(crate) fn number(&self, creation: u64) -> u64 {
        let origin = self.rank.origin.as_ref().map_or(0, |origin| origin.id);
        hash(&[CREATED, origin, creation, self.company.members[0] as u64])
    }
}

/// A handle as the MPI knows it: MPICH's have 32 bits, and sign extension of a C int must not count.
fn widened(mpi: &Mpi, handle: usize) -> Handle {
    let wide = mpi.abi() != allhands_mpi::Abi::Mpich;
    if wide { handle } else { handle & 0xffff_ffff }
}

/// Whether the user wants a thread that moves non-blocking collectives on while the rank computes.
fn wants_thread(progress: Option<&str>) -> Result<bool> {
    match progress {
        None | Some("") => Ok(false),
        Some(word) if word.eq_ignore_ascii_case("thread") => Ok(true),
        Some(word) if switched(word) == Some(false) => Ok(false),
        Some(other) => Err(Error::Setting {
            name: "ALLHANDS_PROGRESS",
            value: other.into(),
            remedy: "set it to thread, or not at all",
        }),
    }
}

/// What a switch is set to.
fn wants(name: &'static str, setting: Option<&str>, unset: bool) -> Result<bool> {
    match setting {
        None | Some("") => Ok(unset),
        Some(word) => switched(word).ok_or_else(|| Error::Setting {
            name,
            value: word.into(),
            remedy: if unset { "set it to off, or not at all" } else { "set it to on, or not at all" },
        }),
    }
}

/// Bodies of so many bytes between the processes of a node; longer messages are several letters, or read from the sender's memory. A receiver copies out of
/// one while the sender copies into the next: exchanges of 64 KiB take 6 % less so than with 16 KiB, bcasts of 64 KiB 10 to 20 %. Less on
/// nodes of many ranks, to save memory: there are 24 for each of them and each other.
fn body(ranks: usize) -> usize {
    match ranks {
        ..=64 => 8 * 1024,
        _ => 2 * 1024,
    }
}

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

/// The communicator's ranks: as part of a world that this process has joined before, if one has all of them, else as a new world.
///
/// All ranks of a communicator come to the same one. Each of them is in every world that has all of them, and knows it since it was
/// made (see [`RankState::make_known`]), so all find the same worlds; of several they take the first by number.
fn join(mpi: &'static Mpi, handle: Handle) -> Result<Comm> {
    mpi.ensure(ThreadLevel::Single)?;
    if mpi.comm_test_inter(handle)? {
        let text = "an intercommunicator has no ranks that all call the same collective; merge its groups first";
        return Err(Error::Operation(text.into()));
    }
    let (me, ranks) = (mpi.comm_rank(handle)?, mpi.comm_size(handle)?);
    match fellows(mpi, handle, me, ranks)? {
        Some(fellows) => derive(mpi, handle, fellows),
        None => found(mpi, handle, me, ranks),
    }
}

/// A communicator's ranks in a world that has all of them.
fn fellows(mpi: &Mpi, handle: Handle, me: usize, ranks: usize) -> Result<Option<Fellows>> {
    let known = RankState::known();
    if known.is_empty() {
        return Ok(None);
    }
    let group = mpi.comm_group(handle)?;
    let all: Vec<i32> = (0..ranks as i32).collect();
    let mut found = Ok(None);
    for rank in known {
        let Some(job) = &rank.world.job else { continue };
        let members = match mpi.group_translate_ranks(group, &all, job.group()) {
            Ok(members) => members,
            Err(error) => {
                found = Err(error);
                break;
            }
        };
        if let Some(members) = members {
            found = Ok(Some((rank, members)));
            break;
        }
    }
    mpi.group_free(group)?;
    let Some((rank, members)) = found? else { return Ok(None) };
    let Some(origin) = &rank.origin else { unreachable!("{OF_JOBS}") };
    let company = rank.company(origin, &members, me)?;
    Ok(Some(Fellows { rank, company }))
}

const OF_JOBS: &str = "worlds that are known are those of MPI jobs";

/// Some ranks of a world, which talk through what the world has: their first one numbers the communicator and tells the others, which is
/// all that ranks of one node need.
fn derive(mpi: &'static Mpi, handle: Handle, Fellows { rank, company }: Fellows) -> Result<Comm> {
    let (Some(origin), Some(job)) = (&rank.origin, &rank.world.job) else { unreachable!("{OF_JOBS}") };
    let (me, members, apart) = (company.me, &company.members, company.apart);
    let lane = apart.then(|| job.lane_of(members, origin.topology.ranks())).flatten();
    let mut told = [0; 2];
    if me == 0 {
        let number = origin.numbered.fetch_add(1, Ordering::Relaxed);
        told = [
            hash(&[origin.id, rank.world.me() as u64, number]),
            lane.as_ref().and_then(|lane| lane.draw()).unwrap_or(NO_TAGS),
        ];
    }
    // SAFETY: two words on every rank.
    unsafe { mpi.bcast(told.as_mut_ptr().cast(), told.len(), mpi.constants().types.uint64_t, 0, handle)? };
    let [id, first] = told;
    let far = match apart {
        true => Some(tags(mpi, handle, job, members, id, lane.filter(|_| first != NO_TAGS), first)?),
        false => None,
    };
    let evidence = origin.evidence.clone();
    Ok(Comm::derived(rank.clone(), id, company, far, evidence))
}

/// Tells numbers that follow from a communicator's making from those that are drawn: no rank is this one.
const CREATED: u64 = u64::MAX;
/// Tells letters that are timed from those of plans.
const SPEEDS: u64 = u64::MAX - 1;
/// Told where the first rank has no tags to give.
const NO_TAGS: u64 = u64::MAX;

/// Tags for messages between nodes: from `first` on of a lane that all ranks have, else the first ones of a new lane.
fn tags(
    mpi: &Mpi,
    handle: Handle,
    job: &Job,
    members: &[usize],
    id: u64,
    lane: Option<Arc<Lane>>,
    first: u64,
) -> Result<Far> {
    // A rank drops a lane with its last communicator on it, whatever others have: so all must have it.
    let have = all_true(mpi, handle, lane.is_some())?;
    if let Some(lane) = lane.filter(|_| have) {
        return Ok(Far::new(lane, first));
    }
    let made = job.communicator_of(members, id);
    if !all_true(mpi, handle, made.is_ok())? {
        let error = made.err().map_or_else(|| "another rank could not".into(), |error| error.to_string());
        let text = format!("MPI makes no more communicators, which messages between nodes need: {error}");
        return Err(Error::Operation(text));
    }
    let lane = Lane::new(made?);
    let first = lane.draw().unwrap_or_default();
    job.remember(members, &lane);
    Ok(Far::new(lane, first))
}

/// Whether something is so on all ranks.
fn all_true(mpi: &Mpi, comm: Handle, mine: bool) -> Result<bool> {
    let mut all = i32::from(mine);
    // SAFETY: one integer in place on every rank.
    unsafe {
        let (own, constants) = (mpi.in_place().cast_const(), mpi.constants());
        mpi.allreduce(own, (&raw mut all).cast(), 1, constants.types.int, constants.ops.min, comm)?;
    }
    Ok(all != 0)
}

/// A new world of a communicator's ranks.
fn found(mpi: &'static Mpi, handle: Handle, me: usize, ranks: usize) -> Result<Comm> {
    // A duplicate would come with the program's attributes, whose functions would be called, and with its hints.
    let communicator = mpi.comm_split(handle, Some(0), me as i32)?.expect("a color was given");
    let communicator = Communicator::own(mpi, communicator)?;
    let comm = communicator.handle();
    let Agreed { id, texts, topology, progress, single_copy, reproducible, learning } =
        Agreed::of_first(mpi, comm, me)?;
    let helped = wants_thread(progress.as_deref())?;
    let reaches = wants("ALLHANDS_SINGLE_COPY", single_copy.as_deref(), true)?;
    let reproducible = wants("ALLHANDS_REPRODUCIBLE", reproducible.as_deref(), false)?;
    let threads = mpi.query_thread()? >= ThreadLevel::Multiple;
    let local = Communicator::own(mpi, mpi.comm_split_shared(comm, me as i32)?)?;
    let neighbours: Vec<usize> =
        gather(mpi, local.handle(), [me as u64])?.into_iter().map(|[rank]| rank as usize).collect();
    let machine = neighbours[0];
    let Nearby { node, obstacle, reads } = share(mpi, &local, reaches)?;
    let secluded = node.is_none() && neighbours.len() > 1 && !reads && needs_reading(&version(mpi));
    let (node, neighbours) = match node {
        Some(node) => (Ok(node), neighbours),
        None => {
            let body = body(1);
            let alone = Mapping::private(Node::bytes(1, body));
            (alone.map(|alone| Node::new(Arc::new(alone), 1, 0, body, PeerMemory::Nowhere)), vec![me])
        }
    };
    let (socket, numa) = seating::mine();
    let able = node.is_ok() && (threads || !helped) && !secluded;
    let cores = node.as_ref().map_or(0, Node::cores);
    let mine = [machine as u64, socket, numa, neighbours[0] as u64, cores as u64, u64::from(able)];
    let all = gather(mpi, comm, mine)?;
    // From here on all find the same.
    if let Some(unable) = all.iter().position(|[.., able]| *able == 0) {
        let node = node.map_err(|error| Error::Memory { reason: error.to_string() })?;
        drop(node);
        if secluded {
            return Err(Error::Secluded { mpi: version(mpi) });
        }
        mpi.ensure(if helped { ThreadLevel::Multiple } else { ThreadLevel::Single })?;
        let reason = "it could not join: it has no memory, less than MPI_THREAD_MULTIPLE, or nobody to reach".into();
        return Err(Error::Abandoned { rank: unable, reason });
    }
    let node = node.map_err(|error| Error::Memory { reason: error.to_string() })?;
    let topology = match topology {
        Some(text) => {
            let topology: Topology = text.parse()?;
            let seats = topology.ranks();
            if seats != ranks {
                return Err(Error::Seats { topology: text, seats, ranks });
            }
            topology
        }
        None => {
            let places = all.iter().map(|[machine, socket, numa, ..]| vec![*machine, *socket, *numa]);
            Topology::grouped(&places.collect::<Vec<_>>())?
        }
    };
    let homes: Vec<usize> = all.iter().map(|[_, _, _, home, ..]| *home as usize).collect();
    // Those of ranks that share memory are counted together, once: where none does, bound ranks say one core each.
    let firsts = all.iter().enumerate().filter(|(rank, [_, _, _, home, ..])| *rank as u64 == *home);
    let cores = firsts.map(|(_, [_, _, _, _, cores, _])| *cores as usize).sum();
    let partners = Partners::of(&topology, &homes, cores);
    let world = World::of_job(Job::new(communicator)?, me, homes, node, neighbours, threads);
    let began = Instant::now();
    // What a machine file says is made to agree with what is found here.
    let fit = match learning.pace().is_some() && partners.are_any() {
        true => speeds::find(mpi, comm, &world, hash(&[id, SPEEDS]), &partners)?,
        false => Fit::default(),
    };
    let took = began.elapsed();
    let evidence = evidence(mpi, me, texts, cores, fit, &world);
    if let Some(words) = evidence.fitted_words().filter(|_| me == 0) {
        let nodes = topology.regions(1);
        let plural = if nodes == 1 { "" } else { "s" };
        note(&format!(
            "{ranks} ranks on {nodes} node{plural}: {words} (found out in {:.1} ms)",
            took.as_secs_f64() * 1e3
        ));
    }
    if let Some(Obstacle { fact, remedy }) = &obstacle {
        note(&format!("slower: {fact}; {remedy}"));
    }
    let (numbered, lessons) = (AtomicU64::new(0), Mutex::default());
    let origin = Origin { id, topology, evidence, began, learning, reproducible, obstacle, numbered, lessons };
    let rank = RankState::new(world, Some(origin));
    if helped {
        rank.hire();
    }
    let (Some(origin), Some(job)) = (&rank.origin, &rank.world.job) else {
        unreachable!("it was made of them");
    };
    let everybody = rank.company(origin, &(0..ranks).collect::<Vec<_>>(), me)?;
    let comm = Comm::of_job(rank.clone(), everybody, origin.evidence.clone(), job);
    end_with(mpi);
    rank.make_known();
    Ok(comm)
}

/// Lets what is known be forgotten when MPI ends, while it still works: the worlds free what they have of it, and the
/// ranks that still wait get to know that this one has left.
fn end_with(mpi: &Mpi) {
    unsafe extern "C" fn ending(_: Handle, _: c_int, _: *mut c_void, _: *mut c_void) -> c_int {
        RankState::forget(None);
        0
    }
    static ONCE: Once = Once::new();
    // Without it the worlds last as long as the process.
    // SAFETY: the function touches nothing of what it is given.
    ONCE.call_once(|| drop(unsafe { mpi.at_finalize(ending) }));
}

/// What the ranks of a node have in common.
struct Nearby {
    /// Their memory; none if one of them cannot map it.
    node: Option<Node>,
    /// What this rank could not do with the others.
    obstacle: Option<Obstacle>,
    /// Whether the kernel lets it read the memory of the next one.
    reads: bool,
}

/// Maps memory with the other ranks of the node. `read`: whether they are to read each other's memory, if they may.
fn share(mpi: &Mpi, local: &Communicator, read: bool) -> Result<Nearby> {
    let comm = local.handle();
    let (me, ranks) = (mpi.comm_rank(comm)?, mpi.comm_size(comm)?);
    let body = body(ranks);
    let Common { memory, stamp, offer } = Common::map(mpi, comm, Node::bytes(ranks, body))?;
    // Whether the kernel lets us read a neighbour's memory: by the word that it names.
    let probe = Box::new(stamp ^ me as u64);
    // Every rank is the first of some communicator, and makes memory for its plans.
    let makes = if me > 0 && ranks > 1 { Mapping::offered(1).err() } else { None };
    let (node, unshared) = match memory {
        // Memory of plans may be longer: whether there will be some must not depend on a call.
        Ok(_) if longest_file().is_some_and(|most| most < LONGEST) => {
            let error = std::io::Error::from_raw_os_error(libc::EFBIG);
            (None, Some(Obstacle::sharing(Sharing::Making, &error, &Surroundings::default())))
        }
        Ok(memory) => match makes {
            Some(error) => (None, Some(Obstacle::sharing(Sharing::Making, &error, &Surroundings::here(None)))),
            None => (Some(Node::new(Arc::new(memory), ranks, me, body, PeerMemory::Nowhere)), None),
        },
        Err(obstacle) => (None, obstacle),
    };
    let all = gather(mpi, comm, [std::process::id().into(), &raw const *probe as u64, u64::from(node.is_some())])?;
    drop(offer);
    let other = (me + 1) % ranks;
    let process = all[other][0] as u32;
    let tried = readable(process, all[other][1] as usize, stamp ^ other as u64);
    let reads = tried.is_ok();
    let can = gather(mpi, comm, [u64::from(read && reads)])?;
    drop(probe);
    let mut node = node.filter(|_| all.iter().all(|[_, _, mapped]| *mapped == 1));
    if let Some(node) = node.as_mut().filter(|_| can.iter().all(|[can]| *can == 1)) {
        node.peer_memory = PeerMemory::kernel(all.iter().map(|[process, ..]| *process as u32).collect());
    }
    let unread = || Some(Obstacle::reading(&tried.err()?, &Surroundings::here(Some(process))));
    let obstacle = match node {
        // Who is alone misses nothing.
        _ if ranks == 1 => None,
        None => unshared,
        Some(_) if read => unread(),
        Some(_) => None,
    };
    Ok(Nearby { node, obstacle, reads })
}

/// No plan has as much memory in common.
const LONGEST: u64 = 1 << 40;

/// Memory that the ranks of a node have mapped, each as far as it could.
struct Common {
    /// Or what is in the way here, if that is known here.
    memory: std::result::Result<Mapping, Option<Obstacle>>,
    /// In its first word; the same on every rank.
    stamp: u64,
    offer: Option<Offer>,
}

impl Common {
    /// Made by the first rank, mapped by the others. Collective.
    fn map(mpi: &Mpi, comm: Handle, bytes: usize) -> Result<Common> {
        let me = mpi.comm_rank(comm)?;
        let mut invitation: Invitation = [0; 4];
        let hindered = |doing, error, other| Some(Obstacle::sharing(doing, &error, &Surroundings::here(other)));
        let (mut memory, mut offer) = (Err(None), None);
        match (me == 0).then(|| Mapping::offered(bytes)) {
            Some(Ok((made, offered))) => {
                let Address { process, descriptor } = offered.address();
                // Tells this memory from any other file of that number, should processes not see each other's numbers.
                let stamp = u64::from(process) << 32 ^ made.as_ptr() as u64 ^ 0x616c_6c68_616e_6473;
                made.words()[0].store(stamp, Ordering::Release);
                invitation = [1, process.into(), descriptor.into(), stamp];
                (memory, offer) = (Ok(made), Some(offered));
            }
            Some(Err(error)) => memory = Err(hindered(Sharing::Making, error, None)),
            None => {}
        }
        // SAFETY: four words on every rank.
        unsafe {
            let word = mpi.constants().types.uint64_t;
            mpi.bcast(invitation.as_mut_ptr().cast(), 4, word, 0, comm)?;
        }
        let [offered, process, descriptor, stamp] = invitation;
        if me != 0 && offered == 1 {
            let address = Address { process: process as u32, descriptor: descriptor as u32 };
            memory = match Mapping::attach(address, bytes) {
                Ok(memory) if memory.words()[0].load(Ordering::Acquire) == stamp => Ok(memory),
                Ok(_) => Err(std::io::Error::other("not the memory that was offered")),
                Err(error) => Err(error),
            }
            .map_err(|error| hindered(Sharing::Opening, error, Some(address.process)));
        }
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
        let mapped = gather(mpi, local.handle(), [u64::from(common.memory.is_ok())])?;
        let memory = common.memory.ok().filter(|_| mapped.iter().all(|[mapped]| *mapped == 1));
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
static KNOWN: Mutex<Option<(Grounds, Arc<Evidence>)>> = Mutex::new(None);

/// What evidence is made of: texts, cores, and how fast messages are.
type Grounds = (Texts, usize, Fit);

/// What all ranks of a world go by: the first one's settings, which others may see otherwise.
struct Agreed {
    /// Tells the world from others of its ranks.
    id: u64,
    /// What `ALLHANDS_TUNING` and `ALLHANDS_MACHINE` name.
    texts: Texts,
    /// `ALLHANDS_TOPOLOGY`, `ALLHANDS_PROGRESS`, `ALLHANDS_SINGLE_COPY` and `ALLHANDS_REPRODUCIBLE`.
    topology: Option<String>,
    progress: Option<String>,
    single_copy: Option<String>,
    reproducible: Option<String>,
    /// What `ALLHANDS_LEARN` says; nothing is learned where a tuning file is named.
    learning: Setting,
}

impl Agreed {
    /// What the first rank finds, for all. Collective.
    fn of_first(mpi: &Mpi, comm: Handle, me: usize) -> Result<Agreed> {
        let mut texts: [Option<String>; 8] = Default::default();
        // How long the texts are and one more, or 0 for none; and the world's number, by the time of its making.
        let mut told = [0u64; 9];
        if me == 0 {
            let Texts { tuning, machine, .. } = Texts::named();
            // What is set to nothing is not set.
            let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
            let [topology, progress] = [set("ALLHANDS_TOPOLOGY"), set("ALLHANDS_PROGRESS")];
            let [single_copy, learn] = [set("ALLHANDS_SINGLE_COPY"), set(LEARN)];
            let reproducible = set("ALLHANDS_REPRODUCIBLE");
            let learned = match (&tuning, Setting::parse(learn.as_deref().unwrap_or_default())) {
                (None, Ok(setting)) => Memory::of(&setting, &version(mpi)).and_then(|memory| memory.recall()),
                _ => None,
            };
            texts = [tuning, learned, machine, topology, progress, single_copy, reproducible, learn];
            for (length, text) in told.iter_mut().zip(&texts) {
                *length = text.as_ref().map_or(0, |text| text.len() as u64 + 1);
            }
            let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            told[8] = since.as_nanos() as u64;
        }
        let mut bytes = texts.iter().flatten().flat_map(|text| text.bytes()).collect::<Vec<u8>>();
        // SAFETY: nine words on every rank.
        unsafe { mpi.bcast(told.as_mut_ptr().cast(), told.len(), mpi.constants().types.uint64_t, 0, comm)? };
        let [lengths @ .., id] = told;
        bytes.resize(lengths.iter().map(|length| length.saturating_sub(1) as usize).sum(), 0);
        if !bytes.is_empty() {
            // SAFETY: as many bytes on every rank.
            unsafe { mpi.bcast(bytes.as_mut_ptr().cast(), bytes.len(), mpi.constants().types.byte, 0, comm)? };
        }
        let mut rest = &bytes[..];
        let [tuning, learned, machine, topology, progress, single_copy, reproducible, learn] = lengths.map(|length| {
            let (text, after) = rest.split_at(length.checked_sub(1)? as usize);
            rest = after;
            Some(String::from_utf8_lossy(text).into_owned())
        });
        // Who names a tuning file has tuned, unless both are asked for: then what is learned begins there.
        let learning = match (&tuning, learn.as_deref()) {
            (Some(_), None) => Setting::Off,
            (_, learn) => Setting::parse(learn.unwrap_or_default())?,
        };
        let texts = Texts { tuning, learned, machine };
        Ok(Agreed { id, texts, topology, progress, single_copy, reproducible, learning })
    }
}

/// What speaks for algorithms on the cores that all ranks have together, where messages take as long as was found out.
fn evidence(mpi: &Mpi, me: usize, texts: Texts, cores: usize, fit: Fit, world: &World) -> Arc<Evidence> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let grounds = (texts, cores, fit);
    if let Some((_, evidence)) = known.as_ref().filter(|(known, _)| *known == grounds) {
        return evidence.clone();
    }
    let evidence = Evidence::of_texts(&grounds.0, Some(&version(mpi)), me == 0).on_cores(cores).fitted(fit);
    let evidence = Arc::new(evidence.noted_in(world.node.notebook()));
    *known = Some((grounds, evidence.clone()));
    evidence
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
