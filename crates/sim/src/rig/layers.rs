//! The order of the layers in front of the volumes: its check.

use super::checks::Checked;
use super::spec::RigSpec;
use headstack_model::spec::{Fault, did_you_mean};

const KEY: &str = "layers";

/// Whether a rig asks for a layer.
type IsThere = fn(&RigSpec) -> bool;

/// The layers of a volume whose order a rig may change, each with whether a rig has it, in the order that they have otherwise, from the top.
const MOVABLE: [(&str, IsThere); 5] = [
    ("host.page_cache", |rig| rig.host.page_cache.is_some()),
    ("host.cgroup", |rig| !rig.host.cgroup.is_empty()),
    ("node", |rig| rig.node.is_some()),
    ("host.partition_start", |rig| rig.host.partition_start > 0),
    ("rearrange", |rig| rig.rearrange.is_some()),
];

/// Checks that the order has each layer of the rig once, and no others.
pub(super) fn check(rig: &RigSpec) -> Checked {
    let order = &rig.layers;
    if order.is_empty() {
        return Ok(());
    }
    let all = MOVABLE.map(|(name, _)| name);
    let there: Vec<&str> =
        MOVABLE.into_iter().filter(|(_, is_there)| is_there(rig)).map(|(name, _)| name).collect();
    let fault = |message: String| Err(Fault::new(KEY, message));
    for (index, name) in order.iter().enumerate() {
        if !all.contains(&name.as_str()) {
            let hint = did_you_mean(name, all);
            return fault(format!("`{name}` is none of {}{hint}", listed(&all)));
        }
        if !there.contains(&name.as_str()) {
            return fault(format!("the rig has no `{name}`"));
        }
        if order[..index].contains(name) {
            return fault(format!("`{name}` is there twice"));
        }
    }
    if let Some(missing) = there.iter().find(|name| !order.iter().any(|other| other == *name)) {
        return fault(format!("`{missing}` is missing: the order has all of {}", listed(&there)));
    }
    let place = |name: &str| order.iter().position(|other| other == name);
    let (partition, rearranger) = (place("host.partition_start"), place("rearrange"));
    if partition.zip(rearranger).is_some_and(|(partition, rearranger)| rearranger < partition) {
        let message = "`rearrange` must be below `host.partition_start`: it knows the arm by the blocks of the whole disk";
        return fault(message.to_string());
    }
    Ok(())
}

fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::Rig;
    use crate::rearrange_layer::RearrangeLayer;
    use crate::stream_layer::StreamLayer;
    use headstack_model::{Instant, Lbn, Request, drives};
    use headstack_workload::{Issue, Load, Poll};

    const PLAIN: &str = "drive.preset = \"wd800jd\"\nhost.page_cache.memory_mb = 16\n";

    fn rig(order: &str, sections: &str) -> Result<Rig, String> {
        let text = format!("{order}\n{PLAIN}{sections}");
        let rig = Rig::parse(&text, "t.toml", &mut |name| drives::load(name));
        rig.map_err(|error| error.to_string())
    }

    /// Reads the same blocks twice, one after the other.
    struct Again(u64, bool);

    impl Load for Again {
        fn poll(&mut self, _now: Instant) -> Poll {
            match (self.0, self.1) {
                (2, _) => Poll::Done,
                (_, true) => Poll::Waiting,
                (id, false) => {
                    *self = Again(id + 1, true);
                    let issue = Issue::new(0, Request::read(Lbn(80_000), 8), id);
                    Poll::Issue(Issue { direct: false, ..issue })
                }
            }
        }

        fn handle_completion(&mut self, _now: Instant, _id: u64) {
            self.1 = false;
        }
    }

    /// Of two reads of the same blocks, those that reach the node, and the accesses of the rearranger.
    fn reached(rig: &Rig) -> (u64, u64) {
        let mut engine = rig.build(1).expect("it can be built");
        engine.run(&mut Again(0, false), &mut |_| ());
        let node = engine.layer::<StreamLayer>(0).expect("the rig has a node").streams();
        let rearranger =
            engine.layer::<RearrangeLayer>(0).map(|layer| layer.activity().view.counters.requests);
        (node.view().counters.requests, rearranger.unwrap_or_default())
    }

    #[test]
    fn layers_stand_in_the_order_of_the_rig() {
        let sections = "[rearrange]\nblocks = 100\n[node]\n";
        let with = |order: &str| rig(order, sections).expect("the order is valid");
        let usual = with("");
        // The page cache answers the second read, and reads ahead for the first.
        assert_eq!(reached(&usual), (1, 1));
        let named = with("layers = [\"host.page_cache\", \"node\", \"rearrange\"]");
        assert_eq!(reached(&named), (1, 1));
        let other = with("layers = [\"rearrange\", \"node\", \"host.page_cache\"]");
        assert_eq!(reached(&other), (2, 2));
        assert_eq!(other.volumes()[0].sectors, usual.volumes()[0].sectors);
        assert_eq!(reached(&other.without_rearrangement()), (2, 0));
    }

    #[test]
    fn order_has_each_layer_of_the_rig_once() {
        let refused = |order: &str, sections: &str| {
            let error = rig(&format!("layers = {order}"), sections).expect_err(order);
            error.split("layers: ").nth(1).expect("the key is named").to_string()
        };
        assert_eq!(refused("[\"node\"]", ""), "the rig has no `node`");
        assert_eq!(
            refused("[\"host.page_cache\"]", "[node]\n"),
            "`node` is missing: the order has all of `host.page_cache`, `node`"
        );
        let twice = refused("[\"host.page_cache\", \"host.page_cache\"]", "");
        assert_eq!(twice, "`host.page_cache` is there twice");
        assert!(refused("[\"nodes\"]", "").ends_with("did you mean `node`?"));
        let below = refused(
            "[\"rearrange\", \"host.partition_start\", \"host.page_cache\"]",
            "host.partition_start = 63\n[rearrange]\nblocks = 100\n",
        );
        assert!(below.starts_with("`rearrange` must be below `host.partition_start`"), "{below}");
    }
}
