//! What the compiler says to the commonest mistakes.

#[test]
fn the_commonest_mistakes_are_explained() {
    trybuild::TestCases::new().compile_fail("tests/mistakes/*.rs");
}
