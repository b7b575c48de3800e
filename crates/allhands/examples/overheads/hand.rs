//! A plan beside a hand-written loop that sends the same messages: by `Isend`, `Irecv` and `Waitall`, by persistent requests,
//! and by a mixture of `Isend` and persistent receives. Every rank is its own node here, so all messages are MPI's.

use allhands::{Comm, Options, Plan, Result, Topology};
use allhands_mpi::{Handle, Handles, Mpi};

use crate::Bench;
use crate::turns::{Spread, by_turns};

const TAG: i32 = 1;

/// One message of a rank: bytes `at` some place of the buffer, to or from a rank.
#[derive(Clone, Copy)]
struct Message {
    peer: usize,
    at: usize,
    bytes: usize,
}

/// Messages that are under way together.
struct Round {
    sends: Vec<Message>,
    receives: Vec<Message>,
}

pub(crate) fn measure(bench: &Bench<'_>) -> Result<()> {
    let (p, me) = (bench.comm.size(), bench.comm.rank());
    let apart = bench.comm.seated(Topology::regular(p, 1)?)?;
    for bytes in [8, 1024, 64 * 1024] {
        let gather = |name: &str| apart.allgather_plan_with::<u8>(bytes, &Options::new().algorithm(name));
        one(bench, &apart, "allgather-ring", bytes, gather("ring")?, ring(p, me, bytes), Kind::Gather)?;
        one(bench, &apart, "allgather-bruck", bytes, gather("bruck")?, bruck(p, me, bytes), Kind::Rotated)?;
        let all = apart.alltoall_plan_with::<u8>(bytes, &Options::new().algorithm("spread-out"))?;
        one(bench, &apart, "alltoall-spread-out", bytes, all, spread_out(p, me, bytes), Kind::All)?;
    }
    Ok(())
}

/// How the buffers of a pattern look.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Messages are sent from and received in the output, where this rank's block is put first.
    Gather,
    /// The same, with this rank's block first and the output rotated at the end.
    Rotated,
    /// Sent from the input, received in the output.
    All,
}

fn ring(p: usize, me: usize, bytes: usize) -> Vec<Round> {
    let block = |peer: usize, block: usize| Message { peer, at: block % p * bytes, bytes };
    let round = |k: usize| Round {
        sends: vec![block((me + 1) % p, me + p - k)],
        receives: vec![block((me + p - 1) % p, me + p - 1 - k)],
    };
    (0..p - 1).map(round).collect()
}

fn bruck(p: usize, me: usize, bytes: usize) -> Vec<Round> {
    let mut rounds = Vec::new();
    let mut window = 1;
    while window < p {
        let bytes_of = window.min(p - window) * bytes;
        rounds.push(Round {
            sends: vec![Message { peer: (me + p - window) % p, at: 0, bytes: bytes_of }],
            receives: vec![Message { peer: (me + window) % p, at: window * bytes, bytes: bytes_of }],
        });
        window *= 2;
    }
    rounds
}

fn spread_out(p: usize, me: usize, bytes: usize) -> Vec<Round> {
    let message = |peer: usize| Message { peer, at: peer * bytes, bytes };
    vec![Round {
        sends: (1..p).map(|k| message((me + k) % p)).collect(),
        receives: (1..p).map(|k| message((me + p - k) % p)).collect(),
    }]
}

fn one(
    bench: &Bench<'_>,
    apart: &Comm,
    name: &str,
    bytes: usize,
    mut plan: Plan<u8>,
    rounds: Vec<Round>,
    kind: Kind,
) -> Result<()> {
    let (p, me, mpi) = (apart.size(), apart.rank(), bench.mpi);
    let blocks = if kind == Kind::All { p } else { 1 };
    let input: Vec<u8> = (0..blocks * bytes).map(|index| (me * 7 + index) as u8).collect();
    let mut by_plan = vec![0; p * bytes];
    plan.run(&input, &mut by_plan)?;
    let comm = mpi.comm_dup(mpi.world())?;
    let mut by_hand = Hand::new(mpi, comm, &rounds, kind, &input, p * bytes, (me, p));
    let mut persistent = Hand::new(mpi, comm, &rounds, kind, &input, p * bytes, (me, p));
    let mut mixed = Hand::new(mpi, comm, &rounds, kind, &input, p * bytes, (me, p));
    persistent.prepare(true)?;
    mixed.prepare(false)?;
    by_hand.run()?;
    persistent.run_prepared()?;
    mixed.run_mixed()?;
    let all = [&by_hand.output, &persistent.output, &mixed.output];
    assert!(all.iter().all(|output| **output == by_plan), "{name} of {bytes} bytes: not the same");
    let times = by_turns(
        bench,
        &mut [
            &mut || plan.run(&input, &mut by_plan),
            &mut || by_hand.run(),
            &mut || persistent.run_prepared(),
            &mut || mixed.run_mixed(),
        ],
    )?;
    let [plan_us, hand_us, persistent_us, mixed_us] = [0, 1, 2, 3].map(|way| Spread::of(times[way].iter().copied()));
    let (to_hand, to_persistent) = (Spread::of_ratios(&times[0], &times[1]), Spread::of_ratios(&times[0], &times[2]));
    let messages: usize = rounds.iter().map(|round| round.sends.len()).sum();
    bench.say(format!(
        "plan-vs-hand pattern={name} ranks={p} bytes={bytes} messages={messages} plan/hand={to_hand} plan/persistent={to_persistent} plan_us={plan_us} hand_us={hand_us} persistent_us={persistent_us} mixed_us={mixed_us}"
    ));
    drop((by_hand, persistent, mixed));
    mpi.comm_free(comm)?;
    Ok(())
}

/// The loop that a programmer would write.
struct Hand<'a> {
    mpi: &'static Mpi,
    comm: Handle,
    rounds: &'a [Round],
    kind: Kind,
    input: &'a [u8],
    output: Vec<u8>,
    /// Where Bruck's windows grow.
    rotated: Vec<u8>,
    me: usize,
    ranks: usize,
    requests: Vec<Handles>,
    /// How many of each round's requests are persistent.
    prepared: Vec<usize>,
}

impl<'a> Hand<'a> {
    fn new(
        mpi: &'static Mpi,
        comm: Handle,
        rounds: &'a [Round],
        kind: Kind,
        input: &'a [u8],
        bytes: usize,
        (me, ranks): (usize, usize),
    ) -> Hand<'a> {
        let requests = rounds.iter().map(|round| Handles::new(mpi, round.sends.len() + round.receives.len())).collect();
        let (output, rotated) = (vec![0; bytes], vec![0; bytes]);
        Hand { mpi, comm, rounds, kind, input, output, rotated, me, ranks, requests, prepared: Vec::new() }
    }

    /// Where messages are sent from and received.
    fn places(&mut self) -> (*const u8, *mut u8) {
        match self.kind {
            Kind::Gather => (self.output.as_ptr(), self.output.as_mut_ptr()),
            Kind::Rotated => (self.rotated.as_ptr(), self.rotated.as_mut_ptr()),
            Kind::All => (self.input.as_ptr(), self.output.as_mut_ptr()),
        }
    }

    fn own_block(&mut self) {
        let (len, at) = (self.input.len(), self.me * self.input.len());
        match self.kind {
            Kind::Gather => self.output[at..at + len].copy_from_slice(self.input),
            Kind::Rotated => self.rotated[..len].copy_from_slice(self.input),
            Kind::All => {
                let block = len / self.ranks;
                let at = self.me * block;
                self.output[at..at + block].copy_from_slice(&self.input[at..at + block]);
            }
        }
    }

    fn rotate(&mut self) {
        if self.kind == Kind::Rotated {
            let first = self.me * self.input.len();
            let (head, tail) = self.rotated.split_at(self.output.len() - first);
            self.output[first..].copy_from_slice(head);
            self.output[..first].copy_from_slice(tail);
        }
    }

    fn run(&mut self) -> Result<()> {
        self.own_block();
        let (from, to) = self.places();
        for (round, requests) in self.rounds.iter().zip(&mut self.requests) {
            let receives = round.receives.len();
            for (index, message) in round.receives.iter().enumerate() {
                // SAFETY: inside the buffer, which stays until the wait below.
                let request =
                    unsafe { self.mpi.irecv(to.add(message.at), message.bytes, message.peer as i32, TAG, self.comm)? };
                requests.set(index, request);
            }
            for (index, message) in round.sends.iter().enumerate() {
                // SAFETY: as above; a round sends nothing that it receives.
                let request = unsafe {
                    self.mpi.isend(from.add(message.at), message.bytes, message.peer as i32, TAG, self.comm)?
                };
                requests.set(receives + index, request);
            }
            self.mpi.waitall(requests)?;
        }
        self.rotate();
        Ok(())
    }

    /// Makes persistent requests: for the receives, and for the sends if they are wanted.
    fn prepare(&mut self, sends: bool) -> Result<()> {
        let (from, to) = self.places();
        for (round, requests) in self.rounds.iter().zip(&mut self.requests) {
            let receives = round.receives.len();
            for (index, Message { peer, at, bytes }) in round.receives.iter().enumerate() {
                // SAFETY: inside the buffer, which stays where it is until the requests are freed.
                requests.set(index, unsafe { self.mpi.recv_init(to.add(*at), *bytes, *peer as i32, TAG, self.comm)? });
            }
            self.prepared.push(receives + if sends { round.sends.len() } else { 0 });
            for (index, Message { peer, at, bytes }) in round.sends.iter().enumerate().filter(|_| sends) {
                // SAFETY: as above.
                let request = unsafe { self.mpi.send_init(from.add(*at), *bytes, *peer as i32, TAG, self.comm)? };
                requests.set(receives + index, request);
            }
        }
        Ok(())
    }

    fn run_mixed(&mut self) -> Result<()> {
        self.own_block();
        let (from, _) = self.places();
        for (round, requests) in self.rounds.iter().zip(&mut self.requests) {
            let receives = round.receives.len();
            for index in 0..receives {
                let mut request = requests.get(index);
                // SAFETY: the buffers stay until the wait.
                unsafe { self.mpi.start(&mut request)? };
                requests.set(index, request);
            }
            for (index, Message { peer, at, bytes }) in round.sends.iter().enumerate() {
                // SAFETY: as above; a round sends nothing that it receives.
                let request = unsafe { self.mpi.isend(from.add(*at), *bytes, *peer as i32, TAG, self.comm)? };
                requests.set(receives + index, request);
            }
            self.mpi.waitall(requests)?;
        }
        self.rotate();
        Ok(())
    }

    fn run_prepared(&mut self) -> Result<()> {
        self.own_block();
        for requests in &mut self.requests {
            // SAFETY: the buffers stay until the wait.
            unsafe { self.mpi.startall(requests)? };
            self.mpi.waitall(requests)?;
        }
        self.rotate();
        Ok(())
    }
}

impl Drop for Hand<'_> {
    fn drop(&mut self) {
        for (requests, prepared) in self.requests.iter().zip(&self.prepared) {
            for index in 0..*prepared {
                let _ = self.mpi.request_free(&mut requests.get(index));
            }
        }
    }
}
