//! Models for other programs.
