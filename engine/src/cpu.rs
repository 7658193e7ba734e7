//! The only place that asks the CPU what it can do.
//!
//! An [`Isa`] is proof: only detection makes one above scalar, so whoever holds it may step into
//! code compiled for it.

use std::sync::OnceLock;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Scalar,
    #[cfg(target_arch = "aarch64")]
    Neon,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// An instruction set that this machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Isa(Level);

impl Isa {
    /// Portable code, right on every processor.
    #[must_use]
    pub const fn scalar() -> Self {
        Self(Level::Scalar)
    }

    /// The best instruction set of this machine.
    #[must_use]
    pub fn detect() -> Self {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| Self::available().pop().unwrap_or(Self::scalar()))
    }

    /// Every instruction set of this machine that the engine has code for, worst first.
    #[must_use]
    pub fn available() -> Vec<Self> {
        let mut found = vec![Self::scalar()];
        #[cfg(target_arch = "aarch64")]
        if std::arch::is_aarch64_feature_detected!("neon") {
            found.push(Self(Level::Neon));
        }
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("lzcnt")
        {
            found.push(Self(Level::Avx2));
            if std::arch::is_x86_feature_detected!("avx512f")
                && std::arch::is_x86_feature_detected!("avx512bw")
                && std::arch::is_x86_feature_detected!("avx512vl")
                && std::arch::is_x86_feature_detected!("avx512vbmi")
                && std::arch::is_x86_feature_detected!("gfni")
            {
                found.push(Self(Level::Avx512));
            }
        }
        found
    }

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            Level::Scalar => "scalar",
            #[cfg(target_arch = "aarch64")]
            Level::Neon => "neon",
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => "avx512",
        }
    }

    /// Whether NEON may be used.
    #[cfg(target_arch = "aarch64")]
    pub(crate) fn has_neon(self) -> bool {
        self.0 == Level::Neon
    }

    /// Whether AVX2 may be used, and with it BMI1, BMI2 and LZCNT, which machines with AVX2 have.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn has_avx2(self) -> bool {
        self.0 >= Level::Avx2
    }

    /// Whether AVX-512 (F, BW, VL, VBMI) and GFNI may be used.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn has_avx512(self) -> bool {
        self.0 == Level::Avx512
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_runs_from_scalar_to_the_best() {
        let found = Isa::available();
        assert_eq!(found.first(), Some(&Isa::scalar()));
        assert_eq!(found.last(), Some(&Isa::detect()));
        assert!(found.is_sorted_by(|a, b| a.0 < b.0));
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn scalar_is_proof_of_nothing() {
        assert!(!Isa::scalar().has_avx2());
        assert!(!Isa::scalar().has_avx512());
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn avx512_has_avx2_as_well() {
        for isa in Isa::available() {
            assert!(isa.has_avx2() || !isa.has_avx512());
            assert_eq!(isa.has_avx512(), isa.name() == "avx512");
        }
    }
}
