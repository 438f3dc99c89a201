use ::axum::{
    body::Body,
    response::{IntoResponse, Response},
};

use crate::Rejection;

/// The answer is [`Rejection::problem`]; the rejection is in its extensions.
impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        self.log(None);
        let mut response = self.problem().map(Body::from);
        response.extensions_mut().insert(self);
        response
    }
}
