//! Frames by number: a treap whose nodes are the frames, so that it allocates nothing.
//!
//! *Source:* Aragon and Seidel 1989. The priorities are a hash of the number: the same on every machine.

use super::NONE;

#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    left: u32,
    right: u32,
}

/// Frames in rising order of their number.
#[derive(Debug)]
pub(crate) struct Tree {
    nodes: Vec<Node>,
    root: u32,
}

fn priority(key: u64) -> u64 {
    let mixed = (key ^ (key >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

impl Tree {
    pub(crate) fn new() -> Tree {
        Tree { nodes: Vec::new(), root: NONE }
    }

    fn node(&mut self, frame: u32) -> &mut Node {
        &mut self.nodes[frame as usize]
    }

    pub(crate) fn insert(&mut self, key: u64, frame: u32) {
        let node = Node { key, left: NONE, right: NONE };
        if frame as usize >= self.nodes.len() {
            self.nodes.resize(frame as usize + 1, node);
        }
        self.nodes[frame as usize] = node;
        let (left, right) = self.split(self.root, key);
        let left = self.merge(left, frame);
        self.root = self.merge(left, right);
    }

    pub(crate) fn remove(&mut self, key: u64, frame: u32) {
        let Node { left, right, .. } = self.nodes[frame as usize];
        let joined = self.merge(left, right);
        if self.root == frame {
            self.root = joined;
            return;
        }
        let mut at = self.root;
        loop {
            let node = self.node(at);
            let child = if key < node.key { &mut node.left } else { &mut node.right };
            if *child == frame {
                *child = joined;
                return;
            }
            at = *child;
        }
    }

    /// The frame with the least number that is `key` or more.
    pub(crate) fn at_or_after(&self, key: u64) -> Option<u32> {
        let (mut at, mut best) = (self.root, None);
        while at != NONE {
            let node = &self.nodes[at as usize];
            if node.key >= key {
                best = Some(at);
                at = node.left;
            } else {
                at = node.right;
            }
        }
        best
    }

    /// Splits the tree into the frames below `key` and the others.
    fn split(&mut self, at: u32, key: u64) -> (u32, u32) {
        if at == NONE {
            return (NONE, NONE);
        }
        let Node { key: own, left, right } = self.nodes[at as usize];
        if own < key {
            let (low, high) = self.split(right, key);
            self.node(at).right = low;
            (at, high)
        } else {
            let (low, high) = self.split(left, key);
            self.node(at).left = high;
            (low, at)
        }
    }

    /// Joins two trees; all numbers of `low` are below all of `high`.
    fn merge(&mut self, low: u32, high: u32) -> u32 {
        if low == NONE || high == NONE {
            return if low == NONE { high } else { low };
        }
        let (first, second) = (self.nodes[low as usize], self.nodes[high as usize]);
        if priority(first.key) > priority(second.key) {
            self.node(low).right = self.merge(first.right, high);
            low
        } else {
            self.node(high).left = self.merge(low, second.left);
            high
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn tree_lookup_matches_a_sorted_map(
            steps in prop::collection::vec((0u64..60, any::<bool>(), 0u64..70), 1..120),
        ) {
            let (mut tree, mut map) = (Tree::new(), BTreeMap::new());
            for (key, wanted, from) in steps {
                let frame = (key * 7 % 61) as u32;
                match (wanted, map.contains_key(&key)) {
                    (true, false) => {
                        tree.insert(key, frame);
                        map.insert(key, frame);
                    }
                    (false, true) => {
                        tree.remove(key, frame);
                        map.remove(&key);
                    }
                    _ => {}
                }
                prop_assert_eq!(tree.at_or_after(from), map.range(from..).next().map(|(_, frame)| *frame));
            }
        }
    }
}
