//! Who has which blocks after each step of a composition, and what its messages carry: everything that the receiver lacks.
//!
//! All regions do the same, each as if it were the first: a block is named by how many regions on its rank is, and by its seat. So
//! what one region knows stands for all.

use super::steps::{Grid, Kind, Step};

/// Seats of a region, a bit each.
pub(crate) type Seats = u128;
/// Regions have at most so many seats.
pub(crate) const MOST_SEATS: usize = Seats::BITS as usize;

/// Blocks by region: how many regions on, and on which seats. Only regions that have some.
pub(crate) type Blocks = Vec<(usize, Seats)>;

/// A message as its receiver sees it.
#[derive(Clone, Debug)]
pub(crate) struct Fetch {
    /// How many regions on the sender is.
    pub(crate) region: usize,
    /// On which seat.
    pub(crate) seat: usize,
    pub(crate) blocks: Blocks,
}

pub(crate) fn count(blocks: &Blocks) -> usize {
    blocks.iter().map(|(_, seats)| seats.count_ones() as usize).sum()
}

/// What a step does, for the rank on each seat.
#[derive(Clone, Debug)]
pub(crate) enum Done {
    /// The messages that it receives.
    Talk(Vec<Vec<Fetch>>),
    /// What the region shares, and which of that the rank has.
    Share { all: Blocks, mine: Vec<Blocks> },
}

/// Who has which blocks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Knowledge {
    grid: Grid,
    /// What the rank on each seat has of each region.
    of: Vec<Seats>,
    /// Where regions share memory: what somebody of the region has, and what all have.
    shared: Option<(Vec<Seats>, Vec<Seats>)>,
}

impl Knowledge {
    /// Everybody has his own block.
    pub(crate) fn new(grid: Grid, shares: bool) -> Knowledge {
        let Grid { regions, seats } = grid;
        let mut of = vec![0; seats * regions];
        (0..seats).for_each(|seat| of[seat * regions] = 1 << seat);
        let shared = shares.then(|| {
            let mut somebody = vec![0; regions];
            somebody[0] = all_of(seats);
            (somebody, vec![0; regions])
        });
        Knowledge { grid, of, shared }
    }

    pub(crate) fn step(&mut self, step: &Step) -> Done {
        let Grid { regions, seats } = self.grid;
        let Step::Talk(moves) = step else { return self.share() };
        let mut messages: Vec<Vec<Fetch>> = Vec::with_capacity(seats);
        let mut next = self.of.clone();
        for seat in 0..seats {
            let mut fetches = Vec::new();
            let wanted = |kind: Kind| if kind == Kind::Lane { 1 << seat } else { Seats::MAX };
            let asked = moves.iter().flat_map(|one| one.sources(self.grid, seat).map(move |from| (one.kind, from)));
            for (kind, (far, from)) in asked {
                let mut blocks = Blocks::new();
                for region in 0..regions {
                    let has = self.of[from * regions + (region + regions - far) % regions];
                    let known = &mut next[seat * regions + region];
                    // Where memory is shared nobody brings what another has brought.
                    let there = self.shared.as_mut().map_or(*known, |(somebody, _)| somebody[region]);
                    let new = has & wanted(kind) & !there;
                    if new != 0 {
                        blocks.push((region, new));
                        *known |= new;
                        if let Some((somebody, _)) = &mut self.shared {
                            somebody[region] |= new;
                        }
                    }
                }
                if !blocks.is_empty() {
                    fetches.push(Fetch { region: far, seat: from, blocks });
                }
            }
            messages.push(fetches);
        }
        self.of = next;
        Done::Talk(messages)
    }

    /// Everything that somebody has is everybody's from now on.
    fn share(&mut self) -> Done {
        let Grid { regions, seats } = self.grid;
        let Some((somebody, everybody)) = &mut self.shared else { return Done::Talk(vec![Vec::new(); seats]) };
        let new = |of: &[Seats]| {
            let new = of.iter().zip(everybody.iter()).map(|(has, known)| has & !known).enumerate();
            new.filter(|(_, seats)| *seats != 0).collect::<Blocks>()
        };
        let (all, mine) = (new(somebody), self.of.chunks(regions).map(new).collect());
        everybody.copy_from_slice(somebody);
        self.of.chunks_mut(regions).for_each(|of| of.copy_from_slice(somebody));
        Done::Share { all, mine }
    }

    /// How many blocks who knows least lacks.
    pub(crate) fn lacking(&self) -> usize {
        let Grid { regions, seats } = self.grid;
        let known = |of: &[Seats]| of.iter().map(|seats| seats.count_ones() as usize).sum::<usize>();
        self.of.chunks(regions).map(|of| regions * seats - known(of)).max().unwrap_or(0)
    }
}

/// All seats of a region.
fn all_of(seats: usize) -> Seats {
    Seats::MAX >> (MOST_SEATS - seats)
}
