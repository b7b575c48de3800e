//! The variables of the environment that this library and what it is made of read, and those that are none.

/// Of each process: these are agreed on before anything else.
pub(super) const SWITCH: &str = "ALLHANDS";
pub(super) const PROGRESS: &str = "ALLHANDS_PROGRESS";

/// Those that the first rank's decide.
pub(super) const ALGORITHM: &str = "ALLHANDS_ALGORITHM";
pub(super) const REPORT: &str = "ALLHANDS_REPORT";
pub(super) const CHECK: &str = "ALLHANDS_CHECK";
pub(super) const TIMEOUT: &str = "ALLHANDS_TIMEOUT";
pub(super) const COMPARE: &str = "ALLHANDS_COMPARE";
/// What these say is read where a job is joined, from the first rank, too.
pub(super) const LEARN: &str = "ALLHANDS_LEARN";
pub(super) const TOPOLOGY: &str = "ALLHANDS_TOPOLOGY";
pub(super) const TUNING: &str = "ALLHANDS_TUNING";
pub(super) const MACHINE: &str = "ALLHANDS_MACHINE";
pub(super) const SINGLE_COPY: &str = "ALLHANDS_SINGLE_COPY";
pub(super) const REPRODUCIBLE: &str = "ALLHANDS_REPRODUCIBLE";

/// Of each process: the MPI to open, lines of decisions, and where the tests of this repository find MPIs.
const LOG: &str = "ALLHANDS_LOG";
const MPI: &str = "ALLHANDS_MPI";
const TEST_MPI: &str = "ALLHANDS_TEST_MPI";

/// All of them.
const KNOWN: [&str; 16] = [
    SWITCH,
    ALGORITHM,
    CHECK,
    COMPARE,
    LEARN,
    LOG,
    MACHINE,
    MPI,
    PROGRESS,
    REPORT,
    REPRODUCIBLE,
    SINGLE_COPY,
    TEST_MPI,
    TIMEOUT,
    TOPOLOGY,
    TUNING,
];

/// What a variable of this process is set to; nothing where it is not set, or to nothing.
pub(super) fn value(name: &str) -> String {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned()).unwrap_or_default()
}

/// What is wrong with the names of this process' variables: the first that looks like one of ours and is none.
pub(super) fn unknown() -> Option<String> {
    let set = std::env::vars_os().filter(|(_, value)| !value.is_empty());
    let mut names: Vec<String> = set.map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names.iter().find_map(|name| wrong(name))
}

fn wrong(name: &str) -> Option<String> {
    if !name.starts_with("ALLHANDS_") || KNOWN.contains(&name) {
        return None;
    }
    let remedy = match nearest(name, &KNOWN) {
        Some(near) => format!("the nearest is {near}"),
        None => format!("there are {}", KNOWN.join(", ")),
    };
    Some(format!("there is no variable {name}; {remedy}"))
}

/// The word that is most like another, if one is: of those with the fewest letters to change, the first.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let like = known.iter().map(|known| (distance(&word, &known.to_ascii_lowercase()), *known));
    let (distance, near) = like.min_by_key(|(distance, _)| *distance)?;
    // `ALLHANDS_` is the same in all of them.
    let own = near.strip_prefix("ALLHANDS_").unwrap_or(near);
    (distance <= own.len().div_ceil(2)).then_some(near)
}

/// Letters to put in, to leave out, to change or to swap with the next.
fn distance(one: &str, other: &str) -> usize {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for (row, letter) in one.iter().enumerate() {
        let mut next = vec![row + 1];
        for (column, like) in other.iter().enumerate() {
            let changed = rows[row][column] + usize::from(letter != like);
            let swapped = (row > 0 && column > 0 && one[row - 1] == *like && other[column - 1] == *letter)
                .then(|| rows[row - 1][column - 1] + 1);
            let least = changed.min(rows[row][column + 1] + 1).min(next[column] + 1);
            next.push(least.min(swapped.unwrap_or(usize::MAX)));
        }
        rows.push(next);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_none_is_named_with_the_nearest() {
        for (name, near) in
            [("ALLHANDS_REPROT", REPORT), ("ALLHANDS_COMPAR", COMPARE), ("ALLHANDS_ALGORITHMS", ALGORITHM)]
        {
            assert_eq!(wrong(name), Some(format!("there is no variable {name}; the nearest is {near}")));
        }
        let all = "there are ALLHANDS, ALLHANDS_ALGORITHM, ALLHANDS_CHECK, ALLHANDS_COMPARE, ALLHANDS_LEARN, ALLHANDS_LOG, \
            ALLHANDS_MACHINE, ALLHANDS_MPI, ALLHANDS_PROGRESS, ALLHANDS_REPORT, ALLHANDS_REPRODUCIBLE, ALLHANDS_SINGLE_COPY, ALLHANDS_TEST_MPI, \
            ALLHANDS_TIMEOUT, ALLHANDS_TOPOLOGY, ALLHANDS_TUNING";
        assert_eq!(wrong("ALLHANDS_XYZZY"), Some(format!("there is no variable ALLHANDS_XYZZY; {all}")));
        for fine in KNOWN.into_iter().chain(["PATH", "ALLHANDSOME", "MY_ALLHANDS_REPROT"]) {
            assert_eq!(wrong(fine), None);
        }
    }

    #[test]
    fn words_are_as_far_apart_as_letters_are_to_be_changed() {
        let apart = [("thraed", "thread"), ("ful", "full"), ("", "abc"), ("same", "same"), ("kitten", "sitting")];
        assert_eq!(apart.map(|(one, other)| distance(one, other)), [1, 1, 3, 0, 3]);
        assert_eq!(nearest("of", &["off", "on"]), Some("off"));
        assert_eq!(nearest("elsewhere", &["on", "off"]), None);
    }
}
