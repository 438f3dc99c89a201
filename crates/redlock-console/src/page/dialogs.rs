//! The confirmation of each action: what it does, and what is asked before it is done.

use super::html::{Attributes, Html};

/// An action that an operator can take.
struct ActionButton {
    /// Its name in the address to which it is sent.
    verb: &'static str,
    /// The words of its button.
    title: &'static str,
    /// What it does, behind the name of the job or the key.
    effect: &'static str,
    fields: &'static [ActionField],
}

/// What is asked of the operator besides the reason.
enum ActionField {
    /// A moment in the zone of the reader; the script sends it in UTC.
    Moment {
        name: &'static str,
        label: &'static str,
        is_required: bool,
    },
    /// A choice that is off at first.
    Switch {
        name: &'static str,
        label: &'static str,
    },
    /// A button that shows how much would be done.
    Count,
}

const ACTIONS: [ActionButton; 9] = [
    ActionButton {
        verb: "pause",
        title: "Pause",
        effect: "No replica starts it until it is resumed, or until the time below. A run that goes on is not stopped. \
                 Its ticks of this time are recorded as paused, and are not run later.",
        fields: &[ActionField::Moment {
            name: "until",
            label: "Until (empty: until it is resumed)",
            is_required: false,
        }],
    },
    ActionButton {
        verb: "resume",
        title: "Resume",
        effect: "All replicas may start it again, from its next tick on.",
        fields: &[],
    },
    ActionButton {
        verb: "trigger",
        title: "Run now",
        effect: "One replica starts one more run, also while the job is paused. If a run goes on, the job's policy for overlaps decides.",
        fields: &[],
    },
    ActionButton {
        verb: "stop",
        title: "Stop the run",
        effect: "Its runs are asked to end, on every replica, and are dropped within five seconds. What they have written stays.",
        fields: &[],
    },
    ActionButton {
        verb: "rerun",
        title: "Run this tick again",
        effect: "One replica runs the tick once more, also if a run of it has ended well.",
        fields: &[],
    },
    ActionButton {
        verb: "backfill",
        title: "Backfill",
        effect: "The replicas run the ticks of the range, one after the other. They leave out those that have run well, unless the \
                 box below is checked.",
        fields: &[
            ActionField::Moment {
                name: "from",
                label: "From",
                is_required: true,
            },
            ActionField::Moment {
                name: "to",
                label: "To",
                is_required: true,
            },
            ActionField::Switch {
                name: "again",
                label: "Also the ticks that have run well",
            },
            ActionField::Count,
        ],
    },
    ActionButton {
        verb: "cancel",
        title: "Cancel the backfill",
        effect: "No further tick of its backfill is started. A run that goes on is not stopped.",
        fields: &[],
    },
    ActionButton {
        verb: "forget",
        title: "Forget",
        effect: "The nodes delete all that they remember of it: its runs, its pause and its newest tick. \
                 A replica that still has the job may start its last tick a second time: take it out of all schedulers first.",
        fields: &[],
    },
    ActionButton {
        verb: "release",
        title: "Release by force",
        effect: "The nodes delete the key, and another caller can have it at once. Its holder may go on until its next renewal \
                 fails. Two may then do the same work, unless what they write to checks fencing tokens.",
        fields: &[],
    },
];

/// Adds a template of the confirmation of each action, which the script puts into a dialog.
pub(super) fn dialogs(html: &mut Html) {
    let attributes: Attributes<'_> = &[("id", &"ask"), ("aria-labelledby", &"ask-title")];
    html.element("dialog", attributes, |_| {});
    for action in &ACTIONS {
        html.element(
            "template",
            &[("id", &format_args!("do-{}", action.verb))],
            |html| {
                let form: Attributes<'_> = &[
                    ("method", &"post"),
                    ("action", &format_args!("actions/{}", action.verb)),
                ];
                html.element("form", form, |html| confirmation(html, action));
            },
        );
    }
}

fn confirmation(html: &mut Html, action: &ActionButton) {
    html.element("h2", &[("id", &"ask-title")], |html| {
        html.text(action.title);
        html.text(": ");
        html.leaf("span", &[("class", &"subject")], "");
    });
    html.leaf("p", &[], action.effect);
    for field in action.fields {
        match field {
            ActionField::Moment {
                name,
                label,
                is_required,
            } => html.element("label", &[], |html| {
                html.text(label);
                let mut attributes: Vec<(&'static str, &dyn std::fmt::Display)> =
                    vec![("type", &"datetime-local"), ("name", name), ("step", &"1")];
                if *is_required {
                    attributes.push(("required", &""));
                }
                html.begin("input", &attributes);
            }),
            ActionField::Switch { name, label } => {
                html.element("label", &[("class", &"switch")], |html| {
                    html.begin(
                        "input",
                        &[("type", &"checkbox"), ("name", name), ("value", &"true")],
                    );
                    html.text(label);
                });
            }
            ActionField::Count => html.element("p", &[("class", &"count")], |html| {
                html.leaf(
                    "button",
                    &[("type", &"button"), ("class", &"counts")],
                    "Count the ticks",
                );
                html.text(" ");
                html.leaf("output", &[], "");
            }),
        }
    }
    html.element("label", &[], |html| {
        html.text("Your name");
        html.begin(
            "input",
            &[
                ("name", &"by"),
                ("autocomplete", &"name"),
                ("maxlength", &"100"),
            ],
        );
    });
    html.element("label", &[], |html| {
        html.text("Reason, which the nodes remember");
        let attributes: Attributes<'_> = &[
            ("name", &"reason"),
            ("required", &""),
            ("maxlength", &"200"),
        ];
        html.begin("input", attributes);
    });
    html.leaf("p", &[("class", &"outcome"), ("role", &"alert")], "");
    html.element("p", &[("class", &"choice")], |html| {
        html.leaf(
            "button",
            &[("type", &"button"), ("class", &"leaves")],
            "Leave it",
        );
        html.leaf("button", &[("class", &"does")], action.title);
    });
}
