//! Answers as of RFC 9457, "Problem Details for HTTP APIs".

use std::{fmt::Write, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};

/// Returns an answer that says what went wrong.
pub(crate) fn problem(
    status: StatusCode,
    detail: &str,
    retry_after: Option<Duration>,
) -> Response<Bytes> {
    // "When 'about:blank' is used, the title SHOULD be the same as the recommended HTTP status phrase."
    let title = status.canonical_reason().unwrap_or_default();
    let body = format!(
        r#"{{"type":"about:blank","title":{},"status":{},"detail":{}}}"#,
        json_string(title),
        status.as_u16(),
        json_string(detail),
    );
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    if let Some(after) = retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(whole_seconds(after)));
    }
    response
}

/// Rounded up and never 0: a client that is told 0 comes back at once, and so do all the others.
fn whole_seconds(duration: Duration) -> u64 {
    let started = u64::from(duration.subsec_nanos() > 0);
    duration.as_secs().saturating_add(started).max(1)
}

/// `text` in quotation marks, as JSON has it.
fn json_string(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c < ' ' => {
                write!(json, "\\u{:04x}", u32::from(c))
                    .expect("a string takes all that is written");
            }
            c => json.push(c),
        }
    }
    json.push('"');
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_rounded_up_and_never_zero() {
        let cases = [(0, 1), (1, 1), (999, 1), (1000, 1), (1001, 2), (5000, 5)];
        for (ms, seconds) in cases {
            assert_eq!(whole_seconds(Duration::from_millis(ms)), seconds, "{ms} ms");
        }
        assert_eq!(whole_seconds(Duration::MAX), u64::MAX);
    }

    #[test]
    fn any_detail_makes_valid_json() {
        let detail = "quotes \" and \\ and\u{1}\n\u{7f} and ü 🔒";
        let response = problem(StatusCode::IM_A_TEAPOT, detail, None);
        let json: serde_json::Value = serde_json::from_slice(response.body()).unwrap();
        assert_eq!(json["detail"], detail);
        assert_eq!(json["title"], "I'm a teapot");
        assert_eq!(json["status"], 418);
    }
}
