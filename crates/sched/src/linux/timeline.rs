//! Entities on a single queue: buddies, the timeline, counts and load.

use vcpulab_host::Time;

use super::cfs_rq::{CfsRq, EntityId, vruntime_diff};
use super::hierarchy::{Fair, Flavor};

/// Accessor of a buddy (`next`, `last` or `skip`) of a queue.
type Buddy<F> = fn(&mut CfsRq<<F as Flavor>::CfsRq>) -> &mut Option<EntityId>;

impl<F: Flavor> Fair<F> {
    /// Makes an entity and its ancestors the `next` buddies of their queues.
    pub(super) fn set_next_buddy(&mut self, e: EntityId) {
        self.set_buddy(e, |cfs_rq| &mut cfs_rq.next);
    }

    /// Makes an entity and its ancestors buddies of their queues.
    pub(super) fn set_buddy(&mut self, e: EntityId, buddy: Buddy<F>) {
        let mut up = Some(e);
        while let Some(e) = up.filter(|&e| self.entities[e].on_rq && !self.entities[e].idle) {
            let q = F::timeline_of(self, e);
            *buddy(&mut self.cfs_rqs[q]) = Some(e);
            up = self.parent_entity(e).filter(|_| !self.flavor.is_flat());
        }
    }

    /// Clears the buddies that name an entity, and those that name its ancestors as far up as they do.
    pub(super) fn clear_buddies(&mut self, e: EntityId) {
        let buddies: [Buddy<F>; 3] =
            [|cfs_rq| &mut cfs_rq.next, |cfs_rq| &mut cfs_rq.last, |cfs_rq| &mut cfs_rq.skip];
        for buddy in buddies {
            let mut up = Some(e);
            while let Some(e) = up {
                let q = F::timeline_of(self, e);
                let named = buddy(&mut self.cfs_rqs[q]);
                if *named != Some(e) {
                    break;
                }
                *named = None;
                up = self.parent_entity(e).filter(|_| !self.flavor.is_flat());
            }
        }
    }

    /// Inserts an entity into its queue's timeline, behind entities with the same key (`__enqueue_entity`).
    pub(super) fn insert_into_timeline(&mut self, e: EntityId) {
        let q = F::timeline_of(self, e);
        let key = F::timeline_key(&self.entities[e]);
        let behind = |&other: &EntityId| vruntime_diff(F::timeline_key(&self.entities[other]), key) <= 0;
        let position = self.cfs_rqs[q].timeline.partition_point(behind);
        self.cfs_rqs[q].timeline.insert(position, e);
        F::update_sums(self, q, e, true);
    }

    /// Removes an entity from its queue's timeline, if the timeline has it (`__dequeue_entity`).
    pub(super) fn remove_from_timeline(&mut self, e: EntityId) {
        let q = F::timeline_of(self, e);
        if let Some(position) = self.cfs_rqs[q].timeline.iter().position(|&other| other == e) {
            self.cfs_rqs[q].timeline.remove(position);
            F::update_sums(self, q, e, false);
        }
    }

    /// Queues an entity: counts it, and inserts it into the timeline unless it is current.
    pub(super) fn account_entity_enqueue(&mut self, e: EntityId, now: Time) {
        let q = self.entities[e].cfs_rq;
        self.count_entity(e, now);
        if self.cfs_rqs[q].curr != Some(e) {
            self.insert_into_timeline(e);
        }
        if self.cfs_rqs[q].nr_running == 1 {
            self.check_enqueue_throttle(q, now);
        }
    }

    /// Takes an entity off its queue.
    pub(super) fn account_entity_dequeue(&mut self, e: EntityId, now: Time) {
        if self.cfs_rqs[self.entities[e].cfs_rq].curr != Some(e) {
            self.remove_from_timeline(e);
        }
        self.uncount_entity(e, now);
    }

    /// Adds an entity to the counts and the load of its queue.
    pub(super) fn count_entity(&mut self, e: EntityId, now: Time) {
        self.update_load_avg(e, now);
        let entity = &mut self.entities[e];
        entity.on_rq = true;
        let cfs_rq = &mut self.cfs_rqs[entity.cfs_rq];
        cfs_rq.load += entity.load.weight;
        cfs_rq.nr_running += 1;
    }

    /// Subtracts an entity from the counts and the load of its queue.
    pub(super) fn uncount_entity(&mut self, e: EntityId, now: Time) {
        self.update_load_avg(e, now);
        let entity = &mut self.entities[e];
        entity.on_rq = false;
        let cfs_rq = &mut self.cfs_rqs[entity.cfs_rq];
        cfs_rq.load -= entity.load.weight;
        cfs_rq.nr_running -= 1;
    }
}
