//! `flow`: none of the jobs of a group is ahead of its share of their requests.
//!
//! *Source:* `flow_threshold_exceeded` of fio 3.33.

use headstack_model::Nanos;

use super::settings::FlowRules;

/// The groups of jobs that share their requests, and the jobs of them.
#[derive(Debug, Default)]
pub(super) struct Flows {
    groups: Vec<FlowGroup>,
    members: Vec<Option<FlowMember>>,
}

#[derive(Debug)]
struct FlowGroup {
    number: u64,
    /// Requests of the jobs that run, plus 1.
    count: u64,
    /// Sum of the weights of the jobs that run.
    weight: u64,
    /// The clones that wait until others have issued.
    waiting: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct FlowMember {
    group: usize,
    weight: u64,
    sleep: Nanos,
    count: u64,
    is_draining: bool,
    /// Whether a timer is set for the end of its time.
    has_timer: bool,
}

impl Flows {
    /// The groups of these clones, in the order of their numbers.
    pub(super) fn new(rules: impl Iterator<Item = FlowRules>) -> Flows {
        let mut flows = Flows::default();
        for FlowRules { weight, group, sleep } in rules {
            let member = (weight > 0).then(|| FlowMember {
                group: flows.group(group),
                weight,
                sleep,
                count: 0,
                is_draining: false,
                has_timer: false,
            });
            flows.members.push(member);
        }
        if flows.groups.is_empty() {
            flows.members.clear();
        }
        flows
    }

    fn group(&mut self, number: u64) -> usize {
        let known = self.groups.iter().position(|group| group.number == number);
        known.unwrap_or_else(|| {
            self.groups.push(FlowGroup { number, count: 1, weight: 0, waiting: Vec::new() });
            self.groups.len() - 1
        })
    }

    fn member(&mut self, source: usize) -> Option<(&mut FlowMember, &mut FlowGroup)> {
        let member = self.members.get_mut(source)?.as_mut()?;
        let group = &mut self.groups[member.group];
        Some((member, group))
    }

    /// Whether no job has a share.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    pub(super) fn start(&mut self, source: usize) {
        if let Some((member, group)) = self.member(source) {
            group.weight += member.weight;
        }
    }

    /// Takes a clone out of its group; returns those that waited.
    pub(super) fn end(&mut self, source: usize) -> Vec<u32> {
        let Some((member, group)) = self.member(source) else { return Vec::new() };
        group.weight -= member.weight;
        group.count -= member.count;
        let waiting = std::mem::take(&mut group.waiting);
        self.members[source] = None;
        waiting
    }

    /// Whether a clone is ahead of its share.
    pub(super) fn is_ahead(&mut self, source: usize) -> bool {
        self.member(source).is_some_and(|(member, group)| {
            u128::from(member.count) * u128::from(group.weight)
                > u128::from(member.weight) * u128::from(group.count)
        })
    }

    /// Lets a clone that is ahead wait; returns its pause, if it has one, which begins when nothing of it is outstanding.
    pub(super) fn hold_back(&mut self, source: usize) -> Option<Nanos> {
        let (member, group) = self.member(source)?;
        if member.sleep > Nanos::ZERO {
            member.is_draining = true;
            return Some(member.sleep);
        }
        if !group.waiting.contains(&(source as u32)) {
            group.waiting.push(source as u32);
        }
        None
    }

    /// Whether a clone that waits needs a timer for the end of its time, which is set once.
    pub(super) fn needs_timer(&mut self, source: usize) -> bool {
        self.member(source).is_some_and(|(member, _)| !std::mem::replace(&mut member.has_timer, true))
    }

    /// The pause of a clone that waits for its outstanding requests.
    pub(super) fn drained(&self, source: usize) -> Option<Nanos> {
        let member = self.members.get(source)?.as_ref()?;
        member.is_draining.then_some(member.sleep)
    }

    pub(super) fn end_drain(&mut self, source: usize) {
        if let Some((member, _)) = self.member(source) {
            member.is_draining = false;
        }
    }

    /// Counts a request; returns the clones that waited for it.
    pub(super) fn count(&mut self, source: usize) -> Vec<u32> {
        let Some((member, group)) = self.member(source) else { return Vec::new() };
        member.count += 1;
        group.count += 1;
        std::mem::take(&mut group.waiting)
    }
}
