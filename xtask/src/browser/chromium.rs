//! A headless Chromium, driven through its debugging pipe: JSON that ends with a zero byte, in on descriptor 3, out on 4.
//!
//! Chromium ends when the pipe closes, so nothing of it outlives this program.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Result;

/// More than any call or wait needs on two busy cores.
const MOST: Duration = Duration::from_secs(40);

const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--allow-file-access-from-files",
    "--remote-debugging-pipe",
];

/// The browser, with one page at a time.
pub(crate) struct Chromium {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    folder: PathBuf,
    session: Option<String>,
    last: u64,
    /// What the page has complained of.
    faults: Vec<String>,
    loaded: bool,
}

impl Chromium {
    /// Starts it with a profile of its own, which goes with it.
    pub(crate) fn start(program: &Path, folder: PathBuf) -> Result<Chromium> {
        std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        // The standard library opens no descriptor but the first three; the shell does.
        let mut command = Command::new("sh");
        command.args(["-c", r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null"#, "sh"]).arg(program).args(FLAGS);
        command.arg(format!("--user-data-dir={}", folder.display())).arg("about:blank");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| format!("{} cannot be started: {error}", program.display()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both are piped")
        };
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(output).split(0).map_while(std::result::Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { return };
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let (session, faults) = (None, Vec::new());
        Ok(Chromium { child, input, messages, folder, session, last: 0, faults, loaded: false })
    }

    /// Opens a file in a new page.
    pub(crate) fn open(&mut self, file: &Path) -> Result<()> {
        self.session = None;
        (self.loaded, self.faults) = (false, Vec::new());
        let target = self.call("Target.createTarget", json!({"url": "about:blank"}))?;
        let attached = self.call("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}))?;
        self.session = attached["sessionId"].as_str().map(String::from);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), json!({}))?;
        }
        self.size(1280, 900)?;
        self.loaded = false;
        self.call("Page.navigate", json!({"url": format!("file://{}", file.display())}))?;
        let deadline = Instant::now() + MOST;
        while !self.loaded {
            self.hear(deadline)?;
        }
        // The empty page from before may have told of itself late.
        self.until("document.readyState === 'complete' && location.protocol === 'file:'")
    }

    /// What an expression is worth in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Result<Value> {
        let asked = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", asked)?;
        match answer.get("exceptionDetails") {
            Some(details) => Err(format!("{expression} fails: {}", details["exception"]["description"])),
            None => Ok(answer["result"]["value"].clone()),
        }
    }

    /// Waits until an expression is true.
    pub(crate) fn until(&mut self, expression: &str) -> Result<()> {
        let deadline = Instant::now() + MOST;
        while self.value(expression)? != true {
            if Instant::now() > deadline {
                return Err(format!("{expression} has not become true within {MOST:?}"));
            }
            std::thread::sleep(Duration::from_millis(30));
        }
        Ok(())
    }

    /// Clicks into the middle of an element, as a hand would.
    pub(crate) fn click(&mut self, selector: &str) -> Result<()> {
        let find = format!("document.querySelector({})", json!(selector));
        let middle = self.value(&format!(
            "(() => {{ const it = {find}; it.scrollIntoView({{block: 'center'}}); const {{x, y, width, height}} = \
             it.getBoundingClientRect(); return [x + width / 2, y + height / 2]; }})()"
        ))?;
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": middle[0], "y": middle[1], "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event)?;
        }
        Ok(())
    }

    /// Presses a key and lets go of it.
    pub(crate) fn key(&mut self, key: &str) -> Result<()> {
        for kind in ["rawKeyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({"type": kind, "key": key}))?;
        }
        Ok(())
    }

    /// Gives a control another value, and tells the page. No test can click into a list that the system draws.
    pub(crate) fn set(&mut self, selector: &str, value: &str) -> Result<()> {
        let script = format!(
            "(() => {{ const it = document.querySelector({}); it.value = {}; for (const name of ['input', 'change']) \
             it.dispatchEvent(new Event(name, {{bubbles: true}})); }})()",
            json!(selector),
            json!(value)
        );
        self.value(&script).map(drop)
    }

    /// The size of the screen.
    pub(crate) fn size(&mut self, width: u32, height: u32) -> Result<()> {
        let screen = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.call("Emulation.setDeviceMetricsOverride", screen).map(drop)
    }

    /// Nothing has been complained of, nothing was asked of a network, and nothing sticks out of the screen.
    pub(crate) fn clean(&mut self, what: &str) -> Result<()> {
        let out = self.value("document.documentElement.scrollWidth - document.documentElement.clientWidth")?;
        if out.as_f64() > Some(0.0) {
            return Err(format!("{what} is {out} pixels wider than the screen"));
        }
        match self.faults.is_empty() {
            true => Ok(()),
            false => Err(format!("{what} complains: {}", self.faults.join("; "))),
        }
    }

    fn call(&mut self, method: &str, params: Value) -> Result<Value> {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": params});
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let sent = self.input.write_all(format!("{message}\0").as_bytes()).and_then(|()| self.input.flush());
        sent.map_err(|error| format!("Chromium has gone: {error}"))?;
        let deadline = Instant::now() + MOST;
        loop {
            let Some(answer) = self.hear(deadline)? else { continue };
            if answer["id"] != self.last {
                continue;
            }
            return match answer.get("error") {
                Some(error) => Err(format!("Chromium refuses {method}: {}", error["message"])),
                None => Ok(answer["result"].clone()),
            };
        }
    }

    /// The next message, if it is an answer; events are noted.
    fn hear(&mut self, deadline: Instant) -> Result<Option<Value>> {
        let left = deadline.saturating_duration_since(Instant::now());
        let message =
            self.messages.recv_timeout(left).map_err(|_| format!("Chromium is silent for {MOST:?}, or gone"))?;
        if message.get("id").is_some() {
            return Ok(Some(message));
        }
        // A page that was left has nothing more to say.
        if message["sessionId"].as_str() == self.session.as_deref() {
            self.note(&message["method"], &message["params"]);
        }
        Ok(None)
    }

    fn note(&mut self, method: &Value, params: &Value) {
        match method.as_str().unwrap_or_default() {
            "Page.loadEventFired" => self.loaded = true,
            "Runtime.exceptionThrown" => self.faults.push(params["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" if ["error", "assert"].iter().any(|kind| params["type"] == *kind) => {
                self.faults.push(params["args"].to_string());
            }
            "Log.entryAdded" if params["entry"]["level"] == "error" => self.faults.push(params["entry"].to_string()),
            "Network.requestWillBeSent" => {
                let url = params["request"]["url"].as_str().unwrap_or_default();
                if !["file:", "data:", "about:"].iter().any(|scheme| url.starts_with(scheme)) {
                    self.faults.push(format!("it asks the network for {url}"));
                }
            }
            _ => {}
        }
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // Asked to go, it ends its helpers itself.
        self.session = None;
        let _ = self.call("Browser.close", json!({}));
        let deadline = Instant::now() + Duration::from_secs(5);
        while Instant::now() < deadline && matches!(self.child.try_wait(), Ok(None)) {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
