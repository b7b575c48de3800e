//! The page to play with: what it counts is what the command counts, whatever is chosen in it.

use std::path::Path;

use serde_json::{Value, json};

use super::allhands;
use super::chromium::Chromium;
use crate::Result;

/// A schedule in the page: what is chosen there.
struct Shown<'a> {
    collective: &'a str,
    algorithm: &'a str,
    topology: &'a str,
    bytes: u64,
}

/// Plays a page of each family of collectives, and one of them in every way there is.
pub(super) fn check(chromium: &mut Chromium, exec: &Path, folder: &Path) -> Result<()> {
    let all = [
        Shown { collective: "allgather", algorithm: "bruck", topology: "4x4", bytes: 4096 },
        Shown { collective: "allreduce", algorithm: "rabenseifner", topology: "3,5,4", bytes: 8 },
        Shown { collective: "alltoall", algorithm: "bruck:radix=3", topology: "2x4", bytes: 64 },
        Shown { collective: "reduce_scatter", algorithm: "loc-bruck", topology: "4x4", bytes: 512 },
        Shown { collective: "bcast", algorithm: "scatter-allgather", topology: "7", bytes: 32768 },
        Shown { collective: "reduce", algorithm: "binomial", topology: "2x2x2", bytes: 8 },
        Shown { collective: "barrier", algorithm: "dissemination", topology: "2x4", bytes: 0 },
    ];
    for shown in &all {
        let file = folder.join(format!("{}.html", shown.collective));
        let page = allhands(exec, &shown.words("html"))?;
        std::fs::write(&file, &page).map_err(|error| format!("{}: {error}", file.display()))?;
        chromium.open(&file)?;
        plays(chromium, exec, shown).map_err(|fault| format!("the page of {}: {fault}", shown.collective))?;
        if shown.collective == "allgather" {
            changes(chromium, exec).map_err(|fault| format!("the page of allgather: {fault}"))?;
        }
        chromium.clean(&format!("the page of {}", shown.collective))?;
        chromium.size(390, 844)?;
        chromium.clean(&format!("the page of {} on a phone", shown.collective))?;
        eprintln!("xtask: {} plays, in {} KiB", shown.collective, page.len() / 1024);
    }
    numbers(chromium, exec, folder).map_err(|fault| format!("the page of 64 ranks: {fault}"))
}

/// Of 64 ranks, which have no room for their numbers, the first of every node is numbered, and as many more as stand apart.
fn numbers(chromium: &mut Chromium, exec: &Path, folder: &Path) -> Result<()> {
    let shown = Shown { collective: "allreduce", algorithm: "nap", topology: "8x8", bytes: 8 };
    let file = folder.join("many.html");
    std::fs::write(&file, allhands(exec, &shown.words("html"))?)
        .map_err(|error| format!("{}: {error}", file.display()))?;
    chromium.size(1400, 1000)?;
    chromium.open(&file)?;
    let numbered = "(() => {
        const canvas = document.querySelector('canvas'), pen = canvas.getContext('2d'), shape = shapeNow();
        const at = places(shape, scoresNow()[0], canvas.clientWidth), seats = numberedSeats(pen, shape, at);
        const apart = seats.every((seat, index) => index === 0 || at.x[seat] - at.x[seats[index - 1]] >= pen.measureText('63').width);
        return !at.numbered && apart && [...Array(8).keys()].every(node => seats.includes(8 * node)) && seats.length > 8;
    })()";
    if chromium.value(numbered)? != true {
        return Err("its rank numbers are not readable".into());
    }
    if chromium.value("!find('parts').hidden && find('parts').title.includes('x4 from four ranks')")? != true {
        return Err("nothing says what x4 is".into());
    }
    chromium.clean("the page of 64 ranks")
}

/// From the start to the end, by the button; then every schedule of the page is asked whether it fills its buffers.
fn plays(chromium: &mut Chromium, exec: &Path, shown: &Shown<'_>) -> Result<()> {
    for name in ["near-messages", "far-messages"] {
        expect(chromium, name, &json!(0))?;
    }
    chromium.set("#speed", "4")?;
    chromium.click("#play")?;
    chromium.until("!state.playing && state.time === stepsNow()")?;
    compare(chromium, exec, shown)?;
    let all = "data.shapes.every(shape => shape.scores.every(score => {
        const last = unpacked(shape, score).tallies.at(-1);
        return last.full === last.results && (last.results > 0 || data.collective === 'barrier');
    }))";
    match chromium.value(all)? == true {
        true => Ok(()),
        false => Err("a schedule ends with buffers that are not full".into()),
    }
}

/// Another algorithm, another shape, another size, and keys.
fn changes(chromium: &mut Chromium, exec: &Path) -> Result<()> {
    let ring = Shown { collective: "allgather", algorithm: "ring", topology: "4x4", bytes: 4096 };
    chromium.set("#side-a .algorithm", "ring")?;
    chromium.key("End")?;
    compare(chromium, exec, &ring)?;
    let wider = "[...document.querySelectorAll('#shape option')].find(one => one.text.startsWith('8x4 ')).value";
    let wider = chromium.value(wider)?;
    chromium.set("#shape", wider.as_str().unwrap_or_default())?;
    expect(chromium, "near-messages", &json!(0))?;
    chromium.key("End")?;
    compare(chromium, exec, &Shown { topology: "8x4", ..ring })?;
    let before = time(chromium)?;
    let largest = chromium.value("String(data.sizes.length - 1)")?;
    chromium.set("#size", largest.as_str().unwrap_or_default())?;
    compare(chromium, exec, &Shown { topology: "8x4", bytes: 2 << 20, ..ring })?;
    if time(chromium)? <= before {
        return Err("2 MiB take no longer than 4 KiB".into());
    }
    chromium.key("Home")?;
    for (key, step) in [("ArrowRight", 1), ("ArrowRight", 2), ("ArrowLeft", 1)] {
        chromium.key(key)?;
        if chromium.value("state.time")? != step {
            return Err(format!("{key} does not lead to step {step}"));
        }
    }
    chromium.key(" ")?;
    chromium.until("state.playing")?;
    chromium.click("#theme")
}

/// The estimated time of the first side.
fn time(chromium: &mut Chromium) -> Result<f64> {
    let text = chromium.value("document.querySelector('#bars .a b').dataset.us")?;
    text.as_str().and_then(|text| text.parse().ok()).ok_or_else(|| format!("{text} is no time"))
}

/// The counts of both sides at the end against those of the command.
fn compare(chromium: &mut Chromium, exec: &Path, shown: &Shown<'_>) -> Result<()> {
    let first = chromium.value("[state.sides[0].algorithm, state.sides[0].setting].filter(Boolean).join(':')")?;
    if first != shown.algorithm {
        return Err(format!("{} is asked for, {first} is shown", shown.algorithm));
    }
    let other = chromium.value("[state.sides[1].algorithm, state.sides[1].setting].filter(Boolean).join(':')")?;
    let other = Shown { algorithm: other.as_str().unwrap_or_default(), ..*shown };
    for (side, shown) in [("a", shown), ("b", &other)] {
        for (name, value) in counted(exec, shown)? {
            let found = count(chromium, side, name)?;
            if found != value {
                return Err(format!(
                    "{name} of {} is {found} in the page, and {value} by the command",
                    shown.algorithm
                ));
            }
        }
        let [full, results] = ["results", "results-all"].map(|name| count(chromium, side, name));
        if full? != results? {
            return Err(format!("{} ends with buffers that are not full", shown.algorithm));
        }
    }
    Ok(())
}

fn expect(chromium: &mut Chromium, name: &str, value: &Value) -> Result<()> {
    let found = count(chromium, "a", name)?;
    if json!(found) == *value { Ok(()) } else { Err(format!("{name} is {found}, not {value}")) }
}

fn count(chromium: &mut Chromium, side: &str, name: &str) -> Result<u64> {
    let cell = format!("Number(document.querySelector('#side-{side} [data-count={name}]').dataset.value)");
    let value = chromium.value(&cell)?;
    value.as_f64().map(|number| number as u64).ok_or_else(|| format!("{name} is {value}"))
}

impl Shown<'_> {
    fn words(&self, format: &str) -> Vec<String> {
        let Shown { collective, algorithm, topology, bytes } = self;
        let words = ["explain", collective, "--algorithm", algorithm, "--topology", topology, "--format", format];
        let sized = if *bytes == 0 { Vec::new() } else { vec!["--bytes".to_string(), bytes.to_string()] };
        words.map(String::from).into_iter().chain(sized).collect()
    }
}

/// Messages and bytes from the JSON of the command.
fn counted(exec: &Path, shown: &Shown<'_>) -> Result<Vec<(&'static str, u64)>> {
    let text = allhands(exec, &shown.words("json"))?;
    let json: Value = serde_json::from_str(&text).map_err(|error| format!("no JSON ({error}): {text}"))?;
    let (mut near, mut far, mut busiest) = ((0, 0), (0, 0), 0);
    for schedule in list(&json["schedule"]) {
        let mut sent = 0;
        for send in list(&schedule["rounds"]).flat_map(|round| list(&round["send"])) {
            let blocks: u64 = list(&send["spans"]).filter_map(|span| span[2].as_u64()).sum();
            let crosses = node(&json["topology"], &schedule["rank"]) != node(&json["topology"], &send["to"]);
            let side = if crosses { &mut far } else { &mut near };
            *side = (side.0 + 1, side.1 + blocks);
            sent += u64::from(crosses);
        }
        busiest = busiest.max(sent);
    }
    let blocks = json["blocks"].as_u64().unwrap_or(1).max(1);
    let cut = ["allreduce", "bcast", "reduce"].contains(&shown.collective);
    let bytes = |count: u64| if cut { (count * shown.bytes).div_ceil(blocks) } else { count * shown.bytes };
    Ok(vec![
        ("near-messages", near.0),
        ("near-messages-all", near.0),
        ("far-messages", far.0),
        ("far-messages-all", far.0),
        ("near-bytes", bytes(near.1)),
        ("far-bytes", bytes(far.1)),
        ("far-messages-busiest", busiest),
    ])
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The place of the outermost region that holds a rank; where there are no regions, all ranks are in one.
fn node(topology: &Value, rank: &Value) -> Option<usize> {
    let holds = |region: &Value| {
        region.is_array() && format!(",{region},").replace(['[', ']'], ",").contains(&format!(",{rank},"))
    };
    list(topology).position(holds)
}
