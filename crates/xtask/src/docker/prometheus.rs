//! The configuration of Prometheus and the alerts, read and tried by its own `promtool`.

use super::Tool;
use crate::{
    step::{Failed, Step},
    unchecked::Unchecked,
};

pub(super) fn check(unchecked: &mut Unchecked) -> Result<(), Failed> {
    if !PROMTOOL.is_there("prometheus", unchecked)? {
        return Ok(());
    }
    let configuration = "check config docker/prometheus/prometheus.yml";
    Step::program("prometheus", "promtool", configuration).run()?;
    let rules = "test rules docker/prometheus/alerts_test.yml";
    Step::program("alerts", "promtool", rules).run()
}

pub(super) const PROMTOOL: Tool = Tool {
    program: "promtool",
    package: "prometheus",
};
