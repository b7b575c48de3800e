use allhands_model::{Amount, Machine, Simulator};
use allhands_schedule::{Choice, Collective, Problem, Topology};

fn main() {
    let time = |machine: &Machine, c: Collective, t: &Topology, name: &str, bytes: u64| {
        let problem = Problem::new(c, t.clone());
        let prepared = Choice::parse(c, name).unwrap().prepare(&problem).unwrap();
        let begin = std::time::Instant::now();
        let mut s = Simulator::new(&prepared);
        let a = s.run(machine, Amount::bytes(bytes)).unwrap();
        let t1 = begin.elapsed();
        let mut s = Simulator::new(&prepared).exact();
        let b = s.run(machine, Amount::bytes(bytes)).unwrap();
        println!(
            "{name:20} {bytes:8} B {:10.2} us {:?} {:?} | exact {:10.2} {:?} timed {} msgs {}",
            a.seconds * 1e6,
            a.mode,
            t1,
            b.seconds * 1e6,
            begin.elapsed() - t1,
            b.contended,
            b.messages
        );
    };
    let bw = Machine::shipped("blue-waters").unwrap();
    for nodes in [16, 256, 2048, 4096] {
        println!("nodes {nodes}x16");
        for name in ["recursive-doubling", "smp", "nap"] {
            time(&bw, Collective::Allreduce, &Topology::regular(nodes, 16).unwrap(), name, 8);
        }
    }
    for bytes in [512, 1024, 2048, 4096, 8192, 16384] {
        for name in ["recursive-doubling", "smp", "nap"] {
            time(&bw, Collective::Allreduce, &Topology::regular(2048, 16).unwrap(), name, bytes);
        }
    }
    let lassen = Machine::shipped("lassen").unwrap();
    for (r, q) in [(16, 4), (64, 8), (16, 16), (256, 16), (1024, 16)] {
        println!("lassen {r}x{q}");
        for m in [&lassen, &lassen.uncontended()] {
            for name in ["bruck", "loc-bruck", "loc-bruck:fan=full"] {
                time(m, Collective::Allgather, &Topology::regular(r, q).unwrap(), name, 4);
            }
        }
    }
}
