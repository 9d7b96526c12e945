//! A web server for tests: one file, and every way in which serving it can go wrong.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// How the file is served.
#[derive(Clone, Debug)]
pub struct Behaviour {
    pub content: Vec<u8>,
    pub etag: Option<&'static str>,
    pub modified: Option<&'static str>,
    /// Whether Range is understood.
    pub ranges: bool,
    /// How far the ranges that the answers name are from those that were asked for.
    pub range_error: usize,
    /// Whether If-Range is understood.
    pub if_range: bool,
    /// Whether Content-Length is sent; without it the body comes in chunks.
    pub length: bool,
    /// Bytes of the body after which the connection is closed.
    pub cut: Option<usize>,
    /// Bytes of the body after which nothing comes any more.
    pub stall: Option<usize>,
    /// Another answer than the file.
    pub status: Option<u16>,
    /// Send the client elsewhere first.
    pub redirect: bool,
    /// Wait after each piece of this many bytes.
    pub slow: Option<usize>,
}

impl Behaviour {
    pub fn of(content: &[u8]) -> Self {
        Self {
            content: content.to_vec(),
            etag: Some("\"one\""),
            modified: None,
            ranges: true,
            range_error: 0,
            if_range: true,
            length: true,
            cut: None,
            stall: None,
            status: None,
            redirect: false,
            slow: None,
        }
    }
}

/// A running server; it ends with the process.
pub struct Server {
    port: u16,
    behaviour: Arc<Mutex<Behaviour>>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Self {
            port,
            behaviour: Arc::new(Mutex::new(behaviour)),
            requests: Arc::new(Mutex::new(Vec::new())),
        };
        let (behaviour, requests) = (server.behaviour.clone(), server.requests.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { return };
                let (behaviour, requests) = (behaviour.clone(), requests.clone());
                // A client that disconnects is not a failure of the server.
                thread::spawn(move || drop(serve(stream, &behaviour, &requests)));
            }
        });
        server
    }

    pub fn url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/{name}", self.port)
    }

    /// Serves differently from now on.
    pub fn change(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut self.behaviour.lock().unwrap());
    }

    /// The heads of all requests so far, in lower case.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn serve(
    mut stream: TcpStream,
    behaviour: &Mutex<Behaviour>,
    requests: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut head = String::new();
    let mut reader = BufReader::new(stream.try_clone()?);
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let head = head.to_lowercase();
    requests.lock().unwrap().push(head.clone());
    let how = behaviour.lock().unwrap().clone();
    if let Some(status) = how.status {
        return write!(
            stream,
            "HTTP/1.1 {status} No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno"
        );
    }
    if how.redirect && !head.starts_with("get /moved") {
        let to = "HTTP/1.1 302 Found\r\nLocation: /moved\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        return stream.write_all(to.as_bytes());
    }
    let header = |name: &str| {
        let line = head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line.map(str::to_owned)
    };
    let total = how.content.len();
    let version = how.etag.or(how.modified).map(str::to_lowercase);
    let same = !how.if_range || header("if-range").is_none_or(|wanted| Some(wanted) == version);
    let from = header("range")
        .filter(|_| how.ranges && same)
        .and_then(|range| range.strip_prefix("bytes=")?.strip_suffix('-')?.parse::<usize>().ok());
    let mut answer = match from {
        Some(from) if from >= total => {
            return write!(
                stream,
                "HTTP/1.1 416 No\r\nContent-Range: bytes */{total}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
        }
        Some(from) => {
            let named = from + how.range_error;
            format!("HTTP/1.1 206 Part\r\nContent-Range: bytes {named}-{}/{total}\r\n", total - 1)
        }
        None => "HTTP/1.1 200 OK\r\n".to_owned(),
    };
    let body = &how.content[from.unwrap_or(0)..];
    for (name, value) in [("ETag", how.etag), ("Last-Modified", how.modified)] {
        if let Some(value) = value {
            answer += &format!("{name}: {value}\r\n");
        }
    }
    if how.ranges {
        answer += "Accept-Ranges: bytes\r\n";
    }
    answer += &match how.length {
        true => format!("Content-Length: {}\r\n", body.len()),
        false => "Transfer-Encoding: chunked\r\n".to_owned(),
    };
    answer += "Connection: close\r\n\r\n";
    stream.write_all(answer.as_bytes())?;
    let end = how.cut.or(how.stall).map_or(body.len(), |end| end.min(body.len()));
    for piece in body[..end].chunks(how.slow.unwrap_or(8192)) {
        if !how.length {
            write!(stream, "{:x}\r\n", piece.len())?;
        }
        stream.write_all(piece)?;
        if !how.length {
            stream.write_all(b"\r\n")?;
        }
        if how.slow.is_some() {
            thread::sleep(Duration::from_millis(20));
        }
    }
    if how.stall.is_some() {
        thread::sleep(Duration::from_secs(60));
    }
    if how.cut.is_none() && !how.length {
        stream.write_all(b"0\r\n\r\n")?;
    }
    Ok(())
}
