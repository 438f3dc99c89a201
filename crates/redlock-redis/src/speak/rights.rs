//! The rights that errors name; `RedisNode` says what each is for.

pub(crate) const OF_NODES: &str =
    "+ping +eval +evalsha +info +mget +set +del +pttl +pexpire +zmscore +zadd +zrange";
pub(crate) const FOR_CLUSTERS: &str = "+cluster|nodes";
pub(crate) const FOR_SENTINELS: &str = "+sentinel|myid +sentinel|master +sentinel|sentinels";
