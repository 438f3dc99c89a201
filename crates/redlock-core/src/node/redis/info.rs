//! The description that a server gives of itself by `INFO`.

use std::sync::Arc;

use redlock_proto::{RunId, ServerInfo};

/// Reads the server info out of the text of `INFO`.
///
/// # Errors
///
/// What is missing, in words for an operator.
pub(super) fn server_info(info: &str) -> Result<ServerInfo, Arc<str>> {
    let field = |name: &str| {
        info.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key == name).then(|| value.trim())
        })
    };
    let missing = |name: &str| Arc::from(format!("INFO does not say {name}"));
    // Servers that are not Redis itself say here which version of Redis they are compatible with.
    let version = field("redis_version").ok_or_else(|| missing("redis_version"))?;
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    let number = numbers.next().flatten();
    let major = number.ok_or_else(|| missing("a redis_version that is a number"))?;
    // Without a limit of its memory, a server makes no room.
    let has_limit = field("maxmemory").is_none_or(|limit| limit != "0");
    Ok(ServerInfo {
        run: RunId::from(field("run_id").ok_or_else(|| missing("run_id"))?),
        version: (major, numbers.next().flatten().unwrap_or(0)),
        is_master: field("role").ok_or_else(|| missing("role"))? == "master",
        replicas: field("connected_slaves")
            .and_then(|count| count.parse().ok())
            .unwrap_or(0),
        is_cluster: field("cluster_enabled") == Some("1"),
        eviction: field("maxmemory_policy")
            .filter(|_| has_limit)
            .map(Arc::from),
        appends: field("aof_enabled") == Some("1"),
        syncs: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: &str = "# Server\r\nredis_version:7.0.15\r\nredis_mode:standalone\r\n\
        run_id:0f3a\r\n# Replication\r\nrole:master\r\n# Memory\r\nmaxmemory:0\r\n\
        maxmemory_policy:allkeys-lru\r\naof_enabled:1\r\ncluster_enabled:0\r\n";

    #[test]
    fn the_server_info_is_read() {
        let server_info = server_info(INFO).unwrap();
        assert_eq!(server_info.run.as_str(), "0f3a");
        assert_eq!(server_info.version, (7, 0));
        assert!(server_info.is_master && server_info.appends && !server_info.is_cluster);
        assert_eq!(server_info.replicas, 0);
        let copied = INFO.replace("role:master", "role:master\r\nconnected_slaves:2");
        assert_eq!(super::server_info(&copied).unwrap().replicas, 2);
        assert_eq!(
            server_info.eviction, None,
            "without a limit nothing is evicted"
        );
    }

    #[test]
    fn a_policy_matters_where_there_is_a_limit() {
        let limited = server_info(&INFO.replace("maxmemory:0", "maxmemory:1000")).unwrap();
        assert_eq!(limited.eviction.as_deref(), Some("allkeys-lru"));
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = server_info(&INFO.replace("role", "roll")).unwrap_err();
        assert_eq!(&*error, "INFO does not say role");
        assert!(server_info("").is_err());
    }
}
