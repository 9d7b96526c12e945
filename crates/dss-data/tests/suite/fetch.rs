//! Downloads: complete, resumed, refused, damaged, on a full disk. The server is our own.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::server::{Behaviour, Server};
use dss_data::fetch::{Download, Event, FetchError, FetchedFile, RetryPolicy, fetch};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

/// Something that no compression or repetition makes look right by chance.
fn content(len: usize) -> Vec<u8> {
    let blocks = (0..len.div_ceil(32)).map(|i| Sha256::digest((i as u64).to_le_bytes()));
    let mut bytes: Vec<u8> = blocks.flatten().collect();
    bytes.truncate(len);
    bytes
}

fn sum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect()
}

fn short_waits() -> RetryPolicy {
    RetryPolicy {
        connect: Duration::from_secs(5),
        stall: Duration::from_millis(400),
        attempts: 2,
        pause: Duration::from_millis(1),
        unknown_length: 1 << 20,
        room: |_| None,
    }
}

/// A folder, a server, and what is to be fetched from it.
struct Case {
    dir: TempDir,
    server: Server,
    whole: Vec<u8>,
    sha256: Option<String>,
    patience: RetryPolicy,
    events: Vec<Event>,
}

impl Case {
    fn new(len: usize) -> Self {
        let whole = content(len);
        Self {
            dir: tempfile::tempdir().unwrap(),
            server: Server::start(Behaviour::of(&whole)),
            sha256: Some(sum(&whole)),
            whole,
            patience: short_waits(),
            events: Vec::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("data").join(name)
    }

    fn run(&mut self) -> Result<FetchedFile, FetchError> {
        self.run_until(&AtomicBool::new(false), |_| {})
    }

    fn run_until(
        &mut self,
        stop: &AtomicBool,
        mut look: impl FnMut(&Event),
    ) -> Result<FetchedFile, FetchError> {
        let download = Download {
            url: self.server.url("a.tar.gz"),
            to: self.path("a.tar.gz"),
            sha256: self.sha256.clone(),
        };
        self.events.clear();
        fetch(&download, &self.patience, stop, &mut |event| {
            look(&event);
            self.events.push(event);
        })
    }

    /// The file is there, whole, and nothing else.
    #[track_caller]
    fn is_complete(&self) {
        assert!(fs::read(self.path("a.tar.gz")).unwrap() == self.whole);
        assert_eq!(self.files(), ["a.tar.gz"]);
    }

    fn files(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path("")) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn part_len(&self) -> u64 {
        fs::metadata(self.path("a.tar.gz.part")).map_or(0, |m| m.len())
    }

    /// Leaves a part of `len` bytes behind.
    fn interrupted_at(&mut self, len: usize) {
        self.server.change(|b| b.cut = Some(len));
        let attempts = std::mem::replace(&mut self.patience.attempts, 1);
        let error = self.run().unwrap_err();
        assert!(
            matches!(error, FetchError::Broken { done, .. } if done == len as u64),
            "{error:?}"
        );
        assert_eq!(self.part_len(), len as u64);
        self.server.change(|b| b.cut = None);
        self.patience.attempts = attempts;
    }

    fn last_request(&self) -> String {
        self.server.requests().last().unwrap().clone()
    }
}

#[test]
fn a_whole_file() {
    let mut case = Case::new(1_000_000);
    let fetched = case.run().unwrap();
    assert_eq!(
        fetched,
        FetchedFile { sha256: case.sha256.clone(), bytes: 1_000_000, already: false }
    );
    case.is_complete();
    assert_eq!(case.events[0], Event::Start { from: 0, total: Some(1_000_000) });
    assert!(case.events.contains(&Event::Bytes(1_000_000)));
    assert_eq!(*case.events.last().unwrap(), Event::Checking(1_000_000));
    let request = case.last_request();
    assert!(request.contains("accept-encoding: identity") && request.contains("user-agent: dss/"));
    assert!(!request.contains("range"), "{request}");

    // A second time nothing is asked for.
    assert!(case.run().unwrap().already);
    assert_eq!(case.server.requests().len(), 1);
    case.sha256 = None;
    assert_eq!(case.run().unwrap().sha256, None);
}

#[test]
fn sizes_around_nothing() {
    for len in [0, 1] {
        let mut case = Case::new(len);
        assert_eq!(case.run().unwrap().bytes, len as u64);
        case.is_complete();
    }
}

#[test]
fn without_a_length_and_through_a_redirect() {
    let mut case = Case::new(300_000);
    case.server.change(|b| b.length = false);
    case.run().unwrap();
    case.is_complete();
    assert_eq!(case.events[0], Event::Start { from: 0, total: None });

    let mut case = Case::new(300_000);
    case.server.change(|b| b.redirect = true);
    case.interrupted_at(100_000);
    case.run().unwrap();
    case.is_complete();
    assert!(case.last_request().starts_with("get /moved"));
    assert!(case.last_request().contains("range: bytes=100000-"));
}

#[test]
fn a_lost_connection_is_resumed() {
    let mut case = Case::new(500_000);
    case.server.change(|b| b.cut = Some(150_000));
    case.run().unwrap();
    case.is_complete();
    let ranges = case.server.requests();
    assert_eq!(ranges.len(), 4);
    for (request, from) in ranges[1..].iter().zip([150_000, 300_000, 450_000]) {
        assert!(request.contains(&format!("range: bytes={from}-")), "{request}");
        assert!(request.contains("if-range: \"one\""), "{request}");
    }
    assert!(case.events.iter().any(|e| matches!(e, Event::Retry(why) if why.contains("150.0 kB"))));
}

#[test]
fn a_server_that_never_continues_is_given_up() {
    let mut case = Case::new(500_000);
    case.server.change(|b| {
        (b.cut, b.range_error) = (Some(150_000), 1);
    });
    let error = case.run().unwrap_err();
    assert!(matches!(error, FetchError::Restarts { .. }), "{error}");
    assert!(case.server.requests().len() < 12, "{}", case.server.requests().len());
}

#[test]
fn a_file_without_a_length_has_a_bound() {
    let mut case = Case::new(300_000);
    case.server.change(|b| b.length = false);
    case.patience.unknown_length = 200_000;
    let error = case.run().unwrap_err();
    assert!(matches!(error, FetchError::TooLong { limit: 200_000, .. }), "{error}");
    assert!(!case.dir.path().join("a.tar.gz.part").exists(), "it does not fill the disk");
}

#[test]
fn the_next_run_continues() {
    let mut case = Case::new(400_000);
    case.interrupted_at(123_456);
    assert_eq!(case.files(), ["a.tar.gz.part", "a.tar.gz.part.json"]);
    case.run().unwrap();
    case.is_complete();
    assert_eq!(case.events[0], Event::Start { from: 123_456, total: Some(400_000) });
    assert!(case.last_request().contains("range: bytes=123456-"));
}

#[test]
fn a_complete_part_is_renamed() {
    let mut case = Case::new(10_000);
    case.interrupted_at(9_999);
    fs::write(case.path("a.tar.gz.part"), &case.whole).unwrap();
    let asked = case.server.requests().len();
    case.run().unwrap();
    case.is_complete();
    assert_eq!(case.server.requests().len(), asked, "nothing is asked for");

    // The same without the note: the server says that nothing follows.
    let mut case = Case::new(10_000);
    fs::create_dir_all(case.path("")).unwrap();
    fs::write(case.path("a.tar.gz.part"), &case.whole).unwrap();
    case.run().unwrap();
    case.is_complete();

    // A part that is longer than the file.
    let mut case = Case::new(10_000);
    fs::create_dir_all(case.path("")).unwrap();
    fs::write(case.path("a.tar.gz.part"), content(20_000)).unwrap();
    case.run().unwrap();
    case.is_complete();
}

#[test]
fn a_server_without_ranges() {
    let mut case = Case::new(400_000);
    case.server.change(|b| b.ranges = false);
    case.interrupted_at(100_000);
    case.run().unwrap();
    case.is_complete();
    assert_eq!(case.events[0], Event::Restart("the server cannot continue a download"));
    assert_eq!(case.events[1], Event::Start { from: 0, total: Some(400_000) });
}

#[test]
fn a_file_that_changed_in_between() {
    let other = content(900_000)[400_000..].to_vec();
    let check = |change: &dyn Fn(&mut Behaviour), before: &dyn Fn(&mut Behaviour)| {
        let mut case = Case::new(400_000);
        case.server.change(before);
        case.interrupted_at(100_000);
        case.server.change(|b| b.content = other.clone());
        case.server.change(change);
        case.whole = other.clone();
        case.sha256 = Some(sum(&other));
        case.run().unwrap();
        case.is_complete();
        assert_eq!(case.events[0], Event::Restart("the file on the server has changed"));
    };
    let second = |b: &mut Behaviour| b.etag = Some("\"two\"");
    check(&second, &|_| {});
    // The server takes no notice of If-Range, but says which file it sends.
    check(&second, &|b| b.if_range = false);
    // Only the date tells, or only the size.
    let dated =
        |b: &mut Behaviour| (b.etag, b.modified) = (None, Some("Wed, 11 Apr 2018 19:41:55 GMT"));
    check(&|b| b.modified = Some("Thu, 12 Apr 2018 19:41:55 GMT"), &dated);
    check(&|_| {}, &|b| b.etag = None);
}

#[test]
fn another_url_continues_the_same_file() {
    let mut case = Case::new(400_000);
    case.interrupted_at(100_000);
    case.server =
        Server::start(Behaviour { etag: Some("\"mirror\""), ..Behaviour::of(&case.whole) });
    case.run().unwrap();
    case.is_complete();
    assert_eq!(case.events[0], Event::Start { from: 100_000, total: Some(400_000) });
    assert!(!case.last_request().contains("if-range"));
}

#[test]
fn a_wrong_checksum() {
    let mut case = Case::new(50_000);
    case.server.change(|b| b.content[1000] ^= 1);
    let error = case.run().unwrap_err();
    let FetchError::Checksum { expected, found, .. } = &error else { panic!("{error:?}") };
    assert_eq!(Some(expected), case.sha256.as_ref());
    let bad = fs::read(case.path("a.tar.gz.bad")).unwrap();
    assert_eq!((case.files(), sum(&bad)), (vec!["a.tar.gz.bad".to_owned()], found.clone()));
    let text = error.to_string();
    assert!(text.contains("a.tar.gz.bad") && text.contains(expected) && text.contains(found));

    // The next attempt starts from the beginning, and succeeds once the file is whole again.
    case.server.change(|b| b.content[1000] ^= 1);
    case.run().unwrap();
    assert!(!case.last_request().contains("range"));
    assert!(fs::read(case.path("a.tar.gz")).unwrap() == case.whole);
}

#[test]
fn a_part_of_something_else_ends_in_a_wrong_checksum() {
    let mut case = Case::new(50_000);
    case.interrupted_at(20_000);
    let part = case.path("a.tar.gz.part");
    fs::write(&part, vec![0; 20_000]).unwrap();
    assert!(matches!(case.run().unwrap_err(), FetchError::Checksum { .. }));
    case.run().unwrap();
    assert!(fs::read(case.path("a.tar.gz")).unwrap() == case.whole);
}

#[test]
fn another_file_is_not_overwritten() {
    let mut case = Case::new(50_000);
    fs::create_dir_all(case.path("")).unwrap();
    fs::write(case.path("a.tar.gz"), "mine").unwrap();
    let error = case.run().unwrap_err();
    assert!(matches!(error, FetchError::Occupied { .. }), "{error:?}");
    assert_eq!(fs::read(case.path("a.tar.gz")).unwrap(), b"mine");
    assert!(case.server.requests().is_empty());
}

#[test]
fn a_server_that_refuses() {
    for (status, asked) in [(404, 1), (403, 1), (410, 1), (503, 2), (500, 2)] {
        let mut case = Case::new(100);
        case.server.change(|b| b.status = Some(status));
        let error = case.run().unwrap_err();
        assert!(matches!(error, FetchError::Status { code, .. } if code == status), "{error:?}");
        assert!(error.to_string().contains(&status.to_string()) && error.hint().contains("--url"));
        assert_eq!(case.server.requests().len(), asked, "only what may pass is tried again");
        assert_eq!(case.part_len(), 0);
    }
    let mut case = Case::new(100);
    case.server.change(|b| b.status = Some(404));
    let text = case.run().unwrap_err().to_string();
    assert!(text.contains("/a.tar.gz: the server answers 404 (Not Found)"), "{text}");
}

#[test]
fn an_unreachable_server() {
    let dir = tempfile::tempdir().unwrap();
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    for url in [
        format!("http://127.0.0.1:{port}/a"),
        "http://no-such-host.invalid/a".into(),
        "ftp://127.0.0.1/a".into(),
        "not an address".into(),
        String::new(),
    ] {
        let download = Download { url: url.clone(), to: dir.path().join("a"), sha256: None };
        let error =
            fetch(&download, &short_waits(), &AtomicBool::new(false), &mut |_| {}).unwrap_err();
        assert!(matches!(error, FetchError::Unreachable { .. }), "{url}: {error:?}");
        assert!(error.to_string().contains(&url) && error.hint().contains("network"), "{error}");
    }
}

#[test]
fn a_stalled_connection() {
    let mut case = Case::new(400_000);
    case.server.change(|b| b.stall = Some(100_000));
    case.patience.attempts = 1;
    let start = Instant::now();
    let error = case.run().unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    assert!(
        error.to_string().contains("no data received for 400ms after 100.0 kB of 400.0 kB"),
        "{error}"
    );
    assert!(error.hint().contains("continues from there"));
    case.server.change(|b| b.stall = None);
    case.run().unwrap();
    case.is_complete();

    // The answer itself does not come.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/a", silent.local_addr().unwrap());
    let download = Download { url, to: case.path("b"), sha256: None };
    let error = fetch(&download, &short_waits(), &AtomicBool::new(false), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("no answer within 400ms"), "{error}");
}

#[test]
fn stopping_keeps_what_has_come() {
    let mut case = Case::new(400_000);
    case.server.change(|b| b.slow = Some(10_000));
    let stop = AtomicBool::new(false);
    let error = case
        .run_until(&stop, |event| {
            if matches!(event, Event::Bytes(n) if *n >= 50_000) {
                stop.store(true, Ordering::SeqCst);
            }
        })
        .unwrap_err();
    let FetchError::Interrupted { done, total, .. } = error else { panic!("{error:?}") };
    assert!((50_000..400_000).contains(&done) && total == Some(400_000), "{done}");
    assert_eq!(case.part_len(), done);
    let text = FetchError::Interrupted { kept: "x.part".into(), done, total }.to_string();
    assert!(text.contains("of 400.0 kB are kept in x.part"), "{text}");
    case.server.change(|b| b.slow = None);
    case.run().unwrap();
    case.is_complete();
    assert!(case.last_request().contains(&format!("range: bytes={done}-")));
}

#[test]
fn stopping_does_not_wait_for_a_silent_server() {
    let mut case = Case::new(400_000);
    case.server.change(|b| b.stall = Some(100_000));
    case.patience.stall = Duration::from_secs(60);
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    let error = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(300));
            stop.store(true, Ordering::SeqCst);
        });
        case.run_until(&stop, |_| {}).unwrap_err()
    });
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert!(matches!(error, FetchError::Interrupted { done: 100_000, .. }), "{error:?}");
}

#[test]
fn a_full_disk_is_known_beforehand() {
    let mut case = Case::new(400_000);
    case.patience.room = |_| Some(399_999);
    let error = case.run().unwrap_err();
    let text = error.to_string();
    assert!(text.contains("400.0 kB still to come, but only 400.0 kB free"), "{text}");
    assert!(error.hint().contains("--to"));
    assert_eq!(case.part_len(), 0);
    // What has come already needs no more room.
    case.patience.room = |_| None;
    case.interrupted_at(100_000);
    case.patience.room = |_| Some(300_000);
    case.run().unwrap();
    case.is_complete();
}

/// The disk fills up while the file comes: writing to /dev/full always ends like that.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_noticed_on_the_way() {
    let mut case = Case::new(400_000);
    fs::create_dir_all(case.path("")).unwrap();
    std::os::unix::fs::symlink("/dev/full", case.path("a.tar.gz.part")).unwrap();
    let error = case.run().unwrap_err();
    assert!(matches!(error, FetchError::NoRoom { needed: Some(400_000), .. }), "{error:?}");
    assert!(error.to_string().contains("the disk is full, with 400.0 kB still to come"), "{error}");
}

#[test]
fn one_process_at_a_time() {
    let mut case = Case::new(1000);
    case.interrupted_at(500);
    let held = fs::File::open(case.path("a.tar.gz.part")).unwrap();
    held.lock().unwrap();
    assert!(matches!(case.run().unwrap_err(), FetchError::Busy { .. }));
    drop(held);
    case.run().unwrap();
    case.is_complete();
}

#[test]
fn a_folder_that_cannot_be_made() {
    let mut case = Case::new(1000);
    fs::write(case.dir.path().join("data"), "a file").unwrap();
    let error = case.run().unwrap_err();
    assert!(matches!(error, FetchError::Io { action: "create the folder", .. }), "{error:?}");
}
