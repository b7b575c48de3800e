//! Between two looks at what others do.

use std::time::Duration;

/// First at once, then letting others run, then asleep.
#[derive(Default)]
pub struct Patience {
    looks: u32,
}

const SPINS: u32 = 20;
const YIELDS: u32 = 500;
const NAP: Duration = Duration::from_micros(50);

impl Patience {
    /// Lets some time pass.
    pub fn pause(&mut self) {
        self.looks += 1;
        if self.looks < SPINS {
            std::hint::spin_loop();
        } else if self.looks < YIELDS {
            std::thread::yield_now();
        } else {
            std::thread::sleep(NAP);
        }
    }
}
