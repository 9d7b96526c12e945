//! Standard error as bars draw on it.

use std::io::{self, IsTerminal, stderr};
use std::sync::Mutex;

use console::Term;
use indicatif::{ProgressDrawTarget, TermLike};

/// Drawings per second.
const HZ: u8 = 20;

/// Where bars are drawn; nowhere if that is not a terminal.
pub fn target() -> ProgressDrawTarget {
    if !stderr().is_terminal() {
        return ProgressDrawTarget::hidden();
    }
    let terminal = Terminal { term: Term::buffered_stderr(), spaces: Mutex::default() };
    ProgressDrawTarget::term_like_with_hz(Box::new(terminal), HZ)
}

/// A terminal without the spaces with which a bar fills its line: behind them, the `^C` that a terminal shows would be
/// on the next line, and what is cleared then would not be the bar.
#[derive(Debug)]
struct Terminal {
    term: Term,
    /// Not yet written.
    spaces: Mutex<usize>,
}

impl Terminal {
    /// How many spaces are to be written, `now` instead from here on.
    fn exchange(&self, now: usize) -> usize {
        let mut spaces = self.spaces.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        std::mem::replace(&mut spaces, now)
    }
}

impl TermLike for Terminal {
    fn width(&self) -> u16 {
        self.term.size().1
    }

    fn height(&self) -> u16 {
        self.term.size().0
    }

    fn move_cursor_up(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_up(n)
    }

    fn move_cursor_down(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_down(n)
    }

    fn move_cursor_right(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_right(n)
    }

    fn move_cursor_left(&self, n: usize) -> io::Result<()> {
        self.term.move_cursor_left(n)
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.term.write_line(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        let shown = text.trim_end_matches(' ');
        if shown.is_empty() {
            let before = self.exchange(0);
            self.exchange(before + text.len());
            return Ok(());
        }
        let before = self.exchange(text.len() - shown.len());
        self.term.write_str(&" ".repeat(before))?;
        self.term.write_str(shown)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.term.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        self.exchange(0);
        self.term.flush()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs::{self, File};

    use indicatif::ProgressBar;

    use super::*;
    use crate::progress::style;

    #[test]
    fn a_bar_leaves_room_for_the_echo_of_ctrl_c() {
        let path = std::env::temp_dir().join(format!("dss-bar-{}", std::process::id()));
        let (input, output) = (File::open("/dev/null").unwrap(), File::create(&path).unwrap());
        let term = Term::read_write_pair(input, output);
        let width = usize::from(term.size().1);
        let terminal = Box::new(Terminal { term, spaces: Mutex::default() });
        let bar = ProgressBar::with_draw_target(Some(9), ProgressDrawTarget::term_like(terminal));
        bar.set_style(style("{pos}/{len} {wide_msg}"));
        bar.set_message("x".repeat(2 * width));
        bar.println("a line");
        let written = fs::read_to_string(&path).unwrap();
        fs::remove_file(path).unwrap();
        let line = format!("{:width$}", "a line");
        let bar = format!("0/9 {}", "x".repeat(width - 7));
        assert!(written.ends_with(&(line + &bar)), "{written:?}");
    }
}
