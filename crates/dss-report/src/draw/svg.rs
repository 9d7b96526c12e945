//! Scenes as SVG: a file of its own in light colours, or a part of a page that follows its theme.

use std::fmt::Write;

use super::png::encode_indexed;
use super::scene::{Anchor, Ink, Mark, Raster, Scene, Text};
use crate::text::escape;

/// Where the colours come from.
#[derive(Clone, Copy, PartialEq)]
enum Theme {
    /// Written out, for a file.
    Light,
    /// The variables of the page's style sheet.
    Page,
}

impl Ink {
    /// The colour in the light theme.
    pub(super) fn light(self) -> [u8; 3] {
        match self {
            Self::Text => [0x1c, 0x1e, 0x21],
            Self::Quiet => [0x5d, 0x64, 0x6d],
            Self::Grid => [0xdc, 0xdf, 0xe3],
            Self::First => [0x25, 0x63, 0xb0],
            Self::Second => [0xc2, 0x41, 0x0c],
            Self::Fixed(rgb) => rgb,
        }
    }

    fn css(self, theme: Theme) -> String {
        let name = match self {
            Self::Text => "text",
            Self::Quiet => "quiet",
            Self::Grid => "line",
            Self::First => "c1",
            Self::Second => "c2",
            Self::Fixed(_) => "",
        };
        if theme == Theme::Page && !name.is_empty() {
            return format!("var(--{name})");
        }
        let [r, g, b] = self.light();
        format!("#{r:02x}{g:02x}{b:02x}")
    }
}

impl Scene {
    /// A file of its own.
    pub fn svg(&self) -> String {
        let (width, height) = (self.width, self.height);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\" font-family=\"'DejaVu Sans', Verdana, 'Segoe UI', Roboto, sans-serif\">\n"
        );
        self.names(&mut out);
        let _ = writeln!(out, "<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>");
        self.body(Theme::Light, &mut out);
        out.push_str("</svg>\n");
        out
    }

    /// A part of an HTML page that has the report's style sheet.
    pub fn inline_svg(&self) -> String {
        let (name, width, height) = (&self.name, self.width, self.height);
        let mut out = format!(
            "<svg class=\"picture\" id=\"{name}\" viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-labelledby=\"{name}-t {name}-d\">\n"
        );
        self.names(&mut out);
        self.body(Theme::Page, &mut out);
        out.push_str("</svg>\n");
        out
    }

    fn names(&self, out: &mut String) {
        let (name, title, summary) = (&self.name, escape(&self.title), escape(&self.summary));
        let _ = writeln!(
            out,
            "<title id=\"{name}-t\">{title}</title><desc id=\"{name}-d\">{summary}</desc>"
        );
    }

    fn body(&self, theme: Theme, out: &mut String) {
        for mark in &self.marks {
            match mark {
                Mark::Stroke { path, line } => {
                    let dash = if line.dashed { " stroke-dasharray=\"4 3\"" } else { "" };
                    let _ = writeln!(
                        out,
                        "<path d=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\" \
                         stroke-linejoin=\"round\"{}{dash}/>",
                        line.ink.css(theme),
                        line.width,
                        opaque("stroke", line.opacity)
                    );
                }
                Mark::Fill { path, ink, opacity } => {
                    let fill = ink.css(theme);
                    let _ = writeln!(
                        out,
                        "<path d=\"{path}\" fill=\"{fill}\"{}/>",
                        opaque("fill", *opacity)
                    );
                }
                Mark::Dots { at, radius, ink, opacity } => {
                    let fill = ink.css(theme);
                    let _ = writeln!(out, "<g fill=\"{fill}\"{}>", opaque("fill", *opacity));
                    for [x, y] in at {
                        let _ = write!(out, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>");
                    }
                    out.push_str("\n</g>\n");
                }
                Mark::Text(text) => words(text, theme, out),
                Mark::Image { rectangle, raster } => image(*rectangle, raster, out),
            }
        }
    }
}

/// The attribute of an opacity, if it is one.
fn opaque(what: &str, opacity: f64) -> String {
    if opacity < 1.0 { format!(" {what}-opacity=\"{opacity}\"") } else { String::new() }
}

fn words(text: &Text, theme: Theme, out: &mut String) {
    let [x, y] = text.at;
    let anchor = match text.anchor {
        Anchor::Start => "",
        Anchor::Middle => " text-anchor=\"middle\"",
        Anchor::End => " text-anchor=\"end\"",
    };
    let bold = if text.bold { " font-weight=\"600\"" } else { "" };
    let turn = if text.upright {
        format!(" transform=\"rotate(-90 {x:.1} {y:.1})\"")
    } else {
        String::new()
    };
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{}\" fill=\"{}\"{anchor}{bold}{turn}>{}</text>",
        text.size,
        text.ink.css(theme),
        escape(&text.words)
    );
}

fn image([x, y, width, height]: [f64; 4], raster: &Raster, out: &mut String) {
    // Few values are squares of one colour, not a blur.
    let few = (raster.width as f64) < width || (raster.height as f64) < 0.5 * height;
    let crisp = if few { " style=\"image-rendering:pixelated\"" } else { "" };
    let _ = writeln!(
        out,
        "<image x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\"{crisp} \
         preserveAspectRatio=\"none\" href=\"data:image/png;base64,{}\"/>",
        base64(&encode_indexed(raster))
    );
}

/// RFC 4648.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let at = |i: usize| u32::from(three.get(i).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for i in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= three.len() { char::from(digit) } else { '=' });
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_of_the_standard() {
        let known = ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"];
        for (i, known) in known.into_iter().enumerate() {
            assert_eq!(base64(&b"foobar"[..i]), known);
        }
    }
}
