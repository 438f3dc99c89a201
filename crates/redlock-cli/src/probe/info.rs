use std::{collections::HashMap, str::FromStr};

/// What `INFO` says: fields by their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Info(HashMap<String, String>);

impl Info {
    pub(super) fn read(text: &str) -> Self {
        let fields = text.lines().filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_owned(), value.trim().to_owned()))
        });
        Self(fields.collect())
    }

    /// Returns a field as text; nothing if it is not there.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Returns a field that is a number.
    pub(crate) fn number<N: FromStr>(&self, name: &str) -> Option<N> {
        self.0.get(name)?.parse().ok()
    }

    /// Returns the version of the server, by the name under which it goes.
    pub(crate) fn version(&self) -> String {
        match (self.text("valkey_version"), self.text("redis_version")) {
            ("", "") => "version unknown".to_owned(),
            ("", redis) => format!("redis {redis}"),
            (valkey, _) => format!("valkey {valkey}"),
        }
    }

    /// Returns the number of keys in a database.
    pub(crate) fn keys_in(&self, database: i64) -> u64 {
        let value = self.0.get(&format!("db{database}"));
        value.and_then(|value| keys(value)).unwrap_or(0)
    }

    /// Returns the number of keys in all databases but this one.
    pub(crate) fn keys_elsewhere(&self, database: i64) -> u64 {
        let own = format!("db{database}");
        let databases = self.0.iter().filter(|(name, _)| {
            let number = name.strip_prefix("db").map(str::parse::<u32>);
            matches!(number, Some(Ok(_))) && **name != own
        });
        databases.filter_map(|(_, value)| keys(value)).sum()
    }
}

fn keys(value: &str) -> Option<u64> {
    let keys = value.strip_prefix("keys=")?.split(',').next()?;
    keys.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::Info;

    #[test]
    fn fields_are_read() {
        let info = Info::read(
            "# Server\r\nredis_version:7.2.4\r\nvalkey_version:8.1.1\r\nuptime_in_seconds:12\r\n\
             db0:keys=3,expires=1,avg_ttl=0\r\ndb4:keys=39,expires=0,avg_ttl=0\r\n",
        );
        assert_eq!(info.version(), "valkey 8.1.1");
        assert_eq!(info.number::<u64>("uptime_in_seconds"), Some(12));
        assert_eq!(info.number::<u64>("redis_version"), None);
        assert_eq!(info.keys_elsewhere(0), 39);
        assert_eq!(info.keys_elsewhere(4), 3);
        assert_eq!(info.text("role"), "");
    }
}
