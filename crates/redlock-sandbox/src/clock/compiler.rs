//! From C to a library that a server can be started with.

use std::{
    env,
    ffi::{OsStr, OsString},
    fs,
    os::unix::ffi::OsStrExt,
    path::Path,
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
};

use crate::error::StartError;

/// Writes the library to `path`; it is compiled by the first call of a process.
pub(crate) fn write_library(path: &Path) -> Result<(), StartError> {
    // Held during the compilation, so that servers that start at once share it.
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = &*compiled {
        fs::write(path, library).map_err(|error| StartError::io("write the clock", error))
    } else {
        let compiler = env::var_os("CC").unwrap_or_default();
        compile(&compiler, path)?;
        let library =
            fs::read(path).map_err(|error| StartError::io("read the compiled clock", error))?;
        *compiled = Some(library);
        Ok(())
    }
}

/// Compiles the library to `path` with `compiler`, a program and its first arguments.
fn compile(compiler: &OsStr, path: &Path) -> Result<(), StartError> {
    let source = path.with_extension("c");
    fs::write(&source, SOURCE)
        .map_err(|error| StartError::io("write the source of the clock", error))?;

    let (program, arguments) = words(compiler);
    let output = Command::new(&program)
        .args(arguments)
        .args(["-std=c11", "-O2", "-fPIC", "-fvisibility=hidden", "-shared"])
        .arg("-o")
        .args([path, &source])
        // Where `dlsym` is, unless it is in the C library itself.
        .arg("-ldl")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| StartError::no_compiler(&program, error))?;
    if output.status.success() {
        Ok(())
    } else {
        let message = String::from_utf8_lossy(&output.stderr);
        Err(StartError::compiler(&program, output.status, &message))
    }
}

/// Returns the program of `CC`, which is `cc` unless something is said, and its arguments.
pub(super) fn words(compiler: &OsStr) -> (OsString, Vec<OsString>) {
    let mut words = compiler
        .as_bytes()
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
        .map(|word| OsStr::from_bytes(word).to_owned());
    let program = words.next().unwrap_or_else(|| "cc".into());
    (program, words.collect())
}

static COMPILED: Mutex<Option<Vec<u8>>> = Mutex::new(None);

const SOURCE: &str = include_str!("../../clock/clock.c");

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use crate::StartErrorKind;

    use super::*;

    #[test]
    fn it_compiles_without_a_warning() {
        let folder = tempfile::tempdir().unwrap();
        let strict = "-Wall -Wextra -Wconversion -Werror";
        let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
        let compiler = format!("{} {strict}", compiler.display());
        compile(compiler.as_ref(), &folder.path().join("clock.so")).unwrap();
    }

    #[test]
    fn a_compiler_that_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clock.so");
        let error = compile("/no/such/compiler -m64".as_ref(), &path).unwrap_err();
        assert_eq!(error.kind(), StartErrorKind::Compiler);
        assert!(error.to_string().contains("/no/such/compiler "), "{error}");
    }

    #[test]
    fn what_a_compiler_complains_about_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clock.so");
        let error = compile("cc -include no-such-header.h".as_ref(), &path).unwrap_err();
        assert_eq!(error.kind(), StartErrorKind::Compiler);
        assert!(error.to_string().contains("no-such-header.h"), "{error}");
    }

    #[test]
    fn without_a_choice_it_is_cc() {
        for nothing in ["", " "] {
            assert_eq!(words(nothing.as_ref()), ("cc".into(), Vec::new()));
        }
    }
}
