//! The widths of parameters in a hypervisor's interface.

/// The width of an integer, as the toolstack hands it to the hypervisor. A scheduler sees, and may refuse, every value that fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Width {
    /// 16 bits.
    Bits16,
    /// 32 bits.
    Bits32,
    /// 64 bits.
    Bits64,
}

impl Width {
    /// The number of bits.
    pub fn bits(self) -> u32 {
        match self {
            Width::Bits16 => 16,
            Width::Bits32 => 32,
            Width::Bits64 => 64,
        }
    }

    /// The value that a scheduler sees of a number, with or without a sign, if it fits. (Above 2^63 − 1 it is negative.)
    pub fn fit(self, number: i128) -> Option<i64> {
        let fits = (-(1 << (self.bits() - 1))..1 << self.bits()).contains(&number);
        fits.then_some(number as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_fit_with_and_without_a_sign() {
        for width in [Width::Bits16, Width::Bits32, Width::Bits64] {
            let (least, most) = (-(1_i128 << (width.bits() - 1)), (1_i128 << width.bits()) - 1);
            assert_eq!((width.fit(least), width.fit(least - 1)), (Some(least as i64), None));
            assert_eq!((width.fit(most), width.fit(most + 1)), (Some(most as i64), None));
        }
        assert_eq!(Width::Bits64.fit(i128::from(u64::MAX)), Some(-1));
    }
}
