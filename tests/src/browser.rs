//! A real browser: Chromium, driven through its own pipe.
//!
//! The pipe speaks the `DevTools` protocol, a JSON object at a time; nothing listens on a port.
//! The browser ends when the pipe breaks, so none outlives the test that started it.
//! A crate for all of the protocol compiles five megabytes of generated code, and brings an HTTP client and a WebSocket.

use std::{
    collections::HashMap,
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use base64::Engine as _;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::now;

/// A browser without a window, which ends with this value.
#[derive(Debug)]
pub struct Browser {
    process: Child,
    wire: Arc<Wire>,
    /// Its profile; `None` once it is removed.
    profile: Option<TempDir>,
}

/// A tab of a browser.
#[derive(Debug)]
pub struct Tab {
    wire: Arc<Wire>,
    target: String,
    session: String,
}

/// The size and the colours of a tab.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// The width in CSS pixels.
    pub width: u32,
    /// The height in CSS pixels.
    pub height: u32,
    /// Whether the system is dark.
    pub dark: bool,
}

/// Both directions of the pipe.
#[derive(Debug)]
struct Wire {
    to: Mutex<ChildStdin>,
    heard: Mutex<Heard>,
    changed: Condvar,
}

/// What the browser has said.
#[derive(Debug, Default)]
struct Heard {
    asked: u64,
    answers: HashMap<u64, Value>,
    /// The events of each session, in order.
    events: HashMap<String, Vec<Value>>,
    is_over: bool,
}

impl Browser {
    /// Starts a browser.
    ///
    /// # Panics
    ///
    /// If there is none, or it does not start: a test never passes without its browser.
    pub fn start() -> Self {
        let program = find().unwrap_or_else(|| panic!("this test needs a browser: {MISSING}"));
        let profile = tempfile::tempdir().expect("a folder can be made");
        // The browser reads from 3 and writes to 4.
        let mut command = Command::new("sh");
        command
            .args(["-c", "exec \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1"])
            .arg("browser")
            .arg(&program)
            .args(FLAGS)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .env("HOME", profile.path());
        if rustix::process::geteuid().is_root() {
            // Its sandbox refuses to serve root; all that it opens here is ours.
            command.arg("--no-sandbox");
        }
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a shell can be started");
        let wire = Arc::new(Wire {
            to: Mutex::new(process.stdin.take().expect("it is piped")),
            heard: Mutex::default(),
            changed: Condvar::new(),
        });
        let (from, hears) = (
            process.stdout.take().expect("it is piped"),
            Arc::clone(&wire),
        );
        thread::spawn(move || hears.listen(from));
        let browser = Self {
            process,
            wire,
            profile: Some(profile),
        };
        browser.wire.call("", "Browser.getVersion", &json!({}));
        browser
    }

    /// Opens an empty tab; all tabs are one user's.
    pub fn tab(&self) -> Tab {
        let target = self
            .wire
            .call("", "Target.createTarget", &json!({"url": "about:blank"}));
        let target = text(&target["targetId"]);
        let attach = json!({"targetId": target, "flatten": true});
        let session = text(&self.wire.call("", "Target.attachToTarget", &attach)["sessionId"]);
        let tab = Tab {
            wire: Arc::clone(&self.wire),
            target,
            session,
        };
        for domain in ["Page", "Runtime", "Network", "Log"] {
            tab.call(&format!("{domain}.enable"), &json!({}));
        }
        tab.call("Page.setLifecycleEventsEnabled", &json!({"enabled": true}));
        tab
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
        // Its children write to the profile for a moment longer.
        if let Some(profile) = self.profile.take() {
            let folder = profile.keep();
            for _ in 0..50 {
                if fs::remove_dir_all(&folder).is_ok() {
                    break;
                }
                thread::sleep(POLL);
            }
        }
    }
}

impl Tab {
    /// Opens an address, and waits until it is loaded.
    ///
    /// # Panics
    ///
    /// If it cannot be.
    pub fn open(&self, url: &str) {
        let opened = self.call("Page.navigate", &json!({"url": url}));
        assert!(opened["errorText"].is_null(), "{url}: {opened}");
        self.until("the page is loaded", || {
            let ended = self.events("Page.lifecycleEvent");
            let is_it =
                |event: &Value| event["name"] == "load" && event["loaderId"] == opened["loaderId"];
            ended.iter().any(is_it)
        });
    }

    /// Opens an address without waiting for anything.
    pub fn begin_to_open(&self, url: &str) {
        self.wire
            .send(&self.session, "Page.navigate", &json!({"url": url}));
    }

    /// Returns the value of an expression, awaited if it is a promise.
    ///
    /// # Panics
    ///
    /// If it throws.
    pub fn value(&self, expression: &str) -> Value {
        let ask = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", &ask);
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true; an exception counts as not yet.
    ///
    /// # Panics
    ///
    /// If that takes too long; the message has the text of the page.
    pub fn wait_for(&self, expression: &str) {
        let guarded =
            format!("(() => {{ try {{ return !!({expression}); }} catch {{ return false; }} }})()");
        let until = now() + PATIENCE;
        let ask = json!({"expression": guarded, "returnByValue": true});
        // A page that another one replaces meanwhile does not answer: not yet.
        let is_so = || {
            let answer = self.ask_page("Runtime.evaluate", &ask);
            answer.is_some_and(|answer| answer["result"]["value"] == true)
        };
        while !is_so() {
            assert!(
                now() < until,
                "{expression} is not true within {PATIENCE:?}; complaints: {:?}; the page: {}",
                self.complaints(),
                self.text("body"),
            );
            thread::sleep(POLL);
        }
    }

    /// Waits until the page shows some words.
    pub fn wait_for_text(&self, words: &str) {
        self.wait_for(&format!(
            "document.body.innerText.includes({})",
            json!(words)
        ));
    }

    /// Returns the text that an element shows, or nothing if there is no such element.
    pub fn text(&self, selector: &str) -> String {
        let shown = self.value(&format!(
            "document.querySelector({})?.innerText ?? ''",
            json!(selector)
        ));
        text(&shown)
    }

    /// Returns what the tab shows as HTML, also if scripts are forbidden.
    pub fn html(&self) -> String {
        let root = self.call("DOM.getDocument", &json!({"depth": 0}));
        let node = json!({"nodeId": root["root"]["nodeId"]});
        text(&self.call("DOM.getOuterHTML", &node)["outerHTML"])
    }

    /// Returns the width and the height of an element, also if scripts are forbidden; `None` if it is not shown.
    pub fn size(&self, selector: &str) -> Option<(f64, f64)> {
        let root = self.call("DOM.getDocument", &json!({"depth": 0}));
        let ask = json!({"nodeId": root["root"]["nodeId"], "selector": selector});
        let node = self.call("DOM.querySelector", &ask)["nodeId"].clone();
        let ask = json!({"nodeId": node});
        let answer = self.wire.answer(&self.session, "DOM.getBoxModel", &ask);
        let model = &answer["result"]["model"];
        Some((model["width"].as_f64()?, model["height"].as_f64()?))
    }

    /// Clicks at the middle of an element, as a mouse does, once it is there.
    ///
    /// # Panics
    ///
    /// If there is none, or something else is in front of it.
    pub fn click(&self, selector: &str) {
        let name = json!(selector);
        // A click at a page whose script has not begun is lost.
        self.wait_for(&format!(
            "document.readyState == 'complete' && document.querySelector({name})"
        ));
        let place = self.value(&format!(
            "(() => {{ const it = document.querySelector({name}); it.scrollIntoView({{block: 'center', behavior: 'instant'}}); \
             const box = it.getClientRects()[0]; \
             const [x, y] = [box.x + box.width / 2, box.y + box.height / 2]; \
             const hit = document.elementFromPoint(x, y); \
             return {{x, y, hit: it.contains(hit) ? null : String(hit?.outerHTML).slice(0, 200)}}; }})()"
        ));
        assert!(
            place["hit"].is_null(),
            "{selector} is behind {}",
            place["hit"]
        );
        for kind in ["mousePressed", "mouseReleased"] {
            let mouse = json!({"type": kind, "x": place["x"], "y": place["y"], "button": "left", "clickCount": 1});
            // A click on a link may replace the page before it is answered.
            self.ask_page("Input.dispatchMouseEvent", &mouse);
        }
    }

    /// Types into an element that is clicked first.
    pub fn type_into(&self, selector: &str, words: &str) {
        self.click(selector);
        self.call("Input.insertText", &json!({"text": words}));
    }

    /// Presses a key, such as `Tab`, `Enter` or `Escape`.
    pub fn press(&self, key: &str) {
        let (code, text) = match key {
            "Tab" => (9, ""),
            "Enter" => (13, "\r"),
            "Escape" => (27, ""),
            " " => (32, " "),
            _ => (0, key),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event =
                json!({"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code});
            if kind == "keyDown" && !text.is_empty() {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Gives the tab a size and colours.
    pub fn look(&self, look: Look) {
        let Look {
            width,
            height,
            dark,
        } = look;
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500});
        self.call("Emulation.setDeviceMetricsOverride", &size);
        let scheme = if dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", &json!({"features": features}));
    }

    /// Has no script run in pages that are opened from now on.
    pub fn forbid_scripts(&self) {
        self.call(
            "Emulation.setScriptExecutionDisabled",
            &json!({"value": true}),
        );
    }

    /// Puts the tab in front of the others, which are hidden then.
    pub fn show(&self) {
        self.call("Page.bringToFront", &json!({}));
    }

    /// Takes a picture of what the tab shows, as PNG.
    ///
    /// # Panics
    ///
    /// If it cannot be written there.
    pub fn picture(&self, file: &Path) {
        let taken = self.call(
            "Page.captureScreenshot",
            &json!({"format": "png", "optimizeForSpeed": false}),
        );
        let bytes = base64::engine::general_purpose::STANDARD.decode(text(&taken["data"]));
        fs::write(file, bytes.expect("it is base64")).expect("the file can be written");
    }

    /// Returns what the page and the browser complained about: errors, warnings of its policy, exceptions.
    pub fn complaints(&self) -> Vec<String> {
        let logged = self.events("Log.entryAdded");
        let logged = logged
            .iter()
            .filter(|event| event["entry"]["level"] == "error");
        let logged =
            logged.map(|event| format!("{}: {}", event["entry"]["text"], event["entry"]["url"]));
        let thrown = self.events("Runtime.exceptionThrown");
        let thrown = thrown
            .iter()
            .map(|event| event["exceptionDetails"].to_string());
        let said = self.events("Runtime.consoleAPICalled");
        let said = said.iter().filter(|event| event["type"] == "error");
        let said = said.map(|event| event["args"].to_string());
        logged.chain(thrown).chain(said).collect()
    }

    /// Returns the addresses that the tab has asked for, in order.
    pub fn requests(&self) -> Vec<String> {
        let asked = self.events("Network.requestWillBeSent");
        asked
            .iter()
            .map(|event| text(&event["request"]["url"]))
            .collect()
    }

    /// Returns the texts of the server-sent events that the tab has received, in order.
    pub fn streamed(&self) -> Vec<String> {
        let came = self.events("Network.eventSourceMessageReceived");
        came.iter().map(|event| text(&event["data"])).collect()
    }

    fn events(&self, name: &str) -> Vec<Value> {
        let heard = self.wire.heard();
        let events = heard
            .events
            .get(&self.session)
            .map_or(&[][..], Vec::as_slice);
        let named = events.iter().filter(|event| event["method"] == name);
        named.map(|event| event["params"].clone()).collect()
    }

    fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let until = now() + PATIENCE;
        while !is_so() {
            assert!(
                now() < until,
                "{what}: not within {PATIENCE:?}; complaints: {:?}",
                self.complaints()
            );
            thread::sleep(POLL);
        }
    }

    fn call(&self, method: &str, parameters: &Value) -> Value {
        let answer = self.ask_page(method, parameters);
        answer.unwrap_or_else(|| panic!("{method} {parameters}: another page took its place"))
    }

    /// Calls; `None` if another page took the place of the one that was asked.
    fn ask_page(&self, method: &str, parameters: &Value) -> Option<Value> {
        let answer = self.wire.answer(&self.session, method, parameters);
        let error = text(&answer["error"]["message"]);
        if REPLACED.iter().any(|words| error.contains(words)) {
            return None;
        }
        assert!(answer["error"].is_null(), "{method} {parameters}: {answer}");
        Some(answer["result"].clone())
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        // The browser may be gone.
        self.wire
            .send("", "Target.closeTarget", &json!({"targetId": self.target}));
    }
}

impl Wire {
    /// Sends a command; returns its number.
    fn send(&self, session: &str, method: &str, parameters: &Value) -> u64 {
        let number = {
            let mut heard = self.heard();
            heard.asked += 1;
            heard.asked
        };
        let mut command = json!({"id": number, "method": method, "params": parameters});
        if !session.is_empty() {
            command["sessionId"] = json!(session);
        }
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        // A browser that is gone is noticed by the wait for its answer.
        drop(to.write_all(format!("{command}\0").as_bytes()));
        drop(to.flush());
        number
    }

    fn call(&self, session: &str, method: &str, parameters: &Value) -> Value {
        let answer = self.answer(session, method, parameters);
        assert!(answer["error"].is_null(), "{method} {parameters}: {answer}");
        answer["result"].clone()
    }

    fn answer(&self, session: &str, method: &str, parameters: &Value) -> Value {
        let number = self.send(session, method, parameters);
        self.wait(method, |heard| heard.answers.remove(&number))
    }

    fn wait<T>(&self, what: &str, mut look: impl FnMut(&mut Heard) -> Option<T>) -> T {
        let until = now() + PATIENCE;
        let mut heard = self.heard();
        loop {
            if let Some(found) = look(&mut heard) {
                return found;
            }
            assert!(!heard.is_over, "{what}: the browser has ended");
            let left = until.saturating_sub(now());
            assert!(!left.is_zero(), "{what}: no answer within {PATIENCE:?}");
            let waited = self.changed.wait_timeout(heard, left);
            heard = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn listen(&self, from: impl Read) {
        let (mut from, mut message) = (BufReader::new(from), Vec::new());
        while from
            .read_until(0, &mut message)
            .is_ok_and(|length| length > 0)
        {
            message.pop();
            if let Ok(mut message) = serde_json::from_slice::<Value>(&message) {
                let mut heard = self.heard();
                if let Some(number) = message["id"].as_u64() {
                    heard.answers.insert(number, message);
                } else {
                    let session = text(&message["sessionId"].take());
                    heard.events.entry(session).or_default().push(message);
                }
            }
            self.changed.notify_all();
            message.clear();
        }
        self.heard().is_over = true;
        self.changed.notify_all();
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn find() -> Option<PathBuf> {
    if let Some(named) = env::var_os(BROWSER_VARIABLE) {
        return Some(named.into());
    }
    let folders = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&folders).collect();
    let programs = BROWSERS
        .iter()
        .flat_map(|program| folders.iter().map(move |folder| folder.join(program)));
    programs.into_iter().find(|path| path.is_file())
}

/// What the browser says of a call whose page is replaced before it has answered.
const REPLACED: [&str; 3] = [
    "Inspected target navigated or closed",
    "Execution context was destroyed",
    "Cannot find default execution context",
];

/// The environment variable that names the browser's program by its path.
const BROWSER_VARIABLE: &str = "REDLOCK_TEST_BROWSER";

/// The programs that are looked for on `PATH`, the first one first.
const BROWSERS: [&str; 4] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
];

const MISSING: &str = "neither chromium nor google-chrome is on PATH, and REDLOCK_TEST_BROWSER does not name one; \
                       to install one, type: sudo apt-get install chromium fonts-dejavu-core";

const FLAGS: [&str; 10] = [
    "--headless",
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-default-browser-check",
    "--hide-scrollbars",
    "--force-color-profile=srgb",
];

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
