//! Which algorithms are compared.

use std::sync::Arc;

use allhands::{Server, Topology};
use allhands_schedule::{Choice, Collective, Written, algorithms};

use super::values::Called;
use crate::args;
use crate::failure::{Failure, Result};

/// The library's own choice.
pub(super) const AUTO: &str = "auto";
/// Room for most of what it chooses: `auto (recursive-doubling:order=...)`.
pub(super) const LONG_AUTO: usize = 34;
/// `auto` and every algorithm that serves.
const ALL: &str = "all";

/// Names as they were given, each known.
pub(super) struct Names(Vec<Name>);

#[derive(PartialEq)]
enum Name {
    All,
    Auto,
    One(Server),
}

impl Names {
    /// `all,mpi`, `bruck ring`, `bruck:ports=1,2,auto`.
    pub(super) fn parse(collective: Collective, text: &str) -> Result<Names> {
        let known = |name: &String| match name.as_str() {
            ALL => Ok(Name::All),
            AUTO => Ok(Name::Auto),
            name => Ok(Name::One(Server::parse(collective, name)?)),
        };
        let names = args::names(text).iter().map(known).collect::<Result<Vec<Name>>>()?;
        match names.is_empty() {
            true => Err(Failure::Usage("--algorithm is empty; name one, all, auto or, under mpirun, mpi".into())),
            false => Ok(Names(names)),
        }
    }

    /// And the schedule in a file.
    pub(super) fn beside(mut self, file: &str) -> Names {
        self.0.push(Name::One(Server::Written(file.into())));
        self
    }

    /// The files whose schedules are among them.
    pub(super) fn files(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|name| match name {
            Name::One(Server::Written(file)) => Some(file.as_str()),
            _ => None,
        })
    }

    /// Whether the MPI library's own collective is among them.
    pub(super) fn of_mpi(&self) -> bool {
        self.0.contains(&Name::One(Server::Library))
    }

    /// Those that run, each once. Of `all`, those that can serve here; one that was named must. `written` are the schedules of the files.
    pub(super) fn serving(
        &self,
        called: &Called,
        topology: &Topology,
        written: &[Arc<Written>],
    ) -> Result<Vec<String>> {
        let (problem, collective) = (called.problem(topology), called.collective);
        let mut serving: Vec<String> = Vec::new();
        let mut add = |name: String| {
            if !serving.contains(&name) {
                serving.push(name);
            }
        };
        for name in &self.0 {
            match name {
                Name::All => {
                    add(AUTO.into());
                    for algorithm in algorithms(collective) {
                        let choice = Choice::parse(collective, algorithm.name);
                        if choice.is_ok_and(|choice| choice.prepare(&problem).is_ok()) {
                            add(algorithm.name.into());
                        }
                    }
                }
                Name::Auto => add(AUTO.into()),
                Name::One(server) => {
                    let name = server.to_string();
                    server.choice().map(|choice| choice.prepare(&problem)).transpose()?;
                    let file = written.iter().find(|written| written.to_string() == name);
                    file.map(|written| written.prepare(&problem)).transpose()?;
                    add(name);
                }
            }
        }
        Ok(serving)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serving(text: &str) -> Vec<String> {
        let names = Names::parse(Collective::Allgather, text).unwrap();
        names.serving(&Called::new(Collective::Allgather), &Topology::flat(3).unwrap(), &[]).unwrap()
    }

    #[test]
    fn lists_mix_names_and_words_for_several() {
        assert_eq!(serving("mpi"), ["mpi"]);
        assert_eq!(serving("auto,mpi"), ["auto", "mpi"]);
        assert_eq!(serving("bruck:ports=1,1 mpi,ring"), ["bruck:ports=1,1", "mpi", "ring"]);
        let all = serving("ring,all,mpi,ring");
        assert_eq!((all[0].as_str(), all[1].as_str(), all.last().unwrap().as_str()), ("ring", "auto", "mpi"));
        assert_eq!(all.iter().filter(|name| *name == "ring").count(), 1);
        // Three ranks are too few for some.
        assert!(all.len() > 5 && !all.contains(&"neighbor-exchange".into()));
    }
}
