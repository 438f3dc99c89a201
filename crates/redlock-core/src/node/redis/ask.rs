use deadpool_redis::redis::{
    Cmd, RedisResult, Value,
    aio::{ConnectionLike, MultiplexedConnection},
};

/// Sends a command, and returns the server's answer; an error that it sent is an error here too.
pub(super) async fn ask(connection: &mut MultiplexedConnection, cmd: &Cmd) -> RedisResult<Value> {
    connection.req_packed_command(cmd).await?.extract_error()
}
