//! What the launcher of this process says in its environment, and whether MPI agrees.
//!
//! A library under another MPI's launcher finds nobody: every process is rank 0 of 1 and all its calls succeed. The
//! environment tells.

use std::fmt;

use crate::{Error, Mpi, Result};

/// Who started the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LauncherKind {
    /// Open MPI's mpirun (`OMPI_COMM_WORLD_SIZE`).
    OpenMpi,
    /// Intel MPI's mpirun, a hydra (`PMI_SIZE` and `I_MPI_HYDRA_UUID`).
    Intel,
    /// The hydra of MPICH and its family (`PMI_SIZE`).
    Hydra,
    /// Slurm's srun (`SLURM_STEP_NUM_TASKS`).
    Slurm,
    /// Some other that speaks PMIx (`PMIX_RANK`), which tells no size.
    Pmix,
}

impl fmt::Display for LauncherKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LauncherKind::OpenMpi => "Open MPI's mpirun",
            LauncherKind::Intel => "Intel MPI's mpirun",
            LauncherKind::Hydra => "MPICH's mpiexec",
            LauncherKind::Slurm => "Slurm's srun",
            LauncherKind::Pmix => "a PMIx launcher",
        })
    }
}

/// What the environment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launcher {
    /// Who started the process.
    pub kind: LauncherKind,
    /// How many processes.
    pub size: Option<usize>,
    /// Which of them this is.
    pub rank: Option<usize>,
    /// Which it is on its machine.
    pub local_rank: Option<usize>,
}

impl Launcher {
    /// The launcher of this process, if there is one.
    pub fn from_environment() -> Option<Launcher> {
        Launcher::from_variables(|name| std::env::var(name).ok())
    }

    /// The launcher that these variables speak of.
    ///
    /// An MPI's own launcher comes first, as it may run inside of Slurm.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Option<Launcher> {
        let number = |name: &str| variable(name)?.trim().parse::<usize>().ok();
        let has = |name: &str| variable(name).is_some();
        if has("OMPI_COMM_WORLD_SIZE") {
            return Some(Launcher {
                kind: LauncherKind::OpenMpi,
                size: number("OMPI_COMM_WORLD_SIZE"),
                rank: number("OMPI_COMM_WORLD_RANK"),
                local_rank: number("OMPI_COMM_WORLD_LOCAL_RANK"),
            });
        }
        let slurm = slurm(&number);
        // Slurm's own PMI sets PMI_SIZE as well, but not what hydra says about the machine.
        if has("PMI_SIZE") && (slurm.is_none() || has("MPI_LOCALRANKID")) {
            // Set by Intel's hydra itself; most other I_MPI_ variables are for users to set.
            let intel = has("I_MPI_HYDRA_UUID");
            return Some(Launcher {
                kind: if intel { LauncherKind::Intel } else { LauncherKind::Hydra },
                size: number("PMI_SIZE"),
                rank: number("PMI_RANK"),
                local_rank: number("MPI_LOCALRANKID"),
            });
        }
        if slurm.is_some() {
            return slurm;
        }
        has("PMIX_RANK").then(|| Launcher {
            kind: LauncherKind::Pmix,
            size: None,
            rank: number("PMIX_RANK"),
            local_rank: None,
        })
    }
}

/// Slurm's step. A batch script too has `SLURM_PROCID` and `SLURM_NTASKS`, and what it runs without srun is rightly alone:
/// only the variables of a step count.
fn slurm(number: &impl Fn(&str) -> Option<usize>) -> Option<Launcher> {
    let in_step = number("SLURM_STEP_ID").and(number("SLURM_NTASKS"));
    let size = number("SLURM_STEP_NUM_TASKS").or(in_step)?;
    let rank = number("SLURM_PROCID")?;
    Some(Launcher {
        kind: LauncherKind::Slurm,
        size: Some(size),
        rank: Some(rank),
        local_rank: number("SLURM_LOCALID"),
    })
}

impl Mpi {
    /// That MPI's world is not a single process where the launcher has started several.
    pub fn check_launcher(&self, world_size: usize) -> Result<()> {
        match Launcher::from_environment() {
            Some(launcher) => agree(&launcher, world_size, self),
            None => Ok(()),
        }
    }
}

fn agree(launcher: &Launcher, world_size: usize, mpi: &Mpi) -> Result<()> {
    match launcher.size {
        Some(expected) if disagree(expected, world_size) => {
            Err(Error::Launcher { launcher: launcher.kind.to_string(), expected, library: mpi.path().to_owned() })
        }
        _ => Ok(()),
    }
}

/// Other differences are no sign of a wrong launcher: a program may be spawned, or one of several in a step.
fn disagree(expected: usize, world_size: usize) -> bool {
    world_size == 1 && expected > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launcher(variables: &[(&str, &str)]) -> Option<Launcher> {
        Launcher::from_variables(|name| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| (*value).to_owned())
        })
    }

    fn found(kind: LauncherKind, size: usize, rank: usize, local_rank: usize) -> Option<Launcher> {
        Some(Launcher { kind, size: Some(size), rank: Some(rank), local_rank: Some(local_rank) })
    }

    const OMPI: [(&str, &str); 3] =
        [("OMPI_COMM_WORLD_SIZE", "4"), ("OMPI_COMM_WORLD_RANK", "3"), ("OMPI_COMM_WORLD_LOCAL_RANK", "1")];
    const PMI: [(&str, &str); 3] = [("PMI_SIZE", "8"), ("PMI_RANK", "5"), ("MPI_LOCALRANKID", "2")];
    const SLURM: [(&str, &str); 3] = [("SLURM_STEP_NUM_TASKS", "6"), ("SLURM_PROCID", "2"), ("SLURM_LOCALID", "0")];

    #[test]
    fn each_launcher_is_known_by_its_variables() {
        assert_eq!(launcher(&OMPI), found(LauncherKind::OpenMpi, 4, 3, 1));
        assert_eq!(launcher(&PMI), found(LauncherKind::Hydra, 8, 5, 2));
        assert_eq!(
            launcher(&[&PMI[..], &[("I_MPI_HYDRA_UUID", "37180000")]].concat()),
            found(LauncherKind::Intel, 8, 5, 2)
        );
        assert_eq!(launcher(&SLURM), found(LauncherKind::Slurm, 6, 2, 0));
        assert_eq!(
            launcher(&[("PMIX_RANK", "1")]),
            Some(Launcher { kind: LauncherKind::Pmix, size: None, rank: Some(1), local_rank: None })
        );
        assert_eq!(launcher(&[]), None);
    }

    #[test]
    fn an_mpi_launcher_inside_of_slurm_is_the_one_that_counts() {
        assert_eq!(launcher(&[OMPI, SLURM].concat()), found(LauncherKind::OpenMpi, 4, 3, 1));
        assert_eq!(launcher(&[PMI, SLURM].concat()), found(LauncherKind::Hydra, 8, 5, 2));
        let slurm_with_pmi2 = [&SLURM[..], &[("PMI_SIZE", "6"), ("PMI_RANK", "2"), ("PMIX_RANK", "2")]].concat();
        assert_eq!(launcher(&slurm_with_pmi2), found(LauncherKind::Slurm, 6, 2, 0));
    }

    #[test]
    fn a_batch_script_is_no_launcher() {
        let script = [("SLURM_NTASKS", "6"), ("SLURM_PROCID", "0"), ("SLURM_LOCALID", "0")];
        assert_eq!(launcher(&script), None);
        let step = [&script[..], &[("SLURM_STEP_ID", "0")]].concat();
        assert_eq!(launcher(&step), found(LauncherKind::Slurm, 6, 0, 0));
    }

    #[test]
    fn nonsense_is_not_a_number() {
        assert_eq!(launcher(&[("OMPI_COMM_WORLD_SIZE", "many")]).unwrap().size, None);
        assert_eq!(launcher(&[("SLURM_STEP_NUM_TASKS", "-1"), ("SLURM_PROCID", "0")]), None);
    }

    #[test]
    fn only_a_lone_process_among_several_disagrees() {
        assert!(disagree(4, 1));
        assert!(!disagree(1, 1));
        assert!(!disagree(4, 2));
        assert!(!disagree(1, 3));
    }
}
