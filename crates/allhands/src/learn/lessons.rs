//! What communicators have learned: for a report, and for the next job.

use allhands_model::Machine;
use allhands_schedule::Topology;

use super::{Lesson, Memory, Setting};
use crate::tuning::Cell;

/// What was learned on communicators of one shape.
#[derive(Clone, Debug)]
pub struct Learned {
    /// How many ranks they have.
    pub ranks: usize,
    /// Nodes, and ranks on the fullest of them.
    shape: (usize, usize),
    /// What was learned.
    pub lesson: Lesson,
}

/// What was learned in a job, as far as this rank took part in it.
///
/// ```
/// use allhands::learn::{Lesson, Lessons};
/// use allhands::{Server, Time, Topology};
/// # use allhands_schedule::Collective;
/// let time = |algorithm: &str, median_us| Time { algorithm: algorithm.into(), median_us, p10_us: median_us, p90_us: median_us, samples: 8 };
/// let lesson = Lesson {
///     collective: Collective::Allreduce,
///     bytes: Some(64),
///     usual_bytes: None,
///     calls: 1000,
///     server: Server::Library,
///     tried: vec![time("mpi", 2.0), time("nap", 3.0)],
///     settled: true,
///     gained: 1e-3,
///     spent: 1e-5,
/// };
/// let mut lessons = Lessons::default();
/// lessons.add(&Topology::regular(2, 4)?, (vec![lesson], 2e-5));
/// let (gained, spent) = lessons.sums();
/// assert!(gained > spent && lessons.all[0].ranks == 8);
/// assert_eq!(lessons.cells()[0].times.len(), 2); // for the next job
/// # Ok::<(), allhands_schedule::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Lessons {
    /// What was learned, in the order in which it came.
    pub all: Vec<Learned>,
    /// Seconds that were spent on no call in particular: on plans, and on telling times.
    pub aside: f64,
}

/// Fewer turns are not remembered.
const FEWEST_TURNS: usize = 4;

impl Lessons {
    /// Adds those of a communicator. Programs may make very many, so what taught nothing is not kept, but for what was spent on it, and what
    /// communicators of one shape have learned of the same calls, with the same outcome, is one lesson.
    pub fn add(&mut self, topology: &Topology, (lessons, aside): (Vec<Lesson>, f64)) {
        let (ranks, shape) = (topology.ranks(), (topology.regions(1), topology.region_sizes(1).1));
        let (taught, other): (Vec<Lesson>, Vec<Lesson>) =
            lessons.into_iter().partition(|lesson| lesson.tried.len() > 1);
        for lesson in taught {
            let of = |lesson: &Lesson| (lesson.collective, lesson.bytes, lesson.usual_bytes, lesson.settled);
            let like = |known: &&mut Learned| {
                (known.ranks, known.shape, of(&known.lesson)) == (ranks, shape, of(&lesson))
                    && known.lesson.server == lesson.server
            };
            match self.all.iter_mut().find(like) {
                Some(known) => known.lesson = together(&known.lesson, lesson),
                None => self.all.push(Learned { ranks, shape, lesson }),
            }
        }
        self.aside += aside + other.iter().map(|lesson| lesson.spent).sum::<f64>();
    }

    /// Seconds that calls took less than without learning, and that learning took.
    pub fn sums(&self) -> (f64, f64) {
        let add = |(gained, spent): (f64, f64), learned: &Learned| {
            (gained + learned.lesson.gained, spent + learned.lesson.spent)
        };
        self.all.iter().fold((0.0, self.aside), add)
    }

    /// Keeps them for the next job, with the machine that was found; what keeps it from that is said, and ends nothing.
    ///
    /// ```
    /// use allhands::learn::{Lessons, Setting};
    /// Lessons::default().keep(&Setting::Off, "MPICH 5", None); // nowhere
    /// ```
    pub fn keep(&self, setting: &Setting, transport: &str, machine: Option<&Machine>) {
        if let Some(memory) = Memory::of(setting, transport)
            && let Err(fact) = memory.keep(self.cells(), machine)
        {
            crate::log::say(fact);
        }
    }

    /// In the form of a tuning file: where several were tried, often enough, for calls of one class of sizes, or whose usual size is known.
    pub fn cells(&self) -> Vec<Cell> {
        let cell = |Learned { shape: (nodes, ranks_per_node), lesson, .. }: &Learned| {
            let bytes = lesson.bytes.or(lesson.usual_bytes)?;
            let times: Vec<_> = lesson.tried.iter().filter(|time| time.samples >= FEWEST_TURNS).cloned().collect();
            (times.len() > 1).then(|| Cell {
                collective: lesson.collective.name().into(),
                nodes: *nodes,
                ranks_per_node: *ranks_per_node,
                bytes,
                times,
            })
        };
        self.all.iter().filter_map(cell).collect()
    }
}

/// What two communicators have learned of the same calls: of who was tried on both, the times that rest on more turns.
fn together(one: &Lesson, other: Lesson) -> Lesson {
    let mut tried = one.tried.clone();
    for time in other.tried {
        match tried.iter_mut().find(|known| known.algorithm == time.algorithm) {
            Some(known) if known.samples < time.samples => *known = time,
            Some(_) => {}
            None => tried.push(time),
        }
    }
    tried.sort_by(|one, other| one.median_us.total_cmp(&other.median_us));
    let (calls, gained, spent) = (one.calls + other.calls, one.gained + other.gained, one.spent + other.spent);
    Lesson { calls, tried, gained, spent, ..other }
}

#[cfg(test)]
mod tests {
    use crate::server::Server;
    use crate::tuning::Time;
    use allhands_schedule::Collective;

    use super::*;

    fn time(algorithm: &str, samples: usize) -> Time {
        Time { algorithm: algorithm.into(), median_us: 2.0, p10_us: 1.0, p90_us: 3.0, samples }
    }

    fn lesson(bytes: usize, tried: Vec<Time>) -> Lesson {
        Lesson {
            collective: Collective::Bcast,
            bytes: Some(bytes),
            usual_bytes: None,
            calls: 100,
            server: Server::Library,
            tried,
            settled: true,
            gained: 3.0,
            spent: 0.25,
        }
    }

    #[test]
    fn what_was_tried_often_enough_is_remembered() {
        let lessons = vec![
            lesson(64, vec![time("mpi", 16), time("binomial", 8), time("linear", 1)]),
            lesson(128, vec![time("mpi", 16), time("linear", 1)]),
            lesson(64, vec![time("mpi", 16)]),
        ];
        let mut all = Lessons::default();
        all.add(&Topology::regular(2, 4).unwrap(), (lessons, 0.5));
        assert_eq!((all.all.len(), all.sums()), (2, (6.0, 1.25)));
        let cells = all.cells();
        assert_eq!(cells.len(), 1);
        assert_eq!((cells[0].nodes, cells[0].ranks_per_node, cells[0].bytes, cells[0].times.len()), (2, 4, 64, 2));
    }

    #[test]
    fn calls_of_any_size_are_remembered_by_their_usual_one() {
        let tried = || vec![time("mpi", 16), time("spread-out", 8)];
        let any =
            |usual_bytes| Lesson { collective: Collective::Alltoallv, bytes: None, usual_bytes, ..lesson(0, tried()) };
        let mut all = Lessons::default();
        all.add(&Topology::regular(2, 4).unwrap(), (vec![any(Some(96)), any(None), any(Some(2048))], 0.0));
        let places: Vec<(String, usize)> = all.cells().into_iter().map(|cell| (cell.collective, cell.bytes)).collect();
        assert_eq!(places, [("alltoallv".into(), 96), ("alltoallv".into(), 2048)]);
    }

    #[test]
    fn what_many_communicators_have_learned_alike_is_one_lesson() {
        let (two, four) = (Topology::flat(2).unwrap(), Topology::flat(4).unwrap());
        let mut all = Lessons::default();
        for turns in [16, 8, 24] {
            all.add(&two, (vec![lesson(64, vec![time("mpi", turns), time("binomial", 8)])], 0.5));
        }
        all.add(&two, (vec![lesson(64, vec![time("mpi", 4), time("bine", 4)])], 0.0));
        assert_eq!((all.all.len(), all.sums()), (1, (12.0, 2.5)));
        let Lesson { calls, tried, .. } = &all.all[0].lesson;
        let turns: Vec<(&str, usize)> = tried.iter().map(|time| (time.algorithm.as_str(), time.samples)).collect();
        assert_eq!((*calls, turns), (400, vec![("mpi", 24), ("binomial", 8), ("bine", 4)]));
        all.add(&two, (vec![lesson(128, vec![time("mpi", 4), time("bine", 4)])], 0.0));
        all.add(&four, (vec![lesson(64, vec![time("mpi", 4), time("bine", 4)])], 0.0));
        assert_eq!(all.all.len(), 3);
    }
}
