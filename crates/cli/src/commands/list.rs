//! `allhands list`: the registry as a table.

use std::io::Write;

use allhands_schedule::{Algorithm, Collective, Parameter, algorithms};
use clap::Args;
use serde_json::{Value, json};

use crate::failure::Result;
use crate::screen;

/// Show the algorithms, what each takes, needs and guarantees
///
/// Lists those of one collective, or of all, with where they come from. Vector forms (allgatherv) share the algorithms of
/// their plain forms.
///
/// "ordered" means that operands are combined in rank order, so that the operation need not commute; "identical" that
/// every rank gets the same bits, also where rounding depends on the order. The verifier proves both.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  allhands list
  allhands list allreduce
  allhands list --json | jq -r '.[] | .collective + \" \" + .algorithm'")]
pub(crate) struct List {
    /// Only this collective, such as allreduce, alltoallv or scan
    collective: Option<String>,

    /// Print an array of objects with collective, algorithm, parameters, needs, guarantees and source
    #[arg(long)]
    json: bool,
}

impl List {
    pub(crate) fn run(&self) -> Result<()> {
        let lines = self.lines()?;
        let mut out = screen::stdout();
        if self.json {
            let lines: Vec<Value> =
                lines.into_iter().map(|(collective, algorithm)| as_json(collective, algorithm)).collect();
            serde_json::to_writer_pretty(&mut out, &lines).map_err(std::io::Error::from)?;
            writeln!(out)?;
            return Ok(());
        }
        let mut table = screen::table(&["algorithm", "parameters", "needs", "guarantees", "source"]);
        screen::unbroken(&mut table, &[0]);
        // The longest words of all columns together are just as long as a line.
        table.column_iter_mut().take(1).for_each(|names| {
            names.set_padding((0, 1));
        });
        let mut above = None;
        for &(collective, algorithm) in &lines {
            if above != Some(collective) {
                table.add_row([collective.name()]);
                above = Some(collective);
            }
            let parameters: Vec<&str> = algorithm.parameters.iter().map(|parameter| parameter.name).collect();
            let (parameters, guarantees) = (parameters.join(" "), guarantees(algorithm));
            let name = format!("  {}", algorithm.name);
            table.add_row([&name, &parameters, algorithm.needs, &guarantees, algorithm.source]);
        }
        writeln!(out, "{}", screen::shown(table))?;
        if self.collective.is_some() {
            return self.parameters(&mut out, &lines);
        }
        writeln!(out, "\nallhands list COLLECTIVE says what the parameters mean.")?;
        Ok(())
    }

    fn parameters(&self, out: &mut impl Write, lines: &[(Collective, &'static Algorithm)]) -> Result<()> {
        let mut table = screen::table(&["algorithm", "parameter", "values", "default"]);
        screen::unbroken(&mut table, &[0, 1]);
        for (_, algorithm) in lines {
            for (index, Parameter { name, values, default }) in algorithm.parameters.iter().enumerate() {
                table.add_row([if index == 0 { algorithm.name } else { "" }, name, values, default]);
            }
        }
        writeln!(out, "\n{}", screen::shown(table))?;
        Ok(())
    }

    /// Vector forms share the algorithms of their plain forms, so they are listed only when asked for.
    fn lines(&self) -> Result<Vec<(Collective, &'static Algorithm)>> {
        let collectives = match &self.collective {
            Some(name) => vec![name.parse::<Collective>()?],
            None => Collective::ALL.into_iter().filter(|collective| collective.family() == *collective).collect(),
        };
        let of = |collective| algorithms(collective).map(move |algorithm| (collective, algorithm));
        Ok(collectives.into_iter().flat_map(of).collect())
    }
}

fn as_json(collective: Collective, algorithm: &Algorithm) -> Value {
    let parameter =
        |Parameter { name, values, default }: &Parameter| json!({ "name": name, "values": values, "default": default });
    json!({
        "collective": collective.name(),
        "algorithm": algorithm.name,
        "parameters": algorithm.parameters.iter().map(parameter).collect::<Vec<_>>(),
        "needs": algorithm.needs,
        "guarantees": { "ordered": algorithm.ordered.words(), "identical": algorithm.identical.words() },
        "source": algorithm.source,
    })
}

/// Only what holds and says something: "ordered", "identical with sequential placement", or a dash.
fn guarantees(algorithm: &Algorithm) -> String {
    if !algorithm.collective.reduces() {
        return "-".into();
    }
    let promises = [("ordered", &algorithm.ordered), ("identical", &algorithm.identical)];
    let held = promises.into_iter().filter_map(|(name, promise)| match promise.words() {
        "yes" => Some(name.into()),
        "no" => None,
        condition => Some(format!("{name} {condition}")),
    });
    Some(held.collect::<Vec<String>>().join(",\n")).filter(|held| !held.is_empty()).unwrap_or("-".into())
}
