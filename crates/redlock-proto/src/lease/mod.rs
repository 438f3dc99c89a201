mod presence;
mod renewal;

pub use self::{
    presence::LeftOver,
    renewal::{LeaseAction, LeaseState, Loss},
};
