//! What must be right in the end, whatever the clients were answered.

use std::fmt;

use serde::Deserialize;

/// An order, as the service shows it.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Order {
    pub(crate) payments: usize,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Product {
    pub(crate) stock: i64,
    pub(crate) reserved: i64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Catalogue {
    pub(crate) articles: usize,
    pub(crate) imports: usize,
}

/// What came of a load.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Books {
    pub(crate) paid_once: usize,
    unpaid: usize,
    pub(crate) paid_twice: usize,
    pub(crate) sold: i64,
    /// Promised, and not there.
    pub(crate) oversold: i64,
    /// In stock according to the books, and promised.
    missing: i64,
    whole: usize,
    /// Catalogues that are no one import's.
    pub(crate) mixed: usize,
    /// Requests that were sent away until their client gave up, or answered as no request should be.
    pub(crate) failed: usize,
}

impl Books {
    pub(crate) fn order(&mut self, order: Order) {
        match order.payments {
            0 => self.unpaid += 1,
            1 => self.paid_once += 1,
            _ => self.paid_twice += 1,
        }
    }

    /// `stock` is what there was, and fewer than were asked for.
    pub(crate) fn product(&mut self, product: Product, stock: i64) {
        self.sold += product.reserved;
        self.oversold += (product.reserved - stock).max(0);
        self.missing += (stock - product.reserved).max(0) + product.stock.abs();
    }

    /// `articles` is how many each import of the tenant had.
    pub(crate) fn catalogue(&mut self, catalogue: Catalogue, articles: usize) {
        if catalogue.imports == 1 && catalogue.articles == articles {
            self.whole += 1;
        } else {
            self.mixed += 1;
        }
    }

    /// Whether nothing went wrong.
    pub(crate) fn are_right(&self) -> bool {
        let right = Self {
            paid_once: self.paid_once,
            sold: self.sold,
            whole: self.whole,
            ..Self::default()
        };
        *self == right
    }
}

impl fmt::Display for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            paid_once,
            unpaid,
            paid_twice,
            sold,
            oversold,
            missing,
            whole,
            mixed,
            failed,
        } = self;
        write!(
            f,
            "{paid_once} orders paid once, {paid_twice} paid twice, {sold} items sold, {oversold} oversold, \
             {whole} catalogues whole, {mixed} mixed"
        )?;
        for (count, what) in [(*unpaid, "orders unpaid"), (*failed, "requests failed")] {
            if count > 0 {
                write!(f, ", {count} {what}")?;
            }
        }
        match missing {
            0 => Ok(()),
            _ => write!(f, ", the stock is wrong by {missing}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn books(order: usize, product: (i64, i64), catalogue: (usize, usize)) -> Books {
        let mut books = Books::default();
        books.order(Order { payments: order });
        let (stock, reserved) = product;
        books.product(Product { stock, reserved }, 10);
        let (articles, imports) = catalogue;
        books.catalogue(Catalogue { articles, imports }, 60);
        books
    }

    #[test]
    fn each_thing_that_can_be_wrong_is_noticed() {
        assert!(books(1, (0, 10), (60, 1)).are_right());
        for wrong in [
            books(0, (0, 10), (60, 1)),
            books(2, (0, 10), (60, 1)),
            books(1, (0, 11), (60, 1)),
            books(1, (1, 10), (60, 1)),
            books(1, (0, 9), (60, 1)),
            books(1, (0, 10), (60, 2)),
            books(1, (0, 10), (50, 1)),
            books(1, (0, 10), (0, 0)),
            Books {
                failed: 1,
                ..books(1, (0, 10), (60, 1))
            },
        ] {
            assert!(!wrong.are_right(), "{wrong}");
        }
    }
}
