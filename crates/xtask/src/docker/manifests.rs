//! The manifests, compared with the schema of Kubernetes.

use std::path::PathBuf;

use super::{answers, scratch};
use crate::{
    install,
    step::{Failed, Step, target},
    unchecked::{Unchecked, is_ci},
};

/// Compares the manifests with the schema, which allows no field that it does not have.
///
/// `kubernetes-validate` brings the schema along; where it is missing, it is installed for this step alone.
pub(super) fn check(unchecked: &mut Unchecked) -> Result<(), Failed> {
    let Some(program) = validator() else {
        let why = format!(
            "kubernetes-validate is missing; type: pip install kubernetes-validate=={VERSION}"
        );
        return unchecked.missing("manifests", &why, is_ci());
    };
    let manifests = "--strict docker/kubernetes/redlock.yaml";
    Step::program("manifests", &program.to_string_lossy(), manifests).run()
}

/// Returns the program, where it is or after it was installed.
fn validator() -> Option<PathBuf> {
    let own = target().join("docker/validator/bin/kubernetes-validate");
    let is_there = |program: &PathBuf| answers(program);
    let found = [PathBuf::from("kubernetes-validate"), own.clone()];
    found.into_iter().find(is_there).or_else(|| {
        if environment().is_err() && is_ci() {
            // Debian's Python makes no environments without it.
            install::debian("manifests", &["python3-venv"]);
            environment().ok()?;
        }
        let pip = own.with_file_name("pip");
        let install = format!("install --quiet kubernetes-validate=={VERSION}");
        let installed =
            Step::program("kubernetes-validate", &pip.to_string_lossy(), &install).run();
        if let Err(Failed(message)) = installed {
            eprintln!("{message}");
        }
        Some(own).filter(is_there)
    })
}

/// Makes an environment of Python's for it.
fn environment() -> Result<(), Failed> {
    let folder = scratch("validator")?;
    let make = Step::program("kubernetes-validate", "python3", "-m venv");
    make.arguments(&[folder]).run()
}

/// The newest when it was chosen; each has the schema of Kubernetes of its version.
const VERSION: &str = "1.37.0";
