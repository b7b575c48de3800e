//! What is not understood ends a job in `MPI_Init`, with one sentence; what switches off does so in any case.

use super::{MOST, Subject, says, succeeded};
use crate::Result;
use crate::launch::launch;
use crate::libraries::Library;

/// Settings of three ranks that cannot be followed, and what is said of them.
const WRONG: [(&str, &str, &str); 9] = [
    ("ALLHANDS_REPROT", "1", "there is no variable ALLHANDS_REPROT; the nearest is ALLHANDS_REPORT"),
    ("ALLHANDS", "offf", "ALLHANDS=offf is not understood: set it to off or on, or not at all; the nearest is off"),
    (
        "ALLHANDS_PROGRESS",
        "thraed",
        "ALLHANDS_PROGRESS=thraed is not understood: set it to thread or off, or not at all; the nearest is thread",
    ),
    (
        "ALLHANDS_ALGORITHM",
        "allreduce=nap:fan=ful",
        "ALLHANDS_ALGORITHM=allreduce=nap:fan=ful: nap: fan=ful is not known; legal is paper or full; the nearest is full",
    ),
    (
        "ALLHANDS_ALGORITHM",
        "allgather=neighbor-exchange",
        "ALLHANDS_ALGORITHM=allgather=neighbor-exchange: neighbor-exchange needs an even number of ranks, but there are 3; 2 or 4 ranks would do, and ring and sparbit serve any number; or write allgather=neighbor-exchange? to use it where it can serve",
    ),
    ("ALLHANDS_TOPOLOGY", "2x2", "the topology 2x2 has 4 seats, but there are 3 ranks; give every rank one"),
    (
        "ALLHANDS_COMPARE",
        "onn",
        "ALLHANDS_COMPARE=onn is not understood: set it to off or on, or not at all; the nearest is on",
    ),
    (
        "ALLHANDS_SINGLE_COPY",
        "of",
        "ALLHANDS_SINGLE_COPY=of is not understood: set it to off or on, or not at all; the nearest is off",
    ),
    (
        "ALLHANDS_TUNING",
        "/nowhere/here.toml",
        "what ALLHANDS_TUNING names cannot be used: /nowhere/here.toml: No such file or directory (os error 2)",
    ),
];

impl Subject<'_> {
    pub(super) fn settings(&self) -> Result<()> {
        for (name, value, sentence) in WRONG {
            let title = self.title(&format!("{name}={value}"));
            let ended = launch(self.command(&["often"], &[(name, value)]), MOST)?;
            let fact = match ended.status {
                None => "it hangs",
                Some(status) if status.success() => "it succeeds",
                Some(_) if ended.out.contains("done") => "it goes on",
                Some(_) if says(&ended).collect::<Vec<_>>() != [sentence] => "it says something else",
                Some(_) => continue,
            };
            return Err(ended.fault(&format!("{title}: {fact}, and should say: {sentence}")));
        }
        // What is set to nothing is not set.
        for (name, value) in [("ALLHANDS", "OFF"), ("ALLHANDS", "0"), ("ALLHANDS", "False"), ("ALLHANDS_REPROT", "")] {
            let title = self.title(&format!("{name}={value}"));
            let report = self.report("off.txt");
            let ended = launch(self.command(&["often"], &[(name, value), ("ALLHANDS_REPORT", &report)]), MOST)?;
            succeeded(&ended, &title)?;
            let text = std::fs::read_to_string(&report).map_err(|error| format!("{title}: {report}: {error}"))?;
            if text.contains("] ALLHANDS=off\n") != (name == "ALLHANDS") {
                return Err(ended.fault(&format!("{title}: the report says otherwise\n{text}")));
            }
        }
        Ok(())
    }

    /// A tuning file that was made with another MPI: the job goes on without it, and both the standard error and the report say so, once.
    pub(super) fn tuned_elsewhere(&self) -> Result<()> {
        let title = self.title("a tuning file of another MPI");
        let (file, report) = (self.report("elsewhere.toml"), self.report("elsewhere.json"));
        let text = "schema = 1\ntransport = \"an MPI of yore\"\ncells = 0\n";
        std::fs::write(&file, text).map_err(|error| format!("{title}: {file}: {error}"))?;
        let settings = [("ALLHANDS_TUNING", &*file), ("ALLHANDS_REPORT", &*report)];
        let ended = launch(self.command(&["often"], &settings), MOST)?;
        succeeded(&ended, &title)?;
        let sentence = "what ALLHANDS_TUNING names is not used: it was made for an MPI of yore, but this is ";
        let text = std::fs::read_to_string(&report).map_err(|error| format!("{title}: {report}: {error}"))?;
        let said = says(&ended).filter(|line| line.starts_with(sentence)).count();
        match (said, text.matches(sentence).count()) {
            (1, 1) => Ok(()),
            (said, reported) => {
                Err(ended.fault(&format!("{title}: said {said} times, reported {reported} times\n{text}")))
            }
        }
    }

    /// A schedule in a file serves the program's calls; one for other ranks, or that is not there, ends the job in `MPI_Init`.
    pub(super) fn written(&self) -> Result<()> {
        let title = self.title("a schedule in a file");
        let write = |ranks: &str| -> Result<String> {
            let file = self.report(&format!("by-hand-{ranks}.txt"));
            let arguments =
                ["explain", "allreduce", "--algorithm", "tree", "--topology", ranks, "--format", "schedule"];
            let made = std::process::Command::new(self.exec).args(arguments).output();
            let made = made.map_err(|error| format!("{title}: allhands explain: {error}"))?;
            std::fs::write(&file, made.stdout).map_err(|error| format!("{title}: {file}: {error}"))?;
            Ok(file)
        };
        let (file, log) = (write("3")?, self.report("by-hand.log"));
        let named = format!("allreduce=@{file}");
        let settings = [("ALLHANDS_ALGORITHM", &*named), ("ALLHANDS_LOG", &*log), ("ALLHANDS_LEARN", "off")];
        let ended = launch(self.command(&["often"], &settings), MOST)?;
        succeeded(&ended, &title)?;
        let text = std::fs::read_to_string(&log).map_err(|error| format!("{title}: {log}: {error}"))?;
        let line = |bytes| format!("allreduce of {bytes} bytes on 3 ranks: @{file} (the caller's wish)");
        if !text.lines().eq([8, 16, 24].map(line)) {
            return Err(ended.fault(&format!("{title}: ALLHANDS_LOG says something else:\n{text}")));
        }
        for (file, fact) in [(write("4")?, "on 4 ranks"), (self.report("nothing.txt"), "cannot be read")] {
            let ended =
                launch(self.command(&["often"], &[("ALLHANDS_ALGORITHM", &format!("allreduce=@{file}"))]), MOST)?;
            let told: Vec<&str> = says(&ended).collect();
            let refused = ended.status.is_some_and(|status| !status.success()) && !ended.out.contains("done");
            if !refused || !matches!(told[..], [line] if line.contains(&file) && line.contains(fact)) {
                return Err(ended.fault(&format!("{title}: {file} is not refused in one sentence")));
            }
        }
        Ok(())
    }

    /// Under another MPI's launcher every process is alone: that is said once, as `allhands bench` says it, and the program goes on.
    pub(super) fn launched_by(&self, launcher: &Library) -> Result<()> {
        let mut command = launcher.command(2, self.exec);
        // The program has its own.
        command.arg("exec").arg(self.program).arg("often").env_remove("LD_PRELOAD").env_remove("ALLHANDS_MPI");
        let ended = launch(command, MOST)?;
        let title = self.title(&format!("under the launcher of {}", launcher.title));
        succeeded(&ended, &title)?;
        let file = self.library.file.display();
        let sentence = format!(
            "started 2 processes, but in each of them the MPI library {file} is alone; start the program with "
        );
        let told: Vec<&str> = says(&ended).collect();
        match told[..] {
            [line] if line.contains(&sentence) => Ok(()),
            _ => Err(ended.fault(&format!("{title}: it does not say, once: {sentence}"))),
        }
    }
}
