//! The default label of a holder: the host and the process.

use redlock_proto::HolderLabel;

/// Returns the label of this process: its host and its number.
pub(crate) fn this_process() -> Option<HolderLabel> {
    HolderLabel::closest(&label(&host(), std::process::id()))
}

/// Returns a host and a process as a label that leaves some room before it.
fn label(host: &str, process: u32) -> String {
    let host: String = host.chars().take(LONGEST_HOST).collect();
    format!("{host}:{process}")
}

#[cfg(unix)]
fn host() -> String {
    let host = rustix::system::uname();
    host.nodename().to_string_lossy().into_owned()
}

#[cfg(not(unix))]
fn host() -> String {
    std::env::var("COMPUTERNAME").unwrap_or_else(|_| "process".to_owned())
}

/// The greatest length of a host's name in a label; the rest is left out.
const LONGEST_HOST: usize = 36;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_told_by_its_host_and_number() {
        let label = this_process().unwrap();
        let (host, process) = label.as_str().rsplit_once(':').unwrap();
        assert_eq!(process, std::process::id().to_string());
        assert!(super::host().starts_with(host), "{host}");
    }

    #[test]
    fn a_long_name_of_a_host_leaves_room_for_the_number_and_a_class() {
        let label = HolderLabel::closest(&label(&"h".repeat(255), u32::MAX)).unwrap();
        assert!(label.as_str().ends_with("h:4294967295"), "{label}");
        let joined = label.holding_for(&"c".repeat(64));
        assert!(
            joined.as_str().starts_with("cccccccccccccccc@h"),
            "{joined}"
        );
    }
}
