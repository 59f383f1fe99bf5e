//! An SSA loop: an adapter and drives in a ring, each joined to the next by a link that carries frames in both directions at once.
//!
//! Modelled: two routes to each drive, cut links, frames that are stored and forwarded at each node, transfers whose frames
//! interleave, both sides of the adapter and both directions at the same time, the adapter's time for each command. A transfer
//! takes the shorter route, or the other one if it would end sooner there.
//!
//! Every transfer begins or ends at the adapter, so all transfers that share any link of a route share the adapter's link, and
//! only that link can lack capacity. There the model keeps the transfers' rates; each further hop adds the time of a frame. Frames
//! of commands and status are small and fit between data; they cost their hops. Not modelled: user-level acknowledgements and the
//! fairness token, several adapters, transfers from drive to drive.
//!
//! *Source:* ANSI X3.293 (SSA-PH), 20 MB/s per link and direction, frames of up to 128 bytes of data.

use super::lane::{Flow, Lane};
use headstack_model::{Instant, Nanos};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RingShape {
    /// Drives, one after the other behind the adapter. Link 0 joins the adapter to the first of them, link 1 the first to the
    /// second, the last link the last one to the adapter.
    pub(crate) drives: u32,
    /// Bytes a second on a link, in each direction.
    pub(crate) link_rate: u64,
    pub(crate) frame_bytes: u32,
    /// Links that carry nothing.
    pub(crate) cut: Vec<u32>,
    /// Time of the adapter for each command.
    pub(crate) command: Nanos,
}

impl RingShape {
    /// Links from the adapter to a drive by each route, shortest first; a route with a cut link is `None`.
    fn routes(&self, drive: u32) -> [Option<Route>; 2] {
        let open = |links: std::ops::Range<u32>| !self.cut.iter().any(|cut| links.contains(cut));
        let forth = open(0..drive + 1).then_some(Route { side: 0, hops: drive + 1 });
        let back = open(drive + 1..self.drives + 1).then_some(Route { side: 1, hops: self.drives - drive });
        match (forth, back) {
            (Some(one), Some(other)) if other.hops < one.hops => [back, forth],
            (None, _) => [back, None],
            _ => [forth, back],
        }
    }

    /// The first drive without a route.
    pub(crate) fn unreachable(&self) -> Option<u32> {
        (0..self.drives).find(|drive| self.routes(*drive)[0].is_none())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Route {
    /// End of the ring at which the route leaves the adapter.
    side: usize,
    hops: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Ring {
    /// The routes of each drive, shortest first.
    routes: Vec<[Option<Route>; 2]>,
    /// The adapter's own links: by side, and to it or from it.
    lanes: [[Lane; 2]; 2],
    frame: Nanos,
    command: Nanos,
    /// When the adapter has finished the commands so far.
    adapter: Instant,
}

impl Ring {
    /// Panics when a drive cannot be reached.
    pub(crate) fn new(shape: &RingShape) -> Ring {
        assert!(shape.unreachable().is_none(), "the rig was checked");
        let lane = || Lane::new(shape.link_rate);
        let ns = u128::from(shape.frame_bytes) * 1_000_000_000 / u128::from(shape.link_rate);
        Ring {
            routes: (0..shape.drives).map(|drive| shape.routes(drive)).collect(),
            lanes: [[lane(), lane()], [lane(), lane()]],
            frame: Nanos(ns as u64),
            command: shape.command,
            adapter: Instant::ZERO,
        }
    }

    fn hops(&self, links: u32) -> Nanos {
        Nanos(self.frame.0 * u64::from(links))
    }

    fn shortest(&self, drive: u32) -> Route {
        self.routes[drive as usize][0].expect("the loop was checked")
    }

    /// When a command that is sent at `now` has arrived at a drive.
    pub(crate) fn command(&mut self, now: Instant, drive: u32) -> Instant {
        self.adapter = self.adapter.max(now) + self.command;
        self.adapter + self.report(drive)
    }

    /// Time of a status from a drive.
    pub(crate) fn report(&self, drive: u32) -> Nanos {
        self.hops(self.shortest(drive).hops)
    }

    /// Transfers data to the adapter or from it; returns when they have arrived.
    pub(crate) fn transfer(&mut self, now: Instant, drive: u32, flow: Flow, to_host: bool) -> Instant {
        let [first, second] = self.routes[drive as usize];
        let first = first.expect("the loop was checked");
        let end = |route: Route| {
            let (flow, after) = self.beside_adapter(route, flow, to_host);
            self.lanes[route.side][usize::from(to_host)].predict_end(flow) + after
        };
        let route = match second {
            Some(second) if end(second) < end(first) => second,
            _ => first,
        };
        let (flow, after) = self.beside_adapter(route, flow, to_host);
        self.lanes[route.side][usize::from(to_host)].take(now, flow) + after
    }

    /// A flow as it arrives at the adapter's link, and its time from that link to its end.
    fn beside_adapter(&self, route: Route, flow: Flow, to_host: bool) -> (Flow, Nanos) {
        let others = self.hops(route.hops - 1);
        if to_host { (Flow { begins: flow.begins + others, ..flow }, Nanos::ZERO) } else { (flow, others) }
    }

    /// Time for which data filled the adapter's links, in each direction.
    pub(crate) fn busy(&self) -> [(&'static str, Nanos); 4] {
        let [[from_first, to_first], [from_last, to_last]] = &self.lanes;
        [
            ("first link, to the adapter", to_first.busy()),
            ("first link, from the adapter", from_first.busy()),
            ("last link, to the adapter", to_last.busy()),
            ("last link, from the adapter", from_last.busy()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;
    use std::collections::VecDeque;

    fn shape(drives: u32, cut: &[u32]) -> RingShape {
        let (link_rate, frame_bytes) = (20_000_000, 128);
        RingShape { drives, link_rate, frame_bytes, cut: cut.to_vec(), command: Nanos::ZERO }
    }

    /// A frame's time at 20 MB/s.
    const FRAME: u64 = 6_400;

    fn flow(begins: u64, least: u64, frames: u64) -> Flow {
        Flow { begins: Instant(begins), least: Nanos(least), units: frames * 128 }
    }

    #[test]
    fn frame_time_counts_the_hops_of_the_shorter_route() {
        let mut ring = Ring::new(&shape(4, &[]));
        let hops = [1, 2, 2, 1];
        for drive in 0..4 {
            let one = ring.transfer(Instant(0), drive, flow(1_000_000 * u64::from(drive), 0, 1), true);
            assert_eq!(one.0, 1_000_000 * u64::from(drive) + FRAME * hops[drive as usize]);
            assert_eq!(ring.report(drive), Nanos(FRAME * hops[drive as usize]));
        }
    }

    #[test]
    fn cut_link_reroutes_frames_around_the_loop() {
        let ring = |cut| Ring::new(&shape(4, &[cut]));
        let hops = |cut| [0, 1, 2, 3].map(|drive| ring(cut).report(drive).0 / FRAME);
        assert_eq!(hops(0), [4, 3, 2, 1]);
        assert_eq!(hops(1), [1, 3, 2, 1]);
        assert_eq!(hops(4), [1, 2, 3, 4]);
        assert_eq!(shape(4, &[1, 2]).unreachable(), Some(1));
        assert_eq!(shape(4, &[2, 3]).unreachable(), Some(2));
        assert_eq!(shape(4, &[0, 4]).unreachable(), Some(0));
    }

    #[test]
    fn disjoint_arcs_carry_transfers_concurrently() {
        let mut ring = Ring::new(&shape(4, &[]));
        let alone = ring.clone().transfer(Instant(0), 0, flow(0, 0, 1000), true);
        let ends = [(0, true), (3, true), (0, false), (3, false)]
            .map(|(drive, to_host)| ring.transfer(Instant(0), drive, flow(0, 0, 1000), to_host));
        assert_eq!(ends, [alone; 4]);
        // A fifth finds no capacity left: it starts once the link is free.
        assert!(ring.transfer(Instant(0), 0, flow(0, 0, 1000), true) > Instant(2 * alone.0 - FRAME));
        assert_eq!(ring.busy()[0].1.0 + ring.busy()[2].1.0, 3 * 1000 * FRAME);
    }

    #[test]
    fn busy_route_diverts_a_transfer_to_the_longer_route() {
        let mut ring = Ring::new(&shape(4, &[]));
        ring.transfer(Instant(0), 0, flow(0, 0, 1000), true);
        let second = ring.transfer(Instant(0), 0, flow(0, 0, 1000), true);
        assert_eq!(second, Instant(FRAME * 1003));
    }

    #[test]
    fn adapter_serializes_commands() {
        let mut ring = Ring::new(&RingShape { command: Nanos(50_000), ..shape(4, &[]) });
        let came = [0, 3, 1].map(|drive| ring.command(Instant(0), drive).0);
        assert_eq!(came, [50_000 + FRAME, 100_000 + FRAME, 150_000 + 2 * FRAME]);
    }

    /// Frames on their way to the adapter, each stored and forwarded, each link serving the transfers in rotation: the end of each
    /// flow. `routes` has each flow's route: its side and its hops.
    fn by_frames(flows: &[(Route, Flow)]) -> Vec<u64> {
        let mut ends = vec![0; flows.len()];
        for side in 0..2 {
            let deepest = flows.iter().filter(|(route, _)| route.side == side).map(|(route, _)| route.hops);
            let deepest = deepest.max().unwrap_or(0);
            // The frames that arrive at a node from further out: when each is complete, and its flow.
            let mut coming: Vec<(u64, usize)> = Vec::new();
            for node in (1..=deepest).rev() {
                for (index, (route, flow)) in flows.iter().enumerate() {
                    if route.side == side && route.hops == node {
                        let frames = flow.units / 128;
                        let at = |frame: u64| flow.begins.0 + (frame + 1) * flow.least.0 / frames;
                        coming.extend((0..frames).map(|frame| (at(frame), index)));
                    }
                }
                coming = over_a_link(coming, flows.len());
            }
            for (at, index) in coming {
                ends[index] = ends[index].max(at);
            }
        }
        ends
    }

    /// The times at which a link has carried the frames, in rotation where several wait.
    fn over_a_link(mut frames: Vec<(u64, usize)>, flows: usize) -> Vec<(u64, usize)> {
        frames.sort();
        let mut waiting: Vec<VecDeque<u64>> = vec![VecDeque::new(); flows];
        for (at, index) in &frames {
            waiting[*index].push_back(*at);
        }
        let (mut now, mut turn, mut carried) = (0, 0, Vec::with_capacity(frames.len()));
        while carried.len() < frames.len() {
            let here = |index: &usize| waiting[*index].front().is_some_and(|at| *at <= now);
            let next = (0..flows).map(|step| (turn + step) % flows).find(here);
            let Some(next) = next else {
                now =
                    waiting.iter().filter_map(|queue| queue.front().copied()).min().expect("frames are left");
                continue;
            };
            waiting[next].pop_front();
            now += FRAME;
            turn = next + 1;
            carried.push((now, next));
        }
        carried
    }

    /// Flows to the adapter of a loop of eight, and the shorter route of each.
    fn any_flows(random: &mut Pcg64Mcg, count: u64, pace: std::ops::Range<u64>) -> Vec<(u32, Route, Flow)> {
        let shape = shape(8, &[]);
        let mut begins = 0;
        let mut flows = Vec::new();
        for _ in 0..count {
            begins += random.random_range(0..3_000_000);
            let (drive, frames) = (random.random_range(0..8), random.random_range(1..600));
            let least = frames * FRAME * random.random_range(pace.clone()) / 10;
            let route = shape.routes(drive)[0].expect("nothing is cut");
            flows.push((drive, route, flow(begins, least, frames)));
        }
        flows
    }

    /// The ends by rates and by frames, each flow on its shorter route.
    fn both(flows: &[(u32, Route, Flow)]) -> (Vec<u64>, Vec<u64>) {
        let mut ring = Ring::new(&shape(8, &[]));
        ring.routes.iter_mut().for_each(|routes| routes[1] = None);
        let by_rates = flows.iter().map(|(drive, _, flow)| ring.transfer(flow.begins, *drive, *flow, true).0);
        let by_rates = by_rates.collect();
        let routed: Vec<(Route, Flow)> = flows.iter().map(|(_, route, flow)| (*route, *flow)).collect();
        (by_rates, by_frames(&routed))
    }

    #[test]
    fn unobstructed_transfers_end_as_in_frame_simulation() {
        let mut random = Pcg64Mcg::seed_from_u64(1);
        for _ in 0..100 {
            // From media at a third of a link's rate, four drives at a time at most on a side of it: two fit for sure.
            let all = any_flows(&mut random, 40, 28..40);
            let mut flows: Vec<(u32, Route, Flow)> = Vec::new();
            for one in all {
                let end = |(_, _, flow): &(u32, Route, Flow)| flow.begins + flow.least;
                let on_its_side =
                    flows.iter().filter(|other| other.1.side == one.1.side && end(other) > one.2.begins);
                if on_its_side.count() < 2 {
                    flows.push(one);
                }
            }
            let (by_rates, by_frames) = both(&flows);
            for (index, (_, route, _)) in flows.iter().enumerate() {
                let off = by_rates[index].abs_diff(by_frames[index]);
                // Its last frame is complete a frame later than the rate says, and may wait for a frame of another flow at each
                // hop.
                assert!(off <= u64::from(route.hops + 1) * FRAME, "{:?} is {off} ns off", flows[index]);
            }
        }
    }

    #[test]
    fn crowded_links_drain_as_in_frame_simulation() {
        let mut random = Pcg64Mcg::seed_from_u64(2);
        for _ in 0..100 {
            let flows = any_flows(&mut random, 12, 0..30);
            let (by_rates, by_frames) = both(&flows);
            for side in 0..2 {
                let on_side = |index: &usize| flows[*index].1.side == side;
                let last = |ends: &[u64]| (0..flows.len()).filter(on_side).map(|index| ends[index]).max();
                let off = last(&by_rates).unwrap_or(0).abs_diff(last(&by_frames).unwrap_or(0));
                assert!(off <= 9 * FRAME, "the last frame is {off} ns off");
            }
            for (index, (_, route, one)) in flows.iter().enumerate() {
                // Two transfers of which each waits for the other differ by no more than the other's frames.
                let end = by_rates[index].max(by_frames[index]);
                let shares = |(other, (_, way, flow)): (usize, &(u32, Route, Flow))| {
                    let meets = flow.begins.0 < end && by_frames[other].max(by_rates[other]) > one.begins.0;
                    if other != index && way.side == route.side && meets { flow.units / 128 } else { 0 }
                };
                let others: u64 = flows.iter().enumerate().map(shares).sum();
                let off = by_rates[index].abs_diff(by_frames[index]);
                assert!(off <= (others + u64::from(route.hops) + 1) * FRAME, "{one:?} is {off} ns off");
            }
        }
    }
}
