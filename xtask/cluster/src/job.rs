//! MPI jobs on the nodes: the launcher runs on the first.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::settings::Shape;
use crate::{Result, agent, node, state};

/// The MPIs of `.mpi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Mpi {
    Openmpi,
    Mpich,
    Intel,
}

impl Mpi {
    pub(crate) const ALL: [Mpi; 3] = [Mpi::Openmpi, Mpi::Mpich, Mpi::Intel];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Mpi::Openmpi => "openmpi",
            Mpi::Mpich => "mpich",
            Mpi::Intel => "intel",
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Mpi::Openmpi => "Open MPI 5",
            Mpi::Mpich => "MPICH 5",
            Mpi::Intel => "Intel MPI",
        }
    }

    /// The longest message that travels in one go, in bytes, and how many delays a longer one takes: seen on two ranks at 2 and 6 ms.
    pub(crate) fn eager(self) -> (u64, f64) {
        match self {
            Mpi::Openmpi => (65_000, 3.0),
            // Nothing longer was tried.
            Mpi::Mpich => (1 << 20, 3.0),
            Mpi::Intel => (16 << 10, 4.0),
        }
    }

    fn folder(self) -> PathBuf {
        // The package is in `xtask/cluster`.
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.mpi").join(self.name())
    }

    /// The launcher, with the settings under which this MPI uses the emulated network, and yields while it waits. MPICH's own
    /// collectives within a node spin without yielding, so they are done by messages.
    fn launcher(self, shape: Shape) -> Command {
        let agent = agent::script();
        let agent = agent.to_string_lossy();
        let hosts = |suffix: &str| {
            (0..shape.nodes).map(|index| node::name(index.into()) + suffix).collect::<Vec<_>>().join(",")
        };
        let (folder, ranks) = (self.folder(), shape.size().to_string());
        match self {
            Mpi::Openmpi => {
                let mut command = Command::new(folder.join("bin/mpirun"));
                command.args(["--prtemca", "plm_ssh_agent", &agent, "--prtemca", "prte_if_include", "eth0"]);
                command.args("--bind-to none --map-by slot --mca pml ob1 --mca btl self,sm,tcp".split(' '));
                command.args("--mca btl_tcp_if_include eth0 --mca mpi_yield_when_idle 1".split(' '));
                command.args(["--host", &hosts(&format!(":{}", shape.ranks)), "-n", &ranks]);
                command.envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")]);
                command
            }
            Mpi::Mpich => {
                let mut command = Command::new(folder.join("bin/mpiexec"));
                command.args(["-launcher", "ssh", "-launcher-exec", &agent, "-iface", "eth0"]);
                command.args(["-hosts", &hosts(&format!(":{}", shape.ranks)), "-n", &ranks]);
                command.envs([
                    ("MPIR_CVAR_CH4_NETMOD", "ucx"),
                    ("UCX_TLS", "tcp,self"),
                    ("UCX_NET_DEVICES", "eth0"),
                    ("MPIR_CVAR_POLLS_BEFORE_YIELD", "1"),
                ]);
                for collective in ["BCAST", "ALLREDUCE", "REDUCE", "BARRIER"] {
                    command.env(format!("MPIR_CVAR_{collective}_POSIX_INTRA_ALGORITHM"), "mpir");
                }
                command
            }
            Mpi::Intel => {
                let mut command = Command::new(folder.join("bin/mpiexec.hydra"));
                command.args(["-launcher", "ssh", "-launcher-exec", &agent, "-iface", "eth0"]);
                command.args(["-hosts", &hosts(""), "-ppn", &shape.ranks.to_string(), "-n", &ranks]);
                command.env("I_MPI_ROOT", &folder);
                command.envs([
                    ("I_MPI_FABRICS", "shm:ofi"),
                    ("FI_PROVIDER", "tcp"),
                    ("I_MPI_PIN", "0"),
                    ("I_MPI_THREAD_YIELD", "2"),
                    ("I_MPI_SPIN_COUNT", "1"),
                ]);
                command
            }
        }
    }

    fn library(self) -> PathBuf {
        let file = if self == Mpi::Openmpi { "libmpi.so.40" } else { "libmpi.so.12" };
        self.folder().join("lib").join(file)
    }
}

/// The command that runs a program on the nodes of the cluster that is there.
pub(crate) fn command(mpi: Mpi, shape: Shape, program: &[OsString]) -> Result<Command> {
    let cluster = state::current().ok_or("there is no cluster; build one with `cluster up`")?;
    if cluster.keepers.len() < shape.nodes.into() {
        return Err(format!("{shape} needs {} nodes, and the cluster has {}", shape.nodes, cluster.keepers.len()));
    }
    if !mpi.folder().exists() {
        return Err(format!("{} is not installed; `cargo xtask mpi` installs it", mpi.title()));
    }
    let this = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
    let mut command = mpi.launcher(shape);
    // Through `env`, which the launcher itself is not under.
    command.args(["env", &format!("LD_PRELOAD={}", this.with_file_name("liballhands_cluster_yield.so").display())]);
    command.args(program).env("ALLHANDS_MPI", mpi.library()).stdin(Stdio::null());
    node::enter(&node::name(0), &mut command)?;
    Ok(command)
}

/// Runs a program, and leaves nothing of it on the nodes.
pub(crate) fn run(mpi: Mpi, shape: Shape, program: &[OsString]) -> Result<()> {
    let status = command(mpi, shape, program)?.status();
    if let Some(cluster) = state::current() {
        node::end_all(&cluster.keepers, true);
    }
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the job ended with {status}")),
        Err(error) => Err(format!("{}'s launcher cannot be started: {error}", mpi.title())),
    }
}
