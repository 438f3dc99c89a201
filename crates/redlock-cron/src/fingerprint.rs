/// A number that stands for the job's configuration: the same on all replicas that agree.
///
/// FNV-1a with 64 bits, over fields that end with a byte that is in none of them.
pub(crate) fn of<'a>(fields: impl IntoIterator<Item = &'a str>) -> u64 {
    let bytes = fields
        .into_iter()
        .flat_map(|field| field.bytes().chain([0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_of_all_versions_agree_on_it() {
        assert_eq!(of([]), 0xcbf2_9ce4_8422_2325);
        assert_eq!(of(["0 0 2 * * *", "Europe/Berlin"]), 0x90e1_f7f9_d115_fc78);
    }

    #[test]
    fn fields_do_not_run_into_each_other() {
        assert_ne!(of(["ab", "c"]), of(["a", "bc"]));
        assert_ne!(of(["a"]), of(["a", ""]));
    }
}
