//! The engine's part with the storage node before its volumes: it carries requests, commands and answers to and fro.

use super::{Asked, Asker, Engine};
use crate::host::Piece;
use crate::node::{self, Ended, Node, Wish};
use crate::observe::{Finished, Observer};
use headstack_policy::streams::{Config, ConfigError, Streams};
use headstack_workload::Load;

impl Engine {
    /// The same engine with a node before all volumes.
    ///
    /// *Errors:* a key of its configuration is out of its range.
    pub fn with_node(mut self, config: &Config) -> Result<Engine, ConfigError> {
        let node = |volume: usize| {
            let (sectors, sector_bytes) = self.volume_size(volume);
            Node::new(config, sectors, sector_bytes).map(|node| Some(Box::new(node)))
        };
        self.nodes = (0..self.volumes.len()).map(node).collect::<Result<_, _>>()?;
        Ok(self)
    }

    /// The stream scheduler of a volume; none where there is no node.
    pub fn streams(&self, volume: usize) -> Option<&Streams> {
        self.nodes[volume].as_ref().map(|node| node.streams())
    }

    /// The place of a volume's node among what happens by itself.
    fn node_event(&self, volume: usize) -> usize {
        2 * self.volumes.len() + volume
    }

    fn node(&mut self, volume: usize) -> &mut Node {
        self.nodes[volume].as_mut().expect("only a volume with a node has work for it")
    }

    /// Gives a volume's node a client's request; whether there is a node that takes it.
    #[inline]
    pub(super) fn ask_node(&mut self, volume: usize, piece: &Piece) -> bool {
        let Some(node) = &mut self.nodes[volume] else { return false };
        if !node.takes(&piece.request) {
            return false;
        }
        let Piece { ask, request, source, urgent, .. } = *piece;
        node.submit(self.now, node::Asked { ask, request, source, urgent });
        self.asked[ask as usize].left = 1;
        self.settle_node(volume);
        true
    }

    /// Does what is due at a volume's node.
    pub(super) fn turn_node<O: Observer + ?Sized>(
        &mut self,
        volume: usize,
        load: &mut dyn Load,
        observer: &mut O,
    ) {
        let (now, device) = (self.now, self.volumes[volume].first_device());
        self.node(volume).handle_timeout(now);
        self.settle_node(volume);
        while let Some(Ended { ask, completion, hit }) = self.node(volume).poll_ended() {
            let mut finished = Finished { cached: hit, ..Finished::on(device, completion) };
            if self.finish(ask, &mut finished) {
                load.handle_completion(self.now, finished.id);
                observer.finished(&finished);
            }
        }
        self.settle_node(volume);
        self.settle_touched();
    }

    /// A command of a volume's node is done.
    pub(super) fn end_node_command(&mut self, volume: usize, number: u32, finished: &Finished) {
        let now = self.now;
        self.node(volume).transferred(now, number, &finished.completion);
        self.settle_node(volume);
    }

    /// Begins the commands that a volume's node wants.
    fn settle_node(&mut self, volume: usize) {
        while let Some(Wish { number, request, source, urgent }) = self.node(volume).poll() {
            let asked = Asked {
                id: u64::from(number),
                asker: Asker::Node,
                ..self.asked(volume as u32, request, source)
            };
            let ask = self.insert(asked);
            self.fork_piece(volume as u32, Piece { ask, request, source, urgent, sync: true });
        }
        let next = self.node(volume).next_event();
        let place = self.node_event(volume);
        self.background.set(place, next);
    }

    fn volume_size(&self, volume: usize) -> (u64, u32) {
        let volume = &self.volumes[volume];
        let device = self.stations[volume.first_device() as usize].device();
        (volume.sectors(device), device.sector_bytes())
    }
}
