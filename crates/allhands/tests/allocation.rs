//! Running a plan allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Barrier;

use allhands::{Op, Options, Topology};

struct Counting;

thread_local! {
    /// Of this thread: what else goes on in the process does not count.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are the ones `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn running_a_plan_allocates_nothing() {
    for algorithm in ["recursive-doubling", "rabenseifner", "nap", "nap:local=shared", "circulant", "cyclic-shift"] {
        for count in [1, 100, 10_000] {
            let barrier = Barrier::new(4);
            let counted = allhands::threads(Topology::regular(2, 2).unwrap(), |comm| {
                let options = Options::new().algorithm(algorithm).identical(false);
                let mut plan = comm.allreduce_plan_with::<f64>(count, Op::sum(), &options)?;
                let (x, mut y) = (vec![1.0; count], vec![0.0; count]);
                barrier.wait();
                let before = ALLOCATIONS.get();
                for _ in 0..100 {
                    plan.run(&x, &mut y)?;
                }
                let after = ALLOCATIONS.get();
                assert_eq!(y, vec![4.0; count]);
                Ok(after - before)
            });
            assert_eq!(counted.unwrap(), [0; 4], "{algorithm}, {count} elements");
        }
    }
}
