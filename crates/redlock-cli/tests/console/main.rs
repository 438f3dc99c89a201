//! The page of `redlock console` in a real browser.

use redlock_tests::Browser;

#[test]
fn a_browser_shows_clicks_types_and_hides_tabs() {
    let browser = Browser::start();
    let tab = browser.tab();
    let page = "data:text/html,<p>10:42<button onclick=\"document.title='b'\">b</button><input>\
                <script>console.error('a' + 1)</script>";
    tab.open(page);
    tab.wait_for_text("10:42");
    tab.click("button");
    tab.wait_for("document.title == 'b'");
    tab.type_into("input", "some");
    assert_eq!(tab.value("document.querySelector('input').value"), "some");
    let complaints = tab.complaints();
    assert!(
        complaints.len() == 1 && complaints[0].contains("a1"),
        "{complaints:?}"
    );
    let other = browser.tab();
    other.show();
    tab.wait_for("document.visibilityState == 'hidden'");
}
