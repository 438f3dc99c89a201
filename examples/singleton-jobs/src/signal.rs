use tokio::signal::{
    ctrl_c,
    unix::{SignalKind, signal},
};

/// Waits until the process is asked to end: by Ctrl-C or, as service managers do, by SIGTERM.
pub(crate) async fn end() {
    // Where it cannot be listened to, the signal ends the process by itself.
    let Ok(mut term) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        pressed = ctrl_c() => if pressed.is_err() { std::future::pending().await },
        _ = term.recv() => {}
    }
}
