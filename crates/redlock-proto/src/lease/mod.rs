mod fairness;
mod presence;
mod renewal;

pub use self::{
    fairness::Fairness,
    presence::LeftOver,
    renewal::{LeaseAction, LeaseState, Loss},
};
