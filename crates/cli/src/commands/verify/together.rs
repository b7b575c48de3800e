//! One result of what the ranks of an MPI job have verified, each its share; combined by the library that is verified here.

use allhands::{Comm, Op};
use allhands_schedule::{Collective, algorithms};

use super::Tally;

/// Divides the cores of a node among its ranks.
pub(super) fn leave_cores(comm: &Comm) {
    let (topology, me) = (comm.topology(), comm.rank());
    let ranks = match topology.depth() {
        0 => comm.size(),
        _ => topology.region(0, topology.region_of(0, me)).len(),
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Refused where there are threads already, which then serve as well.
    let _ = rayon::ThreadPoolBuilder::new().num_threads((cores / ranks).max(1)).build_global();
}

/// The same on every rank: the sum of all shares.
pub(super) fn joined(comm: &Comm, mine: Tally) -> allhands::Result<Tally> {
    let known: Vec<(Collective, &'static str)> =
        Collective::ALL.into_iter().flat_map(|of| algorithms(of).map(move |one| (of, one.name))).collect();
    let mut sums = vec![mine.verified as u64, mine.refused as u64];
    sums.extend(known.iter().map(|one| u64::from(mine.algorithms.contains(one))));
    comm.allreduce_in_place(&mut sums, Op::sum())?;
    let verified_by_some = known.into_iter().zip(&sums[2..]).filter(|(_, ranks)| **ranks > 0);
    Ok(Tally {
        verified: sums[0] as usize,
        refused: sums[1] as usize,
        algorithms: verified_by_some.map(|(one, _)| one).collect(),
        first_refusal: texts(comm, mine.first_refusal.as_slice())?.into_iter().next(),
        wrong: texts(comm, &mine.wrong)?,
    })
}

/// Ends a text; no message of ours holds it.
const END: u8 = 0;

/// The texts of all ranks.
fn texts(comm: &Comm, mine: &[String]) -> allhands::Result<Vec<String>> {
    let mine: Vec<u8> = mine.iter().flat_map(|text| text.bytes().chain([END])).collect();
    let mut lengths = vec![0u64; comm.size()];
    comm.allgather(&[mine.len() as u64], &mut lengths)?;
    let counts: Vec<usize> = lengths.iter().map(|length| *length as usize).collect();
    let mut all = vec![0; counts.iter().sum()];
    comm.allgatherv(&mine, &mut all, &counts)?;
    let texts = all.split(|byte| *byte == END).filter(|text| !text.is_empty());
    Ok(texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use allhands::Topology;

    use super::*;

    #[test]
    fn every_rank_knows_what_all_have_found() {
        let tallies = allhands::threads(Topology::flat(3).unwrap(), |comm| {
            let mut mine = Tally { verified: 10 + comm.rank(), ..Tally::default() };
            mine.algorithms.insert((Collective::Allgather, ["ring", "bruck", "ring"][comm.rank()]));
            if comm.rank() > 0 {
                mine.first_refusal = Some(format!("no {}", comm.rank()));
                mine.wrong = vec![format!("wrong {}", comm.rank()); comm.rank()];
            }
            joined(comm, mine).map(|tally| (tally.verified, tally.algorithms.len(), tally.first_refusal, tally.wrong))
        });
        let wrong = ["wrong 1", "wrong 2", "wrong 2"].map(String::from).to_vec();
        assert_eq!(tallies.unwrap(), vec![(33, 2, Some("no 1".into()), wrong); 3]);
    }
}
