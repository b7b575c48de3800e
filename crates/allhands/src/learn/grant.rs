//! How long somebody serves before it is asked who is next.

/// So many calls are served alike before it is asked again. Ranks count the same calls, and so ask at the same one.
///
/// ```
/// use allhands::learn::Grant;
/// let mut grant = Grant::default();
/// assert!(!grant.spend(), "it was never asked");
/// grant.renew(2); // for this call and two more
/// assert!(grant.spend() && grant.spend() && !grant.spend());
/// assert_eq!(grant.since_asked(), Some(3));
/// ```
#[derive(Debug, Default)]
pub struct Grant {
    rest: u64,
    /// How many it was given for, with the call at which it was asked; 0 before that.
    calls: u64,
}

impl Grant {
    /// Spends one of the calls; false if none is left, and it is to be asked first who serves.
    #[inline]
    pub fn spend(&mut self) -> bool {
        let left = self.rest > 0;
        self.rest = self.rest.saturating_sub(1);
        left
    }

    /// How many calls were served since it was asked, if it was.
    pub fn since_asked(&self) -> Option<u64> {
        Some(self.calls).filter(|calls| *calls > 0)
    }

    /// For the call at hand, and so many after it.
    pub fn renew(&mut self, rest: u64) {
        (self.rest, self.calls) = (rest, 1 + rest);
    }

    /// It is not asked again.
    pub fn last_for_ever(&mut self) {
        self.rest = u64::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_asked_at_the_first_call_and_after_as_many_as_were_granted() {
        let mut grant = Grant::default();
        let mut asked = Vec::new();
        for call in 0..20 {
            if !grant.spend() {
                asked.push((call, grant.since_asked()));
                grant.renew(call);
            }
        }
        assert_eq!(asked, [(0, None), (1, Some(1)), (3, Some(2)), (7, Some(4)), (15, Some(8))]);
        grant.last_for_ever();
        assert!((0..1000).all(|_| grant.spend()));
    }
}
