//! Keys as data, for the types of applications.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::ResourceKey;

/// As its name.
impl Serialize for ResourceKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// From its name, which is checked; such a key has no class, as one that is made of a whole name.
impl<'de> Deserialize<'de> for ResourceKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        name.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::ResourceKey;

    #[derive(serde::Deserialize, serde::Serialize)]
    struct Report {
        resource: ResourceKey,
    }

    #[test]
    fn a_key_is_its_name_as_data_and_a_name_is_checked() {
        let resource = ResourceKey::new("order", 42).unwrap();
        let text = toml::to_string(&Report { resource }).unwrap();
        assert_eq!(text.trim(), "resource = \"order:42\"");
        let report: Report = toml::from_str(&text).unwrap();
        assert_eq!(report.resource, "order:42".parse().unwrap());
        for name in ["", "a\\nb"] {
            let text = format!("resource = \"{name}\"");
            assert!(toml::from_str::<Report>(&text).is_err(), "{text}");
        }
    }
}
