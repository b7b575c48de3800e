# SPDX-License-Identifier: Apache-2.0 OR MIT

from spack.package import *


class Allhands(Package):
    """Collective communication that knows where ranks sit: under MPI programs that
    nobody has changed, for C, Fortran and Rust programs, and as a command that
    explains, proves, simulates and measures collective algorithms."""

    maintainers("allhands")

    license("MIT OR Apache-2.0", checked_by="allhands")

    # No release has an address yet: `spack dev-build allhands@main` builds a checkout.
    version("main")

    depends_on("rust@1.91:", type="build")

    # It links no MPI: it opens the one that is there when a program starts.

    def install(self, spec, prefix):
        cargo = which("cargo", required=True)
        cargo("xtask", "install", "--prefix", prefix)

    def setup_run_environment(self, env):
        env.prepend_path("PKG_CONFIG_PATH", self.prefix.lib.pkgconfig)
