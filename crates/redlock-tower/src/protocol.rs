use http::{HeaderMap, header};

/// In which protocol a client expects its answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Protocol {
    Http,
    Grpc,
}

impl Protocol {
    /// Returns what the content type of a request asks for: gRPC by `application/grpc`, with or without a format
    /// behind it.
    ///
    /// gRPC-Web is none of it: its clients understand the statuses of HTTP.
    pub(crate) fn of(request: &HeaderMap) -> Self {
        let content_type = request.get(header::CONTENT_TYPE);
        let rest =
            content_type.and_then(|value| value.as_bytes().strip_prefix(b"application/grpc"));
        match rest {
            Some([] | [b'+' | b';', ..]) => Self::Grpc,
            _ => Self::Http,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grpc_is_told_by_its_content_type() {
        let of = |content_type: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, content_type.parse().unwrap());
            Protocol::of(&headers)
        };
        for grpc in [
            "application/grpc",
            "application/grpc+proto",
            "application/grpc;a=b",
        ] {
            assert_eq!(of(grpc), Protocol::Grpc, "{grpc}");
        }
        for http in [
            "application/json",
            "application/grpc-web",
            "application/grpc-web+proto",
        ] {
            assert_eq!(of(http), Protocol::Http, "{http}");
        }
        assert_eq!(Protocol::of(&HeaderMap::new()), Protocol::Http);
    }
}
