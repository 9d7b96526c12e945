//! Text as outlines, for pictures that cannot count on a font being there.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::scene::{Anchor, Text};

/// Units per em of the outlines.
const EM: f64 = 2048.0;

struct Glyph {
    width: f64,
    outline: &'static str,
}

static GLYPHS: LazyLock<HashMap<char, Glyph>> = LazyLock::new(|| {
    let glyph = |line: &'static str| {
        let mut parts = line.splitn(3, ' ');
        let code = char::from_u32(u32::from_str_radix(parts.next()?, 16).ok()?)?;
        let width = parts.next()?.parse().ok()?;
        Some((code, Glyph { width, outline: parts.next().unwrap_or_default() }))
    };
    include_str!("font.txt").lines().filter_map(glyph).collect()
});

/// The glyph of a character; a question mark for those that are not there.
fn glyph(c: char) -> &'static Glyph {
    GLYPHS.get(&c).unwrap_or_else(|| &GLYPHS[&'?'])
}

/// How wide a text is, in the units of its size.
pub(crate) fn width(words: &str, size: f64) -> f64 {
    words.chars().map(|c| glyph(c).width).sum::<f64>() * size / EM
}

/// The outlines of a text: path data, its place (x, y before scaling), and the factor from its units to those
/// of the scene.
pub(super) fn outlines(text: &Text) -> Vec<(&'static str, [f64; 2], f64)> {
    let factor = text.size / EM;
    let whole = width(&text.words, text.size);
    let mut along = match text.anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => -0.5 * whole,
        Anchor::End => -whole,
    };
    let mut found = Vec::new();
    for glyph in text.words.chars().map(glyph) {
        let [x, y] = text.at;
        let at = if text.upright { [x, y - along] } else { [x + along, y] };
        if !glyph.outline.is_empty() {
            found.push((glyph.outline, at, factor));
        }
        along += glyph.width * factor;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_font_is_a_glyph() {
        let lines = include_str!("font.txt").lines().count();
        assert_eq!(GLYPHS.len(), lines);
        assert!((' '..='~').chain("Λλ·−‖∞≥≤Δ×–".chars()).all(|c| GLYPHS.contains_key(&c)));
        assert!((width("0000", 10.0) - 4.0 * width("0", 10.0)).abs() < 1e-12);
        assert_eq!(width("\u{1f980}", 10.0), width("?", 10.0));
    }
}
