//! The MPI's own time divided by ours: for each collective a table of sizes and MPIs, and their geometric means.

use std::fmt::Write as _;

use crate::Result;

/// Median, tenth and ninetieth percentile, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Times {
    median: f64,
    low: f64,
    high: f64,
}

/// One collective at one size on one MPI.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell {
    library: String,
    collective: String,
    bytes: usize,
    ours: Times,
    theirs: Times,
}

impl Cell {
    /// Above 1, ours is faster.
    fn ratio(&self) -> f64 {
        self.theirs.median / self.ours.median
    }
}

/// The results in what `allhands bench --algorithm auto,mpi --format csv` printed.
pub(super) fn cells(library: &str, csv: &str) -> Result<Vec<Cell>> {
    let mut lines = csv.lines().map(fields);
    let header = lines.next().unwrap_or_default();
    let column = |name: &str| {
        header.iter().position(|known| known == name).ok_or_else(|| format!("allhands bench printed no column {name}"))
    };
    let (collective, bytes, algorithm) = (column("collective")?, column("bytes")?, column("algorithm")?);
    let times = [column("median_us")?, column("p10_us")?, column("p90_us")?];
    let mut cells: Vec<Cell> = Vec::new();
    let mut ours: Option<Times> = None;
    for line in lines.filter(|line| line.len() == header.len()) {
        let [median, low, high] = times.map(|column| line[column].parse().unwrap_or(f64::NAN));
        let times = Times { median, low, high };
        // Ours comes first, as asked.
        match line[algorithm] == "mpi" {
            false => ours = Some(times),
            true => cells.push(Cell {
                library: library.into(),
                collective: line[collective].clone(),
                bytes: line[bytes].parse().map_err(|_| format!("{} is not a size", line[bytes]))?,
                ours: ours.take().ok_or("allhands bench printed no time of ours before MPI's")?,
                theirs: times,
            }),
        }
    }
    Ok(cells)
}

/// The fields of a line; a quoted one may hold commas.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            letter => fields.last_mut().expect("there is one").push(letter),
        }
    }
    fields
}

/// Ratios with the times behind them.
pub(super) fn in_full(cells: &[Cell], libraries: &[&str]) -> String {
    let times = |Times { median, low, high }: Times| format!("{median:.2} ({low:.2}..{high:.2})");
    let cell = |cell: &Cell| format!("**{:.2}** = {} / {}", cell.ratio(), times(cell.theirs), times(cell.ours));
    let mut text =
        String::from("MPI's own / ours = medians in microseconds with their tenth and ninetieth percentiles\n\n");
    for collective in collectives(cells) {
        text += &table(cells, libraries, &collective, &cell);
    }
    text
}

/// Ratios, means, and where ours is slower: for the README.
pub(super) fn in_short(cells: &[Cell], libraries: &[&str]) -> String {
    let mut text = String::from("MPI's own time / ours; above 1 ours is faster\n\n");
    for collective in collectives(cells) {
        text += &table(cells, libraries, &collective, &|cell| format!("{:.2}", cell.ratio()));
    }
    let mean = |of: &dyn Fn(&&Cell) -> bool| geometric_mean(cells.iter().filter(of).map(Cell::ratio));
    let _ = writeln!(text, "| geometric mean | {} | all |", libraries.join(" | "));
    let _ = writeln!(text, "| --- |{}", " --- |".repeat(libraries.len() + 1));
    for collective in collectives(cells) {
        let of_libraries = libraries.iter().map(|library| {
            let mean = mean(&|cell: &&Cell| cell.library == *library && cell.collective == collective);
            format!(" {mean:.2} |")
        });
        let all = mean(&|cell: &&Cell| cell.collective == collective);
        let _ = writeln!(text, "| {collective} |{} {all:.2} |", of_libraries.collect::<String>());
    }
    let of_libraries = libraries.iter().map(|library| format!(" {:.2} |", mean(&|cell| cell.library == *library)));
    let _ = writeln!(text, "| all |{} {:.2} |\n", of_libraries.collect::<String>(), mean(&|_| true));
    let slower: Vec<String> = cells
        .iter()
        .filter(|cell| cell.ratio() < 1.0)
        .map(|cell| format!("{} {} {}: {:.2}", cell.library, cell.collective, size(cell.bytes), cell.ratio()))
        .collect();
    match slower.is_empty() {
        true => text += "Below 1: none\n",
        false => {
            let _ = writeln!(text, "Below 1 ({} of {}): {}", slower.len(), cells.len(), slower.join("; "));
        }
    }
    text
}

fn table(cells: &[Cell], libraries: &[&str], collective: &str, show: &dyn Fn(&Cell) -> String) -> String {
    let mut text =
        format!("| {collective} | {} |\n| --- |{}\n", libraries.join(" | "), " --- |".repeat(libraries.len()));
    for bytes in unique(cells.iter().filter(|cell| cell.collective == collective).map(|cell| cell.bytes)) {
        let of_libraries = libraries.iter().map(|library| {
            let of = |cell: &&Cell| cell.library == *library && cell.collective == collective && cell.bytes == bytes;
            format!(" {} |", cells.iter().find(of).map_or("-".into(), show))
        });
        let _ = writeln!(text, "| {} |{}", size(bytes), of_libraries.collect::<String>());
    }
    text + "\n"
}

fn collectives(cells: &[Cell]) -> Vec<String> {
    unique(cells.iter().map(|cell| cell.collective.clone()))
}

fn unique<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.fold(Vec::new(), |mut known, value| {
        if !known.contains(&value) {
            known.push(value);
        }
        known
    })
}

pub(super) fn geometric_mean(values: impl Iterator<Item = f64>) -> f64 {
    let logs: Vec<f64> = values.map(f64::ln).collect();
    (logs.iter().sum::<f64>() / logs.len() as f64).exp()
}

/// `8 B`, `4 KiB`, `2 MiB`.
pub(super) fn size(bytes: usize) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str = "collective,ranks,bytes,algorithm,iterations,median_us,p10_us,p90_us,transport
allreduce,2,8,\"auto (bruck:ports=1,2)\",5,0.5,0.4,0.6,\"An MPI, a new one\"
allreduce,2,8,\"mpi\",5,1.0,0.9,1.1,\"An MPI, a new one\"
allreduce,2,4096,\"auto (ring)\",5,4.0,3.0,5.0,\"An MPI, a new one\"
allreduce,2,4096,\"mpi\",5,2.0,1.0,3.0,\"An MPI, a new one\"
";

    #[test]
    fn ratios_come_from_pairs_of_lines() {
        let cells = cells("An MPI", CSV).unwrap();
        assert_eq!(cells.iter().map(Cell::ratio).collect::<Vec<_>>(), [2.0, 0.5]);
        let short = in_short(&cells, &["An MPI"]);
        assert!(short.contains("| 8 B | 2.00 |\n| 4 KiB | 0.50 |\n"), "{short}");
        assert!(short.contains("| all | 1.00 | 1.00 |"), "{short}");
        assert!(short.contains("Below 1 (1 of 2): An MPI allreduce 4 KiB: 0.50"), "{short}");
        let full = in_full(&cells, &["An MPI"]);
        assert!(full.contains("**2.00** = 1.00 (0.90..1.10) / 0.50 (0.40..0.60)"), "{full}");
    }

    #[test]
    fn a_missing_column_is_named() {
        assert_eq!(
            super::cells("An MPI", "collective,bytes\n").unwrap_err(),
            "allhands bench printed no column algorithm"
        );
    }
}
