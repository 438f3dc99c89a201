//! The dashboard, compared with the schema of the Grafana that the composition runs.

use std::process::{Command, Stdio};

use super::{ALONE, Tool, read, scratch, write};
use crate::{
    step::{Failed, Step},
    unchecked::{Unchecked, is_ci},
};

/// Has TypeScript's compiler compare the dashboard with the types that Grafana publishes.
///
/// No name that they do not have is allowed, and no value that they do not list.
pub(super) fn check(unchecked: &mut Unchecked) -> Result<(), Failed> {
    if !NPM.is_there("dashboard", unchecked)? {
        return Ok(());
    }
    let folder = scratch("dashboard")?;
    write(&folder.join("package.json"), "{ \"private\": true }\n")?;
    write(&folder.join("tsconfig.json"), SETTINGS)?;
    let dashboard = read("docker/grafana/redlock.json")?;
    write(&folder.join("dashboard.ts"), &source(&dashboard))?;
    let compose = read("docker/compose.yaml")?;
    let release = release(&compose)?;
    let mut install = Command::new("npm");
    install
        .args([
            "install",
            "--silent",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
        ])
        .arg(format!("@grafana/schema@{release}"))
        .arg(format!("typescript@{TYPESCRIPT}"))
        .current_dir(&folder)
        .stdin(Stdio::null());
    eprintln!("== dashboard: npm install @grafana/schema@{release} typescript@{TYPESCRIPT}");
    if !install.status().is_ok_and(|status| status.success()) {
        let why = "the types of Grafana cannot be installed";
        return unchecked.missing("dashboard", why, is_ci());
    }
    let compiler = folder.join("node_modules/.bin/tsc");
    let compile = Step::program("dashboard", &compiler.to_string_lossy(), "--project");
    compile.arguments(&[&folder]).alone(ALONE).run()
}

/// Returns what is compiled.
fn source(dashboard: &str) -> String {
    format!("{TYPES}{};\n", dashboard.trim_end())
}

/// Returns the release of Grafana in the composition.
fn release(compose: &str) -> Result<&str, Failed> {
    let image = compose
        .lines()
        .find_map(|line| line.trim().strip_prefix("image: grafana/grafana:"));
    image.ok_or_else(|| Failed("docker/compose.yaml has no Grafana".to_owned()))
}

const NPM: Tool = Tool {
    program: "npm",
    package: "npm",
};

const TYPESCRIPT: &str = "5.9.3";

const TYPES: &str = include_str!("dashboard.ts");

const SETTINGS: &str = r#"{
  "compilerOptions": {
    "strict": true, "noEmit": true, "skipLibCheck": true, "types": [],
    "target": "es2022", "module": "nodenext", "moduleResolution": "nodenext"
  },
  "files": ["dashboard.ts"]
}
"#;
