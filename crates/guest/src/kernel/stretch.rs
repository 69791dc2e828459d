//! Phases in stretches of their order, for scripts that are samples of what was seen: the stationary bootstrap. (Politis and
//! Romano, *The stationary bootstrap*, Journal of the American Statistical Association 89, 1994.)

use crate::random::Random;
use crate::script::Stretches;

/// A task's place in its stretch.
#[derive(Clone, Debug)]
pub(crate) struct Stretch {
    random: Random,
    phase: u32,
}

impl Stretch {
    /// A stretch that begins at a random phase, and the first step of that phase.
    pub fn new(of: &Stretches, mut random: Random) -> (Self, u32) {
        let phase = random.below(of.phases.len() as u64) as u32;
        (Stretch { random, phase }, of.phases[phase as usize])
    }

    /// The first step of the phase to continue with: the next one, or with one in `mean` a random one.
    pub fn advance(&mut self, of: &Stretches) -> u32 {
        let phases = of.phases.len() as u32;
        self.phase = match self.random.below(u64::from(of.mean)) {
            0 => self.random.below(u64::from(phases)) as u32,
            _ => (self.phase + 1) % phases,
        };
        of.phases[self.phase as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The phases that a task goes through, first to last.
    fn seen(phases: u32, mean: u32, seed: u64, count: usize) -> Vec<u32> {
        let of = Stretches { phases: (0..phases).collect(), mean };
        let (mut stretch, first) = Stretch::new(&of, Random::new(seed, 0, 0));
        std::iter::once(first).chain(std::iter::repeat_with(|| stretch.advance(&of))).take(count).collect()
    }

    #[test]
    fn stretches_have_the_mean_length_asked_for_and_every_phase_comes_as_often() {
        let all = seen(10, 8, 1, 80_000);
        let breaks = all.windows(2).filter(|pair| pair[1] != (pair[0] + 1) % 10).count();
        // One in ten of those that begin anew goes on where it would have.
        assert!((8_700..9_300).contains(&breaks), "{breaks}");
        for phase in 0..10 {
            let times = all.iter().filter(|&&seen| seen == phase).count();
            assert!((7_600..8_400).contains(&times), "{phase}: {times}");
        }
    }
}
