//! The order in which a call has its requests.

use super::super::functions;
use crate::node::Request;

/// The order in which a call has its requests, and its answer the replies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in super::super) enum Order {
    /// As they were asked for.
    Given,
    /// Those that take a key, and behind them all others: so functions, which do most calls, need not look what each is.
    ///
    /// It is the same to a node if no key occurs twice.
    AcquiresFirst,
}

impl Order {
    /// Returns requests in this order.
    pub(super) fn of(self, requests: &[Request]) -> impl Iterator<Item = &Request> {
        let is_first = move |request: &Request| self.is_first(request);
        let first = requests.iter().filter(move |request| is_first(request));
        let behind = requests.iter().filter(move |request| !is_first(request));
        first.chain(behind)
    }

    /// Returns what belongs to requests in this order as it belongs to them as they were asked for.
    pub(super) fn undo<T>(self, mut parts: Vec<T>, requests: &[Request]) -> Vec<T> {
        if self == Self::Given {
            return parts;
        }
        let firsts = requests.iter().filter(|request| self.is_first(request));
        let mut behind = parts.split_off(firsts.count()).into_iter();
        let mut first = parts.into_iter();
        let parts = requests.iter().map(|request| match self.is_first(request) {
            true => first.next(),
            false => behind.next(),
        });
        parts.flatten().collect()
    }

    fn is_first(self, request: &Request) -> bool {
        self == Self::Given || functions::takes(request)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::super::fixtures::{RELEASE, acquire, extend, lock},
        *,
    };

    // Shows: R2.12.
    #[test]
    fn what_was_put_in_order_is_as_it_was_given_once_that_is_undone() {
        let requests = [lock(RELEASE), acquire(1), extend(None), acquire(2)];
        for (order, expected) in [
            (Order::Given, [0, 1, 2, 3]),
            (Order::AcquiresFirst, [1, 3, 0, 2]),
        ] {
            let sent: Vec<&Request> = order.of(&requests).collect();
            assert_eq!(sent, expected.map(|place| &requests[place]));
            assert_eq!(order.undo(expected.to_vec(), &requests), [0, 1, 2, 3]);
        }
    }
}
