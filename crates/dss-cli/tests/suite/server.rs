//! A web server for tests: one file under every name, in full or stalling half-way, or nothing at all.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A running server; it ends with the process.
pub struct Server {
    port: u16,
    gone: Arc<AtomicBool>,
}

impl Server {
    /// Serves the content; after `stall` bytes, if these are not all, nothing follows and the connection stays open.
    pub fn start(content: &[u8], stall: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let gone = Arc::new(AtomicBool::new(false));
        let (content, missing) = (content.to_vec(), gone.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (content, missing) = (content.clone(), missing.load(Ordering::SeqCst));
                // A client that goes away is not a failure of the server.
                thread::spawn(move || drop(serve(stream.unwrap(), &content, stall, missing)));
            }
        });
        Self { port, gone }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/", self.port)
    }

    /// Answers every further request with 404.
    pub fn not_found(&self) {
        self.gone.store(true, Ordering::SeqCst);
    }
}

fn serve(mut stream: TcpStream, content: &[u8], stall: usize, gone: bool) -> std::io::Result<()> {
    let mut head = String::new();
    let mut reader = BufReader::new(stream.try_clone()?);
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    if gone {
        let answer = "HTTP/1.1 404 No\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno";
        return stream.write_all(answer.as_bytes());
    }
    let length = content.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nETag: \"one\"\r\nAccept-Ranges: bytes\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(&content[..stall])?;
    if stall < length {
        thread::sleep(Duration::from_secs(60));
    }
    Ok(())
}
