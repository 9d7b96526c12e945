//! Numbers and foreign strings as text.

/// A string as HTML text or as an attribute in double quotes.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML and HTML have no such characters; a label may.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Records of equal length as lines of CSV, with quotes where they are needed.
pub fn csv_text<R>(records: impl IntoIterator<Item = R>) -> String
where
    R: IntoIterator<Item: AsRef<[u8]>>,
{
    let mut out = csv::Writer::from_writer(Vec::new());
    for record in records {
        out.write_record(record).expect("a Vec takes every byte, and the lengths are equal");
    }
    let bytes = out.into_inner().expect("a Vec takes every byte");
    String::from_utf8(bytes).expect("cells are text")
}

/// 1234567 as `1 234 567`, with spaces that do not break.
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push('\u{202f}');
        }
        out.push(digit);
    }
    out
}

/// `1 step`, `1 234 steps`.
pub(super) fn counted(n: u64, noun: &str) -> String {
    format!("{} {}", count(n), dss_train::text::of_number(n, noun))
}

/// A share as a percentage.
pub(super) fn percent(share: f64) -> String {
    format!("{:.2}\u{a0}%", share * 100.0)
}

/// Four digits or so.
pub(crate) fn number(x: f64) -> String {
    match x.abs() {
        0.0 => "0".to_owned(),
        a if !(1e-4..1e6).contains(&a) => format!("{x:.3e}"),
        a if a >= 100.0 => format!("{x:.1}"),
        a if a >= 1.0 => format!("{x:.3}"),
        _ => format!("{x:.4}"),
    }
}

/// A time, with spaces that do not break.
pub(super) fn duration(seconds: f64) -> String {
    dss_train::text::duration(seconds).replace(' ', "\u{a0}")
}

/// The day and time of a moment in seconds since 1970, UTC.
pub(super) fn date(seconds: u64) -> String {
    // Days since 0000-03-01 in cycles of 400 years (146097 days); a year begins in March.
    let days = seconds / 86400 + 719_468;
    let (cycle, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    let year = cycle * 400 + year + u64::from(month <= 2);
    let (hour, minute) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_strings_cannot_leave_their_place() {
        assert_eq!(escape(r#"<a b="c">&'"#), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;");
        assert_eq!(escape("a\0b\u{1b}"), "a\u{fffd}b\u{fffd}");
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
        assert_eq!(count(999), "999");
        assert_eq!([number(0.5), number(123.45), number(2.5e-7)], ["0.5000", "123.5", "2.500e-7"]);
        assert_eq!(duration(7325.0), "2\u{a0}h\u{a0}2\u{a0}min");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(1_735_689_599), "2024-12-31 23:59 UTC");
    }
}
