//! One request: for the rest of the file if the server supports that, else for all of it.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ureq::http::Uri;
use ureq::http::header::{
    ACCEPT_RANGES, CONTENT_LENGTH, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, IF_RANGE,
    LAST_MODIFIED, RANGE,
};
use ureq::{Agent, Error, Proxy};

use super::part::{Origin, PartFile};
use super::{Download, Event, FetchError, RetryPolicy};

/// Calls `work` with a client whose connections are cut once `stop` is raised.
pub(super) fn while_watching<T>(
    download: &Download,
    patience: &RetryPolicy,
    stop: &AtomicBool,
    work: impl FnOnce(&Agent) -> T,
) -> T {
    const LOOK: Duration = Duration::from_millis(50);
    // This machine is reached without a proxy.
    let host = download.url.parse::<Uri>().ok().and_then(|url| url.host().map(str::to_owned));
    let local = host.is_some_and(|host| ["localhost", "127.0.0.1", "[::1]"].contains(&&*host));
    let config = Agent::config_builder()
        .proxy(if local { None } else { Proxy::try_from_env() })
        .http_status_as_error(false)
        .timeout_resolve(Some(patience.connect))
        .timeout_connect(Some(patience.connect))
        .timeout_per_read(Some(patience.stall))
        .timeout_per_write(Some(patience.stall))
        .user_agent(concat!("dss/", env!("CARGO_PKG_VERSION")))
        // The bytes of the file itself, whatever they are.
        .accept_encoding("identity")
        .build();
    let agent = Agent::new_with_config(config);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watched = agent.clone();
        let watcher = scope.spawn(|| {
            while !done.load(Ordering::SeqCst) && !stop.load(Ordering::SeqCst) {
                std::thread::park_timeout(LOOK);
            }
            watched.shutdown();
        });
        let result = work(&agent);
        done.store(true, Ordering::SeqCst);
        watcher.thread().unpark();
        result
    })
}

/// Asks for what is missing and stores it. `Ok(true)`: the file is complete. `Ok(false)`: the existing part belongs to
/// another file and was discarded; ask again.
pub(super) fn attempt(
    agent: &Agent,
    download: &Download,
    patience: &RetryPolicy,
    part: &mut PartFile,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Event),
) -> Result<bool, FetchError> {
    if part.len > 0 && part.to_come() == Some(0) {
        return Ok(true);
    }
    let url = &download.url;
    let mut request = agent.get(url);
    if part.len > 0 {
        request = request.header(RANGE, format!("bytes={}-", part.len));
        if part.origin.url == *url
            && let Some(version) = &part.origin.version
        {
            request = request.header(IF_RANGE, version);
        }
    }
    let response = request.call().map_err(|error| unreachable(error, url, patience))?;
    let (head, body) = response.into_parts();
    let header = |name: HeaderName| text(&head.headers, name);
    match head.status.as_u16() {
        200 => {
            if part.len > 0 {
                let ranges = header(ACCEPT_RANGES).is_some_and(|r| r.trim() == "bytes");
                let changed = "the file on the server has changed";
                let none = "the server cannot continue a download";
                tell(Event::Restart(if ranges { changed } else { none }));
                part.empty()?;
            }
            let total = header(CONTENT_LENGTH).and_then(|n| n.trim().parse().ok());
            let version = version(&head.headers);
            part.belongs_to(Origin { url: url.clone(), version, total })?;
        }
        206 => {
            let range = header(CONTENT_RANGE).and_then(|range| content_range(&range));
            let (from, total) = range.unwrap_or((u64::MAX, None));
            let now = Origin { url: url.clone(), version: version(&head.headers), total };
            if from != part.len || part.origin.differs(&now) {
                if part.len == 0 {
                    return Err(FetchError::Status { url: url.clone(), code: 206 });
                }
                tell(Event::Restart("the file on the server has changed"));
                part.empty()?;
                return Ok(false);
            }
            part.belongs_to(now)?;
        }
        // Range not satisfiable: there is nothing after the part, or the part is longer than the file.
        416 if part.len > 0 => {
            let total =
                header(CONTENT_RANGE).and_then(|r| r.strip_prefix("bytes */")?.parse().ok());
            if total == Some(part.len) {
                return Ok(true);
            }
            tell(Event::Restart("the file on the server has changed"));
            part.empty()?;
            return Ok(false);
        }
        code => return Err(FetchError::Status { url: url.clone(), code }),
    }
    tell(Event::Start { from: part.len, total: part.origin.total });
    if let (Some(needed), Some(free)) = (part.to_come(), room(patience, download))
        && needed > free
    {
        let path = download.to.clone();
        return Err(FetchError::NoRoom { path, needed: Some(needed), free: Some(free) });
    }
    let mut body = body.into_reader();
    let mut buffer = vec![0; 1 << 17];
    loop {
        let n = match body.read(&mut buffer) {
            Ok(n) => n,
            Err(error) => return Err(broken(lost(error.into(), patience), url, part)),
        };
        // A connection that was cut here looks like the end of the file.
        if stop.load(Ordering::SeqCst) {
            return Err(part.interrupted());
        }
        if n == 0 {
            break;
        }
        part.push(&buffer[..n])?;
        tell(Event::Bytes(part.len));
        let limit = part.origin.total.unwrap_or(patience.unknown_length);
        if part.len > limit {
            part.empty()?;
            return Err(FetchError::TooLong { url: url.clone(), limit });
        }
    }
    match part.to_come() {
        None | Some(0) => Ok(true),
        Some(_) => Err(broken("the connection was closed", url, part)),
    }
}

fn room(patience: &RetryPolicy, download: &Download) -> Option<u64> {
    let folder = download.to.parent().filter(|folder| !folder.as_os_str().is_empty());
    (patience.room)(folder.unwrap_or(std::path::Path::new(".")))
}

/// What If-Range may be given: a strong ETag, else the date.
fn version(headers: &HeaderMap) -> Option<String> {
    let strong = text(headers, ETAG).filter(|tag| tag.starts_with('"'));
    strong.or_else(|| text(headers, LAST_MODIFIED))
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    Some(headers.get(name)?.to_str().ok()?.to_owned())
}

/// First byte and size of the whole file, from `bytes 100-199/200`.
fn content_range(text: &str) -> Option<(u64, Option<u64>)> {
    let (range, total) = text.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (from, _) = range.split_once('-')?;
    let total = if total == "*" { None } else { Some(total.parse().ok()?) };
    Some((from.parse().ok()?, total))
}

fn broken(why: impl Into<String>, url: &str, part: &PartFile) -> FetchError {
    FetchError::Broken {
        url: url.to_owned(),
        why: why.into(),
        done: part.len,
        total: part.origin.total,
        part: part.path.clone(),
    }
}

/// Why there is no answer.
fn unreachable(error: Error, url: &str, patience: &RetryPolicy) -> FetchError {
    let why = match error {
        Error::Timeout(ureq::Timeout::PerRead | ureq::Timeout::PerWrite) => {
            format!("no answer within {:.0?}", patience.stall)
        }
        Error::Timeout(_) => format!("no connection within {:.0?}", patience.connect),
        Error::HostNotFound => "its host name is not known; is there a network?".into(),
        Error::BadUri(_) | Error::Http(_) => "not an address that can be fetched".into(),
        Error::Io(error) => error.to_string(),
        error => error.to_string(),
    };
    FetchError::Unreachable { url: url.to_owned(), why }
}

/// Why the transfer stopped.
fn lost(error: Error, patience: &RetryPolicy) -> String {
    match error {
        Error::Timeout(_) => format!("no data received for {:.0?}", patience.stall),
        Error::Io(error) => format!("the connection was lost ({error})"),
        error => format!("the connection was lost ({error})"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn no_header_makes_it_panic(text in "(bytes )?[0-9*/ -]{0,40}|.{0,20}") {
            let _ = content_range(&text);
        }
    }

    #[test]
    fn content_ranges() {
        assert_eq!(content_range("bytes 100-199/200"), Some((100, Some(200))));
        assert_eq!(content_range("bytes 0-0/*"), Some((0, None)));
        for wrong in ["", "bytes */200", "100-199/200", "bytes 1/2", "bytes x-1/2", "bytes 1-2/y"] {
            assert_eq!(content_range(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_strong_tags_are_versions() {
        let mut headers = HeaderMap::new();
        headers.insert(ETAG, "W/\"1\"".parse().unwrap());
        assert_eq!(version(&headers), None);
        headers.insert(LAST_MODIFIED, "Wed, 11 Apr 2018 19:41:55 GMT".parse().unwrap());
        assert_eq!(version(&headers).unwrap(), "Wed, 11 Apr 2018 19:41:55 GMT");
        headers.insert(ETAG, "\"1\"".parse().unwrap());
        assert_eq!(version(&headers).unwrap(), "\"1\"");
    }
}
